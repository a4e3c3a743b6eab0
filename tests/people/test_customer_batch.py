"""Creating many clients at once (contract 14, many at once)."""

from __future__ import annotations

import asyncio
from typing import Any

from coaching_service.core.ids import ObjectId
from coaching_service.settings import Settings
from tests.contract.test_queries import profiling
from tests.support.client import UNKNOWN, CoachClient, Reply
from tests.support.databases import profile_of
from tests.support.mails import mails_once_sent
from tests.support.training import Json, assigned_sets, employee_key, metric_set

PATH = "/coach/customers/batch"


async def create(coach: CoachClient, *entries: Any, onConflict: str = "error", **options: Any) -> Reply:  # noqa: N803  # the field's name
    return await coach.post(PATH, {"customers": list(entries), "onConflict": onConflict}, **options)


def errors_of(result: Json) -> list[tuple[str, str]]:
    return [(error["field"], error["code"]) for error in result["errors"]]


def address(coach: CoachClient, name: str) -> str:
    return f"{name}@{coach.ctx.company_id}.test"


async def recipients(coach: CoachClient, settings: Settings) -> list[str]:
    """The addresses of the company's clients to which mail was sent, once none is queued any more."""
    mails = await mails_once_sent(coach.ctx.services, settings.data_dir / "mail", companyId=coach.ctx.company_id)
    return [str(each["To"]) for each in mails if str(coach.ctx.company_id) in str(each["To"])]


async def test_every_valid_entry_becomes_a_client_whatever_the_others_are(
    coach: CoachClient, other_company: CoachClient, settings: Settings
) -> None:
    email = address(coach, "bo")
    await coach.create_customer("Ana", externalId="crm:1")
    body = await metric_set(coach, assignAutomatically=True)
    stranger = str(other_company.ctx.caller.id)
    reply = await create(
        coach,
        {"name": "Bo", "surname": "Berg", "email": email, "groups": ["Team"], "metadata": {"plan": "gold"}},
        {"name": " ", "email": "nobody", "groups": [""]},
        "Cy",
        {"name": "Cy", "assignedTo": UNKNOWN},
        {"name": "Cy", "assignedTo": stranger},
        {"name": "Cy", "assignedTo": str(coach.ctx.caller.id)},
        {"name": "Di", "externalId": "crm:1"},
        {"name": "Di", "externalId": "crm:2"},
        {"name": "Eli", "externalId": "crm:2"},
        {"name": "BO", "surname": "berg", "email": email.upper()},
        {"name": "Bo", "surname": "Berg", "email": email, "externalId": "crm:3"},
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
        email,
        ["Team"],
        {"plan": "gold"},
    )
    assert [each["metricsSet"]["_id"] for each in await assigned_sets(coach, bo)] == [body["_id"]]
    assert "firstAccessToken" not in str(answer)
    assert await recipients(coach, settings) == []

    batch = {"companyId": coach.ctx.company_id, "batchId": ObjectId(reply.headers["X-Change-Id"])}
    changes = await coach.ctx.db["changes"].find(batch).to_list(None)
    assert {str(change["customerId"]) for change in changes} == set(created)
    assert {(change["operation"], change["undoable"]) for change in changes} == {("createCustomers", False)}
    types = ["customer.created", "metrics_set.assigned"]
    assert [[event["type"] for event in change["events"]] for change in changes] == [types] * 4


async def test_only_those_with_an_invitation_get_mail(coach: CoachClient, settings: Settings) -> None:
    ana, bo, cy = (address(coach, name) for name in ("ana", "bo", "cy"))
    answer = (
        await create(
            coach,
            {"name": "Ana", "email": ana, "sendInvitation": True},
            {"name": "Bo", "email": bo, "sendInvitation": False},
            {"name": "Cy", "email": cy},
            {"name": "Di", "sendInvitation": True},
        )
    ).ok(200)
    assert answer["created"] == 4
    assert await recipients(coach, settings) == [ana]


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
        async with profiling(coach):
            assert (await create(coach, *entries)).ok(200)["created"] == size
            profiled = profile_of(coach.ctx.db)
            insert = await profiled.find_one({"op": "insert", "ns": f"{coach.ctx.db.name}.customers"})
            assert insert is not None
            transaction = {f"command.{name}": insert["command"][name] for name in ("lsid", "txnNumber")}
            counts.append(await profiled.count_documents(transaction))
    assert 5 < counts[0] == counts[1] < 15
    assert (await coach.customers(pageSize=1))["totalDocs"] == 502


