"""Programs in sheets: rows of planned exercises by week and day, with headings in English and Spanish."""

from __future__ import annotations

import csv
import io
import itertools
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import IO, Literal, cast

from coaching_service.core.text import normalize
from coaching_service.integrations.history_files import plan_cells, tables, values
from coaching_service.training.set_text import write_planned
from coaching_service.training.workouts.sets import PlannedSet

Column = Literal["week", "day", "dayNumber", "dayName", "exercise", "set", "superset", "notes"] | plan_cells.PlanField

# Words of headings, normalized.
COLUMNS: Mapping[Column, tuple[str, ...]] = {
    "week": ("week", "wk", "semana", "sem", "woche", "semaine", "settimana"),
    "day": (
        *("day", "dia", "session", "sesion", "workout", "workout name", "training day", "entrenamiento"),
        *("tag", "jour", "giorno"),
    ),
    "dayNumber": ("day index", "day number", "day no", "numero de dia", "numero del dia"),
    "dayName": ("day name", "day title", "name of day", "nombre del dia"),
    "exercise": (*values.VOCABULARY["exercise"], "exercises", "ejercicios", "movimiento"),
    "set": ("set", "set number", "set no", "set index", "set order", "serie", "numero de serie"),
    "sets": ("sets", "series", "number of sets", "sets x reps", "sets reps", "satze"),
    "reps": (*values.VOCABULARY["reps"], "rep range", "repes", "rango de repeticiones"),
    "load": (*values.VOCABULARY["load"], "kg", "lbs", "lb"),
    "percent": ("%", "% 1rm", "%1rm", "1rm %", "% of 1rm", "percent", "percentage", "intensity", "porcentaje"),
    "rpe": values.VOCABULARY["rpe"],
    "rir": (*values.VOCABULARY["rir"], "repeticiones en reserva"),
    "rest": ("rest", "rest time", "rest period", "descanso", "pausa", "recuperacion", "pause", "repos"),
    "tempo": ("tempo", "cadence", "cadencia", "ritmo"),
    "superset": (*values.VOCABULARY["superset"], "order", "group", "orden", "grupo"),
    "notes": (*values.VOCABULARY["notes"], "cues", "instructions", "nota", "comentarios", "indicaciones"),
}
_COLUMN_OF: Mapping[str, Column] = values.by_words(COLUMNS)
_LABEL = re.compile(r"([A-Z]\d?|\d[a-z])\s*(?:[).:]\s+|\s[-–—]\s+)(?=\S)")
_LABEL_WITHOUT_SIGN = re.compile(r"(([A-H])(\d))-?\s+(?=\S)")
# `Week 1`, `W1 Sets`, `Sets W1`, by the words of a heading.
_OF_WEEK = re.compile(r"(?:week|wk|w|semana|sem)\s*(\d{1,3})(?:\s+(.+))?|(.+?)\s+(?:week|wk|w|semana|sem)\s*(\d{1,3})")
_SET_NUMBER = re.compile(r"(?:set|serie)?\s*(\d{1,2})", re.IGNORECASE)
_NUMBERED = re.compile(r"(?:day|dia|día|session|sesion|sesión|workout)?\s*\d+\s*(?:[-:.–—,)]|$)", re.IGNORECASE)
_WITH_UNIT = re.compile(r"\d\s*(?:kgs?|lbs?|%)", re.IGNORECASE)
_SUPERSET = re.compile(r"([A-Za-z]+)\d*|(\d+)[A-Za-z]")
_WEEKS = re.compile(r"\d\s*(?:-|–|—|to|a|\&|,)\s*\d", re.IGNORECASE)
_NAME_LENGTH, _NOTE_LENGTH = 200, 5_000
_WHERE: tuple[Column, ...] = ("week", "day", "dayNumber", "dayName")
_NEEDED: tuple[Column, ...] = (*_WHERE, "exercise")  # for a row to be where it belongs
_PLANNED: tuple[Column, ...] = (*plan_cells.PLAN_FIELDS, "notes")
_NOTHING = {"-", "–", "—"}
_HEADINGS: Mapping[plan_cells.PlanField, str] = {"percent": "%", "rpe": "RPE", "rir": "RIR"}
_MAX_ROWS = 50_000
_MAX_EXERCISES, _MAX_EXERCISES_OF_A_DAY, _MAX_SETS = 5_000, 100, 100


