"""Shorthand for requests that many tests make."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from coaching_service.core.ids import ObjectId
from coaching_service.people import api_keys, team
from coaching_service.people.team import CustomersScope
from tests.support.client import MONDAY, CoachClient, Reply

Json = dict[str, Any]

QUESTIONS: list[Json] = [
    {"label": "How was it?", "type": "text"},
    {"label": "Hours of sleep?", "type": "number"},
    {"label": "Energy?", "type": "rating"},
    {"label": "Mood?", "type": "choice", "options": ["Good", "Bad"]},
    {"label": "Where does it hurt?", "type": "multi", "options": ["Knee", "Back"]},
]


def task(title: str = "Walk") -> Json:
    """A task to add."""
    return {"type": "TASK", "taskFields": {"title": title}}


def exercise_of(exercise: Json, *sets: Json, **fields: Any) -> Json:
    """An exercise item to add; three times eight to ten with 60 by default."""
    planned = [{"type": "reps_load", "minPlannedReps": 8, "maxPlannedReps": 10, "load": 60}] * 3
    return {"type": "EXERCISE", "exerciseId": exercise["_id"], "exerciseSets": list(sets) or planned, **fields}


def circuit_of(*exercises: Json, rounds: int = 2) -> Json:
    """A circuit of ten repetitions each to add."""
    entries = [{"exerciseId": each["_id"], "sets": [{"type": "reps", "minPlannedReps": 10}]} for each in exercises]
    return {"type": "CIRCUIT", "circuitName": "Finisher", "rounds": rounds, "circuitExercises": entries}


def form_of(*questions: Json) -> Json:
    """A form made for one item, to add."""
    return {"type": "FORM", "form": {"name": "Check-in", "questions": list(questions) or QUESTIONS}}


def metrics_of(metric_set: Json) -> Json:
    """A metric set to record, to add."""
    return {"type": "METRICS", "metricsFields": {"metricsSetId": metric_set["_id"]}}


def reminder() -> Json:
    """A reminder to add."""
    return {"type": "REMINDER", "reminderFields": {"scheduledTime": "08:30", "message": "Drink water"}}


async def one_of_each(coach: CoachClient) -> list[Json]:
    """An item of every type, to add."""
    squat, press = await coach.create_exercise("Squat"), await coach.create_exercise("Press")
    body = await metric_set(coach)
    return [exercise_of(squat), circuit_of(squat, press), task(), form_of(), metrics_of(body), reminder()]


def path_of(block: Json) -> str:
    """The path of a block."""
    owner = f"customers/{block['customerId']}" if block["customerId"] else f"programs/{block['programId']}"
    return f"/coach/{owner}/wblocks/{block['_id']}"


def client_path(customer: Json, *rest: str) -> str:
    """The path of a resource of a client."""
    return "/".join(["/coach/customers", customer["_id"], *rest])


async def add(coach: CoachClient, block: Json, item: Json) -> Json:
    """Add an item to a block."""
    added: Json = (await coach.post(f"{path_of(block)}/witems", item)).ok(201)
    return added


async def block_with(coach: CoachClient, customer: Json, *items: Json, date: str = MONDAY, name: str = "Legs") -> Json:
    """Create a block with items on a client's calendar."""
    body = {"name": name, "date": date, "items": list(items)}
    created: Json = (await coach.post(client_path(customer, "wblocks"), body)).ok(201)
    return created


async def blocks_with(coach: CoachClient, customer: Json, *items: Json, dates: Iterable[str]) -> list[Json]:
    """Create blocks with these items on a client's calendar, in one request."""
    blocks = [{"name": "Legs", "date": date, "items": list(items)} for date in dates]
    created = (await coach.post(client_path(customer, "wblocks/batch"), {"blocks": blocks})).ok(201)
    return list(created["created"])


async def read(coach: CoachClient, block: Json) -> Json:
    """Read a block."""
    result: Json = (await coach.get(path_of(block))).ok()
    return result


