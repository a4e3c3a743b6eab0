"""What columns have whose headings do not decide it: other headings decide, or the values of the column."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime, time, timedelta
from typing import Literal, TypeAlias

from coaching_service.integrations.history_files import values
from coaching_service.integrations.history_files._dialects import CLIENT_FIELDS, Dialect
from coaching_service.integrations.history_files._headings import is_duration, read_heading
from coaching_service.integrations.history_files._vocabulary import STARTS, Field
from coaching_service.integrations.history_files.columns import ask_for_field
from coaching_service.integrations.history_files.models import Question
from coaching_service.integrations.history_files.tables import Cell, Row, text_of
from coaching_service.integrations.history_files.values import InvalidValue

SAMPLE_ROWS = 10_000  # whose values decide
_NAMES = ("name", "nombre", "nom", "nome")
_TIMES = ("time", "zeit", "tiempo", "temps", "tempo")
# The phases of a repetition, such as 3-1-1-0 or 31X1.
_TEMPO = re.compile(r"[\dx](?:\s*[-/.]\s*[\dx]){2,3}|[\dx]{4}", re.IGNORECASE)
_CLOCK = re.compile(r"(\d{1,2})[:.](\d{2})(?::(\d{2}))?")
_TIME_LABELS = {"time": "The time of day at which the session began", "seconds": "How long a set took"}
_EARLIEST_HOUR = 5  # 1:30 is rather a duration than a time of day
_Kind: TypeAlias = Literal["time", "seconds"]


def needs_values(dialect: Dialect, headings: Sequence[str]) -> bool:
    """Return whether the values of columns decide what they have."""
    return dialect.is_general and any(_is_time(each) for each in headings)


def interpret(dialect: Dialect, headings: Sequence[str], rows: Sequence[Row]) -> tuple[list[str], list[Question]]:
    """Return the headings as the dialect reads them, and the questions that the values of `rows` leave open."""
    read, questions = _with_clients(dialect, headings), list[Question]()
    if not dialect.is_general:
        return read, questions
    dates = [number for number, each in enumerate(read) if dialect.field_of(each) == "date"]
    starts = [number for number in dates if read_heading(read[number]).words in STARTS]
    if len(starts) < len(dates):
        for number in starts:
            read[number] = "Time of day"
    for number, heading in enumerate(headings):
        if not _is_time(heading):
            continue
        column = _Column(dialect, read, number, rows)
        if column.has_tempo():
            read[number] = ""
        elif (kind := column.kind()) is not None:
            hint = read_heading(heading).hint
            read[number] = "Time of day" if kind == "time" else f"Seconds ({hint})" if hint else "Seconds"
        elif column.is_open():
            questions.append(ask_for_field(heading, _TIME_LABELS))
    return read, questions


def find_names(dialect: Dialect, headings: Sequence[str], read: Sequence[str]) -> str | None:
    """Return the heading of a column with names that may be of workouts instead of clients; None without one.

    `read` are the headings as the dialect reads them.
    """
    fields = {dialect.field_of(each) for each in read}
    if "workout" in fields or len(fields.intersection(CLIENT_FIELDS)) > 1:
        return None
    return next((each for each, name in zip(headings, read, strict=True) if name == "Client" and _is_name(each)), None)


def _with_clients(dialect: Dialect, headings: Sequence[str]) -> list[str]:
    """Return headings in which a name is one of a client, unless it may be of an exercise, or another column has it."""
    fields = {dialect.field_of(each) for each in headings}
    if "customer" in fields or not ("exercise" in fields or dialect.expand is not None):
        return list(headings)
    name = "First name" if "lastName" in fields else "Client"
    if name == "First name" and "firstName" in fields:
        return list(headings)
    return [name if _is_name(each) else each for each in headings]


def _is_name(heading: str) -> bool:
    return read_heading(heading).words in _NAMES


def _is_time(heading: str) -> bool:
    return read_heading(heading).words in _TIMES and not is_duration(heading)


class _Column:
    """A column `Time`, with the columns that tell what it has."""

    def __init__(self, dialect: Dialect, headings: Sequence[str], number: int, rows: Sequence[Row]) -> None:
        fields = [dialect.field_of(each) for each in headings]
        self._cells = [(row, cell) for row in rows if (cell := _cell(row, number)) is not None]
        self._has_start = "time" in fields or any(_has_clock(row, fields) for row, _ in self._cells)
        others = [name for index, name in enumerate(fields) if index != number]
        self._has_duration = "seconds" in others or "duration" in others
        self._amounts = [index for index, name in enumerate(fields) if name in ("reps", "load")]
        self._distances = [index for index, name in enumerate(fields) if name == "distance"]
        self._is_beside_date = "date" in fields[max(0, number - 1) : number + 2]
        kinds = [self._kind_of(row, cell) for row, cell in self._cells]
        self._kinds = {each for each in kinds if each not in (None, "open", "beside")}
        self._open = {each for each in kinds if each in ("open", "beside")}

    def has_tempo(self) -> bool:
        """Return whether it has the tempo of repetitions, which is no time."""
        texts = [text_of(cell) for _, cell in self._cells]
        return bool(texts) and all(_TEMPO.fullmatch(text) for text in texts)

    def kind(self) -> _Kind | None:
        """Return what it has; None if its values do not decide it."""
        if self._kinds == {"time"} or (not self._kinds and self._open == {"beside"}):
            return "time"
        return "seconds" if self._kinds == {"seconds"} else None

    def is_open(self) -> bool:
        """Return whether it has values that may be both."""
        return bool(self._kinds or self._open)

    def _kind_of(self, row: Row, cell: Cell) -> _Kind | Literal["open", "beside"] | None:
        kind = _kind_of_value(cell)
        if kind != "open":
            return kind
        if self._has_start:
            return "seconds"
        if self._has_duration or _has_any(row, self._amounts):
            return "time"
        return "beside" if self._is_beside_date and not _has_any(row, self._distances) else "open"


def _kind_of_value(cell: Cell) -> _Kind | Literal["open"] | None:
    """Return what a value is; `open`: a time of day or a duration; None: neither."""
    if isinstance(cell, datetime):
        return "time"
    if isinstance(cell, timedelta):
        return "seconds"
    text = (f"{cell:%H:%M:%S}" if cell.second else f"{cell:%H:%M}") if isinstance(cell, time) else text_of(cell)
    if found := _CLOCK.fullmatch(text):
        hour, minute, second = (int(part or 0) for part in found.groups())
        if not (hour or minute or second):
            return None
        if not _EARLIEST_HOUR <= hour < 24 or minute > 59:
            return "seconds"
        return "time" if found[3] else "open"
    with suppress(InvalidValue):
        return "seconds" if values.read_seconds(cell) else None
    with suppress(InvalidValue):
        return "time" if values.read_clock(cell) else None
    return None


def _has_clock(row: Row, fields: Sequence[Field | None]) -> bool:
    cell = _cell(row, fields.index("date")) if "date" in fields else None
    return cell.time() != time() if isinstance(cell, datetime) else ":" in text_of(cell)


def _has_any(row: Row, columns: Sequence[int]) -> bool:
    return any(text_of(_cell(row, column)) not in ("", "0") for column in columns)


def _cell(row: Row, column: int) -> Cell:
    return row.cells[column] if column < len(row.cells) else None
