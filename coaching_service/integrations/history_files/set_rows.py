"""Rows of done sets: what a row of a file says with its problems, and which rows are one session."""

from __future__ import annotations

import hashlib
import math
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from functools import lru_cache
from typing import Literal

from coaching_service.core.text import normalize
from coaching_service.core.validation import NAME_LENGTH, TEXT_LENGTH, CalendarDate
from coaching_service.integrations.history_files import _dialects, tables, values

Columns = Mapping[str, values.Field | Literal[""]]
SET_DURATION = "Set duration"
_ASSISTED = ("assist", "asist", "unterst")  # in English, French and Italian, in Spanish and Portuguese, in German
_METERS: Mapping[values.Unit, float] = {"km": 1000.0, "mi": 1609.344, "m": 1.0, "yd": 0.9144, "cm": 0.01, "in": 0.0254}
_MOST = {
    "reps": 10_000.0,
    "load": 10_000.0,
    "meters": 1_000_000.0,
    "seconds": 86_400.0,
    "duration": 86_400.0,
    "rpe": 10.0,
    "rir": 20.0,
    "sets": 1_000.0,
}
_LEAST = {"rpe": 1.0}
_MOST_SETS_OF_A_ROW = 50
_NEEDED: tuple[values.Field, ...] = (
    "date",
    "exercise",
    *_dialects.CLIENT_FIELDS,
)  # for a row to be stored where it belongs
# How many characters of a text are stored.
_LONGEST: Mapping[values.Field, int] = {
    "exercise": NAME_LENGTH,
    "workout": NAME_LENGTH,
    "superset": NAME_LENGTH,
    "notes": TEXT_LENGTH,
    "workoutNotes": TEXT_LENGTH,
}
_ANY_DAY = date.fromisoformat(CalendarDate.first)  # of sets that have no date until a question is answered
# Problems that a row with sets may have.
_OF_SETS = ("VALUE_LEFT_OUT", "DATE_ORDER", "DISTANCE_UNIT", "DURATION_UNIT")
_NUMBERS: tuple[values.Field, ...] = ("reps", "load", "distance", "seconds", "duration", "rpe", "rir", "sets")
_normalize = lru_cache(1024)(normalize)  # rows repeat the same words


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
        sets: list[SetRow] = []
        if not self._report_unsolved():
            return FileRow(self._row.line, [], self._problems)
        for cells in _dialects.cells_of(self._dialect, self._headings, self._row.cells, self._sign):
            sets += self._sets_of(cells)
            if len(sets) > _MOST_SETS_OF_A_ROW:
                sets = []
                self._report("sets", "OUT_OF_RANGE", f"must not be more than {_MOST_SETS_OF_A_ROW}")
                break
        if not sets and all(problem["code"] in _OF_SETS for problem in self._problems):
            self._report(None, "NOT_A_SET", "has no repetitions, load, time or distance")
        return FileRow(
            self._row.line,
            [] if self._is_open else sets,
            self._problems,
            self._date_text,
            values.possible_orders(self._date_text) if self._date_text else None,
            sets if self._is_open else (),
            self._numbers,
            self._is_rest,
        )

    def _report_unsolved(self) -> bool:
        """Report the formulas without results; returns False if one is of a column that the row cannot be without."""
        can_be_read = True
        for number in self._row.unsolved:
            heading = self._headings[number] if number < len(self._headings) else ""
            known = self._dialect.field_of(heading)
            is_required = known in _NEEDED
            if heading:
                code = "REQUIRED" if is_required else "VALUE_LEFT_OUT"
                self._report(known or heading[:100], code, tables.UNSOLVED)
            can_be_read &= not is_required
        return can_be_read

    def _report(self, name: str | None, code: str, message: str) -> None:
        problem = self._row.problem(name, code, message)
        if problem not in self._problems:
            self._problems.append(problem)

    def _note_numbers(self, cells: _dialects.Cells) -> None:
        """Note the numbers with signs; a list of as many numbers as there are sets tells nothing about them."""
        for name in _NUMBERS:
            cell = _cell(cells, name)
            if isinstance(cell, str) and ("," in cell or "." in cell) and (signs := values.decimal_signs(cell)):
                is_list = (count := _dialects.count_sets(cells)) > 1 and len(_dialects.list_in(cell, ".")) == count
                self._numbers.append((cell, {".", ","} if is_list else signs))

    def _sets_of(self, cells: _dialects.Cells) -> list[SetRow]:
        if self._sign is None:
            self._note_numbers(cells)
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
        self._report_texts(cells)
        load, load_unit = self._load_of(cells)
        reps = self._whole(cells, "reps", _dialects.read_repetitions, keeps_zero=True)
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
            rir=self._number(cells, "rir", keeps_zero=True),
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
        return [row] * max(1, self._whole(cells, "sets") or 1)

    def _report_texts(self, cells: _dialects.Cells) -> None:
        if left_out := _text(cells, "leftOut"):
            self._report("exerciseData", "VALUE_LEFT_OUT", f"has what is no amount: {left_out[:100]}")
        for name, most in _LONGEST.items():
            if isinstance(cell := _cell(cells, name), str) and len(cell) > most:
                self._report(name, "VALUE_LEFT_OUT", f"is cut: it has more than {most:,} characters")

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
        text = _text(cells, "superset")
        word = _normalize(text)
        if word == "0" and self._dialect.numbers_supersets:
            return text
        if word in values.NO:
            return ""
        if word in values.YES and not word.isdigit():
            self._report("superset", "VALUE_LEFT_OUT", "does not say with which exercise")
            return ""
        return text

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
        minutes = (end.day - start.day).days * 1440 + _minute(end.clock) - _minute(start.clock)
        if not 0 <= minutes <= 1440:
            self._report("end", "VALUE_LEFT_OUT", "is not within a day after the start")
            return None
        return float(minutes) or None

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
        return load, unit or self._dialect.load_unit or self._answers.load_unit

    def _meters_of(self, cells: _dialects.Cells) -> float | None:
        distance, unit = self._amount_of(cells, "distance", "distanceUnit")
        if distance is None:
            return None
        unit = unit or self._dialect.distance_unit or self._answers.distance_unit
        if unit is None:
            self._report("distance", "DISTANCE_UNIT", "has no unit")
            return None
        meters = distance * _METERS.get(unit, math.nan)
        if not 0 < meters <= _MOST["meters"]:
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
        self,
        cells: _dialects.Cells,
        name: values.Field,
        read: Callable[[tables.Cell, values.DecimalSign | None], float | None] = values.read_number,
        *,
        keeps_zero: bool = False,
    ) -> float | None:
        try:
            amount = read(_cell(cells, name), self._sign)
            if amount is not None and read is values.read_seconds:
                amount *= _dialects.seconds_in_unit(*cells[name])
        except values.InvalidValue as error:
            self._report(name, "VALUE_LEFT_OUT", str(error))
            return None
        if amount is None or (amount == 0 and not keeps_zero):
            return None
        if not _LEAST.get(name, 0.0) <= amount <= _MOST.get(name, math.inf):
            self._report(name, "VALUE_LEFT_OUT", "is out of range")
            return None
        return amount

    def _whole(
        self,
        cells: _dialects.Cells,
        name: values.Field,
        read: Callable[[tables.Cell, values.DecimalSign | None], float | None] = values.read_number,
        *,
        keeps_zero: bool = False,
    ) -> int | None:
        amount = self._number(cells, name, read, keeps_zero=keeps_zero)
        if amount is not None and amount != int(amount):
            self._report(name, "VALUE_LEFT_OUT", "must be a whole number")
            return None
        return None if amount is None else int(amount)


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


