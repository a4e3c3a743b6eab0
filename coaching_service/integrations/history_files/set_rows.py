"""Rows of done sets: what a row of a file says, with its problems, and what the file leaves open."""

from __future__ import annotations

import itertools
import math
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta
from functools import lru_cache
from typing import IO, Literal

from coaching_service.core.text import normalize
from coaching_service.core.validation import NAME_LENGTH, TEXT_LENGTH, CalendarDate
from coaching_service.integrations.history_files import _amounts, _dialects, _vocabulary, tables, values
from coaching_service.integrations.history_files import columns as history_file_columns
from coaching_service.integrations.history_files import models as history_file_models
from coaching_service.integrations.history_files._headings import Unit, read_heading, unit_of, words_of
from coaching_service.integrations.history_files._interpretation import SAMPLE_ROWS, find_names, interpret, needs_values

_ASSISTED = ("assist", "asist", "unterst")  # in English, French and Italian, in Spanish and Portuguese, in German
_METERS: Mapping[Unit, float] = {"km": 1000.0, "mi": 1609.344, "m": 1.0, "yd": 0.9144, "cm": 0.01, "in": 0.0254}
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
_NEEDED: tuple[_vocabulary.Field, ...] = (
    "date",
    "exercise",
    *_dialects.CLIENT_FIELDS,
)  # for a row to be stored where it belongs
# How many characters of a text are stored.
_LONGEST: Mapping[_vocabulary.Field, int] = {
    "exercise": NAME_LENGTH,
    "workout": NAME_LENGTH,
    "superset": NAME_LENGTH,
    "notes": TEXT_LENGTH,
    "workoutNotes": TEXT_LENGTH,
}
_ANY_DAY = date.fromisoformat(CalendarDate.first)  # of sets that have no date until a question is answered
# Problems that a row with sets may have.
_OF_SETS = ("VALUE_LEFT_OUT", "DATE_ORDER", "DISTANCE_UNIT", "DURATION_UNIT")
_NUMBERS: tuple[_vocabulary.Field, ...] = ("reps", "load", "distance", "seconds", "duration", "rpe", "rir", "sets")
_normalize = lru_cache(1024)(normalize)  # rows repeat the same words


