"""Which kind of table a file is: training history, or clients."""

from __future__ import annotations

from typing import IO

from coaching_service.integrations.history_files import rosters
from coaching_service.integrations.history_files.set_rows import SetFile, UnknownFormat
from coaching_service.integrations.history_files.tables import UnreadableTable
from coaching_service.integrations.history_import.answers import reading_answers
from coaching_service.integrations.history_import.models import StoredAnswers


def is_history(file: IO[bytes], answers: StoredAnswers | None) -> bool:
    """Return whether a table has done sets; otherwise it has clients.

    Raises UnknownFormat for one that has neither, UnreadableTable for a file that is no table.
    """
    if answers is None or answers["format"] == "customers":
        return False
    if answers["format"] is not None:
        return True
    try:
        for _ in SetFile(file, reading_answers(answers)).rows():
            break
    except UnknownFormat:
        if _is_roster(file):
            return False
        raise
    finally:
        file.seek(0)
    return True


def _is_roster(file: IO[bytes]) -> bool:
    file.seek(0)
    try:
        roster = rosters.read_roster(file)
    except UnreadableTable:
        return False
    return bool(roster.rows)
