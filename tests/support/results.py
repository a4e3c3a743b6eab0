"""Helpers that log work and read the figures that follow from it."""

from __future__ import annotations

from typing import Any

from tests.support.client import MONDAY, CoachClient, Reply
from tests.support.training import Json, block_with, client_path, exercise_of, log, path_of

WARM_UP = {"type": "reps_load", "minPlannedReps": 12, "load": 20, "isWarmup": True}
WORK = {"type": "reps_load", "minPlannedReps": 8, "maxPlannedReps": 10, "load": 60}


def completed_sets(*sets: tuple[int | None, float | None]) -> list[Json]:
    """Completed sets: (reps, load) for each."""
    return [{"reps": reps, "load": load} for reps, load in sets]


def incomplete_set(reps: int, load: float) -> Json:
    """A set that was not completed."""
    return {"reps": reps, "load": load, "isCompleted": False}


def circuit_set(number: int, exercise: Json, reps: int, load: float | None = None, index: int = 1) -> Json:
    """A completed set in round `number` of a circuit."""
    return {"exerciseId": exercise["_id"], "round": number, "index": index, "reps": reps, "load": load}


async def train(
    coach: CoachClient,
    customer: Json,
    exercise: Json,
    *sets: tuple[int | None, float | None],
    date: str = MONDAY,
    plan: tuple[Json, ...] = (),
) -> Json:
    """Create a block of one exercise and log its sets."""
    block = await block_with(coach, customer, exercise_of(exercise, *plan), date=date)
    logged = (await log(coach, block, block["items"][0], customerSets=completed_sets(*sets))).ok()
    return {**block, "items": [logged], "version": logged["version"], "isCompleted": logged["isCompleted"]}


async def clear_log(coach: CoachClient, block: Json, position: int = 0) -> None:
    """Reset the log of an item."""
    (await log(coach, block, block["items"][position], isCompleted=False)).ok()


async def rate_session(coach: CoachClient, block: Json, rpe: float | None, minutes: float | None) -> None:
    """Record the exertion and the duration of a session."""
    (await coach.put(f"{path_of(block)}/log", {"sessionRpe": rpe, "durationMinutes": minutes})).ok()


async def read_progress(coach: CoachClient, customer: Json, *path: str, **query: Any) -> Reply:
    """Read from a path under the client."""
    return await coach.get(client_path(customer, *path), **query)


async def list_history(coach: CoachClient, customer: Json, exercise: Json, **query: Any) -> list[Json]:
    """A client's history of an exercise, newest first; by default the first 50 sessions."""
    page = {"pageSize": 50, "pageNum": 1, **query}
    response = await read_progress(coach, customer, "exercise", exercise["_id"], "history", **page)
    sessions: list[Json] = response.ok()["docs"]
    return sessions


async def list_records(coach: CoachClient, customer: Json) -> list[Json]:
    """A client's personal records."""
    records: list[Json] = (await read_progress(coach, customer, "personal-records")).ok()
    return records


async def read_volume(coach: CoachClient, customer: Json, start: str = MONDAY, end: str = MONDAY) -> dict[str, Json]:
    """The muscles a client trained, by name."""
    response = await read_progress(coach, customer, "musclegroups", "volume", startDate=start, endDate=end)
    return {muscle["name"]: muscle for muscle in response.ok()["muscleGroups"]}


async def read_workload(coach: CoachClient, customer: Json, start: str, end: str, **query: Any) -> list[Json]:
    """A client's workload by period."""
    response = await read_progress(coach, customer, "workload", startDate=start, endDate=end, **query)
    periods: list[Json] = response.ok()["periods"]
    return periods


async def read_compliance(coach: CoachClient, customer: Json, **query: Any) -> Json:
    """A client's compliance."""
    result: Json = (await read_progress(coach, customer, "compliance", **query)).ok()
    return result
