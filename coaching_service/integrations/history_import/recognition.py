"""Which kind of table a file is: training history, or clients."""

from __future__ import annotations

from typing import IO

from coaching_service.integrations.history_files import rosters
from coaching_service.integrations.history_files.set_rows import SetFile, UnknownFormat
from coaching_service.integrations.history_files.tables import UnreadableTable, read_tables
from coaching_service.integrations.history_import.answers import reading_answers
from coaching_service.integrations.history_import.models import StoredAnswers


def is_history(file: IO[bytes], answers: StoredAnswers | None) -> bool:
    """Return whether a table has done sets; otherwise it has clients.

    Raises UnknownFormat for one that has neither, UnreadableTable for a workbook that cannot be opened.
    """
    if answers is None or answers["format"] == "customers":
        return False
    if answers["format"] is not None:
        return True
    try:
        for _ in SetFile(file, reading_answers(answers)).rows():
            break
    except UnknownFormat:
        if _has_clients(file):
            return False
        raise
    except UnreadableTable:
        if _is_archive(file):
            raise
        return False
    finally:
        file.seek(0)
    return True


def _is_archive(file: IO[bytes]) -> bool:
    file.seek(0)
    return file.read(2) == b"PK"


def _has_clients(file: IO[bytes]) -> bool:
    """Return whether any of the headings is one of a table of clients."""
    file.seek(0)
    tables = read_tables(file, rosters.count_headings)
    return any(rosters.count_headings(table.headings) for table in tables)
