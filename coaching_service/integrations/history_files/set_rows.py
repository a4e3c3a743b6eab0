"""Rows of done sets: what a row of a file says with its problems, and which rows are one session."""

from __future__ import annotations

import hashlib
import math
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from functools import lru_cache
from typing import Literal

from coaching_service.core.text import normalize
from coaching_service.core.validation import NAME_LENGTH, TEXT_LENGTH, CalendarDate
from coaching_service.integrations.history_files import _dialects, tables, values

Columns = Mapping[str, values.Field | Literal[""]]
SET_DURATION = "Set duration"
_ASSISTED = ("assist", "asist", "unterst")  # in English, French and Italian, in Spanish and Portuguese, in German
_METERS: Mapping[values.Unit, float] = {"km": 1000.0, "mi": 1609.344, "m": 1.0, "yd": 0.9144, "cm": 0.01, "in": 0.0254}
_MOST_METERS = 1_000_000.0
_MOST = {"reps": 10_000, "load": 10_000, "seconds": 86_400, "duration": 86_400, "rpe": 10, "rir": 20, "sets": 1_000}
_LEAST = {"rpe": 1.0}
_MOST_SETS_OF_A_ROW = 50
# For a row to be stored where it belongs.
_NEEDED: tuple[values.Field, ...] = ("date", "exercise", *_dialects.CLIENT_FIELDS)
# How many characters of a text are stored.
_LONGEST: Mapping[values.Field, int] = {
    **dict.fromkeys(("exercise", "workout", "superset"), NAME_LENGTH),
    **dict.fromkeys(("notes", "workoutNotes"), TEXT_LENGTH),
}
_ANY_DAY = date.fromisoformat(CalendarDate.first)  # of sets that have no date until a question is answered
# Problems that a row with sets may have.
_OF_SETS = ("VALUE_LEFT_OUT", "DATE_ORDER", "DISTANCE_UNIT", "DURATION_UNIT")
_NUMBERS: tuple[values.Field, ...] = ("reps", "load", "distance", "seconds", "duration", "rpe", "rir", "sets")
_normalize = lru_cache(1024)(normalize)  # rows repeat the same words
_ReadNumber = Callable[[tables.Cell, values.DecimalSign | None], float | None]


@dataclass(frozen=True)
class Answers:
    """What the caller says about a file; `columns`: the field of a heading, empty for one that is not read."""

    format: tables.Format | None = None
    load_unit: values.Unit | None = None
    distance_unit: values.Unit | None = None
    duration_unit: values.Unit | None = None
    date_order: values.DateOrder | None = None
    decimal_sign: values.DecimalSign | None = None
    columns: Columns = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SetRow:
    """A set that was done; loads are in `load_unit` (None: the answer is missing), distances in meters.

    `row` is the number of its row among the data rows of the file, from 1. `customer_id` is empty without one, and
    `sheet` if the file has one table only. `instant` is the start of the session if the file has it with its offset: it
    tells the day and time where the client is. `is_comment`: it is no set, but a comment on the exercise.
    """

    row: int
    line: int
    sheet: str
    customer: str
    customer_id: str
    day: date
    clock: str | None
    workout: str
    workout_notes: str
    minutes: float | None
    exercise: str
    superset: str
    notes: str
    kind: values.SetKind
    reps: int | None
    load: float | None
    load_unit: values.Unit | None
    is_assistance: bool
    meters: float | None
    seconds: float | None
    rpe: float | None
    rir: float | None
    is_completed: bool
    instant: datetime | None
    is_comment: bool = False

    @property
    def exercise_name(self) -> str:
        """The name of the exercise; one that was done with help says so, as some services write it."""
        if not self.is_assistance or any(word in normalize(self.exercise) for word in _ASSISTED):
            return self.exercise
        return f"{self.exercise} (Assisted)"


@dataclass(frozen=True)
class FileRow:
    """A row of a file: its sets, none if it is only reported, and its problems.

    `date_orders`: the orders in which its date can be read, None if it does not depend on one. `open_sets`: the sets
    that it has once questions about the file are answered; until then they have any day, and no exercise if its column
    is missing. `numbers` are those with signs, until the decimal sign of the file is known. `is_rest`: its problem is
    only counted.
    """

    line: int
    sets: list[SetRow]
    problems: list[tables.Problem]
    date_text: str = ""
    date_orders: set[values.DateOrder] | None = None
    open_sets: Sequence[SetRow] = ()
    numbers: Sequence[tuple[str, set[values.DecimalSign]]] = ()
    is_rest: bool = False


