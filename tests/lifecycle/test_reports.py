"""Reports on the business."""

from __future__ import annotations

import csv
import io
from datetime import datetime, timedelta
from typing import Any

import pytest

from coaching_service.core.ids import ObjectId
from tests.support.client import UNKNOWN, CoachClient
from tests.support.training import Json, block_with, client_path, employee_key, form_of, log, own_log, task

MARCH: Json = {"from": "2026-03-04", "to": "2026-03-17"}


async def report(coach: CoachClient, name: str, **query: Any) -> list[Json]:
    rows: list[Json] = (await coach.get(f"/coach/reports/{name}", **{"groupBy": "week", **MARCH, **query})).ok()
    return rows


def without_periods(rows: list[Json], *names: str) -> list[tuple[Any, ...]]:
    return [tuple(row[name] for name in names) for row in rows]


async def set_times(coach: CoachClient, collection: str, identifier: str, **times: str) -> None:
    fields = {name: datetime.fromisoformat(time) for name, time in times.items()}
    await coach.ctx.db[collection].update_one({"_id": ObjectId(identifier)}, {"$set": fields})


async def done(coach: CoachClient, customer: Json, date: str, *, completed: bool = True) -> Json:
    block = await block_with(coach, customer, task(), date=date)
    if completed:
        (await log(coach, block, block["items"][0], isCompleted=True)).ok()
    return block


@pytest.mark.parametrize(
    ("first", "last", "group_by", "periods"),
    [
        ("2026-03-04", "2026-03-17", "week", [("04", "08"), ("09", "15"), ("16", "17")]),
        ("2026-03-02", "2026-03-08", "week", [("02", "08")]),
        ("2026-03-08", "2026-03-09", "week", [("08", "08"), ("09", "09")]),
        ("2026-03-04", "2026-03-04", "month", [("04", "04")]),
    ],
)
async def test_periods_end_with_the_range(
    coach: CoachClient, first: str, last: str, group_by: str, periods: list[tuple[str, str]]
) -> None:
    for name in ("clients", "adherence", "responses", "load"):
        rows = await report(coach, name, **{"from": first, "to": last, "groupBy": group_by})
        assert [(row["from"][-2:], row["to"][-2:]) for row in rows] == periods, name
    rows = await report(coach, "clients", **{"from": "2026-12-28", "to": "2027-01-03"})
    assert without_periods(rows, "from", "to") == [("2026-12-28", "2027-01-03")], "a week of two years"
    rows = await report(coach, "clients", **{"from": "2026-01-31", "to": "2027-03-06", "groupBy": "month"})
    assert len(rows) == 15


async def test_ranges_that_are_refused(coach: CoachClient) -> None:
    for wrong in (
        {"to": "2026-03-03"},
        {"to": "2027-04-09"},  # 401 days, from and to included
        {"groupBy": "day"},
        {"from": "2026-02-30"},
        {"from": "4.3.2026"},
        {"format": "xml"},
        {"assignedTo": "me"},
    ):
        for name in ("clients", "adherence", "responses", "load"):
            query = {"groupBy": "week", **MARCH, **wrong}
            (await coach.get(f"/coach/reports/{name}", **query)).refused(400)
    (await coach.get("/coach/reports/clients", **MARCH)).refused(400, "groupBy")
    assert len(await report(coach, "clients", to="2027-04-07")) == 58
    for extreme in ({"from": "1900-01-01", "to": "1901-02-04"}, {"from": "2199-12-01", "to": "2199-12-31"}):
        for name in ("clients", "adherence", "responses", "load"):
            assert await report(coach, name, **extreme)
    (await coach.with_key(await employee_key(coach, "exercises.view")).get("/coach/reports/clients", **MARCH)).refused(
        403
    )