async def test_known_clients_are_updated_by_their_external_identifier(coach: CoachClient) -> None:
    """Contract 14: `onConflict: update`; only what is sent changes, and what is equal is not written."""
    ana = await coach.create_customer("Ana", externalId="crm:1", phone="+34 600", groups=["Morning"])
    bo = await coach.create_customer("Bo", externalId="crm:2")
    body = {
        "customers": [
            {"name": "Ana", "externalId": "crm:1", "surname": "Flores", "phone": None},
            {"name": "Bo", "externalId": "crm:2"},
            {"name": "Cy", "externalId": "crm:3"},
            {"name": "Cy again", "externalId": "crm:3"},
            {"name": "Di", "externalId": "crm:1"},
        ],
        "onConflict": "update",
    }
    answer = (await coach.post(PATH, body)).ok(200)

    assert (answer["created"], answer["updated"], answer["unchanged"]) == (1, 1, 1)
    assert [each.get("_id") for each in answer["results"][:2]] == [ana["_id"], bo["_id"]]
    assert [errors_of(each) for each in answer["results"][3:]] == [[("externalId", "DUPLICATE")]] * 2
    changed = (await coach.get(f"/coach/customers/{ana['_id']}")).ok()
    assert (changed["surname"], changed["phone"]) == ("Flores", None)
    assert changed["customerRoleData"]["groups"] == ["Morning"]
    assert changed["version"] == ana["version"] + 1
    assert (await coach.get(f"/coach/customers/{bo['_id']}")).ok()["version"] == bo["version"]
    assert (await coach.customers(contains="flores"))["totalDocs"] == 1, "the search follows"


async def test_the_holder_of_a_taken_identifier_is_named(coach: CoachClient) -> None:
    ana = await coach.create_customer("Ana", externalId="crm:1")
    [result] = (await create(coach, {"name": "Bo", "externalId": "crm:1"})).ok(200)["results"]
    assert result["errors"][0]["_id"] == ana["_id"]
    bo = await coach.create_customer("Bo")
    for reply in (
        await coach.post("/coach/customers", {"name": "Bo", "externalId": "crm:1"}),
        await coach.patch(f"/coach/customers/{bo['_id']}", {"externalId": "crm:1"}),
    ):
        assert (reply.refused(409)["code"], reply.json["_id"]) == ("EXTERNAL_ID_TAKEN", ana["_id"])


async def test_updating_needs_the_permission_and_the_scope(coach: CoachClient) -> None:
    ana = await coach.create_customer("Ana", externalId="crm:1")
    body = {"customers": [{"name": "Anna", "externalId": "crm:1"}], "onConflict": "update"}
    creator = coach.with_key(await employee_key(coach, "customers.create", "customers.view"))
    refused = (await creator.post(PATH, body)).refused(403)
    assert (refused["code"], refused["permission"]) == ("PERMISSION_MISSING", "customers.edit")
    colleague = coach.with_key(await employee_key(coach, "customers.create", "customers.edit"))
    [result] = (await colleague.post(PATH, body)).ok(200)["results"]
    assert errors_of(result) == [("externalId", "CUSTOMER_OUT_OF_SCOPE")]
    assert (await coach.get(f"/coach/customers/{ana['_id']}")).ok()["name"] == "Ana"