class RowReader:
    """Reads one row; problems are collected, and none stops the reading of the others."""

    def __init__(
        self,
        dialect: _dialects.Dialect,
        headings: list[str],
        answers: Answers,
        row: tables.Row,
        number: int,
        lacking: Sequence[values.Field],
    ) -> None:
        self._row_number, self._lacking, self._is_open = number, lacking, bool(lacking)
        self._dialect, self._headings, self._answers, self._row = dialect, headings, answers, row
        self._problems: list[tables.Problem] = []
        self._date_text, self._is_rest = "", False
        self._sign, self._numbers = answers.decimal_sign, list[tuple[str, set[values.DecimalSign]]]()

    def read(self) -> FileRow:
        """Return what the row says."""
        can_be_read = True
        for number in self._row.unsolved:  # formulas without results
            heading = self._headings[number] if number < len(self._headings) else ""
            known = self._dialect.field_of(heading)
            can_be_read &= known not in _NEEDED
            if heading:
                code = "REQUIRED" if known in _NEEDED else "VALUE_LEFT_OUT"
                self._report(known or heading[:100], code, tables.UNSOLVED)
        if not can_be_read:
            return FileRow(self._row.line, [], self._problems)
        sets: list[SetRow] = []
        for cells in _dialects.cells_of(self._dialect, self._headings, self._row.cells, self._sign):
            # A list of as many numbers as there are sets tells nothing about the sign.
            for cell in (_cell(cells, name) for name in _NUMBERS) if self._sign is None else ():
                if isinstance(cell, str) and ("," in cell or "." in cell) and (signs := values.decimal_signs(cell)):
                    is_list = (count := _dialects.count_sets(cells)) > 1 and len(_dialects.list_in(cell, ".")) == count
                    self._numbers.append((cell, {".", ","} if is_list else signs))
            sets += self._sets_of(cells)
            if len(sets) > _MOST_SETS_OF_A_ROW:
                sets = []
                self._report("sets", "OUT_OF_RANGE", f"must not be more than {_MOST_SETS_OF_A_ROW}")
                break
        if not sets and all(problem["code"] in _OF_SETS for problem in self._problems):
            self._report(None, "NOT_A_SET", "has no repetitions, load, time or distance")
        orders = values.possible_orders(self._date_text) if self._date_text else None
        now, later = ([], sets) if self._is_open else (sets, [])
        return FileRow(
            self._row.line, now, self._problems, self._date_text, orders, later, self._numbers, self._is_rest
        )

    def _report(self, name: str | None, code: str, message: str) -> None:
        problem = self._row.problem(name, code, message)
        if problem not in self._problems:
            self._problems.append(problem)

    def _sets_of(self, cells: _dialects.Cells) -> list[SetRow]:
        kind = self._kind_of(cells)
        moment = self._date_and_time_of(cells)
        exercise = _text(cells, "exercise")
        if kind is None or moment is None:
            return []
        is_comment = kind == "comment"
        if is_comment and not _text(cells, "notes"):
            self._is_rest = True
            self._report(None, "NOT_A_SET", "is an empty comment, not a set")
            return []
        if not exercise and "exercise" not in self._lacking:
            self._report("exercise", "REQUIRED", "is empty")
            return []
        if self._dialect.is_general and values.is_total(exercise):
            self._report(None, "NOT_A_SET", "is a sum, not a set")
            return []
        if left_out := _text(cells, "leftOut"):
            self._report("exerciseData", "VALUE_LEFT_OUT", f"has what is no amount: {left_out[:100]}")
        for name, most in _LONGEST.items():
            if isinstance(cell := _cell(cells, name), str) and len(cell) > most:
                self._report(name, "VALUE_LEFT_OUT", f"is cut: it has more than {most:,} characters")
        load, load_unit = self._load_of(cells)
        reps = self._whole(cells, "reps", _dialects.read_repetitions)
        meters, seconds = self._meters_of(cells), self._seconds_of(cells)
        is_failed = reps == 0 and load is not None and meters is None and seconds is None
        row = SetRow(
            row=self._row_number,
            line=self._row.line,
            sheet=self._row.sheet,
            customer=client_of(cells),
            customer_id=_text(cells, "customerId") or _text(cells, "customerEmail"),
            day=moment.day,
            clock=moment.clock,
            workout=_text(cells, "workout"),
            workout_notes=_text(cells, "workoutNotes"),
            minutes=self._minutes_of(cells, moment),
            exercise=exercise,
            superset=self._superset_of(cells),
            notes=_text(cells, "notes"),
            kind="normal" if kind == "comment" else kind,
            reps=reps if reps or is_failed else None,
            load=None if load is None else abs(load),
            load_unit=load_unit,
            is_assistance=load is not None and load < 0,
            meters=meters,
            seconds=seconds,
            rpe=self._number(cells, "rpe"),
            rir=self._number(cells, "rir"),
            is_completed=self._flag(cells, "isCompleted") is not False and not is_failed,
            instant=moment.instant,
            is_comment=is_comment,
        )
        if is_comment:
            return [row]
        if all(value is None for value in (row.reps, row.load, row.meters, row.seconds)):
            unknown = {each["code"] for each in self._problems if each["field"] in ("distance", "seconds")}
            is_open = "reps" in self._lacking or bool(unknown & {"DISTANCE_UNIT", "DURATION_UNIT"})
            self._is_open |= is_open
            return [row] if is_open else []
        return [row] * (self._whole(cells, "sets") or 1)

    def _kind_of(self, cells: _dialects.Cells) -> values.SetKind | Literal["comment"] | None:
        """Return the kind of a set; None for a row between sets. The order of sets may have it in place of a number."""
        if self._flag(cells, "isWarmup"):
            return "warmup"
        names: tuple[values.Field, ...] = ("setKind", "set")
        for name in names:
            text = _normalize(_text(cells, name)).replace("-", " ")
            if text in values.NOT_SETS:
                self._is_rest = True
                self._report(None, "NOT_A_SET", "is a rest, not a set")
                return None
            if text in values.COMMENTS:
                return "comment"
            if text and not text.replace(".", "").isdigit():
                if text in values.KINDS:
                    return values.KINDS[text]
                if name == "setKind" or not any(character.isdigit() for character in text):  # as in `Set 2`
                    self._report(name, "VALUE_LEFT_OUT", f"is not known: {text[:50]}")
        return "normal"

    def _flag(self, cells: _dialects.Cells, name: values.Field) -> bool | None:
        """Return what a cell with yes or no says; None if it is empty, or says neither, which is reported."""
        text = _normalize(_text(cells, name)).strip("\ufe0f")
        if not text or text in values.YES:
            return bool(text) or None
        if text not in values.NO:
            self._report(name, "VALUE_LEFT_OUT", f"is neither yes nor no: {text[:50]}")
            return None
        return False

    def _date_and_time_of(self, cells: _dialects.Cells) -> values.DateAndTime | None:
        cell = _cell(cells, "date")
        if isinstance(cell, str) and values.depends_on_order(cell, self._answers.date_order):
            self._date_text = cell
        try:
            moment = values.read_date_and_time(cell, self._answers.date_order)
        except values.UnknownOrder as error:
            self._report("date", "DATE_ORDER", str(error))
            self._is_open = True
            return values.read_date_and_time(cell, "dmy")
        except values.InvalidValue as error:
            self._report("date", "INVALID_DATE", str(error))
            return None
        if moment is None and "date" in self._lacking:
            return values.DateAndTime(_ANY_DAY, None)
        if moment is None:
            self._report("date", "REQUIRED", "is empty")
            return None
        first, last = CalendarDate.bounds()
        if not first <= str(moment.day) <= last:
            self._report("date", "INVALID_DATE", f"must be from {first} to {last}")
            return None
        try:
            clock = self._clock_of(_cell(cells, "time"))
        except values.InvalidValue as error:
            self._report("time", "VALUE_LEFT_OUT", str(error))
            clock = None
        return values.DateAndTime(moment.day, moment.clock or clock, moment.instant)

    def _superset_of(self, cells: _dialects.Cells) -> str:
        word = _normalize(text := _text(cells, "superset"))
        if word == "0" and self._dialect.numbers_supersets:
            return text
        if word in values.YES and not word.isdigit():
            self._report("superset", "VALUE_LEFT_OUT", "does not say with which exercise")
            return ""
        return "" if word in values.NO else text

    def _clock_of(self, cell: tables.Cell) -> str | None:
        """Return a time of day, which may follow a date."""
        with suppress(values.InvalidValue):
            if (moment := values.read_date_and_time(cell, self._answers.date_order or "ymd")) is not None:
                return moment.clock
        return values.read_clock(cell)

    def _minutes_of(self, cells: _dialects.Cells, start: values.DateAndTime) -> float | None:
        cell, unit = cells.get("duration", (None, None))
        if unit is None and (values.is_plain_number(cell) or (isinstance(cell, str) and cell.count(":") == 1)):
            unit = self._answers.duration_unit
            if unit is None and (values.read_seconds(cell) or 0) > 0:
                self._report("duration", "DURATION_UNIT", "has no unit")
                return None
        seconds = self._number({**cells, "duration": (cell, unit)}, "duration", values.read_seconds)
        if seconds is not None:
            return round(seconds / 60, 1)
        end = self._end_of(cells, start)
        if end is None or end.clock is None or start.clock is None:
            return None
        first, last = (datetime.combine(each.day, time.fromisoformat(str(each.clock))) for each in (start, end))
        minutes = (last - first) / timedelta(minutes=1)
        if not 0 <= minutes <= 1440:
            self._report("end", "VALUE_LEFT_OUT", "is not within a day after the start")
            return None
        return minutes or None

    def _end_of(self, cells: _dialects.Cells, start: values.DateAndTime) -> values.DateAndTime | None:
        """Return when a workout ended; of a time of day only, the first such time after the start."""
        cell = _cell(cells, "end")
        with suppress(values.InvalidValue):
            return values.read_date_and_time(cell, self._answers.date_order)
        try:
            clock = values.read_clock(cell)
        except values.InvalidValue:
            self._report("end", "VALUE_LEFT_OUT", "must be a time such as 18:45")
            return None
        is_next_day = clock is not None and start.clock is not None and clock < start.clock
        return values.DateAndTime(start.day + timedelta(days=is_next_day), clock)

    def _load_of(self, cells: _dialects.Cells) -> tuple[float | None, values.Unit | None]:
        load, unit = self._amount_of(cells, "load", "loadUnit")
        if load is None:
            return None, None
        if not math.isfinite(load) or abs(load) > _MOST["load"]:
            self._report("load", "VALUE_LEFT_OUT", "is too large")
            return None, None
        if unit not in (None, "kg", "lb"):
            self._report("load", "VALUE_LEFT_OUT", f"has a unit that no load has: {unit}")
            return None, None
        return load, unit or self._answers.load_unit

    def _meters_of(self, cells: _dialects.Cells) -> float | None:
        distance, unit = self._amount_of(cells, "distance", "distanceUnit")
        if distance is None:
            return None
        unit = unit or self._answers.distance_unit
        if unit is None:
            self._report("distance", "DISTANCE_UNIT", "has no unit")
            return None
        meters = distance * _METERS.get(unit, math.nan)
        if not 0 < meters <= _MOST_METERS:
            self._report("distance", "VALUE_LEFT_OUT", "is not a distance that can be stored")
            return None
        return round(meters, 2)

    def _seconds_of(self, cells: _dialects.Cells) -> float | None:
        cell, unit = cells.get("seconds", (None, None))
        if unit is None and SET_DURATION in self._headings and values.is_plain_number(cell):
            unit = self._answers.duration_unit
            if unit is None and (values.read_seconds(cell) or 0) > 0:
                self._report("seconds", "DURATION_UNIT", "has no unit")
                return None
        return self._number({**cells, "seconds": (cell, unit)}, "seconds", values.read_seconds)

    def _amount_of(
        self, cells: _dialects.Cells, name: values.Field, unit_field: values.Field
    ) -> tuple[float | None, values.Unit | None]:
        cell, of_heading = cells.get(name, (None, None))
        try:
            return _dialects.read_amount(cell, of_heading, _text(cells, unit_field), self._sign)
        except values.InvalidValue as error:
            self._report(name, "VALUE_LEFT_OUT", str(error))
            return None, None

    def _number(
        self, cells: _dialects.Cells, name: values.Field, read: _ReadNumber = values.read_number
    ) -> float | None:
        """Return a number in its limits; 0 is none, but of repetitions, which failed, and of those in reserve."""
        try:
            amount = read(_cell(cells, name), self._sign)
            if amount is not None and read is values.read_seconds:
                amount *= _dialects.seconds_in_unit(*cells[name])
        except values.InvalidValue as error:
            self._report(name, "VALUE_LEFT_OUT", str(error))
            return None
        if amount is None or (amount == 0 and name not in ("reps", "rir")):
            return None
        if not _LEAST.get(name, 0.0) <= amount <= _MOST.get(name, math.inf):
            self._report(name, "VALUE_LEFT_OUT", "is out of range")
            return None
        return amount

    def _whole(self, cells: _dialects.Cells, name: values.Field, read: _ReadNumber = values.read_number) -> int | None:
        amount = self._number(cells, name, read)
        if amount is None or amount == int(amount):
            return None if amount is None else int(amount)
        self._report(name, "VALUE_LEFT_OUT", "must be a whole number")
        return None


