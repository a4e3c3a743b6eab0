"""The sessions of a file by client, and what an import of them decides before it stores anything."""

from __future__ import annotations

import asyncio
import difflib
import hashlib
import re
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Generator, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, time, timedelta
from functools import cache
from time import monotonic, thread_time
from typing import IO, Generic, TypeAlias, TypeVar
from zoneinfo import ZoneInfo

from marshmallow import ValidationError

from coaching_service.core.auth import EXERCISES
from coaching_service.core.database.context import Context
from coaching_service.core.dates import zone_of
from coaching_service.core.errors import PermissionMissing
from coaching_service.core.ids import ObjectId
from coaching_service.core.jobs.queue import STEP_SECONDS
from coaching_service.core.text import normalize
from coaching_service.core.validation import NAME_LENGTH, TEXT_LENGTH, Email, is_blank
from coaching_service.integrations.history_files import set_files, set_rows, tables
from coaching_service.integrations.history_files.rosters import split_name
from coaching_service.integrations.history_import import models as import_models
from coaching_service.library import imported_names
from coaching_service.library.exercises.models import ASSISTANCE, ExerciseName
from coaching_service.people.account import convert_entered_load
from coaching_service.people.customers import batch
from coaching_service.people.customers import service as customers
from coaching_service.people.customers.models import CustomerIdentity, CustomerUpsert
from coaching_service.training.workouts.blocks.batches import DoneExercise, DoneSession
from coaching_service.training.workouts.blocks.models import KnownSession
from coaching_service.training.workouts.items.service import MAX_ITEMS
from coaching_service.training.workouts.sets import CustomerSet

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
        end, latest = thread_time() + STEP_SECONDS, monotonic() + _MOST_SECONDS
        try:
            while True:
                row = next(self._rows)
                if thread_time() > end or monotonic() > latest:
                    return row
        except StopIteration as stop:
            self.result = stop.value
            return None


@dataclass
class FileContent(tables.Reported):
    """What a file has: problems are those of rows that are left out, or without some of their sets.

    Attributes:
        clients: The sessions of each client, by the name in the file.
        reported: How many rows are left out.
        open_names: The normalized names of exercises of sets that depend on open questions.
    """

    clients: dict[str, list[set_rows.Session]] = field(default_factory=dict)
    reported: int = 0
    open_names: set[str] = field(default_factory=set)

    @property
    def names(self) -> set[str]:
        """The normalized names of the exercises of the sessions, and of what depends on open questions."""
        exercises = (each for sessions in self.clients.values() for session in sessions for each in session.exercises)
        return {imported_names.key_of(each) for each in {exercise.name for exercise in exercises}} | self.open_names

    def leave_out(self, row: set_rows.SetRow, reason: Reason) -> None:
        """Report a row that is left out."""
        self.reported += 1
        self.report([problem(row, *reason)])

    def report_session(self, session: set_rows.Session, reason: Reason) -> None:
        """Report the rows of a session that is left out."""
        comments = (row for each in session.exercises for row in each.comments)
        for row in {each.row: each for each in (*session.sets, *comments)}.values():
            self.leave_out(row, reason)


def problem(row: set_rows.SetRow, name: str | None, code: str, message: str) -> tables.Problem:
    """Return a problem of a row."""
    return tables.Row(row.line, (), (), row.sheet).problem(name, code, message)


