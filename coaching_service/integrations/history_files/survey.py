"""What a file of done sets has and leaves open: the first of two readings."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import IO

from coaching_service.core.text import normalize
from coaching_service.integrations.history_files.columns import MissingColumns
from coaching_service.integrations.history_files.models import Format, Problem, Question
from coaching_service.integrations.history_files.set_files import SetFile
from coaching_service.integrations.history_files.set_rows import Answers, FileRow
from coaching_service.integrations.history_files.values import DateOrder

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
        problems: The first problems of rows; `problem_count`: how many there are.
    """

    answers: Answers
    format: Format | None = None
    questions: list[Question] = field(default_factory=list)
    rows: int = 0
    reported: int = 0
    exercises: Counter[str] = field(default_factory=Counter)
    customers: Counter[str] = field(default_factory=Counter)
    clients: dict[str, FileClient] = field(default_factory=dict)
    name_heading: str | None = None
    assisted: set[str] = field(default_factory=set)
    problems: list[Problem] = field(default_factory=list)
    problem_count: int = 0


def survey(file: IO[bytes], answers: Answers) -> Survey:
    """Read a whole file once, or twice if that decides the order of its dates.

    Raises UnreadableTable and UnknownFormat.
    """
    found, reading = _read(file, answers)
    if reading.orders is not None and answers.date_order is None and len(reading.orders) == 1:
        [order] = reading.orders
        found, reading = _read(file, replace(answers, date_order=order))
    found.questions += reading.questions()
    return found


@dataclass
class _Reading:
    orders: set[DateOrder] | None = None
    example_date: str = ""
    has_unknown_dates: bool = False
    has_unknown_loads: bool = False
    has_unknown_distances: bool = False
    missing: MissingColumns | None = None

    def add(self, row: FileRow) -> None:
        """Note what a row leaves open."""
        if row.date_orders is not None:
            self.orders = row.date_orders if self.orders is None else self.orders & row.date_orders
        for problem in row.problems:
            self.has_unknown_distances |= problem["code"] == "DISTANCE_UNIT"
            if problem["code"] == "DATE_ORDER":
                self.has_unknown_dates, self.example_date = True, self.example_date or row.date_text
        sets = (*row.sets, *row.open_sets)
        self.has_unknown_loads |= any(each.load is not None and each.load_unit is None for each in sets)

    def questions(self) -> Iterator[Question]:
        """Yield what the rows leave open."""
        if self.missing is not None:
            yield from self.missing.questions
        if self.has_unknown_dates:
            message = f"Is {self.example_date} day and month, or month and day?"
            yield {"code": "DATE_ORDER", "message": message, "options": ["dmy", "mdy"]}
        if self.has_unknown_loads:
            message = "In which unit are the loads of this file?"
            yield {"code": "LOAD_UNIT", "message": message, "options": ["kg", "lb"]}
        if self.has_unknown_distances:
            message = "In which unit are the distances of this file?"
            yield {"code": "DISTANCE_UNIT", "message": message, "options": ["km", "mi", "m", "yd"]}


def _add_clients(found: Survey, people: Mapping[tuple[str, str], int]) -> None:
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


def _read(file: IO[bytes], answers: Answers) -> tuple[Survey, _Reading]:
    found, reading, people = Survey(answers), _Reading(), Counter[tuple[str, str]]()
    source = SetFile(file, answers)
    for row in source.rows():
        found.rows += 1
        reading.add(row)
        found.problem_count += len(row.problems)
        found.problems += row.problems[: MAX_PROBLEMS - len(found.problems)]
        sets = (*row.sets, *row.open_sets)
        found.reported += not sets
        for each in sets:
            if not each.exercise:
                continue
            found.exercises[each.exercise_name] += 1
            if each.is_assistance:
                found.assisted.add(each.exercise_name)
        people.update({(each.customer, each.customer_id) for each in sets})
    _add_clients(found, people)
    found.questions += source.questions
    found.name_heading = source.name_heading
    found.problems += source.left_out[: MAX_PROBLEMS - len(found.problems)]
    found.problem_count += len(source.left_out)
    reading.missing = source.missing
    found.format = None if source.dialect is None else source.dialect.format
    return found, reading
