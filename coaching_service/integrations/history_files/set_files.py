"""Files of done sets: how their tables are read, and what a file has and leaves open."""

from __future__ import annotations

import itertools
import re
from collections import Counter, defaultdict
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, time, timedelta
from typing import IO, Literal

from coaching_service.core.text import normalize
from coaching_service.integrations.history_files import _dialects, set_rows, tables, values

# --- Columns: the answers about them, those that are missing, and those that repeat another one -----------------------


# What an answer may say that a column has, and a heading that every dialect reads as the field.
FIELDS: tuple[values.Field, ...] = (
    *("customer", "date", "time", "duration", "workout", "exercise", "set", "setKind", "isWarmup", "reps", "load"),
    *("loadUnit", "distance", "seconds", "rpe", "rir", "notes"),
)
_HEADING_OF: Mapping[str, str] = {name: values.VOCABULARY[name][0].capitalize() for name in FIELDS}

# The fields that a table of sets needs: each is there if one of the group is.
_REQUIRED: Mapping[values.Field, tuple[values.Field, ...]] = {
    "date": ("date",),
    "exercise": ("exercise",),
    "reps": ("reps", "load", "distance", "seconds"),
}
_WORDS: Mapping[values.Field, str] = {"date": "date", "exercise": "name of the exercise", "reps": "repetitions"}
SETS = next(each for each in _dialects.DIALECTS if each.format == "sets")


@dataclass(frozen=True)
class MissingColumns:
    """The fields that a table needs and has no column of, and the headings that may have them."""

    fields: Sequence[values.Field]
    headings: Sequence[str]


def ask_for_column(name: str, words: str, headings: Sequence[str]) -> tables.Question:
    """Return the question which column has a field; the answer is sent in `columns`."""
    message = f"Which column has the {words}?"
    return {"code": "COLUMN", "message": message, "options": list(headings), "name": name}


def ask_for_field(heading: str, labels: Mapping[str, str]) -> tables.Question:
    """Return the question what a column has; `labels` are the possible fields in words."""
    return {
        "code": "COLUMN",
        "message": f"What does the column {heading[:50]} have?",
        "options": list(labels),
        "name": heading,
        "labels": list(labels.values()),
    }


def renamed(heading: str, columns: set_rows.Columns) -> str:
    """Return a heading as the dialects read it, after the answers about columns."""
    if (answer := columns.get(heading)) is None:
        return heading
    name = _HEADING_OF.get(answer, "")
    return _with_hint(name, heading) if name else ""


def _with_hint(name: str, heading: str) -> str:
    """Return the name of a column with the hint that its heading has, such as a unit."""
    return f"{name} ({hint})" if (hint := values.read_heading(heading).hint) else name


def with_durations(headings: Sequence[str]) -> list[str]:
    """Return headings of a table of sets in which a duration is of a set, if it has neither repetitions nor loads."""
    fields = [SETS.field_of(each) for each in headings]
    if {"reps", "load", "seconds"} & {*fields}:
        return list(headings)
    return [
        _with_hint(set_rows.SET_DURATION, each) if name == "duration" else each
        for each, name in zip(headings, fields, strict=True)
    ]


def find_missing(dialect: _dialects.Dialect, headings: Sequence[str], read: Sequence[str]) -> MissingColumns | None:
    """Return what a table lacks of a dialect; None if it can be read.

    `read` are its headings as the dialect reads them.
    """
    if dialect.expand is not None or dialect.matches(values.words_of(read)):
        return None
    known = [dialect.field_of(each) for each in read]
    missing = [name for name, group in _REQUIRED.items() if not {*known} & {*group}]
    free = [heading for heading, field in zip(headings, known, strict=True) if heading and field is None]
    return MissingColumns(missing, list(dict.fromkeys(free or filter(None, headings)))) if missing else None