async def test_clients_and_adherence(coach: CoachClient, other_company: CoachClient) -> None:
    ana, berta, carl = [await coach.create_customer(name) for name in ("Ana", "Berta", "Carl")]
    for client, joined in ((ana, "2026-03-04T23:30"), (berta, "2026-03-08T23:30"), (carl, "2025-01-01T00:00")):
        await set_times(coach, "customers", client["_id"], createdAt=joined)
    (await coach.patch(client_path(berta), {"timezone": "Pacific/Auckland"})).ok()  # already the 9th there
    await done(coach, ana, "2026-03-04")
    await done(coach, ana, "2026-03-05")
    await done(coach, ana, "2026-03-06", completed=False)
    await done(coach, berta, "2026-03-06")
    await done(coach, berta, "2026-03-18")  # after the range
    await done(coach, carl, "2026-03-10", completed=False)
    await done(coach, carl, "2026-03-12", completed=False)
    ill = {"kind": "ill", "from": "2026-03-11", "until": "2026-03-13"}
    (await coach.post(client_path(carl, "availability"), ill)).ok(201)
    await done(other_company, await other_company.create_customer("Other"), "2026-03-05")

    rows = await report(coach, "adherence")
    assert without_periods(rows, "workoutDays", "completedDays", "percentage", "sessions") == [
        (4, 3, 75.0, 3),
        (1, 0, 0.0, 0),
        (0, 0, None, 0),
    ]
    rows = await report(coach, "clients")
    assert without_periods(rows, "active", "joined", "archived") == [(2, 1, 0), (0, 1, 0), (0, 0, 0)]
    [row] = await report(coach, "clients", groupBy="month")
    assert (row["active"], row["joined"]) == (2, 2), "each client once"

    archived = await coach.put("/coach/customers/archive", {"id": ana["_id"]})
    today = str(coach.ctx.caller.today())
    now = {"from": today, "to": today}
    assert without_periods(await report(coach, "clients", **now), "archived") == [(1,)]
    assert (await report(coach, "clients"))[0]["active"] == 2, "archived clients had trained"
    (await coach.undo(archived)).ok()
    assert without_periods(await report(coach, "clients", **now), "archived") == [(0,)]
    (await coach.post("/coach/customers/bulk/archive", {"ids": [ana["_id"], carl["_id"]]})).ok()
    assert without_periods(await report(coach, "clients", **now), "archived") == [(2,)]

    (await coach.patch(client_path(berta), {"groups": ["Runners"]})).ok()
    of_group = await report(coach, "clients", groups=["Runners"])
    assert without_periods(of_group, "active", "joined") == [(1, 0), (0, 1), (0, 0)]
    assert without_periods(await report(coach, "clients", assignedTo=[UNKNOWN]), "active") == [(0,), (0,), (0,)]
    assert (await report(coach, "clients", assignedTo=["none"]))[0]["active"] == 2
    employee = coach.with_key(await employee_key(coach, "customers.view"))
    assert without_periods(await report(employee, "adherence"), "workoutDays") == [(0,), (0,), (0,)]


async def test_today_counts_once_it_is_completed(coach: CoachClient) -> None:
    ana = await coach.create_customer("Ana")
    today = coach.ctx.caller.today()
    days = {"from": str(today - timedelta(days=1)), "to": str(today + timedelta(days=1)), "groupBy": "month"}

    async def count() -> tuple[int, int]:
        rows = await report(coach, "adherence", **days)
        return sum(row["workoutDays"] for row in rows), sum(row["completedDays"] for row in rows)

    block = await done(coach, ana, str(today), completed=False)
    await done(coach, ana, str(today + timedelta(days=1)))
    assert await count() == (0, 0)
    (await log(coach, block, block["items"][0], isCompleted=True)).ok()
    assert await count() == (1, 1)