def read_content(
    file: IO[bytes],
    answers: set_rows.Answers,
    exercises: import_models.Meanings,
    customers: import_models.Meanings,
    zone_of: Callable[[imported_names.NameAnswer | None], ZoneInfo],
) -> Generator[int, None, FileContent]:
    """Read the sessions; yields the number of each row. `zone_of` has the time zone of what a client stands for.

    The mappings are what names stand for, without those that are left out. A client of the mapping with None is another
    one than the import is for. The labels of a client that the file has several of become the first.
    """
    content, source = FileContent(), set_files.SetFile(file, answers)
    localize = _localizing(customers, zone_of)

    def accept(rows: Sequence[set_rows.SetRow]) -> list[set_rows.SetRow]:
        sets = [localize(each) for each in rows]
        reasons = [_reason(each, exercises, customers) for each in sets]
        rejections = [reason for reason in dict.fromkeys(reasons) if reason is not None]
        if rejections and None not in reasons:
            content.leave_out(sets[0], rejections[0])
            return []
        for name, _, message in rejections:  # sets that the row is imported without
            content.report([problem(sets[0], name, "VALUE_LEFT_OUT", f"of some of its sets {message}")])
        taken = [each for each, reason in zip(sets, reasons, strict=True) if reason is None]
        return [replace(each, exercise=each.exercise_name) if each.is_assistance else each for each in taken]

    sets: list[set_rows.SetRow] = []
    for number, row in enumerate(source.rows(), start=1):
        sets += accept(row.sets)
        depend = accept([each for each in row.open_sets if each.exercise])
        content.open_names.update(imported_names.key_of(each.exercise) for each in depend)
        yield number
    dialect = source.dialect or set_files.SETS
    sessions, repeated = set_rows.split_sessions(sets, is_mixed=dialect.is_mixed, by_day=dialect.sessions_by_day)
    for session in repeated:
        content.report_session(session, ALREADY_THERE)
    for session in sessions:
        for alone in (row for each in session.exercises if not each.sets for row in each.comments):
            content.leave_out(alone, _COMMENT_ALONE)
        session.exercises = [each for each in session.exercises if each.sets]
        if not session.exercises:
            continue
        notes = {each.notes for each in session.sets}
        if not source.has_workout_notes and len(session.exercises) > 1 and len(notes) == 1:
            [session.shared_note] = notes
        content.clients.setdefault(session.customer, []).append(session)
    return content


def _localizing(
    customers: import_models.Meanings, zone_of: Callable[[imported_names.NameAnswer | None], ZoneInfo]
) -> Callable[[set_rows.SetRow], set_rows.SetRow]:
    """Return a function that names the client of a row by the label in the mapping; of several, by the first."""
    first: dict[imported_names.NameAnswer, str] = {}  # the label of a client
    labels: dict[str, str] = {}  # by what spellings have in common
    for label, answer in customers.items():
        labels[normalize(label)] = first.setdefault(answer, label) if isinstance(answer, ObjectId) else label

    @cache
    def label_of(name: str, customer_id: str) -> str:
        label = set_files.FileClient(name, customer_id, is_alone=False).label
        return labels.get(normalize(label), labels.get(normalize(name), name))

    def localize(row: set_rows.SetRow) -> set_rows.SetRow:
        """Name the client of a row by the label; if the file has its time with an offset, give it the client's."""
        label = label_of(row.customer, row.customer_id)
        row = row if label == row.customer else replace(row, customer=label)
        if row.instant is None:
            return row
        local = row.instant.astimezone(zone_of(customers.get(label)))
        return replace(row, day=local.date(), clock=f"{local:%H:%M}")

    return localize


def _reason(
    row: set_rows.SetRow, exercises: import_models.Meanings, customers: import_models.Meanings
) -> Reason | None:
    if row.customer not in customers:
        return "customer", "REQUIRED", "is empty"
    customer = customers[row.customer]
    if customer is None:
        return "customer", "OTHER_CLIENT", "is of another client than the import is for"
    if customer == imported_names.SKIP:
        return "customer", "SKIPPED", "is of a client who is left out"
    if row.is_comment and imported_names.key_of(row.exercise_name) not in exercises:
        return _COMMENT_ALONE
    exercise = exercises.get(imported_names.key_of(row.exercise_name), imported_names.SKIP)
    if exercise is None:
        message = f"is not in the library: creating it needs {EXERCISES.CREATE}"
        return "exercise", PermissionMissing.default_code, message
    if exercise == imported_names.SKIP:
        return "exercise", "SKIPPED", "has the name of an exercise that is left out"
    return None


# --- What is decided about a file: questions, names of exercises, and clients -----------------------------------------


_NAME_LABELS = {"customer": "Names of clients", "workout": "Names of workouts"}


@dataclass(frozen=True)
class Decisions:
    """What is decided about a file.

    `customers` are what the clients in the file stand for, by label; None: another client than the import is for.
    """

    survey: set_files.Survey
    names: imported_names.ResolvedNames
    customers: import_models.Meanings
    questions: list[tables.Question]

    @property
    def new_customers(self) -> list[set_files.FileClient]:
        """The clients that have to be created."""
        return [
            self.survey.clients[label]
            for label, decision in self.customers.items()
            if decision == imported_names.CREATE
        ]