def find_unused(
    dialect: _dialects.Dialect, headings: Sequence[str], read: Sequence[str], columns: set_rows.Columns
) -> dict[int, str]:
    """Return the columns that are not read, unless the caller said so, or have what an earlier one has, with the codes.

    Those without a heading are not read. The same loads in another unit are no repetition. `read` are the headings as
    the dialect reads them.
    """
    if dialect.reads is not None:
        return {
            number: "UNKNOWN_COLUMN"
            for number, (heading, name) in enumerate(zip(headings, read, strict=True))
            if heading and columns.get(heading) != "" and not dialect.reads(name)
            if dialect.field_of(name) not in _dialects.CLIENT_FIELDS
        }
    first_of: dict[values.Field, tuple[int, values.Unit | None]] = {}
    unused = {number: "UNKNOWN_COLUMN" for number, heading in enumerate(headings) if not heading}
    for number, (heading, name) in enumerate(zip(headings, read, strict=True)):
        known = dialect.field_of(name)
        if known is None:
            if heading and columns.get(heading) != "" and values.read_heading(name).words not in dialect.columns:
                unused[number] = "UNKNOWN_COLUMN"
            continue
        own_unit = values.read_heading(name).unit
        first, unit = first_of.setdefault(known, (number, own_unit))
        if first != number and unit == own_unit:
            unused[number] = "REPEATED_COLUMN"
    return unused


# --- Columns whose headings do not decide what they have: other headings do, or their values --------------------------


SAMPLE_ROWS = 10_000  # whose values decide
_NAMES = ("name", "nombre", "nom", "nome")
_TIMES = ("time", "zeit", "tiempo", "temps", "tempo")
# The phases of a repetition, such as 3-1-1-0 or 31X1.
_TEMPO = re.compile(r"[\dx](?:\s*[-/.]\s*[\dx]){2,3}|[\dx]{4}", re.IGNORECASE)
_CLOCK = re.compile(r"(\d{1,2})[:.](\d{2})(?::(\d{2}))?")
_TIME_LABELS = {"time": "The time of day at which the session began", "seconds": "How long a set took"}
_EARLIEST_HOUR = 5  # 1:30 is rather a duration than a time of day


def interpret(
    dialect: _dialects.Dialect, headings: Sequence[str], rows: Sequence[tables.Row]
) -> tuple[list[str], list[tables.Question]]:
    """Return the headings as the dialect reads them, and the questions that the values of `rows` leave open."""
    fields = {dialect.field_of(each) for each in headings}
    # A name is one of a client, unless it may be of an exercise, or another column has it.
    name = "First name" if "lastName" in fields else "Client"
    is_known = "customer" in fields or (name == "First name" and "firstName" in fields)
    is_client = not is_known and ("exercise" in fields or dialect.expand is not None)
    read = [name if is_client and _is_name(each) else each for each in headings]
    questions: list[tables.Question] = []
    if not dialect.is_general:
        return read, questions
    dates = [number for number, each in enumerate(read) if dialect.field_of(each) == "date"]
    starts = [number for number in dates if values.read_heading(read[number]).words in values.STARTS]
    if len(starts) < len(dates):
        for number in starts:
            read[number] = "Time of day"
    for number, heading in enumerate(headings):
        if not _is_time(heading):
            continue
        kind = _kind_of_column(dialect, read, number, rows)
        if kind == "open":
            questions.append(ask_for_field(heading, _TIME_LABELS))
        elif kind is not None:
            read[number] = {"tempo": "", "time": "Time of day", "seconds": _with_hint("Seconds", heading)}[kind]
    return read, questions


def find_names(dialect: _dialects.Dialect, headings: Sequence[str], read: Sequence[str]) -> str | None:
    """Return the heading of a column with names that may be of workouts instead of clients; None without one.

    `read` are the headings as the dialect reads them.
    """
    fields = {dialect.field_of(each) for each in read}
    if "workout" in fields or len(fields.intersection(_dialects.CLIENT_FIELDS)) > 1:
        return None
    return next((each for each, name in zip(headings, read, strict=True) if name == "Client" and _is_name(each)), None)


def _is_name(heading: str) -> bool:
    return values.read_heading(heading).words in _NAMES


