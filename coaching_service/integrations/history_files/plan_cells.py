"""Planned sets in the cells of a sheet, and the weeks and days that sheets name."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import date, datetime, time
from typing import Literal

from coaching_service.core.text import normalize
from coaching_service.integrations.history_files import values
from coaching_service.integrations.history_files.tables import Cell, text_of
from coaching_service.training.set_text import SetTextError, parse_planned
from coaching_service.training.workouts.sets import PlannedSet, SetType

_WEEKDAYS = (
    ("monday", "mon", "lunes", "lun"),
    ("tuesday", "tue", "tues", "martes", "mar"),
    ("wednesday", "wed", "miercoles", "mie"),
    ("thursday", "thu", "thur", "thurs", "jueves", "jue"),
    ("friday", "fri", "viernes", "vie"),
    ("saturday", "sat", "sabado", "sab"),
    ("sunday", "sun", "domingo", "dom"),
)
_WEEKDAY_OF = {name: number for number, names in enumerate(_WEEKDAYS, start=1) for name in names}
_REST = {"rest", "rest day", "off", "day off", "descanso", "dia de descanso", "dia libre", "ruhetag", "repos", "riposo"}
_WEEK = re.compile(r".*\b(?:week|wk|semana|sem|woche|semaine|settimana|w|s)\s*\.?\s*(\d{1,3})\b.*")
_DAY = re.compile(
    r"(?:day|dia|tag|jour|giorno|session|sesion|workout|d)?\s*(\d+)\s*(?:[-:.–—,)]\s*(.*))?", re.IGNORECASE
)
# Rows with nothing else say so which week and day the rows below are of; a sheet has `Week 1` above `Sets` and `Reps`.
_WEEK_LABEL = re.compile(
    r"(?:week|wk|semana|sem|woche|semaine|settimana|w)\s*\.?\s*(\d{1,3})\b\s*[-:.–—,(]?\s*(.*?)\)?"
)
_DAY_LABEL = re.compile(
    r"(?:day|dia|tag|jour|giorno|session|sesion|workout|training|entrenamiento)\s*(?:\d{1,3}|[a-h])\b.*"
)
_WORD = re.compile(r"([^\W\d]+)\.?\s*(?:[-:–—,(]\s*(.*?)\)?)?")
DAYS_OF_WEEK = 7
LAST_DAY = 3_660
_DIGITS = 6
REST_DAY = "Rest day"


def is_rest(text: str) -> bool:
    """Return whether a cell says that there is no training."""
    return normalize(text) in _REST


def is_possible(text: str) -> bool:
    """Return whether a text is not the number of a day behind the last one that a program can have."""
    found = _DAY.fullmatch(normalize(text.strip()))
    return found is None or values.is_made_date(text) or (len(found[1]) <= _DIGITS and int(found[1]) <= LAST_DAY)


def week_in(text: str) -> int | None:
    """Return the number of the week that a text names; None if it names none."""
    found = _WEEK.fullmatch(normalize(text))
    return int(found[1]) if found is not None and 1 <= int(found[1]) <= LAST_DAY // DAYS_OF_WEEK else None


def without_number(text: str) -> str:
    """Return the name behind the number of a day: `Push` of `Day 1 - Push`."""
    return re.sub(r"^\D*\d+\s*[-:.–—,)]?\s*", "", text)


def label_in(text: str) -> tuple[int | None, str] | None:
    """Return the week and the day of a text that names nothing else, such as `Week 1 - Day 2: Upper`.

    The week is None, or the day empty, if the text does not say it.
    """
    plain = " ".join(text.split())
    week = _WEEK_LABEL.fullmatch(normalize(plain))
    day = plain if week is None else plain[len(plain) - len(week[2]) :] if week[2] else ""
    word = _WORD.fullmatch(day)
    is_day = _DAY_LABEL.fullmatch(normalize(day)) or (word is not None and normalize(word[1]) in _WEEKDAY_OF)
    if week is None:
        return (None, day) if is_day else None
    number = week_in(f"week {week[1]}")
    return None if number is None else (number, day if is_day else "")


class UnknownDay(Exception):
    """A text names a day behind the last one that a program can have."""


class DayNumbers:
    """The days of a program by what sheets call them.

    Numbers and weekdays are days of their week. Names are, in the order in which they appear, the next days of it; the
    same name in a week is the same day. A number above 7 counts from the first day of the program.
    """

    def __init__(self) -> None:
        self._week, self._begun = 1, False
        self._last: dict[int, int] = {}  # by week
        self._named: dict[tuple[int, str], int] = {}
        self.changes_week = False

    def begin_week(self, week: int) -> None:
        """Continue with a week."""
        self.changes_week = self._begun and week != self._week
        self._week, self._begun = week, True

    def read(self, text: str) -> tuple[int, str]:
        """Return the day that a text means, and its name if the text has one; empty: the next day.

        Raises UnknownDay.
        """
        plain, number, name = text.strip(), None, ""
        found, word = (
            (None, None) if values.is_made_date(plain) else (_DAY.fullmatch(normalize(plain)), _WORD.fullmatch(plain))
        )
        if found is not None and found[1].strip("0"):
            if not is_possible(plain):
                raise UnknownDay
            name = without_number(plain) or (f"Day {int(plain)}" if plain.isdigit() else plain)
            number = int(found[1])
        elif word is not None and (number := _WEEKDAY_OF.get(normalize(word[1]))) is not None:
            name = word[2] or plain
        if number is None:
            following, key = self._last.get(self._week, 0) + 1, (self._week, normalize(text))
            number = following if is_rest(text) or not key[1] else self._named.setdefault(key, following)
            name = "" if is_rest(text) else text
        elif number > DAYS_OF_WEEK:
            return number, name
        self._last[self._week] = max(self._last.get(self._week, 0), number)
        return min((self._week - 1) * DAYS_OF_WEEK + number, LAST_DAY), name


# --- Planned sets: what coaches write for repetitions, loads, rests and tempos ----------------------------------------


PlanField = Literal["sets", "reps", "load", "percent", "rpe", "rir", "rest", "tempo"]
PLAN_FIELDS: tuple[PlanField, ...] = ("sets", "reps", "load", "percent", "rpe", "rir", "rest", "tempo")
# The cells of a row, each with the unit that its heading has.
PlanCells = Mapping[PlanField, values.Amount]
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
NUMBERS = (*_AMOUNTS, "load", "loadPercent", "rpe")  # an amount, a load or an effort


@dataclass
class ReadSets:
    """The sets of a row; `left_out` are the cells that could not be read, by field, with why."""

    sets: list[PlannedSet]
    left_out: dict[PlanField, str] = field(default_factory=dict)


def cell_text(name: PlanField, cell: Cell, unit: values.Unit | None) -> str:
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


def read_sets(cells: PlanCells, load_unit: str, sign: values.DecimalSign | None = None) -> ReadSets:
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
        _read_columns(cells, load_unit, read)
    else:
        reps, planned = _reps_of(cells.get("reps", (None, None))[0]), None
        with suppress(SetTextError):
            (planned,) = parse_planned(f"1x{reps}", load_unit) if reps else (None,)
        fits = planned is not None and all(
            each.get(name) == planned.get(name) for each in read.sets for name in _AMOUNTS
        )
        if reps and not fits:
            read.left_out["reps"] = "is left out, as the cell of sets has the repetitions"
    _add_load(cells, load_unit, read, sign)
    for name, read_cell in _EXTRAS.items():
        try:
            value = read_cell(*cells.get(name, (None, None)))
        except values.InvalidValue as error:
            read.left_out[name] = str(error)
            continue
        for each in read.sets if value is not None else ():
            if each[name] is None:
                each[name] = value
            elif each[name] != value:
                read.left_out[name] = "is left out, as another cell of the row has another one"
    return read


def _read_columns(cells: PlanCells, load_unit: str, read: ReadSets) -> None:
    """Read the sets of a number of sets and their repetitions, times or distances."""
    text, count = _text(cells, "sets"), None
    if (found := _COUNT.fullmatch(text)) is not None and 1 <= int(found[1]) <= 100:
        count = int(found[1])
    elif text:
        read.left_out.setdefault("sets", "must be a number of sets from 1 to 100")
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
        read.sets = parse_planned(text, load_unit)
    except SetTextError:
        read.left_out["reps"] = "is no number of repetitions (8 or 8-10), time (30s), distance (400m) or AMRAP"
        read.sets = parse_planned(f"{count or 1}x?", load_unit)


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


def _add_load(cells: PlanCells, load_unit: str, read: ReadSets, sign: values.DecimalSign | None) -> None:
    """Add the load or the percentage of a row to its sets, and the effort that stands in the column of loads.

    A percentage in a row with a load is reported: a set is planned with one of them.
    """
    load = _load_of_column(cells, load_unit, read, sign)
    percent = _percent_text(cells.get("percent", (None, None))[0], read)
    if load is not None and percent not in (None, load):
        read.left_out["percent"] = "is left out, as the row has a load"
    if (text := load or percent) is None:
        return
    try:
        (priced,) = parse_planned(f"1x1 @{text}", load_unit)
    except SetTextError as error:
        read.left_out["percent" if text.endswith("%") else "load"] = error.problem
        return
    price = priced.get("load"), priced.get("loadPercent")
    for each in read.sets:
        if (known := (each.get("load"), each.get("loadPercent"))) == (None, None):
            each["type"] = _WITH_LOAD.get(each["type"], each["type"])
            each["load"], each["loadPercent"] = price
        elif known != price:
            column: PlanField = "load" if _text(cells, "load") else "percent"
            read.left_out[column] = "is left out, as the cell of sets has a load"


def _load_of_column(cells: PlanCells, load_unit: str, read: ReadSets, sign: values.DecimalSign | None) -> str | None:
    cell, heading_unit = cells.get("load", (None, None))
    text = text_of(cell)
    if percent := _PERCENT.fullmatch(text):
        return f"{percent[1].replace(',', '.')}%"
    if effort := _EFFORT.fullmatch(text):
        name: Literal["rpe", "rir"] = "rir" if (effort[1] or effort[3] or "rpe").lower() == "rir" else "rpe"
        try:
            value = _read_effort(name, effort[2])
            for each in read.sets:
                each[name] = value
        except values.InvalidValue as error:
            read.left_out["load"] = str(error)
    elif sign is None and isinstance(cell, str) and len(values.decimal_signs(cell)) > 1:
        read.left_out["load"] = "may have thousands or decimals"
    elif text and normalize(text) not in _NO_LOAD:
        try:
            quantity = values.read_quantity(cell, sign)
        except values.InvalidValue:
            quantity = None
        unit = (
            None if quantity is None else values.unit_of(quantity.unit) if quantity.unit else heading_unit or load_unit
        )
        if quantity is None or unit not in ("kg", "lb"):
            read.left_out["load"] = "is no load (60, 60 kg, 135 lbs or 70%)"
        elif quantity.amount:
            return f"{quantity.amount:.10g}{unit}"
    return None


def _percent_text(cell: Cell, read: ReadSets) -> str | None:
    if not (text := text_of(cell)):
        return None
    with suppress(values.InvalidValue):
        if values.is_plain_number(cell) and (number := values.read_number(cell)) is not None:
            return f"{number * 100 if 0 < number <= 1.5 else number:.6g}%" if number else None  # 0.7 is 70%
    found = _PERCENT.fullmatch(text)
    if found is None:
        read.left_out["percent"] = "is no percentage (70%)"
        return None
    return f"{found[1].replace(',', '.')}%"


def _read_effort(name: Literal["rpe", "rir"], cell: Cell) -> float | None:
    found = _EFFORT.fullmatch(cell) if isinstance(cell, str) else None
    amount = values.read_number(found[2] if found else cell)
    low = 1 if name == "rpe" else 0
    if amount is not None and not low <= amount <= 10:
        raise values.InvalidValue(f"must be a number from {low} to 10")
    return amount


def _read_rest(cell: Cell, unit: values.Unit | None) -> float | None:
    if isinstance(cell, time):  # 1:30 is a minute and a half
        return float(cell.hour * 60 + cell.minute) if not cell.second else values.read_seconds(cell)
    seconds = values.read_seconds(cell)
    is_plain = isinstance(cell, int | float) or (isinstance(cell, str) and cell.strip().replace(".", "").isdigit())
    if seconds is not None and is_plain and (unit == "min" or (unit is None and seconds <= _MINUTES_UP_TO)):
        seconds *= 60
    if seconds is not None and not 0 <= seconds <= 86_400:
        raise values.InvalidValue("must be a time such as 90 s or 2 min")
    return seconds or None


def _read_tempo(cell: Cell, _: values.Unit | None) -> str | None:
    text = text_of(cell)
    if values.is_made_date(text):
        raise values.InvalidValue(values.MADE_DATE)
    if len(text) > _LONGEST_TEMPO:
        raise values.InvalidValue(f"must not be longer than {_LONGEST_TEMPO} characters")
    return text or None


_EXTRAS: Mapping[Literal["rpe", "rir", "rest", "tempo"], Callable[[Cell, values.Unit | None], float | str | None]] = {
    "rpe": lambda cell, _: _read_effort("rpe", cell),
    "rir": lambda cell, _: _read_effort("rir", cell),
    "rest": _read_rest,
    "tempo": _read_tempo,
}


def _text(cells: PlanCells, name: PlanField) -> str:
    return text_of(cells.get(name, (None, None))[0])