@dataclass
class PlannedRow:
    """A row of an exercise: `cells` are the texts of its cells if some, `left_out` with why, could not be read."""

    row: tables.Row
    sets: list[PlannedSet]
    cells: Mapping[plan_cells.PlanField, str]
    left_out: Mapping[plan_cells.PlanField, str]


@dataclass
class PlannedExercise:
    """An exercise of a day, which a row begins: `superset` names its group, empty without one.

    `last_set` is the number of its last set where a column numbers them, else 0.
    """

    row: tables.Row
    name: str
    superset: str
    sets: list[PlannedSet] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    rows: list[PlannedRow] = field(default_factory=list)
    last_set: int = 0


@dataclass
class PlannedDay:
    """A day of a program, from 1, with the exercises that are planned on it."""

    day: int
    name: str
    is_rest: bool
    exercises: list[PlannedExercise] = field(default_factory=list)

    def superset_of(self, exercise: PlannedExercise) -> str | None:
        """Return the superset of an exercise, which others of the day share; None without one."""
        label = exercise.superset
        return label if label and sum(each.superset == label for each in self.exercises) > 1 else None


@dataclass
class ProgramSheet:
    """A program as a file describes it: its days in order, and what could not be read, by line."""

    days: list[PlannedDay]
    problems: list[tables.Problem]


Corrections = Mapping[int, Mapping[plan_cells.PlanField, str]]


def read_program(file: IO[bytes], load_unit: str, corrections: Corrections | None = None) -> ProgramSheet:
    """Return the program in a CSV or XLSX file, with loads in `load_unit`. Raises UnreadableTable.

    `corrections` are cells with another text, by line.
    """
    reader, headings = _read(file, _Reader(load_unit, corrections or {}))
    signs = reader.signs
    if (sign := values.decided_sign(signs)) is not None and (signs["?"] or (signs["."] and signs[","])):
        reader, headings = _read(file, _Reader(load_unit, corrections or {}, sign))
    if not reader.tables:
        raise tables.UnreadableTable(f"has no column with exercises; it has: {', '.join(headings)[:300] or 'nothing'}")
    reader.report_long_notes()
    days = sorted((day for day in reader.days.values() if day.exercises or day.is_rest), key=lambda day: day.day)
    if not any(day.exercises for day in days):
        raise tables.UnreadableTable("has no rows with exercises")
    sets = (planned for day in days for exercise in day.exercises for planned in exercise.sets)
    if not any(any(map(planned.get, plan_cells.NUMBERS)) or planned["rir"] is not None for planned in sets):
        message = "has no number of repetitions, time, distance, load, percentage or effort in any set"
        raise tables.UnreadableTable(f"{message}; it has: {', '.join(headings)[:300]}")
    return ProgramSheet(days, reader.problems)


def _read(file: IO[bytes], reader: _Reader) -> tuple[_Reader, list[str]]:
    """Return a reader that has read the tables of a file, and the headings of the first one."""
    headings: list[str] = []
    for table in tables.read_tables(file, _count_headings):
        headings = headings or [heading for heading in table.headings if heading]
        reader.read(table)
    return reader, headings