def _is_time(heading: str) -> bool:
    read = values.read_heading(heading)
    is_duration = read.unit in ("s", "min") or read.hint in ("mm ss", "m ss", "hours", "hrs")
    return read.words in _TIMES and not is_duration  # as `Time (sec)`, `Time (mm:ss)` and `Time (min)` are


def _kind_of_column(
    dialect: _dialects.Dialect, headings: Sequence[str], number: int, rows: Sequence[tables.Row]
) -> Literal["tempo", "time", "seconds", "open"] | None:
    """Return what a column `Time` has, by its values and the columns that tell it.

    `open`: what may be both; None: neither, nor the tempo of repetitions, which is no time.
    """
    fields = [dialect.field_of(each) for each in headings]
    cells = [(row, cell) for row in rows if (cell := row.cell(number)) is not None]
    if cells and all(_TEMPO.fullmatch(tables.text_of(cell)) for _, cell in cells):
        return "tempo"
    dates = [row.cell(fields.index("date")) for row, _ in cells] if "date" in fields else []
    has_start = "time" in fields or any(
        each.time() != time() if isinstance(each, datetime) else ":" in tables.text_of(each) for each in dates
    )
    has_duration = bool({"seconds", "duration"} & {*fields[:number], *fields[number + 1 :]})
    kinds: set[str | None] = set()
    for row, cell in cells:
        kind: str | None = _kind_of_value(cell)
        filled = {name for index, name in enumerate(fields) if tables.text_of(row.cell(index)) not in ("", "0")}
        if kind == "open" and has_start:
            kind = "seconds"
        elif kind == "open" and (has_duration or filled & {"reps", "load"}):
            kind = "time"
        elif kind == "open" and "date" in fields[max(0, number - 1) : number + 2] and "distance" not in filled:
            kind = "beside"
        kinds.add(kind)
    decided, undecided = kinds & {"time", "seconds"}, kinds & {"open", "beside"}
    if decided == {"time"} or (not decided and undecided == {"beside"}):
        return "time"
    if decided == {"seconds"}:
        return "seconds"
    return "open" if decided or undecided else None


def _kind_of_value(cell: tables.Cell) -> Literal["time", "seconds", "open"] | None:
    """Return what a value is; `open`: a time of day or a duration; None: neither."""
    if isinstance(cell, datetime):
        return "time"
    if isinstance(cell, timedelta):
        return "seconds"
    text = (f"{cell:%H:%M:%S}" if cell.second else f"{cell:%H:%M}") if isinstance(cell, time) else tables.text_of(cell)
    if found := _CLOCK.fullmatch(text):
        hour, minute, second = (int(part or 0) for part in found.groups())
        if not (hour or minute or second):
            return None
        if not _EARLIEST_HOUR <= hour < 24 or minute > 59:
            return "seconds"
        return "time" if found[3] else "open"
    with suppress(values.InvalidValue):
        return "seconds" if values.read_seconds(cell) else None
    with suppress(values.InvalidValue):
        return "time" if values.read_clock(cell) else None
    return None


# --- Which tables of a file are read, and how -------------------------------------------------------------------------


MAX_SETS = 500_000  # of a file, all in memory while it is imported


