"""Events of attention (contract 11): each reason is raised once and cleared once."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from coaching_service.core.database.context import Services
from coaching_service.core.database.documents import now
from coaching_service.core.ids import ObjectId
from coaching_service.people.customers import derived_figures
from coaching_service.progress.attention import service as attention
from tests.support.attention import FORM, days_ago, dismiss, renew
from tests.support.client import CoachClient
from tests.support.figures import renew_figures
from tests.support.service_process import until
from tests.support.training import Json, block_with, client_path, employee_key, task

EARLIEST, LATEST = "Etc/GMT+12", "Pacific/Kiritimati"  # 26 hours apart: never the same date
RAISED, CLEARED = "attention.raised", "attention.cleared"


async def events_of(coach: CoachClient, customer: Json, reader: CoachClient | None = None) -> list[Json]:
    """The events of attention about a client until now, but for what depends on when the application renews."""
    changed = await coach.post("/exercises", {"name": "Marker"})
    await coach.wait_until_numbered(changed.headers["X-Change-Id"])
    page = (
        await (reader or coach).get("/coach/events", limit=500, customerId=customer["_id"], types=[RAISED, CLEARED])
    ).ok()
    return [each for each in page["docs"] if each["data"]["reason"] != "nothing_scheduled"]


async def reasons_of(coach: CoachClient, customer: Json, reader: CoachClient | None = None) -> list[tuple[str, str]]:
    """The type and the reason of these events."""
    docs = await events_of(coach, customer, reader)
    return [(each["type"].partition(".")[2], each["data"]["reason"]) for each in docs]


async def scheduled_client(coach: CoachClient, **fields: Any) -> Json:
    """A client with a workout tomorrow, who needs no attention once the figures are renewed."""
    ana = await coach.create_customer("Ana", **fields)
    await block_with(coach, ana, task(), date=days_ago(coach, -1))
    return ana


async def test_reason_is_raised_and_cleared_once(coach: CoachClient) -> None:
    ana = await scheduled_client(coach)
    client = await coach.as_client(ana)
    message = (await client.post("/customer/messages", {"text": "Hello"})).ok(201)
    for _ in range(2):
        await renew(coach)
    (await coach.post(client_path(ana, "notes"), {"content": "Knee", "isHealth": True})).ok(201)
    await renew(coach)
    (await coach.put(client_path(ana, "messages", "read"))).ok()
    for _ in range(2):
        await renew(coach)
    first, *others = await events_of(coach, ana)
    about = {"customerId": ana["_id"], "reason": "unread_message", "since": message["createdAt"], "count": 1}
    assert (first["type"], first["customerId"], first["data"]) == (RAISED, ana["_id"], about)
    assert first["actor"] == {"type": "system", "_id": None, "keyId": None, "applicationId": None}
    assert [(each["type"], each["data"]["reason"]) for each in others] == [
        (RAISED, "health_note"),
        (CLEARED, "unread_message"),
    ]
    assert others[-1]["data"] == about
    change = (await coach.get(f"/coach/changes/{first['changeId']}")).ok()
    assert (change["summary"], change["documents"]) == ("attention raised (unread_message)", [])
    listed = (await coach.get("/coach/changes", customerId=ana["_id"], limit=100)).ok()["docs"]
    assert [each for each in listed if each["via"] == "system"] == [], "the history is without renewals"


async def test_reasons_of_time_are_raised_by_the_daily_renewal(coach: CoachClient) -> None:
    """A workout that is missed, and a client who becomes inactive, when the next day of the client has begun."""
    ana = await coach.create_customer("Ana", timezone=EARLIEST)
    today = str(coach.ctx.caller.today(EARLIEST))
    await block_with(coach, ana, task(), date=today)
    await block_with(coach, ana, task(), date=str(coach.ctx.caller.today(LATEST)))
    await renew(coach)
    assert await reasons_of(coach, ana) == []
    seven_days_ago = {"createdAt": now() - timedelta(days=8)}
    tomorrow = {"timezone": LATEST, "figuresUntil": now() - timedelta(seconds=1), **seven_days_ago}
    await coach.ctx.db["customers"].update_one({"_id": ObjectId(ana["_id"])}, {"$set": tomorrow})
    for _ in range(2):
        await renew_figures(coach.ctx)
    raised = [each for each in await reasons_of(coach, ana) if each[1] != "low_compliance"]
    assert raised == [("raised", "missed_workout"), ("raised", "inactive")]


async def test_dismissal_clears_and_its_undo_raises_again(coach: CoachClient) -> None:
    ana = await scheduled_client(coach)
    (await coach.post(client_path(ana, "notes"), {"content": "Knee", "isHealth": True})).ok(201)
    await renew(coach)
    await dismiss(coach, ana, "health_note")
    await renew(coach)
    events = await events_of(coach, ana)
    assert [(each["type"], each["actor"]["type"]) for each in events] == [(RAISED, "system"), (CLEARED, "key")]
    change = (await coach.get(f"/coach/changes/{events[-1]['changeId']}")).ok()
    assert [each["kind"] for each in change["documents"]] == ["attention_dismissal"]
    (await coach.post(f"/coach/changes/{change['_id']}/undo")).ok()
    await renew(coach)
    assert await reasons_of(coach, ana) == [(each, "health_note") for each in ("raised", "cleared", "raised")]


@pytest.mark.parametrize("bulk", [False, True])
async def test_archiving_clears(coach: CoachClient, *, bulk: bool) -> None:
    """So does the undo of a restoration; an archived client has no reasons, also when a page renews them."""
    ana = await coach.create_customer("Ana")
    (await coach.post(client_path(ana, "notes"), {"content": "Knee", "isHealth": True})).ok(201)
    await renew(coach)
    raised, cleared = [("raised", "health_note")], [("cleared", "health_note")]
    assert await reasons_of(coach, ana) == raised
    if bulk:
        archived = await coach.post("/coach/customers/bulk/archive", {"ids": [ana["_id"]]})
    else:
        archived = await coach.put("/coach/customers/archive", {"id": ana["_id"]})
    await attention.renew(coach.ctx, ObjectId(ana["_id"]))
    await renew(coach)
    assert await reasons_of(coach, ana) == raised + cleared
    undone = await coach.undo(archived)
    assert undone.ok()["ok"] == 1
    await renew(coach)
    assert await reasons_of(coach, ana) == raised + cleared + raised
    (await coach.undo(undone)).ok()
    await renew(coach)
    assert await reasons_of(coach, ana) == 2 * (raised + cleared)
    (await coach.put("/coach/customers/unarchive", {"id": ana["_id"]})).ok()
    await renew(coach)
    assert await reasons_of(coach, ana) == 2 * (raised + cleared) + raised


async def test_figures_that_are_outdated_report_nothing(coach: CoachClient) -> None:
    """They are computed from what was there before: the client has been archived, or another process was faster."""
    ana = await scheduled_client(coach)
    await renew(coach)
    services, company = coach.ctx.services, coach.ctx.company_id
    await (await coach.as_client(ana)).post("/customer/messages", {"text": "Hello"})
    due = await derived_figures.list_due(services, company, "changes", None, 10)
    assert due or await reasons_of(coach, ana), "the application was faster"
    system = replace(coach.ctx, operation="renewAttention", interface="system")
    await asyncio.gather(*(attention.renew_due(system, due) for _ in range(5)))
    assert await reasons_of(coach, ana) == [("raised", "unread_message")]
    (await coach.put("/coach/customers/archive", {"id": ana["_id"]})).ok()
    await attention.renew_due(system, due)
    assert await reasons_of(coach, ana) == [("raised", "unread_message"), ("cleared", "unread_message")]


async def test_reasons_of_forms_are_for_those_who_may_see_forms(coach: CoachClient) -> None:
    ana = await coach.create_customer("Ana")
    await block_with(coach, ana, FORM, date=days_ago(coach, 1))
    (await coach.post(client_path(ana, "notes"), {"content": "Knee", "isHealth": True})).ok(201)
    await renew(coach)
    readers = [
        coach.with_key(await employee_key(coach, "customers.view", *more, scope="all"))
        for more in ((), ("forms.view",))
    ]
    without, with_forms = [await reasons_of(coach, ana, reader) for reader in readers]
    assert ("raised", "check_in_overdue") in with_forms
    assert without == [("raised", "health_note")]
    foreign = coach.with_key(await employee_key(coach, "customers.view", "forms.view"))
    assert await reasons_of(coach, ana, foreign) == []


@pytest.mark.usefixtures("renewal")
async def test_application_raises_by_itself(coach: CoachClient, services: Services) -> None:
    """Its jobs follow a change within seconds."""
    ana = await scheduled_client(coach)
    await (await coach.as_client(ana)).post("/customer/messages", {"text": "Hello"})

    async def is_raised() -> bool:
        return ("raised", "unread_message") in await reasons_of(coach, ana)

    await until(is_raised, "the reason is raised", 30)
