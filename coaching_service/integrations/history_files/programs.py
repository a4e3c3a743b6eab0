"""Programs in sheets: rows of planned exercises by week and day, with headings in English and Spanish."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import IO, Literal, cast

from coaching_service.core.text import normalize
from coaching_service.integrations.history_files._headings import Unit, read_heading
from coaching_service.integrations.history_files._plan_cells import PLAN_FIELDS, PlanField, is_empty, read_sets
from coaching_service.integrations.history_files._plan_days import (
    DAYS_OF_WEEK,
    LAST_DAY,
    REST_DAY,
    DayNumbers,
    UnknownDay,
    is_possible,
    is_rest,
    week_in,
)
from coaching_service.integrations.history_files._vocabulary import VOCABULARY, by_words
from coaching_service.integrations.history_files.models import Problem
from coaching_service.integrations.history_files.tables import (
    UNSOLVED,
    Cell,
    Row,
    Table,
    UnreadableTable,
    read_tables,
    text_of,
)
from coaching_service.integrations.history_files.values import is_made_date
from coaching_service.training.set_text.planned import write_planned
from coaching_service.training.workouts.sets.models import PlannedSet

Column = Literal["week", "day", "exercise", "superset", "notes"] | PlanField

# Words of headings, normalized.
COLUMNS: Mapping[Column, tuple[str, ...]] = {
    "week": ("week", "wk", "semana", "sem"),
    "day": ("day", "dia", "session", "sesion", "workout", "workout name", "training day", "entrenamiento"),
    "exercise": (*VOCABULARY["exercise"], "exercises", "ejercicios", "movimiento"),
    "sets": ("sets", "set", "series", "serie", "sets x reps", "sets reps"),
    "reps": (*VOCABULARY["reps"], "rep range", "repes", "rango de repeticiones"),
    "load": (*VOCABULARY["load"], "kg", "lbs", "lb"),
    "percent": ("%", "% 1rm", "%1rm", "1rm %", "% of 1rm", "percent", "percentage", "intensity", "porcentaje"),
    "rpe": VOCABULARY["rpe"],
    "rir": (*VOCABULARY["rir"], "repeticiones en reserva"),
    "rest": ("rest", "rest time", "rest period", "descanso", "pausa", "recuperacion"),
    "tempo": ("tempo", "cadence", "cadencia", "ritmo"),
    "superset": (*VOCABULARY["superset"], "order", "group", "orden", "grupo"),
    "notes": (*VOCABULARY["notes"], "cues", "instructions", "nota", "comentarios", "indicaciones"),
}
_COLUMN_OF: Mapping[str, Column] = by_words(COLUMNS)
_LABEL = re.compile(r"([A-Z]\d?|\d[a-z])\s*[).:]\s+(?=\S)")
_SUPERSET = re.compile(r"([A-Za-z]+)\d*|(\d+)[A-Za-z]")
_WEEKS = re.compile(r"\d\s*(?:-|–|—|to|a|\&|,)\s*\d", re.IGNORECASE)
_NAME_LENGTH, _NOTE_LENGTH = 200, 5_000
_NEEDED: tuple[Column, ...] = ("week", "day", "exercise")  # for a row to be where it belongs
_MAX_EXERCISES, _MAX_EXERCISES_OF_A_DAY, _MAX_SETS = 5_000, 100, 100


@dataclass
class PlannedExercise:
    """An exercise of a day, which a row begins: `superset` names its group, empty without one."""

    row: Row
    name: str
    superset: str
    sets: list[PlannedSet] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


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
    problems: list[Problem]


def read_program(file: IO[bytes], load_unit: str) -> ProgramSheet:
    """Return the program in a CSV or XLSX file, with loads in `load_unit`. Raises UnreadableTable."""
    file.seek(0)
    reader = _Reader(load_unit)
    headings: list[str] = []
    for table in read_tables(file, _count_headings):
        headings = headings or [heading for heading in table.headings if heading]
        reader.read(table)
    if not reader.tables:
        raise UnreadableTable(f"has no column with exercises; it has: {', '.join(headings)[:300] or 'nothing'}")
    reader.report_long_notes()
    days = sorted(reader.days.values(), key=lambda day: day.day)
    if not any(day.exercises for day in days):
        raise UnreadableTable("has no rows with exercises")
    return ProgramSheet(days, reader.problems)


def write_table(sheet: ProgramSheet, load_unit: str) -> str:
    """Return a table with tabs that `read_program` reads as the same days, with loads in `load_unit`."""
    out = io.StringIO()
    writer = csv.writer(out, delimiter="\t", lineterminator="\n")
    writer.writerow(("Week", "Day", "Exercise", "Sets", "Superset", "Notes"))
    for day in sheet.days:
        week, number = divmod(day.day - 1, DAYS_OF_WEEK)
        label = f"Day {number + 1}"
        when = (week + 1, label if day.name == label else f"{label}: {' '.join(day.name.split())}")
        if not day.exercises:
            writer.writerow((*when, "REST", "", "", ""))
        for each in day.exercises:
            sets = write_planned(each.sets, load_unit)
            writer.writerow((*when, each.name, sets, day.superset_of(each) or "", "\n".join(each.notes)))
    return out.getvalue()


def _column_of(heading: Cell) -> Column | None:
    if not isinstance(heading, str):
        return None
    words = read_heading(heading).words
    return _COLUMN_OF.get(words) or _COLUMN_OF.get(normalize(heading))


def _count_headings(cells: Sequence[Cell]) -> int:
    return sum(_column_of(cell) is not None for cell in cells)


class _Reader:
    """Reads the rows of all sheets; cells of week and day that are empty mean the same as above."""

    def __init__(self, load_unit: str) -> None:
        self.days: dict[int, PlannedDay] = {}
        self.problems: list[Problem] = []
        self.tables = 0  # that have exercises
        self._load_unit, self._count = load_unit, 0
        self._numbers = DayNumbers()
        self._current: PlannedDay | None = None
        self._is_day_unknown = False
        self._unsolved: list[Column] = []  # of the current row or one above, which the rows below continue

    def read(self, table: Table) -> None:
        """Read a sheet; without a column of weeks it is a week itself, or a day if it has no column of days either."""
        columns = [_column_of(heading) for heading in table.headings]
        if "exercise" not in columns:
            return
        self.tables += 1
        self._unsolved = []
        week = week_in(table.name)
        if "week" not in columns and (week is not None or "day" in columns):
            self._numbers.begin_week(week or (self.tables if table.name else 1))
        if "day" not in columns:
            is_day = week is None and is_possible(table.name)
            self._begin_day(table.name if is_day else "", table.name)
        else:
            self._current = None
        units = [read_heading(heading).unit for heading in table.headings]
        own_units: dict[str, Unit] = {"kg": "kg", "lb": "lb", "lbs": "lb"}
        units = [unit or own_units.get(normalize(name)) for unit, name in zip(units, table.headings, strict=True)]
        for row in table.rows:
            self._read_row(row, columns, units)

    def _read_row(self, row: Row, columns: Sequence[Column | None], units: Sequence[Unit | None]) -> None:
        if not self._report_unsolved(row, columns):
            return
        cells = _cells_of(row, columns, units)
        week, day, name = (_text(cells, column) for column in ("week", "day", "exercise"))
        if week:
            self._begin_week(row, week)
        if day:
            self._begin_day_of_row(row, day)
        elif week and self._current is not None and self._numbers.changes_week:
            self._begin_day("", self._current.name)
        if self._is_day_unknown:
            return
        if is_rest(name):
            self._add_rest(has_day=bool(day))
            return
        plan = {column: cells[column] for column in PLAN_FIELDS if column in cells}
        if name:
            self._add_exercise(row, cells, name)
        self._add_note(cells)
        if name or not is_empty(plan):
            self._add_sets(row, plan)

    def _report_unsolved(self, row: Row, columns: Sequence[Column | None]) -> bool:
        """Report the formulas without results; returns False if the row is left out, as are those that continue it."""
        unsolved = [name for number in row.unsolved if number < len(columns) and (name := columns[number])]
        for name in unsolved:
            if name in _NEEDED:
                self._report(row, name, UNSOLVED, code="REQUIRED")
            else:
                self._report(row, name, UNSOLVED)
        written = {name for name, cell in zip(columns, row.cells, strict=False) if cell is not None}
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

    def _begin_week(self, row: Row, text: str) -> None:
        week = None if is_made_date(text) else week_in(text) or week_in(f"week {text}")
        if week is None:
            self._report(row, "week", f"is not the number of a week: {text[:50]}")
        else:
            if _WEEKS.search(text):
                self._report(row, "week", f"is several weeks, of which the first is planned: {text[:50]}")
            self._numbers.begin_week(week)

    def _begin_day_of_row(self, row: Row, day: str) -> None:
        """Begin the day of a row; if no program has it, its rows are left out."""
        try:
            self._begin_day(day, day)
            if len(day) > _NAME_LENGTH:
                self._report(row, "day", f"is cut: it has more than {_NAME_LENGTH} characters")
        except UnknownDay:
            self._is_day_unknown = True
            message = f"is not a day from 1 to {LAST_DAY:,}, and what is on it is left out: {day[:50]}"
            self._report(row, "day", message, code="OUT_OF_RANGE")

    def _begin_day(self, text: str, name: str) -> None:
        number, title = self._numbers.read(text)
        self._is_day_unknown = False
        rest = is_rest(text) or is_rest(title)
        name = REST_DAY if rest else (title or name).strip()[:_NAME_LENGTH] or f"Day {number}"
        self._current = self.days.setdefault(number, PlannedDay(number, name, rest))

    def _add_rest(self, *, has_day: bool) -> None:
        """Make the day of the row a day of rest; without a day of its own, the one after the day above."""
        if has_day and self._current is not None and not self._current.exercises:
            self._current.is_rest = True
        else:
            self._begin_day("rest", REST_DAY)

    def _add_exercise(self, row: Row, cells: Mapping[Column, tuple[Cell, Unit | None]], name: str) -> None:
        label = _text(cells, "superset")
        if (prefix := _LABEL.match(name)) is not None:
            name, label = name[prefix.end() :].strip(), label or prefix[1]
        found = _SUPERSET.fullmatch(label)
        superset = (found[1] or found[2]).upper() if found else ""
        if self._current is None:
            self._begin_day("1", "")
        current = cast("PlannedDay", self._current)
        current.is_rest = False
        if len(name) > _NAME_LENGTH:
            self._report(row, "exercise", f"is cut: it has more than {_NAME_LENGTH} characters")
        exercise = PlannedExercise(row, " ".join(name.split())[:_NAME_LENGTH], superset)
        if label and not found and not label.isdigit():
            exercise.notes.append(label)
        current.exercises.append(exercise)
        self._count += 1
        if self._count > _MAX_EXERCISES or len(current.exercises) > _MAX_EXERCISES_OF_A_DAY:
            most = f"{_MAX_EXERCISES:,} exercises, and {_MAX_EXERCISES_OF_A_DAY} on a day"
            raise UnreadableTable(f"has more than {most}", row.line)

    def _add_note(self, cells: Mapping[Column, tuple[Cell, Unit | None]]) -> None:
        note = _text(cells, "notes")
        if note and self._current is not None and self._current.exercises:
            self._current.exercises[-1].notes.append(note)

    def _add_sets(self, row: Row, plan: Mapping[PlanField, tuple[Cell, Unit | None]]) -> None:
        """Add the sets of a row to its exercise, or to the one above; what cannot be read becomes a note."""
        if self._current is None or not self._current.exercises:
            self._report(row, "exercise", "is empty, and no exercise is above it", code="REQUIRED")
            return
        exercise = self._current.exercises[-1]
        read = read_sets(plan, self._load_unit)
        start = len(exercise.sets)
        exercise.sets += [{**each, "index": start + each["index"]} for each in read.sets]
        if len(exercise.sets) > _MAX_SETS:
            raise UnreadableTable(f"has more than {_MAX_SETS} sets of an exercise", row.line)
        for name, message in read.left_out.items():
            text = str(plan[name][0])
            exercise.notes.append(f"{name.capitalize()}: {text}")
            self._report(row, name, f"{message}. It is in the instructions: {text[:50]}")

    def _report(self, row: Row, name: str, message: str, *, code: str = "VALUE_LEFT_OUT") -> None:
        self.problems.append({"entry": row.place, "line": row.line, "field": name, "code": code, "message": message})


def _cells_of(
    row: Row, columns: Sequence[Column | None], units: Sequence[Unit | None]
) -> dict[Column, tuple[Cell, Unit | None]]:
    """Return the cells of a row by column, with the units of their headings; of two for a column, the first."""
    cells: dict[Column, tuple[Cell, Unit | None]] = {}
    for column, cell, unit in zip(columns, row.cells, units, strict=False):
        if column is not None and cell is not None and column not in cells:
            cells[column] = (cell, unit)
    return cells


def _text(cells: Mapping[Column, tuple[Cell, Unit | None]], column: Column) -> str:
    return text_of(cells.get(column, (None, None))[0])