class UnknownFormat(tables.UnreadableTable):
    """The headings of a file fit no format."""


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
    answers: set_rows.Answers
    dialect: _dialects.Dialect | None = None
    missing: MissingColumns | None = None
    questions: list[tables.Question] = field(default_factory=list)
    name_heading: str | None = None
    left_out: list[tables.Problem] = field(default_factory=list)
    unread: list[tables.ProblemKind] = field(default_factory=list)
    has_workout_notes: bool = False
    _rows: int = 0
    _sets: int = 0

    def rows(self) -> Iterator[set_rows.FileRow]:
        """Yield the rows, from the first; without sets if columns are missing.

        Sheets without a table of sets are left out if another one has one. Raises UnreadableTable and UnknownFormat.
        """
        self._rows = self._sets = 0
        for takes_any in (False, True):
            self.left_out, self.unread = [], []
            for table in tables.read_tables(self.file, self._count_headings, is_divided=True):
                if (unit := _unit_of(table)) is not None:
                    self.answers = replace(self.answers, load_unit=self.answers.load_unit or unit)
                    continue
                if not (yield from self._rows_of(table, takes_any=takes_any)):
                    self.left_out.append(tables.unknown_sheet(table, "sets"))
            if self.dialect is not None:
                return
        raise tables.UnreadableTable("has no rows")

    def _rows_of(self, table: tables.Table, *, takes_any: bool) -> Generator[set_rows.FileRow, None, bool]:
        """Yield the rows of a table; returns False if it has no sets, but another one may have them."""
        headings = [renamed(heading, self.answers.columns) for heading in table.headings]
        first = list(itertools.islice(table.rows, 1))
        dialect = self._dialect_of(headings, () if not first else first[0].cells)
        if dialect is None or dialect is SETS:
            headings = with_durations(headings)
            dialect = self._dialect_of(headings, ())
        if dialect is None:
            if not takes_any or not any(table.headings):
                return False
            near = _dialects.nearest(table.headings)
            needed = [group[0] for group in near.marks if not set(group) & values.words_of(table.headings)]
            raise UnknownFormat(
                f"has headings that fit no format: {', '.join(filter(None, table.headings))[:300]}. The nearest is "
                f"{near.format}, which needs: {', '.join(needed)}"
            )
        if not takes_any and dialect.count_marks(values.words_of(headings)) < len(dialect.marks) - 1:
            return False
        values_decide = dialect.is_general and any(_is_time(each) for each in headings)
        sample = [*first, *itertools.islice(table.rows, SAMPLE_ROWS if values_decide else 0)]
        read, questions = interpret(dialect, headings, sample)
        self.name_heading = self.name_heading or find_names(dialect, headings, read)
        missing = find_missing(dialect, table.headings, read)
        unused = {
            number: tables.unread_column(number, table.headings[number], code)
            for number, code in find_unused(dialect, table.headings, read, self.answers.columns).items()
            if missing is None  # one of them has what is missing
        }
        self.dialect = self.dialect or dialect
        self.missing = self.missing or missing
        self.questions += [each for each in questions if each not in self.questions]
        self.has_workout_notes |= "workoutNotes" in map(dialect.field_of, read)
        order = self.answers.date_order or _dialects.date_order_of(dialect, read)
        answers = replace(self.answers, date_order=order)
        lacking = () if missing is None else missing.fields
        rows: Iterator[tables.Row] = itertools.chain(sample, table.rows)
        if dialect.is_general:  # an empty date is the one above, and so are other empty cells below it
            fields = [dialect.field_of(each) for each in read]
            rows = tables.fill_down(rows, fields, ("date", "workout", "exercise"), lead=("date",))
        for row in rows:
            self._rows += 1
            if table.is_text and (surplus := row.find_surplus(read)) is not None:  # its values may be in other columns
                yield set_rows.FileRow(row.line, [], [surplus])
                continue
            of_row = set_rows.RowReader(dialect, read, answers, row, self._rows, lacking).read()
            self._sets += len(of_row.sets)
            if self._sets > MAX_SETS:
                raise tables.UnreadableTable(f"has more than {MAX_SETS:,} sets: divide it into several files", row.line)
            yield of_row
            for number in range(len(read), len(row.cells)):
                unused.setdefault(number, tables.unread_column(number))
            tables.count_cells(unused, row)
        self.unread += [kind for kind in unused.values() if kind["count"]]
        return True

    def _count_headings(self, cells: Sequence[tables.Cell]) -> int:
        return _dialects.count_headings(cells) + sum(cell in self.answers.columns for cell in cells)

    def _dialect_of(self, headings: Sequence[str], first: Sequence[tables.Cell]) -> _dialects.Dialect | None:
        if self.answers.format is not None:
            known = [each for each in _dialects.DIALECTS if each.format == self.answers.format]
            return max(known, key=lambda each: each.count_marks(values.words_of(headings)), default=None)
        dialect = _dialects.recognise(headings, first)
        # One of sets lacks one field only, and has a column that may have it.
        is_near = SETS.count_marks(values.words_of(headings)) == len(SETS.marks) - 1 and any(
            heading and SETS.field_of(heading) is None for heading in headings
        )
        return SETS if dialect is None and is_near else dialect