def write_table(sheet: ProgramSheet, load_unit: str) -> str:
    """Return a table with tabs that `read_program` reads as the same days, with loads in `load_unit`.

    A row with cells that could not be read has its own cells, so that they can be corrected.
    """
    out = io.StringIO()
    writer = csv.writer(out, delimiter="\t", lineterminator="\n")
    rows = [row for day in sheet.days for each in day.exercises for row in each.rows]
    used = [name for name in plan_cells.PLAN_FIELDS[1:] if any(row.cells.get(name) for row in rows)]
    headings = [_HEADINGS.get(name, name.capitalize()) for name in used]
    writer.writerow(("Week", "Day", "Exercise", "Sets", *headings, "Superset", "Notes"))
    for day in sheet.days:
        week, number = divmod(day.day - 1, plan_cells.DAYS_OF_WEEK)
        label = f"Day {number + 1}"
        when = (week + 1, label if day.name == label else f"{label}: {' '.join(day.name.split())}")
        if not day.exercises:
            writer.writerow((*when, "REST", "", *("" for _ in used), "", ""))
        for each in day.exercises:
            reported = {f"{name.capitalize()}: {row.cells[name]}" for row in each.rows for name in row.left_out}
            notes = "\n".join(note for note in each.notes if note not in reported)
            is_divided = any(row.left_out for row in each.rows)  # then each row has its own
            for row in each.rows if is_divided else each.rows[:1]:
                planned = {"sets": write_planned(row.sets if is_divided else each.sets, load_unit)}
                cells = [(row.cells if row.left_out else planned).get(name, "") for name in ("sets", *used)]
                is_first = row is each.rows[0]
                begins, ends = (*when, each.name), (day.superset_of(each) or "", notes)
                writer.writerow((*(begins if is_first else ("", "", "")), *cells, *(ends if is_first else ("", ""))))
    return out.getvalue()


@dataclass(frozen=True)
class _Column:
    """What a column has, and its week; `plan` is what a column such as `Week 1` has, whose cells tell it."""

    name: Column | Literal["plan"] | None
    week: int | None = None
    unit: values.Unit | None = None


@dataclass
class _Block:
    """A part of a sheet with headings of its own, and the titles above them; `is_named`: the last one is a day."""

    table: tables.Table
    titles: list[tables.Row]
    rows: list[tables.Row]
    columns: list[_Column] = field(default_factory=list)
    is_named: bool = False


def _column_of(heading: tables.Cell) -> _Column:
    if not isinstance(heading, str):
        return _Column(None)
    own_units: dict[str, values.Unit] = {"kg": "kg", "lb": "lb", "lbs": "lb"}
    read = values.read_heading(heading)
    unit = read.unit or own_units.get(normalize(heading))
    if (name := _COLUMN_OF.get(read.words) or _COLUMN_OF.get(normalize(heading))) is not None:
        return _Column(name, None, unit)
    if (found := _OF_WEEK.fullmatch(read.words)) is None or (
        week := plan_cells.week_in(f"week {found[1] or found[4]}")
    ) is None:
        return _Column(None)
    if not (words := found[2] or found[3]):
        return _Column("load" if unit in ("kg", "lb") else "plan", week, unit)
    name = _COLUMN_OF.get(words)
    return _Column(name, week, unit) if name in _PLANNED else _Column(None)


def _count_headings(cells: Sequence[tables.Cell]) -> int:
    """Return how many cells are headings; those of weeks are, with one of exercises."""
    columns = [_column_of(cell) for cell in cells]
    has_exercise = any(column.name == "exercise" for column in columns)
    return sum(column.name is not None and (column.week is None or has_exercise) for column in columns)


