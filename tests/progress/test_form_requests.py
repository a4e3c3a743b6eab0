"""Which check-ins are pending, for all clients."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from tests.support.client import MONDAY, SUNDAY, TUESDAY, UNKNOWN, CoachClient
from tests.support.training import Json, block_with, employee_key, log, path_of, task

PENDING = "/coach/form-requests"
QUESTION: Json = {"label": "Hours of sleep?", "type": "number"}
FORM: Json = {"type": "FORM", "form": {"name": "Check-in", "questions": [QUESTION]}}


async def docs(coach: CoachClient, **query: Any) -> list[Json]:
    """The first part of the pending forms."""
    result: list[Json] = (await coach.get(PENDING, **query)).ok()["docs"]
    return result


async def test_pending_forms_of_all_clients_are_listed_oldest_first(coach: CoachClient) -> None:
    ana, bo = await coach.create_customer("Ana", surname="Ruiz"), await coach.create_customer("Bo")
    form = (await coach.post("/coach/forms", {"name": "Weekly", "questions": [QUESTION]})).ok(201)
    later = await block_with(coach, ana, task(), {"type": "FORM", "form": {"formId": form["_id"]}}, date=TUESDAY)
    first = await block_with(coach, bo, FORM)

    page = (await coach.get(PENDING)).ok()

    assert page == {
        "docs": [
            {
                "customer": {"_id": bo["_id"], "name": "Bo"},
                "formId": None,
                "formName": "Check-in",
                "date": MONDAY,
                "wblockId": first["_id"],
                "witemId": first["items"][0]["_id"],
                "isOverdue": True,
            },
            {
                "customer": {"_id": ana["_id"], "name": "Ana Ruiz"},
                "formId": form["_id"],
                "formName": "Weekly",
                "date": TUESDAY,
                "wblockId": later["_id"],
                "witemId": later["items"][1]["_id"],
                "isOverdue": True,
            },
        ],
        "nextCursor": None,
        "hasMore": False,
    }


async def test_answered_form_is_no_longer_pending(coach: CoachClient) -> None:
    ana = await coach.create_customer()
    block = await block_with(coach, ana, FORM)
    [item] = block["items"]
    (await log(coach, block, item, isCompleted=True, answers=[])).ok()
    assert await docs(coach) == []
    (await log(coach, block, item, isCompleted=False, answers=[])).ok()
    assert [each["witemId"] for each in await docs(coach)] == [item["_id"]]
    copied = (await coach.post(f"{path_of(block)}/copy", {"date": SUNDAY})).ok(201)
    assert [each["wblockId"] for each in await docs(coach)] == [block["_id"], copied["_id"]]
    (await coach.delete(f"{path_of(block)}/witems/{item['_id']}")).ok(204)
    assert [each["wblockId"] for each in await docs(coach)] == [copied["_id"]]


async def test_overdue_is_before_the_clients_today(coach: CoachClient) -> None:
    zone = "Pacific/Kiritimati"
    ana, bo = await coach.create_customer("Ana", timezone=zone), await coach.create_customer("Bo")
    today = coach.ctx.caller.today(zone)
    dates = [str(today + timedelta(days=days)) for days in (-1, 0, 1)]
    for date in dates:
        await block_with(coach, ana, FORM, date=date)
    await block_with(coach, bo, FORM)
    assert [each["date"] for each in await docs(coach, overdue="true")] == [MONDAY, dates[0]]
    assert [each["date"] for each in await docs(coach, overdue="false")] == dates[1:]
    assert [each["date"] for each in await docs(coach, customerId=ana["_id"])] == dates
    assert await docs(coach, customerId=UNKNOWN) == []
    for query in ({"overdue": ""}, {"customerId": "x"}, {"limit": 0}, {"after": "x"}):
        (await coach.get(PENDING, **query)).refused(400)


async def test_walking_the_parts_meets_every_form_once(coach: CoachClient) -> None:
    ana, bo = await coach.create_customer("Ana"), await coach.create_customer("Bo")
    for customer in (ana, bo):
        await block_with(coach, customer, FORM, task(), FORM)
        await block_with(coach, customer, FORM, date=TUESDAY)
    expected = [each["witemId"] for each in await docs(coach)]
    assert len(set(expected)) == 6
    met: list[str] = []
    after: Json = {}
    for _ in expected:
        part = (await coach.get(PENDING, limit=1, **after)).ok()
        met += [each["witemId"] for each in part["docs"]]
        after = {"after": part["nextCursor"]}
    assert met == expected


async def test_archived_erased_and_unassigned_clients_and_programs_are_left_out(
    coach: CoachClient, other_company: CoachClient
) -> None:
    eli = coach.with_key(await employee_key(coach, "customers.create", "forms.view"))
    ana, bo, cy = [await client.create_customer(name) for client, name in ((coach, "A"), (eli, "Bo"), (coach, "Cy"))]
    for customer in (ana, bo, cy):
        await block_with(coach, customer, FORM)
    program = (await coach.post("/coach/programs", {"name": "Base"})).ok(201)
    day = (await coach.post(f"/coach/programs/{program['_id']}/wblocks", {"name": "Day", "day": 1})).ok(201)
    (await coach.post(f"/coach/programs/{program['_id']}/wblocks/{day['_id']}/witems", FORM)).ok(201)

    assert [each["customer"]["name"] for each in await docs(eli)] == ["Bo"]
    assert await docs(eli, customerId=ana["_id"]) == await docs(other_company) == []
    (await coach.put("/coach/customers/archive", {"id": ana["_id"]})).ok()
    (await coach.delete(f"/coach/customers/{cy['_id']}")).ok(204)
    assert [each["customer"]["name"] for each in await docs(coach, limit=1)] == ["Bo"]
    powerless = coach.with_key(await employee_key(coach, "customers.view", scope="all"))
    (await powerless.get(PENDING)).refused(403, "forms.view")