def has_amounts(headings: Sequence[str]) -> bool:
    """Return whether headings are of sets, repetitions or loads, as none of clients is: a weight is of a body."""
    own = [each for each in headings if values.read_heading(each).words != "weight"]
    return any(SETS.field_of(each) in ("sets", "reps", "load") for each in own)


def _unit_of(table: tables.Table) -> values.Unit | None:
    """Return the unit of loads that a table says which has the settings of the others; None for any other table."""
    words = [values.read_heading(heading).words for heading in table.headings]
    named = next((each.unit_heading for each in _dialects.DIALECTS if each.unit_heading in words), None)
    if named is None or "date" in words or (row := next(iter(table.rows), None)) is None:
        return None
    return values.unit_of(tables.text_of(dict(zip(words, row.cells, strict=False)).get(named)))


# --- What a file has and leaves open: the first of two readings -------------------------------------------------------


@dataclass(frozen=True)
class FileClient:
    """A client in a file; `id` is empty if the file has none. `is_alone`: no other one in the file has the name."""

    name: str
    id: str = ""
    is_alone: bool = True

    @property
    def label(self) -> str:
        """The name, with the identifier if the name is of several clients."""
        return self.name if self.is_alone or not self.id else f"{self.name} ({self.id})"


@dataclass
class Survey(tables.Reported):
    """What a file has: problems are those of rows but rests, and of sheets.

    Attributes:
        format: The format of the first table that has one.
        answers: The answers of the caller, completed by what the file decides.
        questions: What neither decides.
        rows: How many data rows there are; `reported`: how many of them have no set.
        exercises: How many sets each name of an exercise has.
        customers: How many rows each client has, by label; the empty one if there is no column.
        clients: What the file says about the client of each label.
        name_heading: The heading of a column whose names may be of clients or of workouts.
        assisted: Names of exercises whose loads are help.
    """

    answers: set_rows.Answers
    format: tables.Format | None = None
    questions: list[tables.Question] = field(default_factory=list)
    rows: int = 0
    reported: int = 0
    exercises: Counter[str] = field(default_factory=Counter)
    customers: Counter[str] = field(default_factory=Counter)
    clients: dict[str, FileClient] = field(default_factory=dict)
    name_heading: str | None = None
    assisted: set[str] = field(default_factory=set)


def survey(file: IO[bytes], answers: set_rows.Answers) -> Generator[int, None, Survey]:
    """Read a whole file once, or twice if that decides the order of its dates or the sign of its decimals.

    Yields the number of each row.

    Raises UnreadableTable and UnknownFormat.
    """
    found, reading = yield from _read(file, answers)
    decided = answers
    if reading.orders is not None and answers.date_order is None and len(reading.orders) == 1:
        [order] = reading.orders
        decided = replace(decided, date_order=order)
    if (sign := reading.decimal_sign) is not None and reading.depends_on_sign:
        decided = replace(decided, decimal_sign=sign)
    if decided != answers:
        found, reading = yield from _read(file, decided)
    found.questions += reading.questions()
    return found


