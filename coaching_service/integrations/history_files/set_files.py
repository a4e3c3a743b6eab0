"""Files of done sets: which of their tables are read, and how."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import IO

from coaching_service.integrations.history_files._dialects import (
    DIALECTS,
    Dialect,
    count_headings,
    date_order_of,
    nearest,
    recognise,
)
from coaching_service.integrations.history_files._headings import Unit, read_heading, unit_of, words_of
from coaching_service.integrations.history_files._interpretation import SAMPLE_ROWS, find_names, interpret, needs_values
from coaching_service.integrations.history_files.columns import (
    SETS,
    MissingColumns,
    find_missing,
    find_unused,
    is_near,
    renamed,
    unknown_sheet,
    with_durations,
)
from coaching_service.integrations.history_files.models import Problem, ProblemKind, Question, count_one
from coaching_service.integrations.history_files.set_rows import Answers, FileRow, RowReader
from coaching_service.integrations.history_files.tables import Cell, Row, Table, UnreadableTable, read_tables, text_of

MAX_SETS = 500_000  # of a file, all in memory while it is imported


class UnknownFormat(UnreadableTable):
    """The headings of a file fit no format."""


@dataclass(frozen=True)
class _Layout:
    """How a table is read: its headings as the dialect reads them, and which columns are not read."""

    dialect: Dialect
    headings: list[str]
    rows: Iterator[Row]
    missing: MissingColumns | None
    unused: list[tuple[int, ProblemKind]]
    questions: list[Question]


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
    dialect: Dialect | None = None
    missing: MissingColumns | None = None
    questions: list[Question] = field(default_factory=list)
    name_heading: str | None = None
    left_out: list[Problem] = field(default_factory=list)
    unread: list[ProblemKind] = field(default_factory=list)
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
            for table in read_tables(self.file, self._count_headings):
                if (unit := _unit_of(table)) is not None:
                    self.answers = replace(self.answers, load_unit=self.answers.load_unit or unit)
                    continue
                layout = self._layout_of(table, takes_any=takes_any)
                if layout is None:
                    self.left_out.append(unknown_sheet(table, "sets"))
                    continue
                self.dialect = self.dialect or layout.dialect
                self.missing = self.missing or layout.missing
                self.questions += [each for each in layout.questions if each not in self.questions]
                yield from self._rows_of(layout)
            if self.dialect is not None:
                return
        raise UnreadableTable("has no rows")

    def _rows_of(self, layout: _Layout) -> Iterator[FileRow]:
        self.has_workout_notes |= "workoutNotes" in map(layout.dialect.field_of, layout.headings)
        lacking = () if layout.missing is None else layout.missing.fields
        order = self.answers.date_order or date_order_of(layout.dialect, layout.headings)
        answers = replace(self.answers, date_order=order)
        for row in _filled(layout.dialect, layout.headings, layout.rows):
            self._rows += 1
            read = RowReader(layout.dialect, layout.headings, answers, row, self._rows, lacking).read()
            self._sets += len(read.sets)
            if self._sets > MAX_SETS:
                raise UnreadableTable(f"has more than {MAX_SETS:,} sets: divide it into several files", row.line)
            yield read
            for number, kind in layout.unused:
                if number < len(row.cells) and row.cells[number] is not None:
                    count_one(kind, row.line)
        self.unread += [kind for _, kind in layout.unused if kind["count"]]

    def _count_headings(self, cells: Sequence[Cell]) -> int:
        return count_headings(cells) + sum(cell in self.answers.columns for cell in cells)

    def _layout_of(self, table: Table, *, takes_any: bool) -> _Layout | None:
        """Return how a table is read; None if it has no sets, but another one may have them."""
        headings = [renamed(heading, self.answers.columns) for heading in table.headings]
        first = list(itertools.islice(table.rows, 1))
        dialect = self._dialect_of(headings, () if not first else first[0].cells)
        if dialect is None or dialect is SETS:
            headings = with_durations(headings)
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
        missing = find_missing(dialect, table.headings, read)
        unused: list[tuple[int, ProblemKind]] = [
            (number, {"code": code, "column": table.headings[number][:100], "count": 0, "lines": []})
            for number, code in find_unused(dialect, table.headings, read, self.answers.columns).items()
            if missing is None  # one of them has what is missing
        ]
        return _Layout(dialect, read, itertools.chain(sample, table.rows), missing, unused, questions)

    def _dialect_of(self, headings: Sequence[str], first: Sequence[Cell]) -> Dialect | None:
        if self.answers.format is not None:
            known = [each for each in DIALECTS if each.format == self.answers.format]
            return max(known, key=lambda each: each.count_marks(words_of(headings)), default=None)
        dialect = recognise(headings, first)
        return SETS if dialect is None and is_near(headings) else dialect


def has_amounts(headings: Sequence[str]) -> bool:
    """Return whether headings are of sets, repetitions or loads, as none of clients is: a weight is of a body."""
    own = [each for each in headings if read_heading(each).words != "weight"]
    return any(SETS.field_of(each) in ("sets", "reps", "load") for each in own)


def _unit_of(table: Table) -> Unit | None:
    """Return the unit of loads that a table says which has the settings of the others; None for any other table."""
    words = [read_heading(heading).words for heading in table.headings]
    named = next((each.unit_heading for each in DIALECTS if each.unit_heading in words), None)
    if named is None or "date" in words or (row := next(iter(table.rows), None)) is None:
        return None
    return unit_of(text_of(dict(zip(words, row.cells, strict=False)).get(named)))


def _filled(dialect: Dialect, headings: Sequence[str], rows: Iterable[Row]) -> Iterator[Row]:
    """Yield rows in which an empty date is the one above, as in merged cells, and so are other empty cells below it."""
    if not dialect.is_general:
        yield from rows
        return
    fields = [dialect.field_of(each) for each in headings]
    carried = [number for number, name in enumerate(fields) if name in ("date", "workout", "exercise")]
    above: dict[int, Cell] = {}
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
    near = nearest(headings)
    lacking = [group[0] for group in near.marks if not set(group) & words_of(headings)]
    return UnknownFormat(
        f"has headings that fit no format: {', '.join(filter(None, headings))[:300]}. The nearest is "
        f"{near.format}, which needs: {', '.join(lacking)}"
    )
