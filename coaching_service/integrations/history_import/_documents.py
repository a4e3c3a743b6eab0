"""Sessions of a file as they are stored."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from typing import TypeAlias, cast

from coaching_service.core.dates import zone_of
from coaching_service.core.ids import ObjectId
from coaching_service.core.text import normalize
from coaching_service.core.validation import NAME_LENGTH, TEXT_LENGTH, is_blank
from coaching_service.integrations.history_files.models import Problem
from coaching_service.integrations.history_files.sessions import Exercise, Session
from coaching_service.integrations.history_files.set_rows import SetRow
from coaching_service.integrations.history_import._reading import problem
from coaching_service.library.exercises.models import ASSISTANCE, ExerciseName
from coaching_service.library.imported_names.models import key_of
from coaching_service.people.account.load_units import convert_entered_load
from coaching_service.training.workouts.blocks.imported import DoneExercise, DoneSession
from coaching_service.training.workouts.blocks.models import KnownSession
from coaching_service.training.workouts.items.content import MAX_ITEMS
from coaching_service.training.workouts.sets.models import CustomerSet

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
        return self.exercises.get(key_of(name))

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


# --- sessions that are there already ---------------------------------------------------------------------------------


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