@dataclass(frozen=True)
class Answers:
    """What the caller says about a file; `columns`: the field of a heading, empty for one that is not read."""

    format: history_file_models.Format | None = None
    load_unit: Unit | None = None
    distance_unit: Unit | None = None
    duration_unit: Unit | None = None
    date_order: values.DateOrder | None = None
    decimal_sign: values.DecimalSign | None = None
    columns: history_file_columns.Columns = field(default_factory=dict)


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
    kind: _vocabulary.SetKind
    reps: int | None
    load: float | None
    load_unit: Unit | None
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
    problems: list[history_file_models.Problem]
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
        lacking: Sequence[_vocabulary.Field],
    ) -> None:
        self._row_number, self._lacking, self._is_open = number, lacking, bool(lacking)
        self._dialect, self._headings, self._answers, self._row = dialect, headings, answers, row
        self._problems: list[history_file_models.Problem] = []
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
        place, line = self._row.place, self._row.line
        problem: history_file_models.Problem = {
            "entry": place,
            "line": line,
            "field": name,
            "code": code,
            "message": message,
        }
        if problem not in self._problems:
            self._problems.append(problem)

    def _note_numbers(self, cells: _dialects.Cells) -> None:
        """Note the numbers with signs; a list of as many numbers as there are sets tells nothing about them."""
        for name in _NUMBERS:
            cell = _cell(cells, name)
            if isinstance(cell, str) and ("," in cell or "." in cell) and (signs := values.decimal_signs(cell)):
                is_list = (count := _amounts.count_sets(cells)) > 1 and len(_amounts.list_in(cell, ".")) == count
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
        if self._dialect.is_general and _vocabulary.is_total(exercise):
            self._report(None, "NOT_A_SET", "is a sum, not a set")
            return []
        self._report_texts(cells)
        load, load_unit = self._load_of(cells)
        reps = self._whole(cells, "reps", _amounts.read_repetitions, keeps_zero=True)
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

    def _kind_of(self, cells: _dialects.Cells) -> _vocabulary.SetKind | Literal["comment"] | None:
        """Return the kind of a set; None for a row between sets. The order of sets may have it in place of a number."""
        if self._flag(cells, "isWarmup"):
            return "warmup"
        names: tuple[_vocabulary.Field, ...] = ("setKind", "set")
        for name in names:
            text = _normalize(_text(cells, name)).replace("-", " ")
            if text in _vocabulary.NOT_SETS:
                self._is_rest = True
                self._report(None, "NOT_A_SET", "is a rest, not a set")
                return None
            if text in _vocabulary.COMMENTS:
                return "comment"
            if text and not text.replace(".", "").isdigit():
                if text in _vocabulary.KINDS:
                    return _vocabulary.KINDS[text]
                if name == "setKind" or not any(character.isdigit() for character in text):  # as in `Set 2`
                    self._report(name, "VALUE_LEFT_OUT", f"is not known: {text[:50]}")
        return "normal"

    def _flag(self, cells: _dialects.Cells, name: _vocabulary.Field) -> bool | None:
        """Return what a cell with yes or no says; None if it is empty, or says neither, which is reported."""
        text = _normalize(_text(cells, name)).strip("\ufe0f")
        if not text or text in _vocabulary.YES:
            return bool(text) or None
        if text not in _vocabulary.NO:
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
        if word in _vocabulary.NO:
            return ""
        if word in _vocabulary.YES and not word.isdigit():
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

    def _load_of(self, cells: _dialects.Cells) -> tuple[float | None, Unit | None]:
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
        if unit is None and history_file_columns.SET_DURATION in self._headings and values.is_plain_number(cell):
            unit = self._answers.duration_unit
            if unit is None and (values.read_seconds(cell) or 0) > 0:
                self._report("seconds", "DURATION_UNIT", "has no unit")
                return None
        return self._number({**cells, "seconds": (cell, unit)}, "seconds", values.read_seconds)

    def _amount_of(
        self, cells: _dialects.Cells, name: _vocabulary.Field, unit_field: _vocabulary.Field
    ) -> tuple[float | None, Unit | None]:
        cell, of_heading = cells.get(name, (None, None))
        try:
            return _amounts.read_amount(cell, of_heading, _text(cells, unit_field), self._sign)
        except values.InvalidValue as error:
            self._report(name, "VALUE_LEFT_OUT", str(error))
            return None, None

    def _number(
        self,
        cells: _dialects.Cells,
        name: _vocabulary.Field,
        read: Callable[[tables.Cell, values.DecimalSign | None], float | None] = values.read_number,
        *,
        keeps_zero: bool = False,
    ) -> float | None:
        try:
            amount = read(_cell(cells, name), self._sign)
            if amount is not None and read is values.read_seconds:
                amount *= _amounts.seconds_in_unit(*cells[name])
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
        name: _vocabulary.Field,
        read: Callable[[tables.Cell, values.DecimalSign | None], float | None] = values.read_number,
        *,
        keeps_zero: bool = False,
    ) -> int | None:
        amount = self._number(cells, name, read, keeps_zero=keeps_zero)
        if amount is not None and amount != int(amount):
            self._report(name, "VALUE_LEFT_OUT", "must be a whole number")
            return None
        return None if amount is None else int(amount)


def _cell(cells: _dialects.Cells, name: _vocabulary.Field) -> tables.Cell:
    return cells.get(name, (None, None))[0]


def _text(cells: _dialects.Cells, name: _vocabulary.Field) -> str:
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


# --- Files of done sets: which of their tables are read, and how ------------------------------------------------------


MAX_SETS = 500_000  # of a file, all in memory while it is imported


class UnknownFormat(tables.UnreadableTable):
    """The headings of a file fit no format."""


