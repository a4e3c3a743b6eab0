"""What a file of done sets has and leaves open: the first of two readings."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import IO

from coaching_service.core.text import normalize
from coaching_service.integrations.history_files import models as history_file_models
from coaching_service.integrations.history_files.columns import MissingColumns
from coaching_service.integrations.history_files.set_rows import Answers, FileRow, SetFile
from coaching_service.integrations.history_files.values import DateOrder, DecimalSign, decided_sign

MAX_PROBLEMS = 1_000


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
class Survey:
    """What a file has.

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
        problems: The first problems of rows but rests, and of sheets; `problem_count`: how many there are.
        kinds: All problems by kind.
    """

    answers: Answers
    format: history_file_models.Format | None = None
    questions: list[history_file_models.Question] = field(default_factory=list)
    rows: int = 0
    reported: int = 0
    exercises: Counter[str] = field(default_factory=Counter)
    customers: Counter[str] = field(default_factory=Counter)
    clients: dict[str, FileClient] = field(default_factory=dict)
    name_heading: str | None = None
    assisted: set[str] = field(default_factory=set)
    problems: list[history_file_models.Problem] = field(default_factory=list)
    problem_count: int = 0
    kinds: list[history_file_models.ProblemKind] = field(default_factory=list)

    def report(self, problems: Sequence[history_file_models.Problem], *, is_counted: bool = False) -> None:
        """Add problems; `is_counted`: to the kinds only."""
        if problems:
            self.kinds = history_file_models.count_kinds(self.kinds, problems)
        if not is_counted:
            self.problem_count += len(problems)
            self.problems += problems[: MAX_PROBLEMS - len(self.problems)]


def survey(file: IO[bytes], answers: Answers) -> Generator[int, None, Survey]:
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

    orders: set[DateOrder] | None = None
    example_date: str = ""
    has_unknown_dates: bool = False
    has_unknown_loads: bool = False
    has_unknown_distances: bool = False
    duration: history_file_models.Problem | None = None
    signs: Counter[str] = field(default_factory=Counter)  # that decide, and `?` for numbers that depend on it
    example_number: str = ""
    missing: MissingColumns | None = None

    def add(self, row: FileRow) -> None:
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
    def decimal_sign(self) -> DecimalSign | None:
        """The sign before decimals in the file; None if it has none, or does not decide it."""
        return decided_sign(self.signs)

    def questions(self) -> Iterator[history_file_models.Question]:
        """Yield what the rows leave open."""
        if self.missing is not None:
            yield from self.missing.questions
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


def _read(file: IO[bytes], answers: Answers) -> Generator[int, None, tuple[Survey, OpenPoints]]:
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
    found.kinds = history_file_models.merge_kinds(found.kinds, source.unread)
    reading.missing = source.missing
    found.format = None if source.dialect is None else source.dialect.format
    return found, reading