@dataclass
class OpenPoints:
    """What the rows of a file decide together, and what they leave open."""

    orders: set[values.DateOrder] | None = None
    example_date: str = ""
    has_unknown_dates: bool = False
    has_unknown_loads: bool = False
    has_unknown_distances: bool = False
    duration: tables.Problem | None = None
    signs: Counter[str] = field(default_factory=Counter)  # that decide, and `?` for numbers that depend on it
    example_number: str = ""
    missing: MissingColumns | None = None

    def add(self, row: set_rows.FileRow) -> None:
        """Note what a row leaves open."""
        if row.date_orders:  # a date that is no day of the calendar decides nothing
            self.orders = row.date_orders if self.orders is None else self.orders & row.date_orders
        for problem in row.problems:
            self.has_unknown_distances |= problem["code"] == "DISTANCE_UNIT"
            if problem["code"] == "DATE_ORDER":
                self.has_unknown_dates, self.example_date = True, self.example_date or row.date_text
            if problem["code"] == "DURATION_UNIT":
                self.duration = self.duration or problem
        for number, signs in row.numbers:
            sign = next(iter(signs)) if len(signs) == 1 else "?"
            self.signs[sign] += 1
            self.example_number = self.example_number or (number if sign == "?" else "")
        sets = (*row.sets, *row.open_sets)
        self.has_unknown_loads |= any(each.load is not None and each.load_unit is None for each in sets)

    @property
    def depends_on_sign(self) -> bool:
        """Whether a number would be another one with the other decimal sign."""
        return bool(self.signs["?"] or (self.signs["."] and self.signs[","]))

    @property
    def decimal_sign(self) -> values.DecimalSign | None:
        """The sign before decimals in the file; None if it has none, or does not decide it."""
        return values.decided_sign(self.signs)

    def questions(self) -> Iterator[tables.Question]:
        """Yield what the rows leave open."""
        if self.missing is not None:
            yield from (ask_for_column(name, _WORDS[name], self.missing.headings) for name in self.missing.fields)
        if self.has_unknown_dates:
            message = f"Is {self.example_date} day and month, or month and day?"
            yield {"code": "DATE_ORDER", "message": message, "options": ["dmy", "mdy"]}
        if self.has_unknown_loads:
            message = "In which unit are the loads of this file?"
            yield {"code": "LOAD_UNIT", "message": message, "options": ["kg", "lb"]}
        if self.duration is not None:
            of = "the workouts" if self.duration["field"] == "duration" else "the sets"
            message = f"In which unit are the durations of {of} in this file?"
            yield {"code": "DURATION_UNIT", "message": message, "options": ["s", "min", "h"]}
        if self.depends_on_sign and self.decimal_sign is None:
            message = f"Which sign is before decimals in this file, such as in {self.example_number[:50]}?"
            yield {"code": "DECIMAL_SIGN", "message": message, "options": [".", ","]}
        if self.has_unknown_distances:
            message = "In which unit are the distances of this file?"
            yield {"code": "DISTANCE_UNIT", "message": message, "options": ["km", "mi", "m", "yd"]}


def add_clients(found: Survey, people: Mapping[tuple[str, str], int]) -> None:
    """Add the clients of names and identifiers, with how many rows each has; spellings of a name are the same one."""
    ids: defaultdict[str, set[str]] = defaultdict(set)
    for name, customer_id in people:
        ids[normalize(name)].add(customer_id)
    clients: dict[tuple[str, str], FileClient] = {}
    for (name, customer_id), rows in people.items():
        new = FileClient(name, customer_id, is_alone=len(ids[normalize(name)]) == 1)
        client = clients.setdefault((normalize(name), customer_id), new)
        found.clients[client.label] = client
        found.customers[client.label] += rows


def _read(file: IO[bytes], answers: set_rows.Answers) -> Generator[int, None, tuple[Survey, OpenPoints]]:
    found, reading, people = Survey(answers), OpenPoints(), Counter[tuple[str, str]]()
    source = SetFile(file, answers)
    for row in source.rows():
        found.rows += 1
        reading.add(row)
        found.report(row.problems, is_counted=row.is_rest)
        sets = (*row.sets, *row.open_sets)
        found.reported += not sets
        for each in sets:
            if not each.exercise or each.is_comment:
                continue
            found.exercises[each.exercise_name] += 1
            if each.is_assistance:
                found.assisted.add(each.exercise_name)
        people.update({(each.customer, each.customer_id) for each in sets})
        yield found.rows
    add_clients(found, people)
    found.questions += source.questions
    found.name_heading = source.name_heading
    found.report(source.left_out)
    found.kinds = tables.merge_kinds(found.kinds, source.unread)
    reading.missing = source.missing
    found.format = None if source.dialect is None else source.dialect.format
    return found, reading