async def log(coach: CoachClient, block: Json, item: Json, **done: Any) -> Reply:
    """Log an item."""
    return await coach.put(f"{path_of(block)}/witems/{item['_id']}/log", done)


async def own_log(client: CoachClient, block: Json, item: Json, **done: Any) -> Reply:
    """Log an item as the client."""
    return await client.put(f"/customer/wblocks/{block['_id']}/witems/{item['_id']}/log", done)


async def move(coach: CoachClient, item: Json, source: Json, target: Json, index: int, **more: Any) -> Reply:
    """Move an item."""
    body = {
        "source": {"wblockId": source["_id"], "witemId": item["_id"]},
        "target": {"wblockId": target["_id"], "index": index},
    }
    return await coach.put(path_of(source).rpartition("/wblocks/")[0] + "/witems/move", body | more)


async def metric_set(coach: CoachClient, *names: str, short: str = "kg", **fields: Any) -> Json:
    """Create a metric set."""
    unit = next(u["_id"] for u in (await coach.get("/metrics-units")).ok() if u["shortName"] == short)
    metrics = [{"name": name, "metricUnitId": unit} for name in names or ("Body weight",)]
    created: Json = (await coach.post("/coach/metrics-sets", {"name": "Body", "metrics": metrics, **fields})).ok(201)
    return created


async def assigned_sets(coach: CoachClient, customer: Json) -> list[Json]:
    """List the metric sets assigned to a client."""
    result: list[Json] = (await coach.get(client_path(customer, "metrics-sets"))).ok()
    return result


async def history(coach: CoachClient, customer: Json, body: Json, metric: Json | None = None) -> list[Json]:
    """Read the history of a metric (by default the first of the set), by date."""
    metric_id = (metric or body["metrics"][0])["_id"]
    path = client_path(customer, "metrics-sets", body["_id"], "metrics", metric_id, "history")
    result: list[Json] = (await coach.get(path)).ok()
    return result


async def responses(coach: CoachClient, customer: Json, **query: str) -> list[Json]:
    """List the form responses of a client, newest first."""
    result: list[Json] = (await coach.get(client_path(customer, "form-responses"), **query)).ok()
    return result


async def hide(coach: CoachClient, customer: Json, start: str, end: str | None = None) -> list[Json]:
    """Hide days of a calendar from the client."""
    return await _set_visible(coach, customer, start, end or start, visible=False)


async def show(coach: CoachClient, customer: Json, start: str, end: str | None = None) -> list[Json]:
    """Show days of a calendar to the client."""
    return await _set_visible(coach, customer, start, end or start, visible=True)


async def _set_visible(coach: CoachClient, customer: Json, start: str, end: str, *, visible: bool) -> list[Json]:
    body = {"startDate": start, "endDate": end, "isVisible": visible}
    answered: list[Json] = (await coach.put(client_path(customer, "visibility"), body)).ok()
    return answered


async def feed(coach: CoachClient, customer: Json) -> list[Json]:
    """Read a client's activity feed, newest first."""
    result: list[Json] = (await coach.get(client_path(customer, "activity-feed"), page=1, limit=100)).ok()["docs"]
    return result


async def feed_types(coach: CoachClient, customer: Json) -> list[str]:
    """Return the types of the events in a client's feed, sorted."""
    return sorted(event["type"] for event in await feed(coach, customer))


async def employee_key(coach: CoachClient, *permissions: str, scope: CustomersScope = "assigned") -> str:
    """The API key of a new employee, who by default sees only clients assigned to them."""
    email = f"eli-{ObjectId()}@example.com"
    hired = await team.create(coach.ctx, "Eli", email, list(permissions), scope, "no hash")
    principal = await team.get_principal(coach.ctx.services, hired["_id"])
    assert principal is not None
    return str((await api_keys.create(coach.ctx.acting_as(principal), "Eli's", {"outreach": True}))["key"])


def titles(block: Json) -> list[str]:
    """The titles of the tasks in a block, in order."""
    return [item["taskFields"]["title"] for item in block["items"]]
