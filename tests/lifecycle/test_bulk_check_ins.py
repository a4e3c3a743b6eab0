"""Check-ins and reminders of overdue forms for many clients."""

from __future__ import annotations

from datetime import UTC, datetime, time, timedelta

import time_machine

from coaching_service.core.ids import ObjectId
from coaching_service.settings import Settings
from tests.support.check_ins import HABIT, day, form, list_check_ins
from tests.support.client import UNKNOWN, CoachClient
from tests.support.jobs import finished
from tests.support.mails import first_page, mails_once_sent, read_mail
from tests.support.notifications import count_pending, send_due
from tests.support.training import Json, block_with, client_path, employee_key, log, task

CREATE, REMIND = "/coach/customers/bulk/check-in-create", "/coach/customers/bulk/form-remind"
ASYNC = {"Prefer": "respond-async"}


def weekly(form_id: str) -> Json:
    """A form every Sunday."""
    return {"formId": form_id, "weekday": 7, "startDate": "2026-03-02"}


async def test_a_check_in_is_added_to_each_client(coach: CoachClient, other_company: CoachClient) -> None:
    ana, bo, cy = [await coach.create_customer(name) for name in ("Ana", "Bo", "Cy")]
    theirs, asked = await other_company.create_customer("Theirs"), await form(coach)
    body = {"ids": [ana["_id"], bo["_id"], cy["_id"], theirs["_id"], bo["_id"]]}
    daily = {**body, "formId": asked["_id"], "everyDays": 1, "startDate": day(coach, 0), "until": day(coach, 2)}

    dry = (await coach.post(CREATE, {**daily, "dryRun": True})).ok()
    assert await list_check_ins(coach, ana) == await coach.calendar(ana) == []
    reply = await coach.post(CREATE, daily)
    assert reply.ok() == dry
    assert (dry["requested"], dry["ok"]) == (4, 3)
    assert [(each["customerId"], each["code"]) for each in dry["failed"]] == [(theirs["_id"], "NOT_FOUND")]
    single = (await coach.post(client_path(ana, "check-ins"), {"formId": asked["_id"], **_RHYTHM})).ok(201)
    [made, _] = await list_check_ins(coach, ana)
    assert {**made, "customerId": 0}.keys() == single.keys()
    assert (made["name"], made["everyDays"], made["until"]) == ("Weekly", 1, day(coach, 2))
    assert len(await list_check_ins(coach, bo)) == 1
    (await coach.post(f"/coach/changes/{reply.headers['X-Change-Id']}/undo")).ok()
    assert await list_check_ins(coach, bo) == await coach.calendar(bo) == []

    by_filter = {"filter": {"archived": False}, "excludeIds": [ana["_id"], cy["_id"]], **HABIT, **_RHYTHM}
    job = await finished(coach, await coach.send("POST", CREATE, json=by_filter, headers=ASYNC))
    assert (job["result"]["requested"], job["result"]["ok"], job["result"]["failed"]) == (1, 1, [])
    assert [each["taskFields"]["title"] for each in await list_check_ins(coach, bo)] == ["Walk 10 000 steps"]


_RHYTHM: Json = {"everyDays": 3, "startDate": "2026-03-02"}


async def test_wrong_check_ins_are_refused_before_anybody_gets_one(
    coach: CoachClient, other_company: CoachClient
) -> None:
    ana, asked, theirs = await coach.create_customer("Ana"), await form(coach), await form(other_company)
    ids = {"ids": [ana["_id"]]}
    for unknown in (UNKNOWN, theirs["_id"]):
        for extra in ({}, {"dryRun": True}):
            (await coach.post(CREATE, {**ids, **weekly(unknown), **extra})).refused(404)
            (await coach.post(REMIND, {**ids, "formId": unknown, **extra})).refused(404)
    for wrong in (
        {**ids, **weekly(asked["_id"]), **HABIT},
        {**ids, **weekly(asked["_id"]), "everyDays": 2},
        {**ids, "formId": asked["_id"], "startDate": "2026-03-02"},
        {**ids, **weekly(asked["_id"]), "until": "2026-03-01"},
        {**ids, **weekly(asked["_id"]), "unknown": 1},
        weekly(asked["_id"]),
        {**ids, "filter": {"archived": False}, **weekly(asked["_id"])},
    ):
        (await coach.post(CREATE, wrong)).refused(400)
    for wrong in ({}, {**ids, "filter": {"archived": False}}, {**ids, "text": "Hurry"}):
        (await coach.post(REMIND, wrong)).refused(400)
    assert await list_check_ins(coach, ana) == []
    for permissions, path, missing in (
        (("customers.view",), CREATE, "customers.edit"),
        (("customers.view", "forms.view"), REMIND, "customers.edit"),
        (("customers.view", "customers.edit"), REMIND, "forms.view"),
    ):
        refused = coach.with_key(await employee_key(coach, *permissions, scope="all"))
        body = {**ids, **(weekly(asked["_id"]) if path == CREATE else {})}
        (await refused.post(path, body)).refused(403, missing)
    eli = coach.with_key(await employee_key(coach, "customers.view", "customers.edit", "forms.view"))
    for path, body in ((CREATE, {**ids, **weekly(asked["_id"])}), (REMIND, ids)):
        assert [each["code"] for each in (await eli.post(path, body)).ok()["failed"]] == ["FORBIDDEN"]