@dataclass(frozen=True)
class _Layout:
    """How a table is read: its headings as the dialect reads them, and which columns are not read.

    `is_text`: a row with more cells than headings may have its values in other columns.
    """

    dialect: _dialects.Dialect
    headings: list[str]
    rows: Iterator[tables.Row]
    missing: history_file_columns.MissingColumns | None
    unused: dict[int, history_file_models.ProblemKind]
    questions: list[history_file_models.Question]
    is_text: bool


@dataclass
class SetFile:
    """A file of done sets.

    Attributes:
        missing: The columns that the first table lacks that does.
        questions: What the values of columns leave open.
        name_heading: The heading of a column whose names may be of clients or of workouts.
        left_out: A problem for each sheet that has no table of sets, if another one has.
        unread: The columns whose cells are not read, with their number.
        has_workout_notes: Whether a column has the notes on workouts.
    """

    file: IO[bytes]
    answers: Answers
    dialect: _dialects.Dialect | None = None
    missing: history_file_columns.MissingColumns | None = None
    questions: list[history_file_models.Question] = field(default_factory=list)
    name_heading: str | None = None
    left_out: list[history_file_models.Problem] = field(default_factory=list)
    unread: list[history_file_models.ProblemKind] = field(default_factory=list)
    has_workout_notes: bool = False
    _rows: int = 0
    _sets: int = 0

    def rows(self) -> Iterator[FileRow]:
        """Yield the rows, from the first; without sets if columns are missing.

        Sheets without a table of sets are left out if another one has one. Raises UnreadableTable and UnknownFormat.
        """
        self._rows = self._sets = 0
        for takes_any in (False, True):
            self.left_out, self.unread = [], []
            self.file.seek(0)
            read = tables.read_tables(self.file, self._count_headings)
            for table in (part for each in read for part in tables.divide(each, self._count_headings)):
                if (unit := _unit_of(table)) is not None:
                    self.answers = replace(self.answers, load_unit=self.answers.load_unit or unit)
                    continue
                layout = self._layout_of(table, takes_any=takes_any)
                if layout is None:
                    self.left_out.append(history_file_columns.unknown_sheet(table, "sets"))
                    continue
                self.dialect = self.dialect or layout.dialect
                self.missing = self.missing or layout.missing
                self.questions += [each for each in layout.questions if each not in self.questions]
                yield from self._rows_of(layout)
            if self.dialect is not None:
                return
        raise tables.UnreadableTable("has no rows")

    def _rows_of(self, layout: _Layout) -> Iterator[FileRow]:
        self.has_workout_notes |= "workoutNotes" in map(layout.dialect.field_of, layout.headings)
        lacking = () if layout.missing is None else layout.missing.fields
        order = self.answers.date_order or _dialects.date_order_of(layout.dialect, layout.headings)
        answers = replace(self.answers, date_order=order)
        for row in _filled(layout.dialect, layout.headings, layout.rows):
            self._rows += 1
            surplus = history_file_columns.count_surplus(row, layout.headings)
            if surplus and layout.is_text:
                message = history_file_columns.too_many_cells(surplus)
                code = "TOO_MANY_CELLS"
                place, line = row.place, row.line
                yield FileRow(
                    line, [], [{"entry": place, "line": line, "field": None, "code": code, "message": message}]
                )
                continue
            read = RowReader(layout.dialect, layout.headings, answers, row, self._rows, lacking).read()
            self._sets += len(read.sets)
            if self._sets > MAX_SETS:
                raise tables.UnreadableTable(f"has more than {MAX_SETS:,} sets: divide it into several files", row.line)
            yield read
            for number in range(len(layout.headings), len(row.cells) if surplus else 0):
                layout.unused.setdefault(number, history_file_columns.unread_column(number))
            for number, kind in layout.unused.items():
                if number < len(row.cells) and row.cells[number] is not None:
                    history_file_models.count_one(kind, row.line)
        self.unread += [kind for kind in layout.unused.values() if kind["count"]]

    def _count_headings(self, cells: Sequence[tables.Cell]) -> int:
        return _dialects.count_headings(cells) + sum(cell in self.answers.columns for cell in cells)

    def _layout_of(self, table: tables.Table, *, takes_any: bool) -> _Layout | None:
        """Return how a table is read; None if it has no sets, but another one may have them."""
        headings = [history_file_columns.renamed(heading, self.answers.columns) for heading in table.headings]
        first = list(itertools.islice(table.rows, 1))
        dialect = self._dialect_of(headings, () if not first else first[0].cells)
        if dialect is None or dialect is history_file_columns.SETS:
            headings = history_file_columns.with_durations(headings)
            dialect = self._dialect_of(headings, ())
        if dialect is None:
            if takes_any and any(table.headings):
                raise _unknown_format(table.headings)
            return None
        if not takes_any and dialect.count_marks(words_of(headings)) < len(dialect.marks) - 1:
            return None
        sample = [*first, *itertools.islice(table.rows, SAMPLE_ROWS if needs_values(dialect, headings) else 0)]
        read, questions = interpret(dialect, headings, sample)
        self.name_heading = self.name_heading or find_names(dialect, headings, read)
        missing = history_file_columns.find_missing(dialect, table.headings, read)
        unused = history_file_columns.find_unused(dialect, table.headings, read, self.answers.columns)
        kinds = {
            number: history_file_columns.unread_column(number, table.headings[number], code)
            for number, code in unused.items()
            if missing is None  # one of them has what is missing
        }
        rows = itertools.chain(sample, table.rows)
        return _Layout(dialect, read, rows, missing, kinds, questions, table.is_text)

    def _dialect_of(self, headings: Sequence[str], first: Sequence[tables.Cell]) -> _dialects.Dialect | None:
        if self.answers.format is not None:
            known = [each for each in _dialects.DIALECTS if each.format == self.answers.format]
            return max(known, key=lambda each: each.count_marks(words_of(headings)), default=None)
        dialect = _dialects.recognise(headings, first)
        return history_file_columns.SETS if dialect is None and history_file_columns.is_near(headings) else dialect