class _Reader:
    """Reads the rows of all sheets; cells of week and day that are empty mean the same as above."""

    def __init__(self, load_unit: str, corrections: Corrections, sign: values.DecimalSign | None = None) -> None:
        self.signs: Counter[str] = Counter()  # before decimals of loads, and `?` for those that depend on it
        self._sign = sign
        self.days: dict[int, PlannedDay] = {}
        self.problems: list[tables.Problem] = []
        self.tables = 0  # that have exercises
        self._load_unit, self._corrections, self._count = load_unit, corrections, 0
        self._numbers = plan_cells.DayNumbers()
        self._current: PlannedDay | None = None
        self._exercise: PlannedExercise | None = None  # of the current day, to which rows without a name belong
        self._unnamed = ("", "")  # the day of exercises before which no row names one
        self._is_day_unknown = False
        self._first_day = 1  # of a column that numbers the days: 0 if they are counted from 0
        self._unsolved: list[Column] = []  # of the current row or one above, which the rows below continue
        self._week: int | None = None  # that is read, of a sheet with weeks side by side
        self._planned: set[str] = set()  # the places of rows with exercises, and of those without a cell in a week
        self._unplanned: dict[str, tables.Row] = {}

    def read(self, table: tables.Table) -> None:
        """Read a sheet; without a column of weeks it is a week itself, or a day if it has no column of days either.

        Weeks side by side are read one after another.
        """
        blocks = _blocks_of(table)
        columns = [column for block in blocks for column in block.columns]
        names = {column.name for column in columns}
        if "exercise" not in names or (table.name and not names & {*plan_cells.PLAN_FIELDS, "set", "plan"}):
            self.problems.append(tables.unknown_sheet(table, "planned exercises"))
            return
        self.tables += 1
        self._unsolved = []
        has_day = bool(names & {*_WHERE[1:]})
        week = plan_cells.week_in(table.name)
        if "week" not in names and (week is not None or has_day):
            self._numbers.begin_week(week or (self.tables if table.name else 1))
        is_day = not has_day and week is None and plan_cells.is_possible(table.name)
        unnamed = ("1", "") if has_day else (table.name if is_day else "", table.name)
        for block in blocks:
            self._report_columns(block)
        self._planned, self._unplanned = set(), {}
        weeks: list[int | None] = [*sorted({column.week for column in columns if column.week is not None})]
        for self._week in weeks or [None]:
            self._current, self._exercise, self._unnamed, self._is_day_unknown = None, None, unnamed, False
            if self._week is not None:
                self._numbers.begin_week(self._week)
            for block in blocks:
                for row in block.titles:
                    if not self._read_label(row, ()) and block.is_named and row is block.titles[-1]:
                        self._begin_day_of_row(row, _text_alone(row))
                for row in block.rows:
                    if not self._read_label(row, block.columns):
                        self._read_row(row, block.columns)
        for line in self._unplanned.keys() - self._planned:
            self._report(self._unplanned[line], "exercise", "has nothing in any week and is left out")
        unique = {(each["entry"], each["field"], each["message"]): each for each in self.problems}
        self.problems = sorted(unique.values(), key=lambda each: each["line"] or 0) if self._week else self.problems

    def _report_columns(self, block: _Block) -> None:
        """Report the columns that are not read, and those that are read only where an earlier one is empty."""
        headings = block.table.headings
        seen: set[tuple[object, int | None]] = set()
        for heading, column in zip(headings, block.columns, strict=False):
            if heading and column.name is None:
                self.problems.append(tables.column_problem(block.table, heading))
            elif heading and (column.name, column.week) in seen:
                self.problems.append(tables.column_problem(block.table, heading, is_repeated=True))
            seen.add((column.name, column.week))
        nameless = {
            number
            for row in block.rows
            for number, cell in enumerate(row.cells)
            if cell is not None and block.columns[number].name is None and not "".join(headings[number : number + 1])
        }
        self.problems += [tables.column_problem(block.table, f"column {number + 1}") for number in sorted(nameless)]

    def _read_label(self, row: tables.Row, columns: Sequence[_Column]) -> bool:
        """Begin the week or day that a row names and nothing else; returns False for another row."""
        filled = [(number, tables.text_of(cell)) for number, cell in enumerate(row.cells) if cell is not None]
        labels = [plan_cells.label_in(text) for _, text in filled]
        if not labels or any(number < len(columns) and columns[number].name in _WHERE for number, _ in filled):
            return False
        weeks = [each[0] for each in labels if each is not None and each[0] is not None]
        days = [each[1] for each in labels if each is not None and each[1]]
        if None in labels or len(days) > 1:
            return False
        if len(weeks) > 1:  # above columns that are of a week each
            return not columns
        for week in weeks:
            if self._week is not None:
                self._report(row, "week", "is left out, as the columns are of weeks")
                continue
            self._numbers.begin_week(week)
            self._current, self._exercise, self._unnamed = None, None, ("", "")
        for day in days:
            self._begin_day_of_row(row, day)
        return True

    def _read_row(self, row: tables.Row, columns: Sequence[_Column]) -> None:
        if not self._report_unsolved(row, columns):
            return
        cells = _cells_of(row, columns, self._week)
        name, day = _text(cells, "exercise"), self._day_of(cells)
        self._begin(row, _text(cells, "week"), day)
        if self._is_day_unknown:
            return
        if plan_cells.is_rest(name):
            if day and self._current is not None and not self._current.exercises:
                self._current.is_rest = True
            else:  # the day after the one above
                self._begin_day("rest", plan_cells.REST_DAY)
            return
        if values.is_total(name):
            self._report(row, "exercise", f"is a sum and is left out: {name[:50]}")
            return
        plan = {column: cells[column] for column in plan_cells.PLAN_FIELDS if column in cells}
        plan |= {name: (text or None, None) for name, text in self._corrections.get(row.line, {}).items()}
        is_of_week = any(
            column.week == self._week and tables.text_of(cell) not in {"", *_NOTHING}
            for column, cell in zip(columns, row.cells, strict=False)
        )
        if name and self._week is not None and not is_of_week:
            self._exercise = None
            self._unplanned[row.place] = row
            return
        number = self._number_of(row, cells, plan)
        if name:
            self._begin_exercise(row, cells, name, number)
        if name or number is not None or any(cell is not None for cell, _ in plan.values()):
            self._add_sets(row, plan, number)
        if (note := _text(cells, "notes")) and self._exercise is not None:
            self._exercise.notes.append(note)

    def _begin(self, row: tables.Row, text: str, day: str) -> None:
        """Begin the week and the day of a row; without a day, a new week begins with the same."""
        if text:
            week = None if values.is_made_date(text) else plan_cells.week_in(text) or plan_cells.week_in(f"week {text}")
            if week is None:
                self._report(row, "week", f"is not the number of a week: {text[:50]}")
            else:
                if _WEEKS.search(text):
                    self._report(row, "week", f"is several weeks, of which the first is planned: {text[:50]}")
                self._numbers.begin_week(week)
        if day:
            self._begin_day_of_row(row, day)
        elif text and self._current is not None and self._numbers.changes_week:
            self._begin_day("", self._current.name)

    def _day_of(self, cells: Mapping[Column, values.Amount]) -> str:
        """Return the day of a row as a text: its number, which may count from 0, with its name."""
        number, day, name = (_text(cells, column) for column in ("dayNumber", "day", "dayName"))
        if number.isdecimal() and not int(number):
            self._first_day = 0
        if number.isdecimal():
            number = str(int(number) + 1 - self._first_day)
        if not (number := number or day) or not name:
            return number or name
        title = plan_cells.without_number(name) if _NUMBERED.match(name) else name
        return f"{number}: {title}" if number.isdecimal() and title else number

    def _number_of(
        self, row: tables.Row, cells: Mapping[Column, values.Amount], plan: dict[plan_cells.PlanField, values.Amount]
    ) -> int | None:
        """Return the number of the set of a row; what else the column has is how many sets there are."""
        text = _text(cells, "set")
        found = _SET_NUMBER.fullmatch(text)
        if found is not None and (number := int(found[1])):
            name = _text(cells, "exercise")
            last = self._numbered(name) if name else self._exercise
            if number == 1 or (last is not None and 0 < last.last_set < number):
                plan.pop("sets", None)
                return number
        if text:
            plan.setdefault("sets", cells["set"])
        return None

    def _numbered(self, name: str) -> PlannedExercise | None:
        """Return the exercise of the current day with the name of a row, if its sets are numbered."""
        exercises = [] if self._current is None else self._current.exercises
        plain = self._split_label(name)[0]
        return next((each for each in reversed(exercises) if each.name == plain and each.last_set), None)

    def _report_unsolved(self, row: tables.Row, columns: Sequence[_Column]) -> bool:
        """Report the formulas without results; returns False if the row is left out, as are those that continue it."""
        known = [None if each.name == "plan" else each.name for each in columns]
        unsolved = [
            known[number] or "sets" for number in row.unsolved if number < len(columns) and columns[number].name
        ]
        for name in unsolved:
            if name in _NEEDED:
                self._report(row, name, tables.UNSOLVED, code="REQUIRED")
            else:
                self._report(row, name, tables.UNSOLVED)
        written = {name for name, cell in zip(known, row.cells, strict=False) if cell is not None}
        # A week, a day and an exercise hold for the rows below, until the next one is written.
        self._unsolved = [name for name in _NEEDED if name in unsolved or name in {*self._unsolved} - written]
        if self._unsolved and written and not {*unsolved} & {*_NEEDED}:
            self._report(row, self._unsolved[0], "is in a row above that is left out", code="REQUIRED")
        return not self._unsolved

    def report_long_notes(self) -> None:
        """Report the exercises whose notes, from several rows, are longer than are stored."""
        for exercise in (each for day in self.days.values() for each in day.exercises):
            if len("\n".join(dict.fromkeys(exercise.notes))) > _NOTE_LENGTH:
                message = f"are cut: they have more than {_NOTE_LENGTH:,} characters"
                self._report(exercise.row, "notes", message)

    def _begin_day_of_row(self, row: tables.Row, day: str) -> None:
        """Begin the day of a row; if no program has it, its rows are left out."""
        try:
            self._begin_day(day, day)
            if len(day) > _NAME_LENGTH:
                self._report(row, "day", f"is cut: it has more than {_NAME_LENGTH} characters")
        except plan_cells.UnknownDay:
            self._is_day_unknown = True
            message = f"is not a day from 1 to {plan_cells.LAST_DAY:,}, and what is on it is left out: {day[:50]}"
            self._report(row, "day", message, code="OUT_OF_RANGE")

    def _begin_day(self, text: str, name: str) -> None:
        number, title = self._numbers.read(text)
        self._is_day_unknown = False
        rest = plan_cells.is_rest(text) or plan_cells.is_rest(title)
        name = (
            plan_cells.REST_DAY
            if rest
            else (title or name).strip()[:_NAME_LENGTH] or f"Day {(number - 1) % plan_cells.DAYS_OF_WEEK + 1}"
        )
        day = self.days.setdefault(number, PlannedDay(number, name, rest))
        if day is not self._current:
            self._current, self._exercise = day, day.exercises[-1] if day.exercises else None

    def _split_label(self, name: str) -> tuple[str, str]:
        """Return a name without the label before it, such as `A1`, and the label.

        Without a sign, it is one if it is the first of its letter or another one of the day has the letter.
        """
        found = _LABEL.match(name)
        if found is None and (found := _LABEL_WITHOUT_SIGN.match(name)) is not None and found[3] != "1":
            exercises = [] if self._current is None else self._current.exercises
            found = found if any(each.superset == found[2] for each in exercises) else None
        label, rest = ("", name) if found is None else (found[1], name[found.end() :])
        return " ".join(rest.split())[:_NAME_LENGTH], label

    def _begin_exercise(
        self, row: tables.Row, cells: Mapping[Column, values.Amount], name: str, number: int | None
    ) -> None:
        """Continue with the exercise of a row: a new one, or with the number of a set the one that it continues."""
        if self._current is None:
            self._begin_day(*self._unnamed)
        current = cast("PlannedDay", self._current)
        current.is_rest = False
        self._planned.add(row.place)
        if number is not None and number > 1:
            self._exercise = self._numbered(name)
            return
        if len(name) > _NAME_LENGTH:
            self._report(row, "exercise", f"is cut: it has more than {_NAME_LENGTH} characters")
        name, prefix = self._split_label(name)
        label = _text(cells, "superset") or prefix
        found = _SUPERSET.fullmatch(label)
        self._exercise = PlannedExercise(row, name, (found[1] or found[2]).upper() if found else "")
        if label and not found and not label.isdigit():
            self._exercise.notes.append(label)
        current.exercises.append(self._exercise)
        self._count += 1
        if self._count > _MAX_EXERCISES or len(current.exercises) > _MAX_EXERCISES_OF_A_DAY:
            most = f"{_MAX_EXERCISES:,} exercises, and {_MAX_EXERCISES_OF_A_DAY} on a day"
            raise tables.UnreadableTable(f"has more than {most}", row.line)

    def _add_sets(
        self, row: tables.Row, plan: Mapping[plan_cells.PlanField, values.Amount], number: int | None
    ) -> None:
        """Add the sets of a row to its exercise, or to the one above; what cannot be read becomes a note."""
        if (exercise := self._exercise) is None:
            self._report(row, "exercise", "is empty, and no exercise is above it", code="REQUIRED")
            return
        exercise.last_set = number or 0
        for cell in (plan[name][0] for name in ("load", "percent") if name in plan):
            found = values.decimal_signs(cell) if isinstance(cell, str) else set()
            self.signs.update(found if len(found) < 2 else "?")
        read = plan_cells.read_sets(plan, self._load_unit, self._sign)
        start = len(exercise.sets)
        exercise.sets += [{**each, "index": start + each["index"]} for each in read.sets]
        if len(exercise.sets) > _MAX_SETS:
            raise tables.UnreadableTable(f"has more than {_MAX_SETS} sets of an exercise", row.line)
        texts = {name: plan_cells.cell_text(name, *plan[name]) for name in plan} if read.left_out else {}
        exercise.rows.append(PlannedRow(row, read.sets, texts, read.left_out))
        for name, message in read.left_out.items():
            text = texts[name]
            exercise.notes.append(f"{name.capitalize()}: {text}")
            self._report(row, name, f"{message}. It is in the instructions: {text[:50]}")

    def _report(self, row: tables.Row, name: str, message: str, *, code: str = "VALUE_LEFT_OUT") -> None:
        self.problems.append(row.problem(name, code, message))


