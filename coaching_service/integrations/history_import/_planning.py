"""What an import of history decides before it stores anything: questions, names of exercises, and clients."""

from __future__ import annotations

import difflib
import hashlib
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from typing import TypeAlias, cast

from marshmallow import ValidationError

from coaching_service.core.database.context import Context
from coaching_service.core.dates import zone_of
from coaching_service.core.ids import ObjectId
from coaching_service.core.text import normalize
from coaching_service.core.validation import NAME_LENGTH, TEXT_LENGTH, Email, is_blank
from coaching_service.integrations.history_files.columns import ask_for_field
from coaching_service.integrations.history_files.models import Problem, Question
from coaching_service.integrations.history_files.rosters import split_name
from coaching_service.integrations.history_files.sessions import Exercise, Session
from coaching_service.integrations.history_files.set_rows import SetRow
from coaching_service.integrations.history_files.survey import FileClient, Survey
from coaching_service.integrations.history_import import answers as stored_answers
from coaching_service.integrations.history_import._reading import problem
from coaching_service.integrations.history_import.models import StoredAnswers
from coaching_service.library import imported_names
from coaching_service.library.exercises.models import ASSISTANCE, ExerciseName
from coaching_service.people.account import convert_entered_load
from coaching_service.people.customers import batch
from coaching_service.people.customers import service as customers
from coaching_service.people.customers.models import CustomerIdentity, CustomerUpsert
from coaching_service.people.customers.service import distinct_names, full_name_key
from coaching_service.training.workouts.blocks.batches import DoneExercise, DoneSession
from coaching_service.training.workouts.blocks.models import KnownSession
from coaching_service.training.workouts.items.service import MAX_ITEMS
from coaching_service.training.workouts.sets import CustomerSet

_NAME_LABELS = {"customer": "Names of clients", "workout": "Names of workouts"}


@dataclass(frozen=True)
class Decisions:
    """What is decided about a file.

    `customers` are what the clients in the file stand for, by label; None: another client than the import is for.
    """

    survey: Survey
    names: imported_names.ResolvedNames
    customers: Mapping[str, imported_names.NameAnswer | None]
    questions: list[Question]

    @property
    def customer_questions(self) -> list[Question]:
        """The questions about clients."""
        return [each for each in self.questions if each["code"] == "CUSTOMER"]

    @property
    def new_customers(self) -> list[FileClient]:
        """The clients that have to be created."""
        return [
            self.survey.clients[label]
            for label, decision in self.customers.items()
            if decision == imported_names.CREATE
        ]


async def decide(ctx: Context, found: Survey, answers: StoredAnswers, *, is_own: bool) -> Decisions:
    """Decide about a file with what was found in it; `is_own`: a client imports the own history.

    Raises NotFound for an answer with an unknown identifier.
    """
    names = await imported_names.resolve_names(ctx, found.exercises, stored_answers.by_name(answers["names"]))
    decided, questions = await decide_customers(ctx, found, answers, is_own=is_own)
    return Decisions(found, names, decided, [*found.questions, *questions])


