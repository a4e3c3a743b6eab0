"""Columns of tables of sets: the answers about them, those that are missing, and those that repeat another one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from coaching_service.integrations.history_files._dialects import CLIENT_FIELDS, DIALECTS, Dialect
from coaching_service.integrations.history_files._headings import Unit, read_heading, words_of
from coaching_service.integrations.history_files._vocabulary import Field
from coaching_service.integrations.history_files.models import Problem, ProblemKind, Question
from coaching_service.integrations.history_files.tables import Row, Table

Columns = Mapping[str, Field | Literal[""]]

# A heading that every dialect reads as the field.
_HEADING_OF: Mapping[str, str] = {
    "customer": "Client",
    "date": "Date",
    "time": "Time of day",
    "duration": "Workout duration",
    "workout": "Workout name",
    "exercise": "Exercise",
    "set": "Set",
    "setKind": "Set type",
    "isWarmup": "Is warmup",
    "reps": "Reps",
    "load": "Weight",
    "loadUnit": "Weight unit",
    "distance": "Distance",
    "seconds": "Seconds",
    "rpe": "RPE",
    "rir": "RIR",
    "notes": "Notes",
}
SET_DURATION = "Set duration"
# What an answer may say that a column has.
FIELDS = tuple(_HEADING_OF)

# The fields that a table of sets needs: each is there if one of the group is.
_REQUIRED: Mapping[Field, tuple[Field, ...]] = {
    "date": ("date",),
    "exercise": ("exercise",),
    "reps": ("reps", "load", "distance", "seconds"),
}
_WORDS: Mapping[Field, str] = {"date": "date", "exercise": "name of the exercise", "reps": "repetitions"}
SETS = next(each for each in DIALECTS if each.format == "sets")


@dataclass(frozen=True)
class MissingColumns:
    """The fields that a table needs and has no column of, and the headings that may have them."""

    fields: Sequence[Field]
    headings: Sequence[str]

    @property
    def questions(self) -> list[Question]:
        """The questions which columns have the fields."""
        return [ask_for_column(name, _WORDS[name], self.headings) for name in self.fields]


def ask_for_column(name: str, words: str, headings: Sequence[str]) -> Question:
    """Return the question which column has a field; the answer is sent in `columns`."""
    return {
        "code": "COLUMN",
        "message": f"Which column has the {words}?",
        "options": list(headings),
        "name": name,
    }


def ask_for_field(heading: str, labels: Mapping[str, str]) -> Question:
    """Return the question what a column has; `labels` are the possible fields in words."""
    return {
        "code": "COLUMN",
        "message": f"What does the column {heading[:50]} have?",
        "options": list(labels),
        "name": heading,
        "labels": list(labels.values()),
    }


def renamed(heading: str, columns: Columns) -> str:
    """Return a heading as the dialects read it, after the answers about columns."""
    if (answer := columns.get(heading)) is None:
        return heading
    hint = read_heading(heading).hint
    name = _HEADING_OF.get(answer, "")
    return f"{name} ({hint})" if name and hint else name


def with_durations(headings: Sequence[str]) -> list[str]:
    """Return headings of a table of sets in which a duration is of a set, if it has neither repetitions nor loads."""
    fields = [SETS.field_of(each) for each in headings]
    if {"reps", "load", "seconds"} & {*fields}:
        return list(headings)
    hints = {each: hint for each in headings if (hint := read_heading(each).hint)}
    return [
        (f"{SET_DURATION} ({hints[each]})" if each in hints else SET_DURATION) if name == "duration" else each
        for each, name in zip(headings, fields, strict=True)
    ]


def find_missing(dialect: Dialect, headings: Sequence[str], read: Sequence[str]) -> MissingColumns | None:
    """Return what a table lacks of a dialect; None if it can be read.

    `read` are its headings as the dialect reads them.
    """
    if dialect.expand is not None or dialect.matches(words_of(read)):
        return None
    known = [dialect.field_of(each) for each in read]
    missing = [name for name, group in _REQUIRED.items() if not {*known} & {*group}]
    if not missing:
        return None
    free = [heading for heading, field in zip(headings, known, strict=True) if heading and field is None]
    return MissingColumns(missing, list(dict.fromkeys(free or filter(None, headings))))


def is_near(headings: Sequence[str]) -> bool:
    """Return whether a table lacks one field only to be one of sets, and has a column that may have it."""
    is_free = any(heading and SETS.field_of(heading) is None for heading in headings)
    return is_free and SETS.count_marks(words_of(headings)) == len(SETS.marks) - 1


def find_unused(dialect: Dialect, headings: Sequence[str], read: Sequence[str], columns: Columns) -> dict[int, str]:
    """Return the columns that are not read, unless the caller said so, or have what an earlier one has, with the codes.

    Those without a heading are not read. The same loads in another unit are no repetition. `read` are the headings as
    the dialect reads them.
    """
    if dialect.reads is not None:
        return {
            number: "UNKNOWN_COLUMN"
            for number, (heading, name) in enumerate(zip(headings, read, strict=True))
            if heading and columns.get(heading) != "" and not dialect.reads(name)
            if dialect.field_of(name) not in CLIENT_FIELDS
        }
    first_of: dict[Field, tuple[int, Unit | None]] = {}
    unused = {number: "UNKNOWN_COLUMN" for number, heading in enumerate(headings) if not heading}
    for number, (heading, name) in enumerate(zip(headings, read, strict=True)):
        known = dialect.field_of(name)
        if known is None:
            if heading and columns.get(heading) != "" and read_heading(name).words not in dialect.columns:
                unused[number] = "UNKNOWN_COLUMN"
            continue
        own_unit = read_heading(name).unit
        first, unit = first_of.setdefault(known, (number, own_unit))
        if first != number and unit == own_unit:
            unused[number] = "REPEATED_COLUMN"
    return unused


def unread_column(number: int, heading: str = "", code: str = "UNKNOWN_COLUMN") -> ProblemKind:
    """Return the kind of problem of a column that is not read, before its cells are counted."""
    return {"code": code, "column": heading[:100] or f"column {number + 1}", "count": 0, "lines": []}


def count_surplus(row: Row, headings: Sequence[str]) -> int:
    """Return how many cells of a row are behind the last heading."""
    return sum(cell is not None for cell in row.cells[len(headings) :])


def too_many_cells(surplus: int) -> str:
    """Return in words that a row has more cells than there are headings."""
    return f"has {surplus} more {'cell' if surplus == 1 else 'cells'} than there are columns"


def unknown_column(table: Table, heading: str) -> Problem:
    """Return the problem of a column that is not read."""
    return _of_column(table, heading, "UNKNOWN_COLUMN", "is not a known column and is left out")


def repeated_column(table: Table, heading: str) -> Problem:
    """Return the problem of a column that has what an earlier one has."""
    message = "has what an earlier column has, and is read only where that one is empty"
    return _of_column(table, heading, "REPEATED_COLUMN", message)


def unknown_sheet(table: Table, kind: str) -> Problem:
    """Return the problem of a sheet that is not read: it has no table of this kind."""
    return {
        "entry": table.name or table.place,
        "line": table.line,
        "field": table.name[:100] or None,
        "code": "UNKNOWN_SHEET",
        "message": f"is a sheet without a table of {kind} and is left out",
    }


def _of_column(table: Table, heading: str, code: str, message: str) -> Problem:
    return {"entry": table.place, "line": table.line, "field": heading[:100], "code": code, "message": message}
