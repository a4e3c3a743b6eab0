"""Which kind of table a file is: training history, or clients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import IO, Any, cast

from coaching_service.integrations.history_files import rosters
from coaching_service.integrations.history_files.set_files import SetFile, UnknownFormat
from coaching_service.integrations.history_files.tables import Cell, UnreadableTable, read_tables
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
    source = SetFile(file, reading_answers(answers))
    try:
        for _ in source.rows():
            break
        if source.missing is not None and "exercise" in source.missing.fields and _has_clients(file, answers):
            return False
    except UnknownFormat:
        if _has_clients(file, answers):
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


def _has_clients(file: IO[bytes], answers: StoredAnswers) -> bool:
    """Return whether any of the headings is one of a table of clients, after the answers about columns."""
    columns = cast("Any", {each["heading"]: each["field"] for each in answers["columns"]})

    def count(cells: Sequence[Cell]) -> int:
        return rosters.count_headings(cells, columns)

    file.seek(0)
    return any(count(table.headings) for table in read_tables(file, count))
