"""Recurring check-ins of clients, and the job that schedules them."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from coaching_service.core.ids import ObjectId
from coaching_service.core.jobs.queue import Job, RunAgain
from coaching_service.progress.check_ins import schedule_batch
from tests.support.client import CoachClient
from tests.support.schedules import EVER
from tests.support.training import (
    Json,
    client_path,
)

LONG_AGO = datetime(2000, 1, 1)  # noqa: DTZ001 - stored times are UTC without a time zone
HABIT: Json = {"taskFields": {"title": "Walk 10 000 steps"}}


def day(coach: CoachClient, days: int, zone: str | None = None) -> str:
    """The date so many days after today."""
    return str(coach.ctx.caller.today(zone) + timedelta(days=days))


async def form(coach: CoachClient, name: str = "Weekly") -> Json:
    """A form of the library with one question."""
    body = {"name": name, "questions": [{"label": "How was it?"}]}
    created: Json = (await coach.post("/coach/forms", body)).ok(201)
    return created


async def check_in(coach: CoachClient, customer: Json, **fields: Any) -> Json:
    """Add a check-in; by default a daily habit from today on."""
    body = {"everyDays": 1, "startDate": day(coach, 0), **(fields if _has_content(fields) else HABIT | fields)}
    created: Json = (await coach.post(client_path(customer, "check-ins"), body)).ok(201)
    return created


def _has_content(fields: Json) -> bool:
    return not fields.keys().isdisjoint({"formId", "metricsSetId", "taskFields"})


async def list_check_ins(coach: CoachClient, customer: Json) -> list[Json]:
    """The check-ins of a client."""
    check_ins: list[Json] = (await coach.get(client_path(customer, "check-ins"))).ok()
    return check_ins


async def dates(coach: CoachClient, customer: Json) -> list[str]:
    """The dates of every block of a client."""
    return [block["date"] for block in await coach.calendar(customer, *EVER)]


async def run_job(coach: CoachClient) -> None:
    """Schedule everything that is due."""
    while await schedule_batch(coach.ctx.services, Job(ObjectId(), {}, 1)) == RunAgain():
        pass


async def as_if_added_a_week_ago(coach: CoachClient, customer: Json) -> None:
    """Take back what the daily job has scheduled in the last seven days."""
    until, where = day(coach, 20), {"customerId": ObjectId(customer["_id"])}
    fields = {"scheduledUntil": until, "dueAt": LONG_AGO}
    await coach.ctx.db["checkIns"].update_many(where, {"$set": fields})
    await coach.ctx.db["workoutBlocks"].delete_many(where | {"date": {"$gt": until}})
