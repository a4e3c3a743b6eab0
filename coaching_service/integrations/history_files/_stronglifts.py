"""Rows of StrongLifts: an exercise with its sets in columns, or a session's repetitions as `5/5/4`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from coaching_service.integrations.history_files._amounts import SEVERAL_SETS
from coaching_service.integrations.history_files._headings import Unit, read_heading
from coaching_service.integrations.history_files._vocabulary import Field
from coaching_service.integrations.history_files.tables import Cell

_SET = re.compile(r"set (\d+)(?: (reps|time))?")
_COLUMNS: dict[str, Field] = {
    "date": "date",
    "workout": "workout",
    "workout name": "workout",
    "exercise": "exercise",
    "start time": "time",
    "end time": "end",
    "duration": "duration",
    "notes": "notes",
    "note": "notes",
}
_EXERCISE = re.compile(r"exercise \d+")
_OF_WORKOUTS: dict[str, Field] = {"date": "date", "note": "workoutNotes", "workout": "workout"}
_SETS_BY_REPS = {"sets reps", "sets x reps", "setsxreps", "reps"}
_LOADS = {"weight", "load"}
_LOAD_UNITS = {"kg", "lb"}


def expand(headings: Sequence[str], cells: Sequence[Cell]) -> Iterator[dict[Field, tuple[Cell, Unit | None]]]:
    """Yield the sets of a row: one for each column of repetitions that is not empty."""
    row = _Row()
    for heading, cell in zip(headings, cells, strict=False):
        if cell is not None:
            row.read(heading, cell)
    yield from row.sets()


def expand_exercises(headings: Sequence[str], cells: Sequence[Cell]) -> Iterator[dict[Field, tuple[Cell, Unit | None]]]:
    """Yield the sets of a row of before 2020, which is a workout: each exercise has its loads and sets behind it."""
    shared: dict[Field, tuple[Cell, Unit | None]] = {}
    groups: list[tuple[Cell, list[tuple[str, Cell]]]] = []  # an exercise, and the cells behind it
    for heading, cell in zip(headings, cells, strict=False):
        words = read_heading(heading).words
        if _EXERCISE.fullmatch(words):
            groups.append((cell, []))
        elif groups:
            groups[-1][1].append((heading, cell))
        elif words in _LOADS or _SET.fullmatch(words):  # the exercise has no column
            groups.append((None, [(heading, cell)]))
        elif cell is not None and (name := _OF_WORKOUTS.get(words)) is not None:
            shared[name] = (cell, None)
    rows = [_row_of(exercise, behind) for exercise, behind in groups]
    done = [row for row in rows if row.shared["exercise"][0] is not None or row.reps or row.times]
    for row in done:
        row.shared |= shared
        yield from row.sets()
    if not done:
        yield shared


def _row_of(exercise: Cell, cells: Sequence[tuple[str, Cell]]) -> _Row:
    """Return the sets of an exercise; a heading that comes again is of another one, whose name has no column."""
    row, left_out = _Row({"exercise": (exercise, None)}), list[str]()
    seen: dict[tuple[str, Unit | None], Cell] = {}
    for heading, cell in cells:
        read = read_heading(heading)
        first = seen.setdefault((read.words, read.unit), cell)
        if cell is None or (read.words in _LOADS and cell == first and row.load[0] is not None):
            continue
        if cell == first:
            row.read(heading, cell)
        else:
            left_out.append(f"{heading} {cell}")
    row.shared["leftOut"] = (", ".join(left_out) or None, None)
    return row


def has_sets_in_a_cell(headings: Sequence[str], cells: Sequence[Cell]) -> bool:
    """Return whether a table has no other columns than these, and the repetitions of several sets in a cell."""
    names = [read_heading(heading).words for heading in headings]
    reps = dict(zip(names, cells, strict=False)).get("reps")
    known = {*_COLUMNS, *_SETS_BY_REPS, *_LOADS, "body weight", "bodyweight"}
    return isinstance(reps, str) and SEVERAL_SETS.fullmatch(reps) is not None and {*filter(None, names)} <= known


def reads(heading: str) -> bool:
    """Return whether the column of a heading is read, or has nothing to read: the number of a workout."""
    words = read_heading(heading).words
    known = {*_COLUMNS, *_SETS_BY_REPS, *_LOADS, "workout number"}
    return words in known or bool(_SET.fullmatch(words) or _EXERCISE.fullmatch(words))


@dataclass
class _Row:
    shared: dict[Field, tuple[Cell, Unit | None]] = field(default_factory=dict)
    reps: dict[int, Cell] = field(default_factory=dict)
    loads: dict[int, tuple[Cell, Unit | None]] = field(default_factory=dict)
    times: dict[int, tuple[Cell, Unit | None]] = field(default_factory=dict)
    load: tuple[Cell, Unit | None] = (None, None)
    text: str = ""

    def read(self, heading: str, cell: Cell) -> None:
        """Read a cell that is not empty."""
        read = read_heading(heading)
        if found := _SET.fullmatch(read.words):
            if read.unit in _LOAD_UNITS:
                self.loads[int(found[1])] = (cell, read.unit)
            elif read.unit is not None or found[2] == "time":
                self.times[int(found[1])] = (cell, read.unit)
            else:
                self.reps[int(found[1])] = 0 if cell == "-" else cell  # not done
        elif read.words == "workout":
            self.shared.setdefault("workout", (cell, None))
        elif read.words in _COLUMNS:
            self.shared[_COLUMNS[read.words]] = (cell, read.unit)
        elif read.words in _SETS_BY_REPS:
            self.text = str(cell)
        elif read.words in _LOADS:
            self.load = (cell, read.unit)

    def sets(self) -> Iterator[dict[Field, tuple[Cell, Unit | None]]]:
        """Yield the sets; a row without any as it is, so that it is reported."""
        reps = self.reps or dict(enumerate(_reps_of(self.text), start=1))
        for number in sorted({*reps, *self.times}):
            yield {
                **self.shared,
                "set": (number, None),
                "reps": (reps.get(number), None),
                "load": self.loads.get(number, self.load),
                "seconds": self.times.get(number, (None, None)),
            }
        if not reps and not self.times:
            yield self.shared


def _reps_of(text: str) -> list[Cell]:
    """Return the repetitions of each set: `5/5/4`, or `5x5` (sets by repetitions)."""
    if found := re.fullmatch(r"\s*(\d+)\s*[x×]\s*(\d+)\s*", text, re.IGNORECASE):
        return [found[2]] * int(found[1])
    return ["0" if part == "-" else part for part in re.split(r"\s*/\s*", text.strip()) if part]