def _below(table: tables.Table, row: tables.Row) -> tables.Table:
    """Return a table with the headings of a row."""
    return replace(table, headings=tables.headings_of(row), line=row.line, place=row.place)


def _blocks_of(table: tables.Table) -> list[_Block]:
    """Return the blocks of a sheet, which rows of headings begin; a title above them names the day of each.

    The title of the whole sheet is one if another block has a name.
    """
    rows = list(itertools.islice(table.rows, _MAX_ROWS + 1))
    if len(rows) > _MAX_ROWS:
        raise tables.UnreadableTable(f"has more than {_MAX_ROWS:,} rows: divide it into several files", rows[-1].line)
    blocks = [_Block(table, list(table.titles), [])]
    for row in rows:
        names = [name for cell in row.cells if (name := _column_of(cell).name) is not None]
        if "exercise" not in names or len(names) == 1:
            blocks[-1].rows.append(row)
            continue
        above = blocks[-1].rows
        titles: list[tables.Row] = []
        while above and _has_labels(above[-1]) and len(titles) < 3:
            titles.insert(0, above.pop())
        blocks.append(_Block(_below(table, row), titles, []))
    blocks = [part for block in blocks for part in _parts_of(block)]
    for block in blocks:
        _join_headings(block)
        block.columns = _columns_of(block)
        block.is_named = bool(block.titles and _text_alone(block.titles[-1])) and any(
            each.titles and plan_cells.label_in(_text_alone(each.titles[-1])) is None for each in blocks[1:]
        )
    return blocks


