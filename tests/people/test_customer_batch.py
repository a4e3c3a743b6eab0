"""Creating many clients at once (contract 14, many at once)."""

from __future__ import annotations

import asyncio
from typing import Any

from coaching_service.core.ids import ObjectId
from tests.contract.test_queries import profiling
from tests.support.client import UNKNOWN, CoachClient, Reply
from tests.support.training import Json, assigned_sets, employee_key, metric_set

PATH = "/coach/customers/batch"


async def create(coach: CoachClient, *entries: Any, **options: Any) -> Reply:
    return await coach.post(PATH, {"customers": list(entries)}, **options)


def errors_of(result: Json) -> list[tuple[str, str]]:
    return [(error["field"], error["code"]) for error in result["errors"]]


async def mails_of(coach: CoachClient) -> list[Any]:
    where = {"companyId": coach.ctx.company_id, "kind": "send_mail"}
    return [job["about"] for job in await coach.ctx.db["jobs"].find(where).to_list(None)]


async def test_every_valid_entry_becomes_a_client_whatever_the_others_are(
    coach: CoachClient, other_company: CoachClient
) -> None:
    await coach.create_customer("Ana", externalId="crm:1")
    body = await metric_set(coach, assignAutomatically=True)
    stranger = str(other_company.ctx.caller.id)
    reply = await create(
        coach,
        {"name": "Bo", "surname": "Berg", "email": "bo@example.com", "groups": ["Team"], "metadata": {"plan": "gold"}},
        {"name": " ", "email": "nobody", "groups": [""]},
        "Cy",
        {"name": "Cy", "assignedTo": UNKNOWN},
        {"name": "Cy", "assignedTo": stranger},
        {"name": "Cy", "assignedTo": str(coach.ctx.caller.id)},
        {"name": "Di", "externalId": "crm:1"},
        {"name": "Di", "externalId": "crm:2"},
        {"name": "Eli", "externalId": "crm:2"},
        {"name": "BO", "surname": "berg", "email": "Bo@example.com"},
        {"name": "Bo", "surname": "Berg", "email": "bo@example.com", "externalId": "crm:3"},
    )
    answer = reply.ok(200)

    results = answer["results"]
    assert [result["index"] for result in results] == list(range(11))
    assert {result["index"]: errors_of(result) for result in results if "errors" in result} == {
        1: [("name", "EMPTY"), ("email", "INVALID_EMAIL"), ("groups.0", "EMPTY")],
        2: [("", "NOT_AN_OBJECT")],
        3: [("assignedTo", "NOT_FOUND")],
        4: [("assignedTo", "NOT_FOUND")],
        6: [("externalId", "EXTERNAL_ID_TAKEN")],
        8: [("externalId", "DUPLICATE")],
        9: [("name", "DUPLICATE")],
    }
    created = {result["_id"]: result["index"] for result in results if "_id" in result}
    assert (answer["created"], sorted(created.values())) == (4, [0, 5, 7, 10])
    assert all(("_id" in result) != ("errors" in result) for result in results)
    clients = {each["_id"]: each for each in (await coach.customers())["docs"]}
    assert len(clients) == 5
    bo = next(clients[each] for each, index in created.items() if index == 0)
    single = await coach.create_customer("Flo")
    assert bo.keys() == single.keys() - {"firstAccessToken"}
    assert (bo["email"], bo["customerRoleData"]["groups"], bo["metadata"]) == (
        "bo@example.com",
        ["Team"],
        {"plan": "gold"},
    )
    assert [each["metricsSet"]["_id"] for each in await assigned_sets(coach, bo)] == [body["_id"]]
    assert "firstAccessToken" not in str(answer)
    assert await mails_of(coach) == []

    batch = {"companyId": coach.ctx.company_id, "batchId": ObjectId(reply.headers["X-Change-Id"])}
    changes = await coach.ctx.db["changes"].find(batch).to_list(None)
    assert {str(change["customerId"]) for change in changes} == set(created)
    assert {(change["operation"], change["undoable"]) for change in changes} == {("createCustomers", False)}
    assert [[event["type"] for event in change["events"]] for change in changes] == [["customer.created"]] * 4