def has_amounts(headings: Sequence[str]) -> bool:
    """Return whether headings are of sets, repetitions or loads, as none of clients is: a weight is of a body."""
    own = [each for each in headings if read_heading(each).words != "weight"]
    return any(history_file_columns.SETS.field_of(each) in ("sets", "reps", "load") for each in own)


def _unit_of(table: tables.Table) -> Unit | None:
    """Return the unit of loads that a table says which has the settings of the others; None for any other table."""
    words = [read_heading(heading).words for heading in table.headings]
    named = next((each.unit_heading for each in _dialects.DIALECTS if each.unit_heading in words), None)
    if named is None or "date" in words or (row := next(iter(table.rows), None)) is None:
        return None
    return unit_of(tables.text_of(dict(zip(words, row.cells, strict=False)).get(named)))


def _filled(dialect: _dialects.Dialect, headings: Sequence[str], rows: Iterable[tables.Row]) -> Iterator[tables.Row]:
    """Yield rows in which an empty date is the one above, as in merged cells, and so are other empty cells below it."""
    if not dialect.is_general:
        yield from rows
        return
    fields = [dialect.field_of(each) for each in headings]
    carried = [number for number, name in enumerate(fields) if name in ("date", "workout", "exercise")]
    above: dict[int, tables.Cell] = {}
    for row in rows:
        cells = [*row.cells, *[None] * (len(headings) - len(row.cells))]
        if any(fields[number] == "date" and cells[number] is not None for number in carried):
            above = {}
        for number in carried:
            if cells[number] is not None:
                above[number] = cells[number]
            elif number not in row.unsolved:
                cells[number] = above.get(number)
        yield replace(row, cells=tuple(cells))


def _unknown_format(headings: Sequence[str]) -> UnknownFormat:
    near = _dialects.nearest(headings)
    lacking = [group[0] for group in near.marks if not set(group) & words_of(headings)]
    return UnknownFormat(
        f"has headings that fit no format: {', '.join(filter(None, headings))[:300]}. The nearest is "
        f"{near.format}, which needs: {', '.join(lacking)}"
    )
