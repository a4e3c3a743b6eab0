"""The digest of a coach (contract 11): who needs attention, once a weekday at the hour that the coach has chosen."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import time_machine

from coaching_service.core.database.documents import now
from coaching_service.core.ids import ObjectId
from coaching_service.people.notifications import Message, Notification
from coaching_service.progress.attention import renewal
from tests.support.attention import FORM, days_ago, renew
from tests.support.client import CoachClient
from tests.support.notifications import send_due
from tests.support.training import Json, block_with, client_path, task

DIGEST = "digest"


async def digests_of(coach: CoachClient, **where: Any) -> list[Notification]:
    """The digests of the company, in the order of their time."""
    query = {"companyId": coach.ctx.company_id, "kind": DIGEST, **where}
    stored: list[Any] = await coach.ctx.db["notifications"].find(query).sort("dueAt").to_list(None)
    return stored


async def planned(coach: CoachClient, coach_id: ObjectId) -> Notification:
    """The next digest of a coach."""
    return (await digests_of(coach, **{"recipient._id": coach_id, "sendAt": {"$ne": None}}))[0]


async def client_who_hurts(coach: CoachClient, name: str, **fields: Any) -> Json:
    """A client with a health note."""
    client = await coach.create_customer(name, **fields)
    (await coach.post(client_path(client, "notes"), {"content": "Knee", "isHealth": True})).ok(201)
    return client


async def test_digest_is_due_on_the_next_weekday(coach: CoachClient) -> None:
    await client_who_hurts(coach, "Ana")
    await renew(coach)
    me = coach.ctx.caller.id
    due = (await planned(coach, me))["dueAt"].replace(tzinfo=UTC)
    assert (due.hour, due.minute, due.weekday() < 5) == (7, 0, True), "the company is in UTC"
    assert timedelta(0) < due - datetime.now(UTC) <= timedelta(days=3)
    session = await coach.interactive()
    (await session.patch("/me", {"notifications": {"digestHour": (due.hour + 2) % 24}})).ok()
    assert (await planned(coach, me))["dueAt"].hour == 9, "the change counts at once"
    number = len(await digests_of(coach))  # also of tomorrow, if the new hour is still to come today
    await renew(coach)
    assert len(await digests_of(coach)) == number, "it is planned once"


async def test_digest_leaves_out_weekends_whatever_day_it_is(coach: CoachClient) -> None:
    """At 7 in UTC; 2026-11-23 is a Monday."""
    november = {
        6: [23, 24, 25, 26, 27, 30, 30],
        8: [24, 25, 26, 27, 30, 30, 30],
    }
    for hour, expected in november.items():
        for number, day in enumerate(expected):
            with time_machine.travel(datetime(2026, 11, 23 + number, hour, tzinfo=UTC), tick=False):
                await renewal.plan(coach.ctx)
                [*_, newest] = await digests_of(coach, **{"recipient._id": coach.ctx.caller.id})
            assert newest["dueAt"] == datetime(2026, 11, day, 7)  # noqa: DTZ001 - stored times are UTC
            await coach.ctx.db["notifications"].delete_many({"companyId": coach.ctx.company_id})


async def test_digest_is_sent_once_and_only_if_somebody_needs_attention(coach: CoachClient) -> None:
    ana = await client_who_hurts(coach, "Ana", surname="Ruiz")
    await renew(coach)
    first = await planned(coach, coach.ctx.caller.id)
    wait = first["dueAt"] - now() + timedelta(seconds=30)
    for _ in range(2):
        await send_due(coach.ctx, after=wait)
    [sent] = await digests_of(coach, outcome="sent")
    assert sent["key"] == first["key"]

    message = await renewal.write_digest(coach.ctx, sent)
    assert message is not None
    assert (message.subject, message.path) == ("1 client needs your attention", "/app/attention")
    assert message.paragraphs == ["1 client needs your attention today.", "Ana Ruiz: 1 health note, nothing scheduled."]
    assert "Ana" not in f"{message.title} {message.text}" and message.details == "Ana Ruiz"
    (await coach.put("/coach/customers/archive", {"id": ana["_id"]})).ok()
    await renew(coach)
    assert await renewal.write_digest(coach.ctx, sent) is None
    bo = await coach.create_customer("Bo")
    (await coach.post(client_path(bo, "availability"), {"kind": "away", "from": "2026-01-01"})).ok(201)
    await renew(coach)
    assert await renewal.write_digest(coach.ctx, sent) is None, "an absence needs no attention"
    await client_who_hurts(coach, "Cleo")
    await renew(coach)
    message = await renewal.write_digest(coach.ctx, sent)
    assert message is not None
    assert message.paragraphs[0] == "2 clients need your attention today."


async def test_digest_has_the_clients_that_the_coach_sees(coach: CoachClient) -> None:
    session = await coach.interactive()
    fields = {"name": "Eli", "customersScope": "assigned", "permissions": ["customers.view"]}
    email = f"eli-{ObjectId()}@example.com"
    eli = ObjectId((await session.post("/coach/employees", {**fields, "email": email})).ok(201)["_id"])
    await client_who_hurts(coach, "Ana")
    await renew(coach)
    due = await planned(coach, eli)
    assert await renewal.write_digest(coach.ctx, due) is None
    for number in range(12):
        await client_who_hurts(coach, f"Bo {number:02}", assignedTo=str(eli))
    await renew(coach)
    message = await renewal.write_digest(coach.ctx, due)
    assert isinstance(message, Message)
    first, *lines, rest = message.paragraphs
    assert first == "12 clients need your attention today."
    assert len(lines) == 10 and all(line.startswith("Bo ") for line in lines)
    assert rest == "And 2 more."
    (await session.patch("/me", {"notifications": {"digest": False}})).ok()
    await send_due(coach.ctx, after=due["dueAt"] - now() + timedelta(seconds=30))
    outcomes = {each["recipient"]["_id"]: each["outcome"] for each in await digests_of(coach, outcome={"$ne": None})}
    assert outcomes == {coach.ctx.caller.id: "dropped", eli: "sent"}


async def test_digest_neither_names_nor_counts_reasons_of_an_area_that_the_coach_may_not_see(
    coach: CoachClient,
) -> None:
    session = await coach.interactive()
    readers = []
    for name, more in (("Eli", []), ("Fay", ["forms.view"])):
        fields = {"name": name, "customersScope": "all", "permissions": ["customers.view", *more]}
        email = f"{name}-{ObjectId()}@example.com"
        readers.append(ObjectId((await session.post("/coach/employees", {**fields, "email": email})).ok(201)["_id"]))
    for name in ("Ana", "Bo"):
        client = await coach.create_customer(name)
        await block_with(coach, client, task(), date=days_ago(coach, 0))
        await block_with(coach, client, FORM, date=days_ago(coach, 2))
    await renew(coach)
    assert await renewal.write_digest(coach.ctx, await planned(coach, readers[0])) is None, "nobody needs this coach"
    seen = await renewal.write_digest(coach.ctx, await planned(coach, readers[1]))
    assert seen is not None and seen.paragraphs[0] == "2 clients need your attention today."
    assert sorted(seen.paragraphs[1:]) == ["Ana: 1 overdue check-in.", "Bo: 1 overdue check-in."]

    await client_who_hurts(coach, "Cleo")
    await renew(coach)
    message = await renewal.write_digest(coach.ctx, await planned(coach, readers[0]))
    assert message is not None
    assert message.paragraphs == ["1 client needs your attention today.", "Cleo: 1 health note, nothing scheduled."]
    assert (message.text, message.details) == ("1 client needs your attention", "Cleo")