async def test_only_those_with_an_invitation_get_mail(coach: CoachClient) -> None:
    answer = (
        await create(
            coach,
            {"name": "Ana", "email": "ana@example.com", "sendInvitation": True},
            {"name": "Bo", "email": "bo@example.com", "sendInvitation": False},
            {"name": "Cy", "email": "cy@example.com"},
            {"name": "Di", "sendInvitation": True},
        )
    ).ok(200)
    assert answer["created"] == 4
    assert [str(each) for each in await mails_of(coach)] == [answer["results"][0]["_id"]]


async def test_a_repeated_batch_creates_nothing_twice(coach: CoachClient) -> None:
    entries = [{"name": f"Client {number}", "externalId": f"crm:{number}"} for number in range(20)]
    first = await create(coach, *entries, headers={"Idempotency-Key": "batch"})
    again = await create(coach, *entries, headers={"Idempotency-Key": "batch"})
    assert (first.ok(200), again.headers["Idempotent-Replayed"]) == (again.ok(200), "true")
    (await create(coach, {"name": "Other"}, headers={"Idempotency-Key": "batch"})).refused(409)
    without_key = (await create(coach, *entries)).ok(200)
    assert (without_key["created"], (await coach.customers())["totalDocs"]) == (0, 20)
    assert {error for result in without_key["results"] for error in errors_of(result)} == {
        ("externalId", "EXTERNAL_ID_TAKEN")
    }


async def test_batches_at_the_same_time_create_each_client_once(coach: CoachClient) -> None:
    entries = [{"name": f"Client {number}", "externalId": f"crm:{number}"} for number in range(20)]
    replies = await asyncio.gather(
        *(
            create(coach, *entries[start:], *entries[:start], headers={"Idempotency-Key": str(start)})
            for start in (0, 7, 13)
        )
    )
    assert [reply.status for reply in replies] == [200] * 3
    assert sum(reply.json["created"] for reply in replies) == 20
    assert (await coach.customers())["totalDocs"] == 20


async def test_an_employee_creates_own_clients_and_needs_the_permission(coach: CoachClient) -> None:
    scoped = coach.with_key(await employee_key(coach, "customers.view", "customers.create"))
    [result] = (await create(scoped, {"name": "Ana"})).ok(200)["results"]
    [ana] = (await scoped.customers())["docs"]
    assert (ana["_id"], ana["customerRoleData"]["assignedTo"]) == (result["_id"], (await scoped.get("/me")).json["_id"])
    (await create(coach.with_key(await employee_key(coach, "customers.view")), {"name": "Bo"})).refused(403)


async def test_a_batch_has_1_to_500_entries_and_a_fixed_number_of_round_trips(coach: CoachClient) -> None:
    for wrong, code in (([], "EMPTY"), ([{"name": "Ana"}] * 501, "TOO_MANY"), ({}, "NOT_AN_ARRAY")):
        refused = (await coach.post(PATH, {"customers": wrong})).refused(400)
        assert [(error["field"], error["code"]) for error in refused["errors"]] == [("customers", code)]
    strict = await create(coach, {"name": "Ana", "colour": "red"}, headers={"Prefer": "handling=strict"})
    assert errors_of(strict.refused(400)) == [("customers.0.colour", "UNKNOWN_FIELD")]
    await metric_set(coach, assignAutomatically=True)

    counts = []
    for size in (2, 500):
        entries = [{"name": f"Client {number}", "externalId": f"{size}:{number}"} for number in range(size)]
        async with profiling(coach) as profile:
            assert (await create(coach, *entries)).ok(200)["created"] == size
            await profile()
            names = ("customers", "customerTotals", "coaches", "metricSets", "metricAssignments")
            written = {"ns": {"$in": [f"{coach.ctx.db.name}.{name}" for name in names]}}
            counts.append(await coach.ctx.db["system.profile"].count_documents(written))
    assert counts[0] == counts[1] < 10
    assert (await coach.customers(pageSize=1))["totalDocs"] == 502