async def decide_customers(
    ctx: Context, found: Survey, answers: StoredAnswers, *, is_own: bool
) -> tuple[Mapping[str, imported_names.NameAnswer | None], list[Question]]:
    """Return what the clients in a file stand for, by label, and the questions about them. Raises as `decide`."""
    named = [client for client in found.clients.values() if client.name]
    sent = {normalize(name): answer for name, answer in stored_answers.by_name(answers["customers"]).items()}
    for decision in sent.values():
        if isinstance(decision, ObjectId):
            await customers.get_visible(ctx, decision)
    if (customer_id := answers["customerId"]) is not None:
        await customers.get_visible(ctx, customer_id)
        known = await _load_clients(ctx, only=customer_id if is_own else None)
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
        asked = [ask_for_field(found.name_heading or "", _NAME_LABELS)] if is_unclear else []
        return {"": customer_id} | meant, asked
    if list(found.customers) == [""]:
        return {"": None}, [_ASK_FOR_CLIENT]
    known, decisions, unknown = (
        await _load_clients(ctx),
        dict[str, imported_names.NameAnswer | None](),
        list[Question](),
    )
    for client in named:
        answer = sent.get(normalize(client.label)) or known.find(client)
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
        self._labels = distinct_names(clients)
        self._by_identifier: defaultdict[str, set[ObjectId]] = defaultdict(set)
        self._by_name: defaultdict[str, list[ObjectId]] = defaultdict(list)
        for client in clients:
            full_name = customers.full_name(client)
            self._by_name[full_name_key(client)].append(client["_id"])
            surname_first = f"{client['surname'] or ''}, {client['name']}"
            identifiers = (client["email"], client.get("externalId"), str(client["_id"]))
            for text in filter(None, identifiers):
                self._by_identifier[normalize(text)].add(client["_id"])
            for text in filter(None, (full_name, surname_first, *identifiers)):
                self._by_key[normalize(text)].add(client["_id"])

    def candidates(self, client: FileClient) -> set[ObjectId]:
        """Return the known clients that a client in a file may be: by identifier, else by a name that no other has.

        An identifier may be an address, and the name may also be both.
        """
        if known := self._by_identifier.get(normalize(client.id)):
            return known
        return self._by_key.get(normalize(client.name), set()) if client.is_alone else set()

    def find(self, client: FileClient) -> ObjectId | None:
        """Return the known client that a client in a file is; None without one, or with several."""
        found = self.candidates(client)
        return next(iter(found)) if len(found) == 1 else None

    def ask(self, client: FileClient) -> Question:
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


_ASK_FOR_CLIENT: Question = {
    "code": "CUSTOMER",
    "message": "The file does not name its client: whose history is it? Send `customerId`.",
    "options": [],
}


async def _load_clients(ctx: Context, *, only: ObjectId | None = None) -> _KnownClients:
    """Return the clients of the company, or one of them."""
    return _KnownClients([each for each in await customers.list_identities(ctx) if only in (None, each["_id"])])


async def create_clients(ctx: Context, clients: Sequence[FileClient]) -> dict[str, ObjectId]:
    """Create these clients, without an invitation, and return their identifiers by label."""
    created: dict[str, ObjectId] = {}
    left = list(clients)
    while left:  # a batch refuses clients of the same name
        by_name = {normalize(client.name): client for client in reversed(left)}
        saved = await batch.save_many(ctx, [_new_client(client) for client in by_name.values()])
        for client, result in zip(by_name.values(), saved["results"], strict=True):
            created[client.label] = result["_id"]
        left = [client for client in left if client.label not in created]
    return created


def _new_client(client: FileClient) -> CustomerUpsert:
    name, surname = split_name(client.name)
    new: CustomerUpsert = {"name": name, "surname": surname or None, "sendInvitation": False}
    with suppress(ValidationError):  # another identifier
        new["email"] = _EMAIL.deserialize(client.id)
    return new


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

    def is_left_out(self, row: SetRow) -> bool:
        """Return whether the load of a set is help, but its exercise has none."""
        exercise_id = self.exercise_of(row.exercise)
        exercise = None if exercise_id is None else self.known.get(exercise_id)
        return row.is_assistance and exercise is not None and exercise.get("loadType") != ASSISTANCE

    def load_of(self, row: SetRow) -> float | None:
        """Return the load of a set in the company's unit."""
        if row.load is None or self.is_left_out(row):
            return None
        return convert_entered_load(row.load, row.load_unit or self.load_unit, self.load_unit)


def done_sessions(session: Session, target: Target) -> list[DoneSession]:
    """Return the blocks to store for a session: one, unless it has more exercises than a block holds."""
    exercises = [part for each in session.exercises for part in _done_exercises(session, each, target)]
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