async def decide_customers(
    ctx: Context, found: set_files.Survey, answers: import_models.StoredAnswers, *, is_own: bool
) -> tuple[import_models.Meanings, list[tables.Question]]:
    """Return what the clients in a file stand for, by label, and the questions about them.

    `is_own`: a client imports the own history. Raises NotFound for an answer with an unknown identifier.
    """
    named = [client for client in found.clients.values() if client.name]
    sent = {normalize(name): answer for name, answer in import_models.by_name(answers["customers"]).items()}
    for decision in sent.values():
        if isinstance(decision, ObjectId):
            await customers.get_visible(ctx, decision)
    if (customer_id := answers["customerId"]) is not None:
        await customers.get_visible(ctx, customer_id)
        identities = await customers.list_identities(ctx)
        known = _KnownClients([each for each in identities if not is_own or each["_id"] == customer_id])
        meant: dict[str, ObjectId | None] = {}
        is_anyone_known = len(named) < 2
        for client in named:
            answer = sent.get(normalize(client.label))
            candidates = known.candidates(client) if answer is None else {answer}
            is_anyone_known |= bool(candidates)
            # The only one who is named may have another name here, but not that of another client.
            is_meant = customer_id in candidates or (not candidates and len(named) == 1 and not is_own)
            meant[client.label] = customer_id if is_meant else None
        is_unclear = found.name_heading is not None and not is_anyone_known
        asked = [set_files.ask_for_field(found.name_heading or "", _NAME_LABELS)] if is_unclear else []
        return {"": customer_id} | meant, asked
    if list(found.customers) == [""]:
        return {"": None}, [_ASK_FOR_CLIENT]
    known = _KnownClients(await customers.list_identities(ctx))
    decisions: dict[str, imported_names.NameAnswer | None] = {}
    unknown: list[tables.Question] = []
    for client in named:
        found_clients = known.candidates(client)
        answer = sent.get(normalize(client.label)) or (next(iter(found_clients)) if len(found_clients) == 1 else None)
        if answer is None:
            unknown.append(known.ask(client))
        else:
            decisions[client.label] = answer
    return decisions, unknown


# --- Which clients of the company the names in a file stand for ------------------------------------------------------


_NEAREST = 3
_EMAIL = Email()


class _KnownClients:
    """The clients of the company, by everything that a file may name them with."""

    def __init__(self, clients: Sequence[CustomerIdentity]) -> None:
        self._by_key: defaultdict[str, set[ObjectId]] = defaultdict(set)
        self._labels = customers.distinct_names(clients)
        self._by_identifier: defaultdict[str, set[ObjectId]] = defaultdict(set)
        self._by_name: defaultdict[str, list[ObjectId]] = defaultdict(list)
        for client in clients:
            full_name = customers.full_name(client)
            self._by_name[customers.full_name_key(client)].append(client["_id"])
            surname_first = f"{client['surname'] or ''}, {client['name']}"
            identifiers = (client["email"], client.get("externalId"), str(client["_id"]))
            for text in filter(None, identifiers):
                self._by_identifier[normalize(text)].add(client["_id"])
            for text in filter(None, (full_name, surname_first, *identifiers)):
                self._by_key[normalize(text)].add(client["_id"])

    def candidates(self, client: set_files.FileClient) -> set[ObjectId]:
        """Return the known clients that a client in a file may be: by identifier, else by a name that no other has.

        An identifier may be an address, and the name may also be both.
        """
        if known := self._by_identifier.get(normalize(client.id)):
            return known
        return self._by_key.get(normalize(client.name), set()) if client.is_alone else set()

    def ask(self, client: set_files.FileClient) -> tables.Question:
        """Return the question who a client in the file is; its options are all clients with the nearest names."""
        names = difflib.get_close_matches(normalize(client.name), self._by_name, n=_NEAREST, cutoff=0.5)
        near = {each: self._labels[each] for name in names for each in self._by_name[name]}
        return {
            "code": "CUSTOMER",
            "message": f"Which client is {client.label}?",
            "options": [*map(str, near), imported_names.CREATE, imported_names.SKIP],
            "name": client.label,
            "labels": [*near.values(), "Create a new client", "Leave out"],
        }


_ASK_FOR_CLIENT: tables.Question = {
    "code": "CUSTOMER",
    "message": "The file does not name its client: whose history is it? Send `customerId`.",
    "options": [],
}


