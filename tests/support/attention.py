"""Clients who need attention: reading the list, and renewing it."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from typing import Any

from coaching_service import features
from coaching_service.core.dates import midnight
from coaching_service.core.ids import ObjectId
from coaching_service.core.jobs.worker import run_due
from coaching_service.people.customers.models import WEIGHTS
from coaching_service.progress.attention.renewal import MARK_ALL_DUE
from tests.support.client import CoachClient
from tests.support.figures import renew_figures
from tests.support.service_process import until
from tests.support.training import Json

ATTENTION = "/coach/attention"
QUESTION: Json = {"label": "Hours of sleep?", "type": "number"}
FORM: Json = {"type": "FORM", "form": {"name": "Check-in", "questions": [QUESTION]}}


async def renew(coach: CoachClient) -> None:
    """Run the jobs that are due: figures are renewed within ten seconds. The application runs them as well."""

    async def all_are_marked() -> bool:
        await run_due(coach.ctx.services, {MARK_ALL_DUE: features.STEPS[MARK_ALL_DUE]})
        where = {"companyId": coach.ctx.company_id, "kind": MARK_ALL_DUE}
        return await coach.ctx.db["jobs"].find_one(where) is None

    await until(all_are_marked, "all clients are marked as due")
    await renew_figures(coach.ctx)


async def docs(coach: CoachClient, **query: Any) -> list[Json]:
    """The first part of the attention list, once it is renewed."""
    await renew(coach)
    result: list[Json] = (await coach.get(ATTENTION, **query)).ok()["docs"]
    return result


async def names(coach: CoachClient, **query: Any) -> list[str]:
    """The names of the first part of the attention list."""
    return [each["customer"]["name"] for each in await docs(coach, **query)]


async def entry_of(coach: CoachClient, customer: Json) -> Json:
    """The entry of a client; without a reason, one with the score 0."""
    listed = await docs(coach)
    of_client = [each for each in listed if each["customer"]["_id"] == customer["_id"]]
    return of_client[0] if of_client else {"score": 0, "reasons": []}


async def reason_of(coach: CoachClient, customer: Json, reason: str) -> Json | None:
    """A reason of a client, if the client has it; checks that the score is the sum of the weights."""
    entry = await entry_of(coach, customer)
    weights = [
        WEIGHTS[each["type"]] * (min(each["count"], 3) if each["type"] == "missed_workout" else 1)
        for each in entry["reasons"]
    ]
    assert entry["score"] == sum(weights)
    of_type = [each for each in entry["reasons"] if each["type"] == reason]
    return of_type[0] if of_type else None


async def count_of(coach: CoachClient, customer: Json, reason: str) -> int:
    """The count of a reason of a client; 0 if the client does not have it."""
    listed = await reason_of(coach, customer, reason)
    return listed["count"] if listed else 0


async def dismiss(coach: CoachClient, customer: Json, reason: str, until: str | None = None) -> Json:
    """Dismiss a reason."""
    result: Json = (await coach.put(f"{ATTENTION}/{customer['_id']}", {"reason": reason, "until": until})).ok()
    return result


async def set_stored(coach: CoachClient, customer: Json, **fields: Any) -> None:
    """Set stored fields of a client, as if time had passed, and have the figures renewed."""
    change = {"$set": {"figuresUntil": datetime(2000, 1, 1), **fields}}  # noqa: DTZ001 - stored times are UTC without a time zone
    await coach.ctx.db["customers"].update_one({"_id": ObjectId(customer["_id"])}, change)


def days_ago(coach: CoachClient, days: int, timezone: str | None = None) -> str:
    """The local date so many days before today; negative days are in the future."""
    return str(coach.ctx.caller.today(timezone) - timedelta(days=days))


def start_of(day: str, timezone: str = "UTC") -> str:
    """The time at which a day begins, as it is sent."""
    return midnight(date.fromisoformat(day), timezone).isoformat(timespec="milliseconds") + "Z"