def _done_exercises(session: Session, exercise: Exercise, target: Target) -> Iterator[DoneExercise]:
    exercise_id = target.exercise_of(exercise.name)
    if exercise_id is None:
        raise ValueError("names that are left out have no sessions")
    for first in range(0, len(exercise.sets), _MAX_SETS):
        sets = [_customer_set(n, row, target) for n, row in enumerate(exercise.sets[first : first + _MAX_SETS], 1)]
        yield {
            "exerciseId": exercise_id,
            "supersetId": clean_name(exercise.superset) or None,
            "comment": clean_text(session.notes_of(exercise)),
            "customerSets": sets,
        }


def _customer_set(index: int, row: SetRow, target: Target) -> CustomerSet:
    return {
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


def loads_left_out(sessions: Sequence[Session], target: Target) -> list[Problem]:
    """Return a problem of each set whose load is help, but its exercise has none."""
    message = "is negative, which means help, but the exercise is not assisted"
    rows = (row for session in sessions for row in session.sets if target.is_left_out(row))
    return [problem(row, "load", "VALUE_LEFT_OUT", message) for row in rows]


def notes_cut(sessions: Sequence[Session]) -> list[Problem]:
    """Return a problem of each session and exercise whose rows together have longer notes than are stored."""
    problems: list[Problem] = []
    message = f"of its rows together are cut: they have more than {TEXT_LENGTH:,} characters"
    for session in sessions:
        first = next(session.sets)
        if len(session.notes) > TEXT_LENGTH:
            problems.append(problem(first, "workoutNotes", "VALUE_LEFT_OUT", message))
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
            amounts = list(_amounts_of(block))
            self._add(_key(day, name, amounts), clock)
            self._add(block.get("fingerprint"), clock)
            alike.setdefault((day, normalize(name), clock), []).extend(amounts)
        for (day, name, clock), amounts in alike.items():
            self._add(_key(day, name, amounts), clock)

    def _add(self, key: str | None, clock: str | None) -> None:
        if key is not None:
            self._clocks.setdefault(key, []).append(clock)

    def has(self, session: Session, target: Target) -> bool:
        """Return whether a session is there: the same date, title, exercises and sets, and start where both know it."""
        amounts = [_amounts(each, target) for each in session.sets]
        name = clean_name(session.title) or UNTITLED
        known = None not in amounts
        keys = [session.fingerprint(with_clock=False, with_customer=False)]
        if known:
            keys.append(_key(str(session.day), name, cast("list[_Amounts]", amounts)))
        clocks = [clock for key in keys for clock in self._clocks.get(key, ())]
        return any(clock is None or session.clock is None or clock == session.clock for clock in clocks)


def _amounts(row: SetRow, target: Target) -> _Amounts | None:
    exercise_id = target.exercise_of(row.exercise)
    if exercise_id is None:
        return None
    return exercise_id, row.reps, target.load_of(row), row.meters, row.seconds


def _amounts_of(block: KnownSession) -> Iterator[_Amounts]:
    for item in block["items"]:
        if item["type"] == "EXERCISE" or item["type"] == "CIRCUIT":
            for done in item["customerSets"]:
                exercise_id = done["exerciseId"] or (item["exerciseId"] if item["type"] == "EXERCISE" else None)
                if exercise_id is not None:
                    yield exercise_id, done["reps"], done["load"], done["meters"], done["seconds"]


def _key(day: str, name: str, amounts: Iterable[_Amounts]) -> str:
    """Return what two sessions with the same sets have in common, in whatever order: circuits are done in rounds.

    Numbers are compared as they are exported. Sets without any are no rows of a file.
    """
    sets = sorted(
        repr((str(exercise_id), *numbers))
        for exercise_id, *entered in amounts
        if any(numbers := [_number(each) for each in entered])
    )
    return hashlib.sha256(repr((day, normalize(name), sets)).encode()).hexdigest()


def _number(value: float | None) -> float | None:
    return None if not value else round(float(value), 2)


def count_sets(sessions: Sequence[Session]) -> int:
    """Return how many sets sessions have."""
    return sum(len(each.sets) for session in sessions for each in session.exercises)