def _parts_of(block: _Block) -> list[_Block]:
    """Return the days that a block has side by side, each with exercises of its own; of others the block alone.

    The row above the headings must name the day of each.
    """
    names = [_column_of(heading).name for heading in block.table.headings]
    starts = [
        number - (number > 0 and names[number - 1] == "superset")
        for number, name in enumerate(names)
        if name == "exercise"
    ]
    if len(starts) < 2 or not block.titles:
        return [block]
    parts: list[_Block] = []
    for first, end in itertools.pairwise((0, *starts[1:], tables.MAX_COLUMNS)):
        title = _cut(block.titles[-1], first, end)
        label = plan_cells.label_in(_text_alone(title))
        if label is None or not label[1]:
            return [block]
        rows = [
            row
            for each in block.rows
            if (row := _cut(each, first, end)).unsolved or any(cell is not None for cell in row.cells)
        ]
        table = replace(block.table, headings=block.table.headings[first:end])
        parts.append(_Block(table, [*([] if parts else block.titles[:-1]), title], rows))
    return parts


def _cut(row: tables.Row, first: int, end: int) -> tables.Row:
    unsolved = tuple(number - first for number in row.unsolved if first <= number < end)
    return replace(row, cells=row.cells[first:end], unsolved=unsolved)


def _join_headings(block: _Block) -> None:
    """Make one row of headings of two: weeks in merged cells above `Sets` and `Reps`, and names next to them."""
    lower = [_column_of(cell).name for row in block.rows[:1] for cell in row.cells if cell is not None]
    if len(lower) > 1 and all(name in _PLANNED for name in lower):
        table, row = block.table, block.rows.pop(0)
        block.titles.append(tables.Row(table.line, tuple(each or None for each in table.headings), (), row.sheet))
        block.table = _below(table, row)
    above = block.titles[-1].cells if block.titles else ()
    headings = list(block.table.headings)
    headings += [""] * (len(above) - len(headings))
    for number, cell in enumerate(above):
        column = _column_of(cell)
        if not headings[number] and column.name is not None and column.week is None:
            headings[number] = tables.text_of(cell)
    block.table = replace(block.table, headings=tuple(headings))


