"""Rows of TrainHeroic: an exercise with its sets as text, such as `6, 6, 6 rep x 40, 40, 40 pound`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from coaching_service.integrations.history_files._headings import Unit, read_heading, unit_of
from coaching_service.integrations.history_files._vocabulary import Field, by_words
from coaching_service.integrations.history_files.tables import Cell

# Headings without their spaces; a later one replaces an earlier one for the same field.
_COLUMNS: dict[str, Field] = {
    "workouttitle": "workout",
    "scheduleddate": "date",
    "rescheduleddate": "date",
    "workoutnotes": "workoutNotes",
    "exercisetitle": "exercise",
    "exercisenotes": "notes",
    "athlete": "customer",
    "client": "customer",
}
_LIST = re.compile(
    r"\s*(?P<values>(?:-?[\d.]+|AMRAP)(?:\s*,\s*(?:-?[\d.]+|AMRAP))*)\s*(?P<unit>[a-z%]*)\s*", re.IGNORECASE
)
_FIELDS: Mapping[str, Field] = by_words(
    {"reps": ("rep", "reps"), "seconds": ("second", "seconds", "sec"), "rpe": ("rpe",)}
)
_SECONDS_OF = {"minute": 60.0, "minutes": 60.0, "min": 60.0}


def expand(headings: Sequence[str], cells: Sequence[Cell]) -> Iterator[dict[Field, tuple[Cell, Unit | None]]]:
    """Yield the sets of a row."""
    pairs = zip(headings, cells, strict=False)
    words = {read_heading(heading).words.replace(" ", ""): cell for heading, cell in pairs if cell is not None}
    shared: dict[Field, tuple[Cell, Unit | None]] = {
        name: (words[column], None) for column, name in _COLUMNS.items() if column in words
    }
    sets = list(_sets_of(str(words.get("exercisedata", ""))))
    for number, of_set in enumerate(sets, start=1):
        yield {**shared, "set": (number, None), **of_set}
    if not sets:
        yield shared


def reads(heading: str) -> bool:
    """Return whether the column of a heading is read."""
    return read_heading(heading).words.replace(" ", "") in {*_COLUMNS, "exercisedata"}


def _sets_of(data: str) -> Iterator[dict[Field, tuple[Cell, Unit | None]]]:
    """Yield the quantities of each set; one value stands for all sets. Parts that are none are in `leftOut`."""
    parts = [part for part in re.split(r"\s+x\s+", data) if part.strip() and part.strip().casefold() != "bodyweight"]
    quantities = [quantity for part in parts if (quantity := _quantity(part)) is not None]
    left_out = [part.strip() for part in parts if _quantity(part) is None]
    for index in range(max((len(values) for _, values, _ in quantities), default=0)):
        yield {
            "leftOut": (", ".join(left_out) or None, None),
            **{
                name: (values[min(index, len(values) - 1)], unit)
                for name, values, unit in quantities
                if index < len(values) or len(values) == 1
            },
        }


def _quantity(part: str) -> tuple[Field, list[Cell], Unit | None] | None:
    """Return the field, the values and the unit of a part; None for percentages and what is not known."""
    found = _LIST.fullmatch(part)
    if found is None:
        return None
    values: list[Cell] = [_value(value) for value in re.split(r"\s*,\s*", found["values"])]
    word = found["unit"].casefold()
    if word in _FIELDS or "AMRAP" in values:
        return _FIELDS.get(word, "reps"), values, None
    if word in _SECONDS_OF:
        factor = _SECONDS_OF[word]
        return "seconds", [value * factor if isinstance(value, float) else value for value in values], None
    unit = unit_of(word)
    if unit is None:
        return None
    return ("load" if unit in {"kg", "lb"} else "distance"), values, unit


def _value(text: str) -> Cell:
    """Return a number; AMRAP and what is none stay texts, which are reported as values that cannot be read."""
    try:
        return float(text)
    except ValueError:
        return text.upper()