async def test_responses_are_by_coach(coach: CoachClient, other_company: CoachClient) -> None:
    ana, berta = await coach.create_customer("Ana"), await coach.create_customer("Berta")
    owner = str(coach.ctx.caller.id)
    said = [
        (ana, True, "2026-03-03T08:00"),  # before the range: waits since then
        (ana, True, "2026-03-04T08:00"),
        (ana, False, "2026-03-04T12:00"),  # after 28 hours
        (ana, False, "2026-03-05T12:00"),  # no answer
        (ana, True, "2026-03-06T08:00"),
        (ana, False, "2026-03-06T10:00"),  # after 2 hours
        (berta, False, "2026-03-06T10:00"),
        (berta, True, "2026-03-08T09:00"),
        (berta, False, "2026-03-09T09:00"),  # after 24 hours, in the next week
        (berta, True, "2026-03-10T09:00"),  # not answered
    ]
    for client, is_of_client, at in said:
        session = await coach.as_client(client)
        path = "/customer/messages" if is_of_client else client_path(client, "messages")
        message = (await (session if is_of_client else coach).post(path, {"text": "Hello"})).ok(201)
        await set_times(coach, "messages", message["_id"], createdAt=at)
    rows = await report(coach, "responses")
    assert without_periods(rows, "coachId", "answered", "medianSeconds") == [
        (owner, 2, 15 * 3600),
        (owner, 1, 24 * 3600),
        (owner, 0, None),
    ]

    eli = coach.with_key(
        await employee_key(coach, "customers.view", "customers.edit", "forms.view", "forms.edit", scope="all")
    )
    block = await block_with(coach, ana, form_of(), date="2026-03-09")
    form = block["items"][0]
    answers = [{"questionId": form["form"]["questions"][0]["_id"], "value": "Fine"}]
    (await own_log(await coach.as_client(ana), block, form, isCompleted=True, answers=answers)).ok()
    response = (await coach.get("/coach/form-responses")).ok()["docs"][0]
    (await eli.put(f"/coach/form-responses/{response['_id']}/reviewed", {"reviewed": True})).ok()
    times = {"createdAt": "2026-03-09T08:00", "reviewedAt": "2026-03-09T09:00"}
    await set_times(coach, "formResponses", response["_id"], **times)
    rows = await report(coach, "responses")
    assert [(row["answered"], row["medianSeconds"]) for row in rows] == [
        (2, 54_000), (0, None), (1, 86_400), (1, 3_600), (0, None), (0, None),
    ]  # fmt: skip
    (await coach.patch(client_path(berta), {"timezone": "America/Los_Angeles"})).ok()
    moved = await report(coach, "responses", groups=[], to="2026-03-08")
    assert (moved[0]["answered"], moved[0]["medianSeconds"]) == (2, 54_000)
    of_nobody = coach.with_key(await employee_key(coach, "customers.view"))
    assert {row["answered"] for row in await report(of_nobody, "responses")} == {0}
    assert {row["answered"] for row in await report(other_company, "responses")} == {0}


async def test_load_is_by_trainer(coach: CoachClient) -> None:
    owner = str(coach.ctx.caller.id)
    ana, berta, carl = [await coach.create_customer(name) for name in ("Ana", "Berta", "Carl")]
    for client, joined in ((ana, "2026-03-01"), (berta, "2026-03-10"), (carl, "2026-03-01")):
        await set_times(coach, "customers", client["_id"], createdAt=joined)
    (await coach.patch(client_path(ana), {"assignedTo": owner})).ok()
    program = (await coach.post("/coach/programs", {"name": "Base"})).ok(201)
    plan = f"/coach/programs/{program['_id']}/wblocks"
    for day in (1, 8):
        block = (await coach.post(plan, {"name": "Day", "day": day})).ok(201)
        (await coach.post(f"{plan}/{block['_id']}/witems", task())).ok(201)
    for client in (ana, berta, carl):
        assigned = {"customerId": client["_id"], "startDate": "2026-03-04"}
        (await coach.post(f"/coach/programs/{program['_id']}/assign", assigned)).ok(201)
    (await coach.put("/coach/customers/archive", {"id": carl["_id"]})).ok()
    rows = await report(coach, "load")
    assert without_periods(rows, "coachId", "clients", "planned", "endingPrograms") == [
        (owner, 1, 1, 0), (None, 0, 1, 0),
        (owner, 1, 1, 1), (None, 1, 1, 1),
        (owner, 1, 0, 0), (None, 1, 0, 0),
    ]  # fmt: skip
    (await coach.post(client_path(ana, "wblocks", "shift"), {"days": 7, "from": "2026-03-10"})).ok()
    rows = await report(coach, "load", assignedTo=[owner])
    assert without_periods(rows, "planned", "endingPrograms") == [(1, 0), (0, 0), (0, 0)]
    rows = await report(coach, "load", assignedTo=[owner], to="2026-03-22")
    assert without_periods(rows, "planned", "endingPrograms") == [(1, 0), (0, 0), (1, 1)]


async def test_csv(coach: CoachClient) -> None:
    coach.checks = False  # of JSON
    for name, columns in {
        "clients": "from,to,active,joined,archived",
        "adherence": "from,to,workoutDays,completedDays,percentage,sessions",
        "responses": "from,to,coachId,answered,medianSeconds",
        "load": "from,to,coachId,clients,planned,endingPrograms",
    }.items():
        reply = await coach.get(f"/coach/reports/{name}", **MARCH, groupBy="week", format="csv")
        assert reply.status == 200, name
        assert reply.headers["Content-Type"] == "text/csv; charset=utf-8"
        assert f'filename="{name}-2026-03-04-2026-03-17.csv"' in reply.headers["Content-Disposition"]
        rows = list(csv.DictReader(io.StringIO(reply.raw.decode())))
        assert ",".join(rows[0]) == columns
        assert [row["from"] for row in rows] == ["2026-03-04", "2026-03-09", "2026-03-16"]
    assert rows[0]["clients"] == "0"