async def create_clients(ctx: Context, clients: Sequence[set_files.FileClient]) -> dict[str, ObjectId]:
    """Create these clients, without an invitation, and return their identifiers by label."""
    created: dict[str, ObjectId] = {}
    left = list(clients)
    while left:  # a batch refuses clients of the same name
        by_name = {normalize(client.name): client for client in reversed(left)}
        new: list[CustomerUpsert] = []
        for client in by_name.values():
            name, surname = split_name(client.name)
            new.append({"name": name, "surname": surname or None, "sendInvitation": False})
            with suppress(ValidationError):  # another identifier
                new[-1]["email"] = _EMAIL.deserialize(client.id)
        saved = await batch.save_many(ctx, new)
        for client, result in zip(by_name.values(), saved["results"], strict=True):
            created[client.label] = result["_id"]
        left = [client for client in left if client.label not in created]
    return created


# --- Sessions of a file as they are stored ----------------------------------------------------------------------------


UNTITLED = "Workout"
_MAX_SETS = 200  # of an item, as in a log
_NOON = time(12)
_UNWRITABLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\u202a-\u202e\u2066-\u2069]")
# Exercise, repetitions, load, meters, seconds.
_Amounts: TypeAlias = tuple[ObjectId, int | None, float | None, float | None, float | None]


@dataclass(frozen=True)
class Target:
    """What the sessions of a client are stored with.

    `exercises` are what names stand for (None: not created yet), `known` the exercises themselves.
    """

    exercises: Mapping[str, ObjectId | None]
    known: Mapping[ObjectId, ExerciseName]
    load_unit: str
    timezone: str

    def exercise_of(self, name: str) -> ObjectId | None:
        """Return the exercise that a name in the file stands for."""
        return self.exercises.get(imported_names.key_of(name))

    def is_left_out(self, row: set_rows.SetRow) -> bool:
        """Return whether the load of a set is help, but its exercise has none."""
        exercise_id = self.exercise_of(row.exercise)
        exercise = None if exercise_id is None else self.known.get(exercise_id)
        return row.is_assistance and exercise is not None and exercise.get("loadType") != ASSISTANCE

    def load_of(self, row: set_rows.SetRow) -> float | None:
        """Return the load of a set in the company's unit."""
        if row.load is None or self.is_left_out(row):
            return None
        return convert_entered_load(row.load, row.load_unit or self.load_unit, self.load_unit)


def done_sessions(session: set_rows.Session, target: Target) -> list[DoneSession]:
    """Return the blocks to store for a session: one, unless it has more exercises than a block holds."""
    exercises: list[DoneExercise] = []
    for exercise in session.exercises:
        if (exercise_id := target.exercise_of(exercise.name)) is None:
            raise ValueError("names that are left out have no sessions")
        for first in range(0, len(exercise.sets), _MAX_SETS):
            sets: list[CustomerSet] = [
                {
                    "index": index,
                    "exerciseId": None,
                    "round": None,
                    "reps": row.reps,
                    "load": target.load_of(row),
                    "seconds": row.seconds,
                    "meters": row.meters,
                    "rpe": row.rpe,
                    "rir": row.rir,
                    "isWarmup": row.kind == "warmup",
                    "setKind": "normal" if row.kind == "warmup" else row.kind,
                    "isCompleted": row.is_completed,
                }
                for index, row in enumerate(exercise.sets[first : first + _MAX_SETS], 1)
            ]
            superset, comment = clean_name(exercise.superset) or None, clean_text(session.notes_of(exercise))
            exercises.append(
                {"exerciseId": exercise_id, "supersetId": superset, "comment": comment, "customerSets": sets}
            )
    name = clean_name(session.title) or UNTITLED
    minutes = session.minutes
    start = datetime.combine(
        session.day, time.fromisoformat(session.clock) if session.clock else _NOON, zone_of(target.timezone)
    )
    return [
        {
            "name": name,
            "date": str(session.day),
            "startTime": session.clock,
            "durationMinutes": minutes,
            "comment": clean_text(session.notes),
            "exercises": exercises[first : first + MAX_ITEMS],
            "completedAt": (start.astimezone(UTC) + timedelta(minutes=minutes or 0)).replace(tzinfo=None),
            "fingerprint": session.fingerprint(with_clock=False, with_customer=False),
        }
        for first in range(0, len(exercises), MAX_ITEMS)
    ]