async def overdue_form(coach: CoachClient, customer: Json, form_id: str, days: int = -3) -> Json:
    """A block with a form, of so many days after today."""
    item = {"type": "FORM", "form": {"formId": form_id}}
    return await block_with(coach, customer, task(), item, date=day(coach, days))


async def test_clients_with_an_overdue_form_are_reminded_once_a_day(coach: CoachClient, settings: Settings) -> None:
    names = ("Ana", "Bo", "Cy", "Di", "Ed", "Flo", "Gus", "Hal")
    people = {
        name: await coach.create_customer(name, email=f"{name}-{ObjectId()}@example.com".lower(), sendInvitation=False)
        for name in names
    }
    ids = {name: each["_id"] for name, each in people.items()}
    first, second = await form(coach, "Weekly"), await form(coach, "Sleep")
    blocks = {name: await overdue_form(coach, people[name], first["_id"]) for name in names if name != "Bo"}
    await overdue_form(coach, people["Bo"], first["_id"], days=0)  # of today: not overdue
    answers = {"isCompleted": True, "answers": []}
    (await log(coach, blocks["Cy"], blocks["Cy"]["items"][1], **answers)).ok()
    (await coach.put("/coach/customers/archive", {"id": ids["Di"]})).ok()
    hidden = {"startDate": day(coach, -3), "endDate": day(coach, -3), "isVisible": False}
    (await coach.put(client_path(people["Ed"], "visibility"), hidden)).ok()
    away = {"kind": "away", "from": day(coach, 0), "until": day(coach, 1)}
    (await coach.post(client_path(people["Flo"], "availability"), away)).ok(201)
    ill = {"kind": "ill", "from": day(coach, -4), "until": day(coach, -2)}
    (await coach.post(client_path(people["Gus"], "availability"), ill)).ok(201)
    (await (await coach.as_client(people["Hal"])).patch("/customer/me", {"notifications": {"checkIns": False}})).ok()

    nothing = [{"customerId": ids[name], "code": "NOTHING_OVERDUE"} for name in ("Bo", "Cy", "Di", "Ed", "Flo", "Gus")]
    body = {"ids": [*ids.values(), UNKNOWN]}
    before = await count_pending(coach.ctx)
    dry = (await coach.post(REMIND, {**body, "dryRun": True})).ok()
    assert await count_pending(coach.ctx) == before
    assert (await coach.post(REMIND, body)).ok() == dry
    assert (dry["requested"], dry["ok"], dry["skipped"]) == (9, 2, nothing)
    assert [each["code"] for each in dry["failed"]] == ["NOT_FOUND"]
    assert (await coach.post(REMIND, {**body, "formId": second["_id"]})).ok()["ok"] == 0

    again = (await coach.post(REMIND, {"ids": [ids["Ana"], ids["Bo"]]})).ok()
    assert (again["ok"], [each["code"] for each in again["skipped"]]) == (0, ["REMINDED_TODAY", "NOTHING_OVERDUE"])
    job = await finished(coach, await coach.send("POST", REMIND, json={"ids": list(ids.values())}, headers=ASYNC))
    assert (job["result"]["ok"], len(job["result"]["skipped"]), job["done"]) == (0, 8, 8)

    await send_due(coach.ctx)
    mails = await mails_once_sent(coach.ctx.services, settings.data_dir / "mail", about=ObjectId(ids["Ana"]))
    addresses = {each["email"] for each in people.values()}
    sent = {each["To"]: read_mail(each, coach.ctx.services.base_url) for each in mails if each["To"] in addresses}
    # In the evening Bo is reminded of the form of today, which is another mail.
    reminded = {to: parts for to, parts in sent.items() if "A check-in is not answered yet." in parts.text}
    assert [*reminded] == [people["Ana"]["email"]], "and not to Hal, who wants none"
    parts = reminded[people["Ana"]["email"]]
    assert first_page(parts).endswith(f"/train/workouts/{blocks['Ana']['_id']}")
    assert "Weekly" not in parts.text


async def test_the_day_is_the_clients(coach: CoachClient) -> None:
    asked = await form(coach)
    east = await coach.create_customer("East", timezone="Pacific/Kiritimati", email=f"{ObjectId()}@example.com")
    west = await coach.create_customer("West", timezone="Pacific/Niue", email=f"{ObjectId()}@example.com")
    for client in (east, west):
        await overdue_form(coach, client, asked["_id"], days=-7)
    body = {"ids": [east["_id"], west["_id"]]}
    noon = datetime.combine(coach.ctx.caller.today("UTC") + timedelta(days=1), time(12), UTC)
    with time_machine.travel(noon):
        assert (await coach.post(REMIND, body)).ok()["ok"] == 2
        assert [each["code"] for each in (await coach.post(REMIND, body)).ok()["skipped"]] == ["REMINDED_TODAY"] * 2
    with time_machine.travel(noon + timedelta(hours=21, minutes=59)):
        assert (await coach.post(REMIND, body)).ok()["ok"] == 0
    with time_machine.travel(noon + timedelta(hours=22, minutes=1)):  # after midnight in Kiritimati, before it in Niue
        assert (await coach.post(REMIND, body)).ok()["skipped"] == [
            {"customerId": west["_id"], "code": "REMINDED_TODAY"}
        ]
