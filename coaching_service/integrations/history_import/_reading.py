"""The sessions of a file by client, and the rows that are reported instead."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import IO, Generic, TypeAlias, TypeVar
from zoneinfo import ZoneInfo

from coaching_service.core.auth import EXERCISES
from coaching_service.core.errors import PermissionMissing
from coaching_service.core.ids import ObjectId
from coaching_service.core.jobs.queue import STEP_SECONDS
from coaching_service.core.text import normalize
from coaching_service.integrations.history_files.models import Problem, ProblemKind, count_kinds
from coaching_service.integrations.history_files.sessions import Session, group_sessions, split_sessions
from coaching_service.integrations.history_files.set_rows import Answers, SetFile, SetRow
from coaching_service.integrations.history_files.survey import MAX_PROBLEMS, FileClient
from coaching_service.integrations.history_files.tables import place_of
from coaching_service.library.imported_names import SKIP, NameAnswer, key_of

Reason: TypeAlias = tuple[str | None, str, str]  # field, code, message
ALREADY_THERE: Reason = (None, "ALREADY_THERE", "is of a session that is there already")
CLIENT_GONE: Reason = ("customer", "CLIENT_GONE", "is of a client who has been deleted meanwhile")
IN_THE_FUTURE: Reason = ("date", "IN_THE_FUTURE", "is after the client's today")
_COMMENT_ALONE: Reason = (None, "NOT_A_SET", "is a comment on an exercise without sets")
_MOST_SECONDS = 2 * STEP_SECONDS  # of a slice, whatever processor time it gets
Result = TypeVar("Result")


class InSlices(Generic[Result]):
    """The reading of a file on a thread, in slices of processor time, between which others come.

    `rows` yields the number of each row. `result` is there after the last slice.
    """

    result: Result

    def __init__(self, rows: Generator[int, None, Result]) -> None:
        self._rows = rows

    async def run(self) -> AsyncIterator[int]:
        """Yield how many rows have been read, after each slice but the last."""
        while (row := await asyncio.to_thread(self._read)) is not None:
            yield row

    def _read(self) -> int | None:
        end, latest = time.thread_time() + STEP_SECONDS, time.monotonic() + _MOST_SECONDS
        try:
            while True:
                row = next(self._rows)
                if time.thread_time() > end or time.monotonic() > latest:
                    return row
        except StopIteration as stop:
            self.result = stop.value
            return None


@dataclass
class FileContent:
    """What a file has.

    Attributes:
        clients: The sessions of each client, by the name in the file.
        reported: How many rows are left out.
        problems: The first problems of these rows, and of those without some of their sets.
        problem_count: How many problems there are.
        kinds: All problems by kind.
        open_names: The normalized names of exercises of sets that depend on open questions.
    """

    clients: dict[str, list[Session]] = field(default_factory=dict)
    reported: int = 0
    problems: list[Problem] = field(default_factory=list)
    problem_count: int = 0
    kinds: list[ProblemKind] = field(default_factory=list)
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
        comments = (row for each in session.exercises for row in each.comments)
        for row in {each.row: each for each in (*session.sets, *comments)}.values():
            self.report(row, *reason)

    def add_problem(self, row: SetRow, name: str | None, code: str, message: str) -> None:
        """Report a problem of a row."""
        new = problem(row, name, code, message)
        self.kinds = count_kinds(self.kinds, [new])
        self.problem_count += 1
        if len(self.problems) < MAX_PROBLEMS:
            self.problems.append(new)


def problem(row: SetRow, name: str | None, code: str, message: str) -> Problem:
    """Return a problem of a row."""
    place = place_of(row.sheet, row.line)
    return {"entry": place, "line": row.line, "field": name, "code": code, "message": message}


def read_content(
    file: IO[bytes],
    answers: Answers,
    exercises: Mapping[str, NameAnswer | None],
    customers: Mapping[str, NameAnswer | None],
    zone_of: Callable[[NameAnswer | None], ZoneInfo],
) -> Generator[int, None, FileContent]:
    """Read the sessions; yields the number of each row. `zone_of` has the time zone of what a client stands for.

    The mappings are what names stand for, without those that are left out. A client of the mapping with None is another
    one than the import is for. The labels of a client that the file has several of become the first.
    """
    content = FileContent()
    relabel = _relabelling(customers)
    source = SetFile(file, answers)

    def accept(rows: Sequence[SetRow]) -> list[SetRow]:
        sets = [_as_local(relabel(each), customers, zone_of) for each in rows]
        reasons = [_reason(each, exercises, customers) for each in sets]
        _report_rejected(content, sets, reasons)
        taken = [each for each, reason in zip(sets, reasons, strict=True) if reason is None]
        return [replace(each, exercise=each.exercise_name) if each.is_assistance else each for each in taken]

    sets: list[SetRow] = []
    for number, row in enumerate(source.rows(), start=1):
        sets += accept(row.sets)
        depend = accept([each for each in row.open_sets if each.exercise])
        content.open_names.update(key_of(each.exercise) for each in depend)
        yield number
    dialect = source.dialect
    if dialect is not None and (dialect.sessions_by_day or dialect.is_mixed):
        sessions, repeated = group_sessions(sets, by_day=dialect.sessions_by_day), list[Session]()
    else:
        sessions, repeated = split_sessions(sets)
    for session in repeated:
        content.report_session(session, ALREADY_THERE)
    for session in sessions:
        for alone in session.take_comments_alone():
            content.report(alone, *_COMMENT_ALONE)
        if not session.exercises:
            continue
        if not source.has_workout_notes:
            session.share_note()
        content.clients.setdefault(session.customer, []).append(session)
    return content


def _as_local(
    row: SetRow, customers: Mapping[str, NameAnswer | None], zone_of: Callable[[NameAnswer | None], ZoneInfo]
) -> SetRow:
    """Return a row with the day and time of the client, if the file has its time with an offset."""
    if row.instant is None:
        return row
    local = row.instant.astimezone(zone_of(customers.get(row.customer)))
    return replace(row, day=local.date(), clock=f"{local:%H:%M}")


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
    if row.is_comment and key_of(row.exercise_name) not in exercises:
        return _COMMENT_ALONE
    exercise = exercises.get(key_of(row.exercise_name), SKIP)
    if exercise is None:
        message = f"is not in the library: creating it needs {EXERCISES.CREATE}"
        return "exercise", PermissionMissing.default_code, message
    if exercise == SKIP:
        return "exercise", "SKIPPED", "has the name of an exercise that is left out"
    return None