def _cell(cells: _dialects.Cells, name: values.Field) -> tables.Cell:
    return cells.get(name, (None, None))[0]


def _text(cells: _dialects.Cells, name: values.Field) -> str:
    return sys.intern(tables.text_of(_cell(cells, name))[:TEXT_LENGTH])  # rows repeat the same texts


def client_of(cells: _dialects.Cells) -> str:
    """Return the name of the client of a row, else the address or identifier."""
    first, last = _text(cells, "customer") or _text(cells, "firstName"), _text(cells, "lastName")
    is_whole = _normalize(first).endswith(_normalize(last))  # of a full name, or without a last name
    name = first if is_whole else f"{first} {last}".strip()
    return name or _text(cells, "customerEmail") or _text(cells, "customerId")


# --- Sessions of sets, in the order of the file -----------------------------------------------------------------------


@dataclass
class Exercise:
    """An exercise of a session with its sets; two of a session share `superset` if they were done in turn."""

    name: str
    superset: str
    sets: list[SetRow] = field(default_factory=list)
    comments: list[SetRow] = field(default_factory=list)


@dataclass
class Session:
    """A workout that was done."""

    customer: str
    day: date
    clock: str | None
    title: str
    exercises: list[Exercise] = field(default_factory=list)
    shared_note: str = ""

    @property
    def sets(self) -> Iterator[SetRow]:
        """The sets of all exercises."""
        return (each for exercise in self.exercises for each in exercise.sets)

    @property
    def notes(self) -> str:
        """The notes on the workout, each once, in lines."""
        return "\n".join(dict.fromkeys(filter(None, (*(each.workout_notes for each in self.sets), self.shared_note))))

    def notes_of(self, exercise: Exercise) -> str:
        """Return the notes on an exercise and its sets, each once, in lines."""
        rows = (*exercise.comments, *exercise.sets)
        shared = "" if exercise.comments else self.shared_note
        return "\n".join(dict.fromkeys(each.notes for each in rows if each.notes and each.notes != shared))

    @property
    def rows(self) -> int:
        """How many rows of the file its sets are in."""
        comments = (row for each in self.exercises for row in each.comments)
        return len({each.row for each in (*self.sets, *comments)})

    @property
    def minutes(self) -> float | None:
        """How long it took; None if no row says it."""
        return max((each.minutes for each in self.sets if each.minutes), default=None)

    def add(self, row: SetRow) -> None:
        """Add a set to its exercise: the one before it, or one of the same superset, or else another one."""
        key = (row.exercise, row.superset)
        candidates = self.exercises if row.superset else self.exercises[-1:]
        last = next((each for each in candidates if (each.name, each.superset) == key), None)
        if last is None:
            last = Exercise(*key)
            self.exercises.append(last)
        (last.comments if row.is_comment else last.sets).append(row)

    def fingerprint(self, *, with_clock: bool = True, with_customer: bool = True) -> str:
        """Return what two copies of the session have in common: client, date, start, title, exercises and sets."""
        customer, clock = self.customer if with_customer else None, self.clock if with_clock else None
        parts: list[object] = [customer, self.day, clock, normalize(self.title)]
        for each in self.exercises:
            parts.append(normalize(each.name))
            parts += [(row.kind, row.reps, row.load, row.meters, row.seconds) for row in each.sets]
        return hashlib.sha256(repr(parts).encode()).hexdigest()


def split_sessions(
    rows: Iterable[SetRow], *, is_mixed: bool = True, by_day: bool = False
) -> tuple[list[Session], list[Session]]:
    """Return the sessions of rows, in the order of their first rows, and those that are repeated.

    Rows with the same client, date, start and title are one session (with `by_day`, all of a client and a day), if they
    follow each other or `is_mixed`. Of several sessions with these alike, those with the same sets are repeated: then
    the file has been put together from copies.
    """
    sessions: list[Session] = []
    latest: dict[tuple[object, ...], Session] = {}
    before: tuple[object, ...] | None = None
    for row in rows:
        key = (row.customer, row.day) if by_day else (row.customer, row.day, row.clock, _normalize(row.workout))
        if key not in latest or not (is_mixed or by_day or key == before):
            latest[key] = Session(row.customer, row.day, row.clock, row.workout)
            sessions.append(latest[key])
        latest[key].add(row)
        before = key
    if is_mixed or by_day:
        return sessions, []
    first: dict[str, Session] = {}
    repeated = [each for each in sessions if first.setdefault(each.fingerprint(), each) is not each]
    return list(first.values()), repeated