def _columns_of(block: _Block) -> list[_Column]:
    """Return what the columns of a block have.

    A row above may name the weeks of columns that repeat a field. A column without a heading has days or weeks
    if all its cells do.
    """
    columns = [_column_of(heading) for heading in block.table.headings]
    width = max((len(row.cells) for row in block.rows), default=0)
    columns += [_Column(None)] * (width - len(columns))
    above = [plan_cells.label_in(tables.text_of(cell)) for row in block.titles[-1:] for cell in row.cells]
    named = [None if label is None else label[0] for label in above]
    if sum(week is not None for week in named) < 2:
        named = []
    counts = Counter(column.name for column in columns)
    week: int | None = None
    for number, column in enumerate(columns):
        heading = block.table.headings[number] if number < len(block.table.headings) else ""
        week = (named[number] if number < len(named) else None) or week
        if column.week is None and column.name in _PLANNED and counts[column.name] > 1:
            columns[number] = replace(column, week=week)
        elif not heading and number < 2:
            cells = [text for row in block.rows if not _text_alone(row) and (text := tables.text_of(row.cell(number)))]
            labels = [plan_cells.label_in(text) for text in cells]
            if labels and all(each is not None and each[1] for each in labels):
                columns[number] = _Column("day")
            elif labels and all(each is not None and not each[1] for each in labels):
                columns[number] = _Column("week")
    return columns


