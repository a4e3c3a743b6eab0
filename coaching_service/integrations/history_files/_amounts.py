"""Amounts with units, and those in the column of repetitions: a time, a distance, the repetitions of several sets."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import time
from functools import lru_cache

from coaching_service.core.text import normalize
from coaching_service.integrations.history_files import _vocabulary, values
from coaching_service.integrations.history_files._headings import Unit, unit_of
from coaching_service.integrations.history_files._vocabulary import Field
from coaching_service.integrations.history_files.tables import Cell
from coaching_service.integrations.history_files.values import DecimalSign, InvalidValue

SEVERAL_SETS = re.compile(r"(?:\d{1,4}|-)(?:\s*/\s*(?:\d{1,4}|-))+")
# What is between the numbers of a list, by the decimal sign; a comma without a space may be that sign.
_BETWEEN = {
    ".": re.compile(r"\s*[/;|,]\s*"),
    ",": re.compile(r"\s*[/;|]\s*|,\s+"),
}
_SEPARATOR = re.compile(r"[/;|,]")
_LISTED = re.compile(r"(-?\d+(?:[.,]\d+)?)\s*([^\d\s]*)")
_IN_LISTS: tuple[Field, ...] = ("reps", "load", "seconds", "distance", "rpe", "rir")
_SECONDS: Mapping[Unit, int] = {"min": 60, "m": 60, "h": 3600}  # no time is in meters
_METERS: tuple[Unit, ...] = ("km", "mi", "m", "yd")
# Words behind an amount that say of what it is, such as `10 each`.
_NO_UNITS = {"a", "cada", "ea", "each", "por", "per", "x"}
# Words behind a number of repetitions.
_REPETITIONS = {
    *("rep", "reps", "repetition", "repetitions", "wdh", "wiederholungen", "repeticiones", "repes", "ripetizioni"),
    *("repeticoes", "e", "s", "l", "r", "left", "right", "side", "sides", "leg", "legs", "arm", "arms", "hand", "pro"),
    *("je", "seite", "bein", "arm", "lado", "pierna", "brazo", "par", "cote", "jambe", "bras", "lato", "gamba"),
    *("amrap", "max", *_NO_UNITS),
}
_WORD = re.compile(r"[^\W\d_]+")


def expand(
    cells: Mapping[Field, tuple[Cell, Unit | None]], sign: DecimalSign | None
) -> Iterator[dict[Field, tuple[Cell, Unit | None]]]:
    """Yield the sets of a row: `5/5/4` are three, `30s` is a time and `400 m` a distance in their own columns.

    Other lists, such as loads of `100/95`, are of as many sets as the column of sets or `5/5/4` counts.
    """
    cell = cells.get("reps", (None, None))[0]
    is_counted = isinstance(cell, str) and SEVERAL_SETS.fullmatch(cell.strip()) and not values.is_made_date(cell)
    lists = {name: parts for name in _IN_LISTS if (parts := list_in(cells.get(name, (None, None))[0], sign))}
    count = len(lists["reps"]) if is_counted else count_sets(cells)
    if count > 1 and any(len(parts) == count for parts in lists.values()):
        for number in range(count):
            of_set = {name: (parts[number], cells[name][1]) for name, parts in lists.items() if len(parts) == count}
            yield {**cells, "sets": (None, None), **of_set}
        return
    name = _column_of(cell)
    if name == "reps" or cells.get(name, (None, None))[0] is not None:
        yield dict(cells)
    else:
        yield {**cells, "reps": (None, None), name: (_seconds(cell) if name == "seconds" else cell, None)}


def list_in(cell: Cell, sign: DecimalSign | None) -> list[Cell]:
    """Return the numbers of a cell with several, such as `100/95 kg` or `5/5/-` (0: not done); else an empty list.

    `sign` is before decimals in the file; before it is known, a comma between two digits is one.
    """
    if not isinstance(cell, str) or not _SEPARATOR.search(cell) or values.is_made_date(cell):
        return []
    text = cell.strip()
    if sign == "." and values.is_plain_number(text) and "." in values.decimal_signs(text):  # thousands
        return []
    parts = _BETWEEN["." if sign == "." or text.count(",") > 1 else ","].split(text)
    found = [_LISTED.fullmatch("0" if part in ("-", "\u2013") else part) for part in parts]
    known = [each for each in found if each is not None]
    if len(parts) < 2 or len(known) < len(parts):
        return []
    return [f"{each[1]} {each[2] or known[-1][2]}".strip() for each in known]


def count_sets(cells: Mapping[Field, tuple[Cell, Unit | None]]) -> int:
    """Return how many sets the column of sets says that a row has; 0 if it has none, or no number."""
    with suppress(InvalidValue, OverflowError):
        return int(values.read_number(cells.get("sets", (None, None))[0]) or 0)
    return 0


def read_amount(
    cell: Cell, of_heading: Unit | None, in_column: str, sign: DecimalSign | None
) -> tuple[float | None, Unit | None]:
    """Return a load or distance, None without one, and its unit: behind it, of its heading, or in the column of units.

    Raises InvalidValue for a percentage, and for another word where the unit is.
    """
    quantity = values.read_quantity(cell, sign)
    if quantity is None or quantity.amount == 0:
        return None, None
    if quantity.unit.startswith("%"):
        raise InvalidValue("is a percentage")
    for written in (quantity.unit, in_column if of_heading is None else ""):
        word = _WORD.match(written)
        if word is None or word.group().casefold() in _NO_UNITS:
            continue
        if (unit := unit_of(word.group())) is None:
            raise InvalidValue(f"has a unit that is not known: {written[:50]}")
        return quantity.amount, unit
    return quantity.amount, of_heading


def read_repetitions(cell: Cell, sign: DecimalSign | None) -> float | None:
    """Return a number of repetitions, 0 of a failed attempt. Raises InvalidValue for a number of something else."""
    if isinstance(cell, str) and values.is_made_date(cell):
        raise InvalidValue(values.MADE_DATE)
    if isinstance(cell, str) and normalize(cell) in _vocabulary.FAILED:
        return 0.0
    quantity = values.read_quantity(cell, sign)
    if quantity is None:
        return None
    is_other = _column_of(cell) != "reps" or quantity.unit == "%"
    if quantity.unit and (is_other or not _REPETITIONS.issuperset(_WORD.findall(quantity.unit))):
        raise InvalidValue("must be a number of repetitions")
    return quantity.amount


def seconds_in_unit(cell: Cell, unit: Unit | None) -> int:
    """Return by what a duration is multiplied that has been read as seconds, with the unit of its heading."""
    if unit == "h" and isinstance(cell, str) and cell.count(":") == 1:  # 1:05 is hours and minutes
        return 60
    return _SECONDS.get(unit, 1) if unit is not None and values.is_plain_number(cell) else 1


@lru_cache(maxsize=1024)  # rows repeat the same amounts
def _column_of(cell: Cell) -> Field:
    """Return the column in which a cell of repetitions belongs."""
    if isinstance(cell, time):
        return "seconds"
    if isinstance(cell, str):
        with suppress(InvalidValue):
            quantity = values.read_quantity(cell)
            if quantity is None or not quantity.unit:
                return "reps"
            if unit_of(quantity.unit) in _METERS:
                return "distance"
        with suppress(InvalidValue):
            values.read_seconds(cell)
            return "seconds"
    return "reps"


def _seconds(cell: Cell) -> Cell:
    """Return a time as it is read: spreadsheets make 1:30 hours and minutes."""
    return cell.hour * 60 + cell.minute if isinstance(cell, time) else cell