async def test_unknown_fields_of_a_batch_are_refused(coach: CoachClient) -> None:
    """Contract 1: unknown fields are ignored, except in bulk and batch requests."""
    refused = (await coach.post(PATH, {"customers": [{"name": "Ana"}], "onconflict": "update"})).refused(400)
    assert [(each["field"], each["code"]) for each in refused["errors"]] == [("onconflict", "UNKNOWN_FIELD")]
    refused = (await create(coach, {"name": "Ana"}, {"name": "Bo", "birthDay": "1990-01-01"})).refused(400)
    assert [each["field"] for each in refused["errors"]] == ["customers.1.birthDay"]
    assert (await coach.customers())["totalDocs"] == 0


async def test_a_dry_run_of_a_batch_tells_new_from_known(coach: CoachClient) -> None:
    ana = await coach.create_customer("Ana", externalId="crm:1")
    entries = [{"name": "Anna", "externalId": "crm:1"}, {"name": "Bo"}, {"name": " "}]
    body = {"customers": entries, "onConflict": "update", "dryRun": True}
    answer = (await coach.post(PATH, body)).ok(200)
    assert (answer["created"], answer["updated"]) == (1, 1)
    assert [each.get("_id", "invalid") for each in answer["results"]] == [ana["_id"], None, "invalid"]
    assert (await coach.customers())["docs"][0]["name"] == "Ana"


async def test_an_update_changes_only_what_is_sent(coach: CoachClient) -> None:
    """Contract 14: names are optional for known clients, unchanged ones are counted, the archived stay archived."""
    ana = await coach.create_customer("Ana", externalId="crm:1", phone="1", groups=["Team"])
    path = f"/coach/customers/{ana['_id']}"
    (await coach.put("/coach/customers/archive", {"id": ana["_id"]})).ok()
    entry = {"externalId": "crm:1", "metadata": {"plan": "gold"}}

    replies = [(await create(coach, entry, onConflict="update")).ok(200) for _ in range(2)]
    for reply, result, counts in zip(replies, ("updated", "unchanged"), ((0, 1, 0), (0, 0, 1)), strict=True):
        assert tuple(reply[name] for name in ("created", "updated", "unchanged")) == counts
        assert reply["results"] == [{"index": 0, "_id": ana["_id"], "result": result, "version": 2}]
    stored = (await coach.get(path)).ok()
    assert (stored["name"], stored["phone"], stored["customerRoleData"]["groups"]) == ("Ana", "1", ["Team"])
    assert (stored["metadata"], stored["customerRoleData"]["isArchived"]) == ({"plan": "gold"}, True)

    restored = (await create(coach, {"externalId": "crm:1", "archived": False}, onConflict="update")).ok(200)
    assert (restored["results"][0]["version"], (await coach.customers())["totalDocs"]) == (3, 1)
    stale = (await create(coach, {"externalId": "crm:1", "phone": "2", "version": 2}, onConflict="update")).ok(200)
    assert errors_of(stale["results"][0]) == [("version", "VERSION_CONFLICT")]
    new = (await create(coach, {"externalId": "crm:2"}, {"phone": "1"}, onConflict="update")).ok(200)
    assert [errors_of(each) for each in new["results"]] == [[("name", "REQUIRED")]] * 2
    archived = (await create(coach, {"name": "Bo", "archived": True}, onConflict="update")).ok(200)
    assert (archived["results"][0]["result"], (await coach.customers(archived="true"))["totalDocs"]) == ("created", 1)


async def test_who_may_only_edit_updates_and_creates_nobody(coach: CoachClient) -> None:
    await coach.create_customer("Ana", externalId="crm:1")
    editor = coach.with_key(await employee_key(coach, "customers.view", "customers.edit", scope="all"))
    assert (await create(editor, {"externalId": "crm:1", "phone": "1"}, onConflict="update")).ok(200)["updated"] == 1
    (await create(editor, {"externalId": "crm:1", "phone": "2"}, {"name": "Bo"}, onConflict="update")).refused(403)
    assert (await coach.customers())["docs"][0]["phone"] == "1"
