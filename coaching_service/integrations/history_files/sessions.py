"""Sessions of sets: which rows of a file are one workout, in the order of the file."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import date
from functools import lru_cache

from coaching_service.core.text import normalize
from coaching_service.integrations.history_files.set_rows import SetRow

_normalize = lru_cache(1024)(normalize)  # rows repeat the same titles


@dataclass
class Exercise:
    """An exercise of a session with its sets; two of a session share `superset` if they were done in turn."""

    name: str
    superset: str
    sets: list[SetRow] = field(default_factory=list)
    comments: list[SetRow] = field(default_factory=list)


@dataclass
class Session:
    """A workout that was done."""

    customer: str
    day: date
    clock: str | None
    title: str
    exercises: list[Exercise] = field(default_factory=list)
    shared_note: str = ""

    @property
    def sets(self) -> Iterator[SetRow]:
        """The sets of all exercises."""
        return (each for exercise in self.exercises for each in exercise.sets)

    def share_note(self) -> None:
        """Make the note that all sets of all its exercises have, if there is one, the one of the workout."""
        notes = {each.notes for each in self.sets}
        if len(self.exercises) > 1 and len(notes) == 1:
            [self.shared_note] = notes

    @property
    def notes(self) -> str:
        """The notes on the workout, each once, in lines."""
        return "\n".join(dict.fromkeys(filter(None, (*(each.workout_notes for each in self.sets), self.shared_note))))

    def notes_of(self, exercise: Exercise) -> str:
        """Return the notes on an exercise and its sets, each once, in lines."""
        rows = (*exercise.comments, *exercise.sets)
        shared = "" if exercise.comments else self.shared_note
        return "\n".join(dict.fromkeys(each.notes for each in rows if each.notes and each.notes != shared))

    def take_comments_alone(self) -> list[SetRow]:
        """Remove exercises that have comments only, and return their rows."""
        alone = [row for each in self.exercises if not each.sets for row in each.comments]
        self.exercises = [each for each in self.exercises if each.sets]
        return alone

    @property
    def rows(self) -> int:
        """How many rows of the file its sets are in."""
        comments = (row for each in self.exercises for row in each.comments)
        return len({each.row for each in (*self.sets, *comments)})

    @property
    def minutes(self) -> float | None:
        """How long it took; None if no row says it."""
        return max((each.minutes for each in self.sets if each.minutes), default=None)

    def add(self, row: SetRow) -> None:
        """Add a set to its exercise: the one before it, or one of the same superset, or else another one."""
        key = (row.exercise, row.superset)
        candidates = self.exercises if row.superset else self.exercises[-1:]
        last = next((each for each in candidates if (each.name, each.superset) == key), None)
        if last is None:
            last = Exercise(*key)
            self.exercises.append(last)
        (last.comments if row.is_comment else last.sets).append(row)

    def fingerprint(self, *, with_clock: bool = True, with_customer: bool = True) -> str:
        """Return what two copies of the session have in common: client, date, start, title, exercises and sets."""
        customer, clock = self.customer if with_customer else None, self.clock if with_clock else None
        parts: list[object] = [customer, self.day, clock, normalize(self.title)]
        for each in self.exercises:
            parts.append(normalize(each.name))
            parts += [(row.kind, row.reps, row.load, row.meters, row.seconds) for row in each.sets]
        return hashlib.sha256(repr(parts).encode()).hexdigest()


def split_sessions(rows: Iterable[SetRow]) -> tuple[list[Session], list[Session]]:
    """Return the sessions of rows whose sessions are each written as a whole, and those that are repeated.

    Rows that follow each other, with the same client, date, start and title, are one session. Several with these alike
    are several sessions, unless their sets are the same: then the file has been put together from copies.
    """
    runs: list[tuple[tuple[object, ...], Session]] = []
    for row in rows:
        key = (row.customer, row.day, row.clock, _normalize(row.workout))
        if not runs or runs[-1][0] != key:
            runs.append((key, Session(row.customer, row.day, row.clock, row.workout)))
        runs[-1][1].add(row)
    known: set[str] = set()
    sessions: list[Session] = []
    repeated: list[Session] = []
    for _, session in runs:
        fingerprint = session.fingerprint()
        (repeated if fingerprint in known else sessions).append(session)
        known.add(fingerprint)
    return sessions, repeated


def group_sessions(rows: Iterable[SetRow], *, by_day: bool = False) -> list[Session]:
    """Return the sessions of rows, in the order of their first rows.

    Rows with the same client, date, start and title are one session; with `by_day`, all rows of a client and a day.
    """
    sessions: dict[tuple[object, ...], Session] = {}
    for row in rows:
        key = (row.customer, row.day) if by_day else (row.customer, row.day, row.clock, _normalize(row.workout))
        session = sessions.get(key)
        if session is None:
            session = sessions[key] = Session(row.customer, row.day, row.clock, row.workout)
        session.add(row)
    return list(sessions.values())
