"""Planned sets in the cells of a sheet: what coaches write for repetitions, loads, rests and tempos."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import date, datetime, time
from typing import Literal

from coaching_service.core.text import normalize
from coaching_service.integrations.history_files import values
from coaching_service.integrations.history_files._headings import Unit, unit_of
from coaching_service.integrations.history_files.tables import Cell, text_of
from coaching_service.integrations.history_files.values import DecimalSign, InvalidValue
from coaching_service.training.set_text import SetTextError, parse_planned
from coaching_service.training.workouts.sets import PlannedSet, SetType

PlanField = Literal["sets", "reps", "load", "percent", "rpe", "rir", "rest", "tempo"]
PLAN_FIELDS: tuple[PlanField, ...] = ("sets", "reps", "load", "percent", "rpe", "rir", "rest", "tempo")
# The cells of a row, each with the unit that its heading has.
PlanCells = Mapping[PlanField, tuple[Cell, Unit | None]]
# Loads that are none.
_WITH_LOAD: dict[SetType, SetType] = {"reps": "reps_load", "time": "time_load", "distance": "distance_load"}
_NO_LOAD = {"bw", "bodyweight", "body weight", "peso corporal", "sin peso", "none", "-", "n/a"}
_AMRAP = {"max", "amrap", "al fallo", "fallo", "failure", "to failure", "f"}
_SETS_TEXT = re.compile(r"\d\s*[x×]\s*\S", re.IGNORECASE)
_COUNT = re.compile(r"(\d{1,3})(?:\s*(?:sets?|series?|x))?", re.IGNORECASE)
_LIST = re.compile(r"\d+\+?(?:\s*[,;/]\s*\d+\+?)+")
_PERCENT = re.compile(r"@?\s*(\d+(?:[.,]\d+)?)\s*%(?:\s*(?:of\s+)?1?\s*rm)?", re.IGNORECASE)
_EFFORT = re.compile(r"(?:(rpe|rir)\s*|@\s*)(\d+(?:[.,]\d+)?)(?:\s*(rpe|rir))?", re.IGNORECASE)
_RANGE = re.compile(r"(?<=\d)\s*(?:to|bis|a|-|–|—)\s*(?=\d)", re.IGNORECASE)
_SIDE = re.compile(
    r"\s*(?:/\s*(?:side|leg|arm|lado)|(?:per|each|por|cada)\s*(?:side|leg|arm|lado|pierna|brazo)|each|e/s|ea\.?)$",
    re.IGNORECASE,
)
_REPS_WORD = re.compile(r"\s*(?:reps?|repetitions|repeticiones)\b\.?", re.IGNORECASE)
_SECONDS_WORD = re.compile(r"\s*(?:secs?|seconds|segundos|seg)\b\.?", re.IGNORECASE)
_MINUTES_WORD = re.compile(r"\s*(?:mins?|minutes|minutos)\b\.?", re.IGNORECASE)
_METERS_WORD = re.compile(r"\s*(?:meters|metres|metros|mts?)\b\.?", re.IGNORECASE)
_MINUTES_UP_TO = 10  # a rest of 2 is two minutes, one of 90 is seconds
_LONGEST_TEMPO = 20
_AMOUNTS = ("minPlannedReps", "maxPlannedReps", "minPlannedSeconds", "maxPlannedSeconds", "plannedMeters", "isAmrap")


@dataclass
class ReadSets:
    """The sets of a row; `left_out` are the cells that could not be read, by field, with why."""

    sets: list[PlannedSet]
    left_out: dict[PlanField, str] = field(default_factory=dict)


def is_empty(cells: PlanCells) -> bool:
    """Return whether a row plans no sets."""
    return all(cell is None for cell, _ in cells.values())


def cell_text(name: PlanField, cell: Cell, unit: Unit | None) -> str:
    """Return a cell as a text that means the same below a heading without a unit."""
    if name == "reps" and isinstance(cell, datetime | date | time):
        return _reps_of(cell)
    if name == "rest" and isinstance(cell, time):
        return f"{_read_rest(cell, None) or 0:.10g}s"
    text = text_of(cell)
    return f"{text} {unit}" if unit in ("kg", "lb", "min") and values.is_plain_number(cell) else text


def is_sets_text(text: str) -> bool:
    """Return whether a text says how many sets there are of what, such as `3x8`."""
    return _SETS_TEXT.search(text) is not None


def has_number(planned: PlannedSet) -> bool:
    """Return whether a set has an amount, a load or an effort."""
    return any(planned.get(name) for name in (*_AMOUNTS, "load", "loadPercent", "rpe")) or planned["rir"] is not None


def read_sets(cells: PlanCells, load_unit: str, sign: DecimalSign | None = None) -> ReadSets:
    """Return the sets that cells plan, with loads in `load_unit`; cells that cannot be read are left out.

    `sign` is before the decimals of loads in all of the file; None: each cell decides.
    """
    read = ReadSets([])
    text = _text(cells, "sets")
    if is_sets_text(text):
        try:
            read.sets = parse_planned(text, load_unit)
        except SetTextError as error:
            read.left_out["sets"] = error.problem
    if not read.sets:
        read.sets = _sets_of_columns(cells, load_unit, read, sign)
    else:
        _check_reps(cells, load_unit, read)
        _add_load(cells, load_unit, read, sign)
    for name, read_cell in _EXTRAS.items():
        try:
            value = read_cell(*cells.get(name, (None, None)))
        except InvalidValue as error:
            read.left_out[name] = str(error)
            continue
        for each in read.sets if value is not None else ():
            if each[name] is None:
                each[name] = value
            elif each[name] != value:
                read.left_out[name] = "is left out, as another cell of the row has another one"
    return read


def _check_reps(cells: PlanCells, load_unit: str, read: ReadSets) -> None:
    """Report repetitions that differ from those in the cell of sets."""
    reps = _reps_of(cells.get("reps", (None, None))[0])
    if not reps:
        return
    with suppress(SetTextError):
        (planned,) = parse_planned(f"1x{reps}", load_unit)
        if all(_amounts_of(each) == _amounts_of(planned) for each in read.sets):
            return
    read.left_out["reps"] = "is left out, as the cell of sets has the repetitions"


def _amounts_of(planned: PlannedSet) -> list[object]:
    return [planned.get(name) for name in _AMOUNTS]


def _sets_of_columns(cells: PlanCells, load_unit: str, read: ReadSets, sign: DecimalSign | None) -> list[PlannedSet]:
    """Return the sets of a number of sets and their repetitions, times or distances."""
    count = _read_count(cells, read)
    cell = cells.get("reps", (None, None))[0]
    if isinstance(cell, str) and values.is_made_date(cell):
        read.left_out["reps"] = values.MADE_DATE
        cell = None
    reps = _reps_of(cell)
    groups = [f"1x{each}" for each in re.split(r"\s*[,;/]\s*", reps)] if _LIST.fullmatch(reps) else None
    if groups is not None and count not in (None, len(groups)):
        read.left_out["sets"] = f"does not fit the {len(groups)} numbers of repetitions"
    text = ", ".join(groups) if groups else f"{count or 1}x{reps or '?'}"
    try:
        sets = parse_planned(text, load_unit)
    except SetTextError:
        read.left_out["reps"] = "is no number of repetitions (8 or 8-10), time (30s), distance (400m) or AMRAP"
        sets = parse_planned(f"{count or 1}x?", load_unit)
    read.sets = sets
    _add_load(cells, load_unit, read, sign)
    return read.sets


def _read_count(cells: PlanCells, read: ReadSets) -> int | None:
    text = _text(cells, "sets")
    found = _COUNT.fullmatch(text)
    if text and (found is None or not 1 <= int(found[1]) <= 100):
        read.left_out.setdefault("sets", "must be a number of sets from 1 to 100")
        return None
    return None if found is None else int(found[1])


def _reps_of(cell: Cell) -> str:
    """Return repetitions in the grammar of sets; spreadsheets make a date of 8-10."""
    if isinstance(cell, datetime | date):
        low, high = sorted((cell.month, cell.day))
        return f"{low}-{high}"
    if isinstance(cell, time):  # 1:30 is a minute and a half
        return f"{cell.hour * 60 + cell.minute}s"
    text = text_of(cell)
    if normalize(text) in _AMRAP:
        return "AMRAP"
    side = "/side" if _SIDE.search(text) else ""
    text = _SIDE.sub("", text)
    for words, unit in ((_REPS_WORD, ""), (_SECONDS_WORD, "s"), (_MINUTES_WORD, "min"), (_METERS_WORD, "m")):
        text = words.sub(unit, text)
    return f"{_RANGE.sub('-', text).strip()}{side}"


def _add_load(cells: PlanCells, load_unit: str, read: ReadSets, sign: DecimalSign | None) -> None:
    """Add the load or the percentage of a row to its sets, and the effort that stands in the column of loads."""
    load = _load_text(cells, load_unit, read, sign)
    if load is None:
        return
    try:
        (priced,) = parse_planned(f"1x1 @{load}", load_unit)
    except SetTextError as error:
        read.left_out["percent" if load.endswith("%") else "load"] = error.problem
        return
    for each in read.sets:
        if _has_load(each):
            if (each.get("load"), each.get("loadPercent")) != (priced.get("load"), priced.get("loadPercent")):
                read.left_out["load" if _text(cells, "load") else "percent"] = (
                    "is left out, as the cell of sets has a load"
                )
            continue
        each["type"] = _WITH_LOAD.get(each["type"], each["type"])
        each["load"], each["loadPercent"] = priced.get("load"), priced.get("loadPercent")


def _has_load(planned: PlannedSet) -> bool:
    return planned.get("load") is not None or planned.get("loadPercent") is not None


def _load_text(cells: PlanCells, load_unit: str, read: ReadSets, sign: DecimalSign | None) -> str | None:
    """Return the load of a row in the grammar of sets, such as `60kg` or `70%`; None without one.

    A percentage in a row with a load is reported: a set is planned with one of them.
    """
    load = _load_of_column(cells, load_unit, read, sign)
    percent = _percent_text(cells.get("percent", (None, None))[0], read)
    if load is not None and percent not in (None, load):
        read.left_out["percent"] = "is left out, as the row has a load"
    return load or percent


def _load_of_column(cells: PlanCells, load_unit: str, read: ReadSets, sign: DecimalSign | None) -> str | None:
    cell, heading_unit = cells.get("load", (None, None))
    text = text_of(cell)
    if percent := _PERCENT.fullmatch(text):
        return f"{percent[1].replace(',', '.')}%"
    if effort := _EFFORT.fullmatch(text):
        name = (effort[1] or effort[3] or "rpe").lower()
        _add_effort("rir" if name == "rir" else "rpe", effort[2], read)
    elif sign is None and isinstance(cell, str) and len(values.decimal_signs(cell)) > 1:
        read.left_out["load"] = "may have thousands or decimals"
    elif text and normalize(text) not in _NO_LOAD:
        try:
            quantity = values.read_quantity(cell, sign)
        except InvalidValue:
            quantity = None
        unit = None if quantity is None else unit_of(quantity.unit) if quantity.unit else heading_unit or load_unit
        if quantity is None or unit not in ("kg", "lb"):
            read.left_out["load"] = "is no load (60, 60 kg, 135 lbs or 70%)"
        elif quantity.amount:
            return f"{quantity.amount:.10g}{unit}"
    return None


def _percent_text(cell: Cell, read: ReadSets) -> str | None:
    if not (text := text_of(cell)):
        return None
    with suppress(InvalidValue):
        if values.is_plain_number(cell) and (number := values.read_number(cell)) is not None:
            return f"{number * 100 if 0 < number <= 1.5 else number:.6g}%" if number else None  # 0.7 is 70%
    found = _PERCENT.fullmatch(text)
    if found is None:
        read.left_out["percent"] = "is no percentage (70%)"
        return None
    return f"{found[1].replace(',', '.')}%"


def _add_effort(name: Literal["rpe", "rir"], number: str, read: ReadSets) -> None:
    try:
        value = _read_effort(name, number)
    except InvalidValue as error:
        read.left_out["load"] = str(error)
        return
    for each in read.sets:
        each[name] = value


def _read_effort(name: Literal["rpe", "rir"], cell: Cell) -> float | None:
    found = _EFFORT.fullmatch(cell) if isinstance(cell, str) else None
    amount = values.read_number(found[2] if found else cell)
    low = 1 if name == "rpe" else 0
    if amount is not None and not low <= amount <= 10:
        raise InvalidValue(f"must be a number from {low} to 10")
    return amount


def _read_rest(cell: Cell, unit: Unit | None) -> float | None:
    if isinstance(cell, time):  # 1:30 is a minute and a half
        return float(cell.hour * 60 + cell.minute) if not cell.second else values.read_seconds(cell)
    seconds = values.read_seconds(cell)
    is_plain = isinstance(cell, int | float) or (isinstance(cell, str) and cell.strip().replace(".", "").isdigit())
    if seconds is not None and is_plain and (unit == "min" or (unit is None and seconds <= _MINUTES_UP_TO)):
        seconds *= 60
    if seconds is not None and not 0 <= seconds <= 86_400:
        raise InvalidValue("must be a time such as 90 s or 2 min")
    return seconds or None


def _read_tempo(cell: Cell, _: Unit | None) -> str | None:
    text = text_of(cell)
    if values.is_made_date(text):
        raise InvalidValue(values.MADE_DATE)
    if len(text) > _LONGEST_TEMPO:
        raise InvalidValue(f"must not be longer than {_LONGEST_TEMPO} characters")
    return text or None


_EXTRAS: Mapping[Literal["rpe", "rir", "rest", "tempo"], Callable[[Cell, Unit | None], float | str | None]] = {
    "rpe": lambda cell, _: _read_effort("rpe", cell),
    "rir": lambda cell, _: _read_effort("rir", cell),
    "rest": _read_rest,
    "tempo": _read_tempo,
}


def _text(cells: PlanCells, name: PlanField) -> str:
    return text_of(cells.get(name, (None, None))[0])
