"""What a file of done sets has, as its import finds it in the first of two readings."""

from __future__ import annotations

from typing import IO

from coaching_service.integrations.history_files.set_files import Survey
from coaching_service.integrations.history_files.set_files import survey as begin
from coaching_service.integrations.history_files.set_rows import Answers


def survey(file: IO[bytes], answers: Answers) -> Survey:
    """Read a file without a pause."""
    rows = begin(file, answers)
    while True:
        try:
            next(rows)
        except StopIteration as end:
            found: Survey = end.value
            return found
