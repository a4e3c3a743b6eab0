"""Shorthand for the operations on many days of a schedule."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Any

from coaching_service.core.dates import add_years
from tests.support.client import MONDAY, SUNDAY, CoachClient, Reply
from tests.support.training import Json, circuit_of, client_path, exercise_of, one_of_each, task

# Contract 1: days of a calendar or a log are from 1950 to ten years from today.
FIRST_DAY, LAST_DAY = "1950-01-01", str(add_years(datetime.now(UTC).date(), 10))
EVER = ("0001-01-01", "9999-12-31")
WEDNESDAY, THURSDAY, NEXT_MONDAY, NEXT_SUNDAY = "2026-03-04", "2026-03-05", "2026-03-09", "2026-03-15"
WEEK = {"startDate": MONDAY, "endDate": SUNDAY}
HEAVIER = {"load": {"add": 2.5}}
_IDENTITY = ("_id", "createdAt", "updatedAt", "version", "changeId", "dryRun", "assignmentId")


def before_last(days: int) -> str:
    """The date that is so many days before the last day of a calendar."""
    return str(date.fromisoformat(LAST_DAY) - timedelta(days=days))


def without_identity(value: Any) -> Any:
    """What a dry run and the operation have in common: everything but identifiers, times and versions."""
    if isinstance(value, list):
        return [without_identity(each) for each in value]
    if isinstance(value, dict):
        return {name: without_identity(each) for name, each in value.items() if name not in _IDENTITY}
    return value


def plan_of(block: Json, *, with_loads: bool = True) -> Any:
    """What is planned in a block: everything but identity and day, and on request without loads."""
    return _plan(block, ("date", "day", *(() if with_loads else ("load", "variables"))))


def _plan(value: Any, omitted: tuple[str, ...]) -> Any:
    if isinstance(value, list):
        return [_plan(each, omitted) for each in value]
    if isinstance(value, dict):
        return {name: _plan(each, omitted) for name, each in value.items() if name not in (*_IDENTITY, *omitted)}
    return value


def loads(blocks: list[Json]) -> list[float | None]:
    """The planned loads of the exercise items of blocks, in order; those of circuits are left out."""
    items = [item for block in blocks for item in block["items"] if item["type"] == "EXERCISE"]
    return [planned.get("load") for item in items for planned in item["exerciseSets"]]


async def batch(coach: CoachClient, customer: Json, *blocks: Json, **options: Any) -> Json:
    """Create blocks with items."""
    path = client_path(customer, "wblocks/batch")
    created: Json = (await coach.post(path, {"blocks": list(blocks), **options})).ok(200 if options else 201)
    return created


async def operate(coach: CoachClient, customer: Json, operation: str, **body: Any) -> Json:
    """Carry out `copy`, `adjust`, `replace-exercise` or `clear` on a client's calendar."""
    reply = await post(coach, customer, operation, **body)
    result: Json = reply.ok(201 if operation == "copy" and not body.get("dryRun") else 200)
    return result


async def post(coach: CoachClient, customer: Json, operation: str, **body: Any) -> Reply:
    """Send an operation on a client's calendar."""
    return await coach.post(client_path(customer, "schedule", operation), body)


async def week_of(coach: CoachClient, customer: Json) -> list[Json]:
    """A week with two workouts, of which one has every type of item, and a rest day."""
    squat = await coach.create_exercise("Back squat")
    created = await batch(
        coach,
        customer,
        {"name": "Legs", "date": MONDAY, "items": [exercise_of(squat, supersetId="A"), circuit_of(squat)]},
        {"name": "Mobility", "date": MONDAY, "items": [task("Stretch")]},
        {"name": "Rest", "date": WEDNESDAY, "isRest": True},
        {"name": "All", "date": "2026-03-06", "items": await one_of_each(coach)},
    )
    blocks: list[Json] = created["created"]
    return blocks
