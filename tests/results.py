"""Shorthand for the stories of what the numbers say."""

from __future__ import annotations

from typing import Any

from tests.client import MONDAY, CoachClient, Reply
from tests.training import Json, block_with, client_path, exercise_of, log, path_of, read

WARM_UP = {"type": "reps_load", "minPlannedReps": 12, "load": 20, "isWarmup": True}
WORK = {"type": "reps_load", "minPlannedReps": 8, "maxPlannedReps": 10, "load": 60}


def sets(*done: tuple[int | None, float | None]) -> list[Json]:
    """Sets as they were done: (repetitions, load) each."""
    return [{"reps": reps, "load": load} for reps, load in done]


def skipped(reps: int, load: float) -> Json:
    """A set that was not completed."""
    return {"reps": reps, "load": load, "isCompleted": False}


def lap(number: int, exercise: Json, reps: int, load: float | None = None, index: int = 1) -> Json:
    """A set in a round of a circuit."""
    return {"exerciseId": exercise["_id"], "round": number, "index": index, "reps": reps, "load": load}


async def trained(
    coach: CoachClient,
    customer: Json,
    exercise: Json,
    *done: tuple[int | None, float | None],
    date: str = MONDAY,
    plan: tuple[Json, ...] = (),
) -> Json:
    """A new block in which the exercise was done so."""
    block = await block_with(coach, customer, exercise_of(exercise, *plan), date=date)
    (await log(coach, block, block["items"][0], customerSets=sets(*done))).ok()
    return await read(coach, block)


async def undo(coach: CoachClient, block: Json, at: int = 0) -> None:
    """Take back what was logged of an item."""
    (await log(coach, block, block["items"][at], isCompleted=False)).ok()


async def rated(coach: CoachClient, block: Json, rpe: float | None, minutes: float | None) -> None:
    """Note how hard a session was, and how long."""
    (await coach.put(f"{path_of(block)}/log", {"sessionRpe": rpe, "durationMinutes": minutes})).ok()


async def asked(coach: CoachClient, customer: Json, *path: str, **query: Any) -> Reply:
    """Ask for a reading of a client's."""
    return await coach.get(client_path(customer, *path), **query)


async def past(coach: CoachClient, customer: Json, exercise: Json, **query: Any) -> list[Json]:
    """A client's history of an exercise, newest first; the first 50 sessions unless the story says otherwise."""
    where = {"pageSize": 50, "pageNum": 1, **query}
    found: list[Json] = (await asked(coach, customer, "exercise", exercise["_id"], "history", **where)).ok()["docs"]
    return found


async def records(coach: CoachClient, customer: Json) -> list[Json]:
    """A client's personal records."""
    found: list[Json] = (await asked(coach, customer, "personal-records")).ok()
    return found


async def volume(coach: CoachClient, customer: Json, start: str = MONDAY, end: str = MONDAY) -> dict[str, Json]:
    """The muscles a client trained, by name."""
    found = (await asked(coach, customer, "musclegroups", "volume", startDate=start, endDate=end)).ok()
    return {muscle["name"]: muscle for muscle in found["muscleGroups"]}


async def workload(coach: CoachClient, customer: Json, start: str, end: str, **query: Any) -> list[Json]:
    """A client's workload, period by period."""
    found: list[Json] = (await asked(coach, customer, "workload", startDate=start, endDate=end, **query)).ok()[
        "periods"
    ]
    return found


async def compliance(coach: CoachClient, customer: Json, **query: Any) -> Json:
    """What a client did of what was scheduled."""
    found: Json = (await asked(coach, customer, "compliance", **query)).ok()
    return found