def find_cut(sessions: Sequence[set_rows.Session], target: Target) -> list[tables.Problem]:
    """Return a problem of each set whose load is help, but its exercise has none, and of notes that are cut.

    Those are of a session or an exercise whose rows together have longer ones than are stored.
    """
    message = "is negative, which means help, but the exercise is not assisted"
    rows = (row for session in sessions for row in session.sets if target.is_left_out(row))
    problems = [problem(row, "load", "VALUE_LEFT_OUT", message) for row in rows]
    message = f"of its rows together are cut: they have more than {TEXT_LENGTH:,} characters"
    for session in sessions:
        if len(session.notes) > TEXT_LENGTH:
            problems.append(problem(next(session.sets), "workoutNotes", "VALUE_LEFT_OUT", message))
        long = (each.sets[0] for each in session.exercises if len(session.notes_of(each)) > TEXT_LENGTH)
        problems += [problem(row, "notes", "VALUE_LEFT_OUT", message) for row in long]
    return problems


def clean_name(text: str) -> str:
    """Return a text as a name may be: in one line, and not too long."""
    name = " ".join(_UNWRITABLE.sub("", text).split())[:NAME_LENGTH].strip()
    return "" if is_blank(name) else name


def clean_text(text: str) -> str | None:
    """Return a text as a comment may be; None without any."""
    return _UNWRITABLE.sub("", text)[:TEXT_LENGTH].strip() or None


# --- Sessions that are there already ---------------------------------------------------------------------------------


class KnownSessions:
    """The sessions with logged sets that a client has on some dates.

    Those of a day with the same title and start are also known as one: a file does not tell where the second begins.
    """

    def __init__(self, blocks: Iterable[KnownSession]) -> None:
        self._clocks: dict[str, list[str | None]] = {}
        alike: dict[tuple[str, str, str | None], list[_Amounts]] = {}
        for block in blocks:
            day, name, clock = str(block["date"]), block["name"], block.get("startTime")
            amounts: list[_Amounts] = []
            for item in block["items"]:
                if item["type"] == "EXERCISE" or item["type"] == "CIRCUIT":
                    of_item = item["exerciseId"] if item["type"] == "EXERCISE" else None
                    amounts += [
                        (exercise_id, done["reps"], done["load"], done["meters"], done["seconds"])
                        for done in item["customerSets"]
                        if (exercise_id := done["exerciseId"] or of_item) is not None
                    ]
            self._add(_key(day, name, amounts), clock)
            self._add(block.get("fingerprint"), clock)
            alike.setdefault((day, normalize(name), clock), []).extend(amounts)
        for (day, name, clock), amounts in alike.items():
            self._add(_key(day, name, amounts), clock)

    def _add(self, key: str | None, clock: str | None) -> None:
        if key is not None:
            self._clocks.setdefault(key, []).append(clock)

    def has(self, session: set_rows.Session, target: Target) -> bool:
        """Return whether a session is there: the same date, title, exercises and sets, and start where both know it."""
        amounts = [
            (exercise_id, each.reps, target.load_of(each), each.meters, each.seconds)
            for each in session.sets
            if (exercise_id := target.exercise_of(each.exercise)) is not None
        ]
        keys = [session.fingerprint(with_clock=False, with_customer=False)]
        if len(amounts) == count_sets([session]):
            keys.append(_key(str(session.day), clean_name(session.title) or UNTITLED, amounts))
        clocks = [clock for key in keys for clock in self._clocks.get(key, ())]
        return any(clock is None or session.clock is None or clock == session.clock for clock in clocks)


def _key(day: str, name: str, amounts: Iterable[_Amounts]) -> str:
    """Return what two sessions with the same sets have in common, in whatever order: circuits are done in rounds.

    Numbers are compared as they are exported. Sets without any are no rows of a file.
    """
    sets = sorted(
        repr((str(exercise_id), *numbers))
        for exercise_id, *entered in amounts
        if any(numbers := [round(float(each), 2) if each else None for each in entered])
    )
    return hashlib.sha256(repr((day, normalize(name), sets)).encode()).hexdigest()


def count_sets(sessions: Sequence[set_rows.Session]) -> int:
    """Return how many sets sessions have."""
    return sum(len(each.sets) for session in sessions for each in session.exercises)
