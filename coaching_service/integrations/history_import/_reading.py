"""The sessions of a file by client, and the rows that are reported instead."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import IO, TypeAlias

from coaching_service.core.auth.permissions import EXERCISES
from coaching_service.core.errors import PermissionMissing
from coaching_service.core.ids import ObjectId
from coaching_service.core.text import normalize
from coaching_service.integrations.history_files.models import Problem
from coaching_service.integrations.history_files.sessions import Session, group_sessions, split_sessions
from coaching_service.integrations.history_files.set_files import SetFile
from coaching_service.integrations.history_files.set_rows import Answers, SetRow
from coaching_service.integrations.history_files.survey import MAX_PROBLEMS, FileClient
from coaching_service.integrations.history_files.tables import place_of
from coaching_service.library.imported_names.models import SKIP, NameAnswer, key_of

Reason: TypeAlias = tuple[str | None, str, str]  # field, code, message
ALREADY_THERE: Reason = (None, "ALREADY_THERE", "is of a session that is there already")
CLIENT_GONE: Reason = ("customer", "CLIENT_GONE", "is of a client who has been deleted meanwhile")
IN_THE_FUTURE: Reason = ("date", "IN_THE_FUTURE", "is after the client's today")


@dataclass
class FileContent:
    """What a file has.

    Attributes:
        clients: The sessions of each client, by the name in the file.
        reported: How many rows are left out.
        problems: The first problems of these rows, and of those without some of their sets.
        problem_count: How many problems there are.
        open_names: The normalized names of exercises of sets that depend on open questions.
    """

    clients: dict[str, list[Session]] = field(default_factory=dict)
    reported: int = 0
    problems: list[Problem] = field(default_factory=list)
    problem_count: int = 0
    open_names: set[str] = field(default_factory=set)

    @property
    def names(self) -> set[str]:
        """The normalized names of the exercises of the sessions, and of what depends on open questions."""
        exercises = (each for sessions in self.clients.values() for session in sessions for each in session.exercises)
        return {key_of(each) for each in {exercise.name for exercise in exercises}} | self.open_names

    def report(self, row: SetRow, name: str | None, code: str, message: str) -> None:
        """Report a row that is left out."""
        self.reported += 1
        self.add_problem(row, name, code, message)

    def report_session(self, session: Session, reason: Reason) -> None:
        """Report the rows of a session that is left out."""
        for row in {each.row: each for each in session.sets}.values():
            self.report(row, *reason)

    def add_problem(self, row: SetRow, name: str | None, code: str, message: str) -> None:
        """Report a problem of a row."""
        self.problem_count += 1
        if len(self.problems) < MAX_PROBLEMS:
            self.problems.append(problem(row, name, code, message))


def problem(row: SetRow, name: str | None, code: str, message: str) -> Problem:
    """Return a problem of a row."""
    place = place_of(row.sheet, row.line)
    return {"entry": place, "line": row.line, "field": name, "code": code, "message": message}


def read_content(
    file: IO[bytes],
    answers: Answers,
    exercises: Mapping[str, NameAnswer | None],
    customers: Mapping[str, NameAnswer | None],
) -> FileContent:
    """Read the sessions; the mappings are what names stand for, without those that are left out.

    A client of the mapping with None is another one than the import is for. The labels of a client that the file has
    several of become the first.
    """
    content = FileContent()
    relabel = _relabelling(customers)
    source = SetFile(file, answers)

    def accept(rows: Sequence[SetRow]) -> list[SetRow]:
        sets = [relabel(each) for each in rows]
        reasons = [_reason(each, exercises, customers) for each in sets]
        _report_rejected(content, sets, reasons)
        taken = [each for each, reason in zip(sets, reasons, strict=True) if reason is None]
        return [replace(each, exercise=each.exercise_name) if each.is_assistance else each for each in taken]

    def accepted() -> Iterator[SetRow]:
        for row in source.rows():
            yield from accept(row.sets)
            depend = accept([each for each in row.open_sets if each.exercise])
            content.open_names.update(key_of(each.exercise) for each in depend)

    rows = accepted()
    sets = itertools.chain(list(itertools.islice(rows, 1)), rows)  # the first one decides the dialect
    dialect = source.dialect
    if dialect is not None and (dialect.sessions_by_day or dialect.is_mixed):
        sessions, repeated = group_sessions(sets, by_day=dialect.sessions_by_day), list[Session]()
    else:
        sessions, repeated = split_sessions(sets)
    for session in repeated:
        content.report_session(session, ALREADY_THERE)
    for session in sessions:
        content.clients.setdefault(session.customer, []).append(session)
    return content


def _report_rejected(content: FileContent, sets: Sequence[SetRow], reasons: Sequence[Reason | None]) -> None:
    """Report a row without accepted sets, else the sets that it is imported without."""
    rejections = [reason for reason in dict.fromkeys(reasons) if reason is not None]
    if rejections and None not in reasons:
        content.report(sets[0], *rejections[0])
        return
    for name, _, message in rejections:
        content.add_problem(sets[0], name, "VALUE_LEFT_OUT", f"of some of its sets {message}")


def _relabelling(customers: Mapping[str, NameAnswer | None]) -> Callable[[SetRow], SetRow]:
    """Return a function that names the client of a row by the label in the mapping; of several, by the first."""
    first: dict[NameAnswer, str] = {}
    labels: dict[str, str] = {}  # by what spellings have in common
    for label, answer in customers.items():
        labels[normalize(label)] = first.setdefault(answer, label) if isinstance(answer, ObjectId) else label

    @cache
    def label_of(name: str, customer_id: str) -> str:
        label = FileClient(name, customer_id, is_alone=False).label
        return labels.get(normalize(label), labels.get(normalize(name), name))

    def relabel(row: SetRow) -> SetRow:
        label = label_of(row.customer, row.customer_id)
        return row if label == row.customer else replace(row, customer=label)

    return relabel


def _reason(
    row: SetRow, exercises: Mapping[str, NameAnswer | None], customers: Mapping[str, NameAnswer | None]
) -> Reason | None:
    if row.customer not in customers:
        return "customer", "REQUIRED", "is empty"
    customer = customers[row.customer]
    if customer is None:
        return "customer", "OTHER_CLIENT", "is of another client than the import is for"
    if customer == SKIP:
        return "customer", "SKIPPED", "is of a client who is left out"
    exercise = exercises.get(key_of(row.exercise_name), SKIP)
    if exercise is None:
        message = f"is not in the library: creating it needs {EXERCISES.CREATE}"
        return "exercise", PermissionMissing.default_code, message
    if exercise == SKIP:
        return "exercise", "SKIPPED", "has the name of an exercise that is left out"
    return None


# --- the content of a file between two steps of its import -----------------------------------------------------------

_LONGEST_SECONDS = 60.0
# In memory: reading a file again takes longer than a step.
_contents: dict[ObjectId, tuple[FileContent, asyncio.TimerHandle]] = {}


def suspend_content(job_id: ObjectId, content: FileContent) -> None:
    """Keep the content of a file for the next step of its job, for at most a minute, in place of any other content."""
    for other in list(_contents):
        resume_content(other)
    _contents[job_id] = content, asyncio.get_running_loop().call_later(_LONGEST_SECONDS, resume_content, job_id)


def resume_content(job_id: ObjectId) -> FileContent | None:
    """Return the content of the file of a job, if this process has it, and forget it."""
    content, timer = _contents.pop(job_id, (None, None))
    if timer is not None:
        timer.cancel()
    return content