def _minute(clock: str) -> int:
    hours, minutes = clock.split(":")
    return int(hours) * 60 + int(minutes)


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

    def share_note(self) -> None:
        """Make the note that all sets of all its exercises have, if there is one, the one of the workout."""
        notes = {each.notes for each in self.sets}
        if len(self.exercises) > 1 and len(notes) == 1:
            [self.shared_note] = notes

    @property
    def notes(self) -> str:
        """The notes on the workout, each once, in lines."""
        return "\n".join(dict.fromkeys(filter(None, (*(each.workout_notes for each in self.sets), self.shared_note))))

    def notes_of(self, exercise: Exercise) -> str:
        """Return the notes on an exercise and its sets, each once, in lines."""
        rows = (*exercise.comments, *exercise.sets)
        shared = "" if exercise.comments else self.shared_note
        return "\n".join(dict.fromkeys(each.notes for each in rows if each.notes and each.notes != shared))

    def take_comments_alone(self) -> list[SetRow]:
        """Remove exercises that have comments only, and return their rows."""
        alone = [row for each in self.exercises if not each.sets for row in each.comments]
        self.exercises = [each for each in self.exercises if each.sets]
        return alone

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


def split_sessions(rows: Iterable[SetRow]) -> tuple[list[Session], list[Session]]:
    """Return the sessions of rows whose sessions are each written as a whole, and those that are repeated.

    Rows that follow each other, with the same client, date, start and title, are one session. Several with these alike
    are several sessions, unless their sets are the same: then the file has been put together from copies.
    """
    runs: list[tuple[tuple[object, ...], Session]] = []
    for row in rows:
        key = (row.customer, row.day, row.clock, _normalize(row.workout))
        if not runs or runs[-1][0] != key:
            runs.append((key, Session(row.customer, row.day, row.clock, row.workout)))
        runs[-1][1].add(row)
    known: set[str] = set()
    sessions: list[Session] = []
    repeated: list[Session] = []
    for _, session in runs:
        fingerprint = session.fingerprint()
        (repeated if fingerprint in known else sessions).append(session)
        known.add(fingerprint)
    return sessions, repeated


def group_sessions(rows: Iterable[SetRow], *, by_day: bool = False) -> list[Session]:
    """Return the sessions of rows, in the order of their first rows.

    Rows with the same client, date, start and title are one session; with `by_day`, all rows of a client and a day.
    """
    sessions: dict[tuple[object, ...], Session] = {}
    for row in rows:
        key = (row.customer, row.day) if by_day else (row.customer, row.day, row.clock, _normalize(row.workout))
        session = sessions.get(key)
        if session is None:
            session = sessions[key] = Session(row.customer, row.day, row.clock, row.workout)
        session.add(row)
    return list(sessions.values())