def _cells_of(row: tables.Row, columns: Sequence[_Column], week: int | None) -> dict[Column, values.Amount]:
    """Return the cells of a row by column, with the units of their headings; of two for a column, the first.

    Those of the week precede those of all weeks.
    """
    cells: dict[Column, values.Amount] = {}
    names = {column.name for column in columns if column.week is None}
    for of_week in dict.fromkeys((week, None)):
        for column, cell in zip(columns, row.cells, strict=False):
            if column.name is None or column.week != of_week or cell is None:
                continue
            if of_week is not None and tables.text_of(cell) in _NOTHING:
                continue
            name = _field_of(tables.text_of(cell), names) if column.name == "plan" else column.name
            cells.setdefault(name, (cell, column.unit))
    return cells


def _field_of(text: str, names: set[Column | Literal["plan"] | None]) -> plan_cells.PlanField:
    """Return what a cell below `Week 1` has, next to columns with `names`: sets, repetitions or loads."""
    if plan_cells.is_sets_text(text):
        return "sets"
    if _WITH_UNIT.search(text) or ("reps" in names and not names & {"load", "percent"}):
        return "load"
    return "reps" if "sets" in names and "reps" not in names else "sets"


def _text_alone(row: tables.Row) -> str:
    """Return the text of a row that has no other cell; empty for another row."""
    filled = [cell for cell in row.cells if cell is not None]
    return tables.text_of(filled[0]) if len(filled) == 1 else ""


def _has_labels(row: tables.Row) -> bool:
    """Return whether a row has a text alone, or names of weeks or days side by side and nothing else."""
    filled = [tables.text_of(cell) for cell in row.cells if cell is not None]
    return any(filled) if len(filled) == 1 else bool(filled) and all(map(plan_cells.label_in, filled))


def _text(cells: Mapping[Column, values.Amount], column: Column) -> str:
    return tables.text_of(cells.get(column, (None, None))[0])
