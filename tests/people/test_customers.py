"""A coach and the clients of the business."""

from __future__ import annotations

import asyncio
import uuid

import pytest

from tests.support.client import UNKNOWN, CoachClient

PAGE = {"archived": "false", "pageSize": 20, "pageNum": 1}
CONSENT = {"assistants": True, "applications": True}


async def test_new_client_is_listed_at_once(coach: CoachClient) -> None:
    created = await coach.create_customer("Ana", surname="Flores", email="ana@example.com", sendInvitation=False)

    uuid.UUID(created.pop("firstAccessToken"))
    page = await coach.customers()

    assert page["docs"] == [created]
    assert page["totalDocs"] == 1
    assert created["role"] == "CUSTOMER"
    assert created["version"] == 0
    assert created["customerRoleData"]["isArchived"] is False
    assert created["customerRoleData"]["customerType"] == "REAL"


async def test_only_the_name_is_required(coach: CoachClient) -> None:
    """Contract 4: `name` (required string), `email` (optional string), `sendInvitation` (optional boolean)."""
    assert (await coach.create_customer("Zoe"))["email"] is None
    (await coach.post("/coach/customers", {"email": "a@example.com"})).refused(400, "name")


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"name": ""}, "name"),
        ({"name": "   "}, "name"),
        ({"name": 5}, "name"),
        ({"name": None}, "name"),
        ({"name": "A", "email": "not-an-address"}, "email"),
        ({"name": "A", "email": ""}, "email"),
        ({"name": "A", "sendInvitation": "yes"}, "sendInvitation"),
        ({"name": "A", "sendInvitation": 1}, "sendInvitation"),
        ({"name": "A", "birthday": "19900101"}, "birthday"),
        ({"name": "A", "birthday": "1990-02-30"}, "birthday"),
        ({"name": "A", "birthday": "2999-01-01"}, "birthday"),
        ({"name": "A", "birthday": "1899-12-31"}, "birthday"),
        ({"name": "A", "birthday": "0001-01-01"}, "birthday"),
        ({"name": "A", "timezone": "Mars/Olympus"}, "timezone"),
        ({"name": "A", "groups": "Morning"}, "groups"),
        ({"name": "A", "groups": [1]}, "groups"),
        ({"name": "A", "assignedTo": "me"}, "assignedTo"),
        ({"name": {"$ne": 1}}, "name"),
        ({"name": "A" * 5000}, "name"),
    ],
)
async def test_bad_fields_are_named(coach: CoachClient, body: dict[str, object], field: str) -> None:
    """Contract 3: body validation gives `message` as an array of strings, each naming its field."""
    error = (await coach.post("/coach/customers", body)).refused(400)

    assert error["error"] == "Bad Request"
    assert isinstance(error["message"], list)
    assert all(message.startswith(field) for message in error["message"])
    assert (await coach.customers())["totalDocs"] == 0


async def test_unknown_fields_are_ignored(coach: CoachClient) -> None:
    created = await coach.create_customer("Ana", favouriteColour="green", role="OWNER", companyId=UNKNOWN, version=7)

    assert created["role"] == "CUSTOMER"
    assert created["version"] == 0
    assert "favouriteColour" not in created


async def test_two_clients_can_share_an_email_address(coach: CoachClient) -> None:
    await coach.create_customer("Ana", email="family@example.com")
    await coach.create_customer("Bo", email="family@example.com")

    assert await coach.names(contains="family@") == ["Ana", "Bo"]


async def test_trainer_must_be_a_coach_of_the_company(coach: CoachClient, other_company: CoachClient) -> None:
    stranger = str(other_company.ctx.caller.id)
    (await coach.post("/coach/customers", {"name": "A", "assignedTo": stranger})).refused(404, "Coach")
    ana = await coach.create_customer()
    (await coach.patch(f"/coach/customers/{ana['_id']}", {"assignedTo": UNKNOWN})).refused(404, "Coach")


async def test_update_changes_sent_fields_and_null_clears(coach: CoachClient) -> None:
    ana = await coach.create_customer("Ana", surname="Flores", phone="1", groups=["A"], birthday="1990-05-04")

    path = f"/coach/customers/{ana['_id']}"
    changed = (await coach.patch(path, {"phone": None, "groups": ["B", "B"], "name": " Anna "})).ok()

    assert (changed["name"], changed["surname"], changed["phone"]) == ("Anna", "Flores", None)
    assert changed["customerRoleData"]["groups"] == ["B"]
    assert changed["birthday"] == "1990-05-04"
    assert changed["version"] == 1
    assert changed["updatedAt"] > ana["updatedAt"]
    assert {**changed, "availability": None, "consent": CONSENT} == (await coach.get(path)).ok()
    assert await coach.names(contains="anna flo") == ["Anna"]
    assert (await coach.patch(path, {"groups": None})).ok()["customerRoleData"]["groups"] == []
    (await coach.patch(path, {"name": None})).refused(400, "name")


async def test_update_of_an_old_version_conflicts(coach: CoachClient) -> None:
    ana = await coach.create_customer()
    path = f"/coach/customers/{ana['_id']}"
    (await coach.patch(path, {"phone": "1", "version": 0})).ok()

    (await coach.patch(path, {"phone": "2", "version": 0})).refused(409)
    assert (await coach.get(path)).ok()["phone"] == "1"
    assert (await coach.patch(path, {"phone": "2", "version": 1})).ok()["version"] == 2


async def test_one_of_many_updates_of_a_version_succeeds(coach: CoachClient) -> None:
    ana = await coach.create_customer()
    path = f"/coach/customers/{ana['_id']}"

    replies = await asyncio.gather(*(coach.patch(path, {"phone": str(n), "version": 0}) for n in range(8)))

    assert sorted(reply.status for reply in replies) == [200] + [409] * 7
    winner = next(reply.json for reply in replies if reply.status == 200)
    assert (await coach.get(path)).ok() == {**winner, "availability": None, "consent": CONSENT}


async def test_concurrent_updates_without_a_version_all_succeed(coach: CoachClient) -> None:
    ana = await coach.create_customer()
    path = f"/coach/customers/{ana['_id']}"
    fields = [{"phone": "1"}, {"surname": "F"}, {"birthday": "2000-01-01"}, {"timezone": "Asia/Tokyo"}]

    replies = await asyncio.gather(*(coach.patch(path, body) for body in fields))

    assert [reply.status for reply in replies] == [200] * 4
    after = (await coach.get(path)).ok()
    assert after["version"] == 4
    assert all(after[name] == value for body in fields for name, value in body.items())


async def test_archiving_moves_a_client_between_the_lists_and_back(coach: CoachClient) -> None:
    ana, _ = await coach.create_customer("Ana"), await coach.create_customer("Bo")

    archived = (await coach.put("/coach/customers/archive", {"id": ana["_id"]})).ok()
    assert archived["customerRoleData"]["isArchived"] is True
    again = (await coach.put("/coach/customers/archive", {"id": ana["_id"]})).ok()
    assert again["version"] == archived["version"], "repeating is harmless"

    assert (await coach.names(), await coach.names(archived="true")) == (["Bo"], ["Ana"])
    assert (await coach.customers())["totalDocs"] == (await coach.customers(archived="true"))["totalDocs"] == 1
    (await coach.put("/coach/customers/unarchive", {"id": ana["_id"]})).ok()
    assert await coach.names() == ["Ana", "Bo"]
    assert (await coach.customers(archived="true"))["totalDocs"] == 0
    (await coach.put("/coach/customers/archive", {"id": UNKNOWN})).refused(404)
    (await coach.put("/coach/customers/archive", {"id": "x"})).refused(400, "id")
    (await coach.put("/coach/customers/archive", {})).refused(400, "id")


async def test_total_is_right_under_concurrent_creation_and_deletion(coach: CoachClient) -> None:
    created = await asyncio.gather(*(coach.create_customer(f"N{n}") for n in range(12)))
    assert (await coach.customers())["totalDocs"] == 12

    doomed, archived = created[:4], created[4:7]
    await asyncio.gather(
        *(coach.delete(f"/coach/customers/{customer['_id']}") for customer in doomed),
        *(coach.put("/coach/customers/archive", {"id": customer["_id"]}) for customer in archived * 2),
    )

    active, gone = await coach.customers(), await coach.customers(archived="true")
    assert (active["totalDocs"], len(active["docs"])) == (5, 5)
    assert (gone["totalDocs"], len(gone["docs"])) == (3, 3)


async def test_deleted_client_is_not_found(coach: CoachClient) -> None:
    ana = await coach.create_customer()
    block = await coach.schedule(ana)
    path = f"/coach/customers/{ana['_id']}"

    (await coach.delete(path)).ok(204)

    for gone in (path, f"{path}/wblocks/{block['_id']}", f"{path}/wblock?startDate=2026-03-01&endDate=2026-03-09"):
        (await coach.get(gone)).refused(404)
    (await coach.delete(path)).refused(404)
    assert (await coach.customers())["totalDocs"] == 0


async def test_concurrent_archiving_returns_the_result(coach: CoachClient) -> None:
    ana = await coach.create_customer()
    wishes = ["archive", "unarchive"] * 8

    replies = await asyncio.gather(*(coach.put(f"/coach/customers/{wish}", {"id": ana["_id"]}) for wish in wishes))

    for wish, reply in zip(wishes, replies, strict=True):
        assert reply.ok()["customerRoleData"]["isArchived"] is (wish == "archive")
    total = (await coach.customers())["totalDocs"] + (await coach.customers(archived="true"))["totalDocs"]
    assert total == 1


async def test_archiving_an_old_version_conflicts(coach: CoachClient) -> None:
    ana = await coach.create_customer()
    (await coach.patch(f"/coach/customers/{ana['_id']}", {"phone": "1"})).ok()
    (await coach.put("/coach/customers/archive", {"id": ana["_id"], "version": 0})).refused(409)
    (await coach.put("/coach/customers/archive", {"id": ana["_id"], "version": 1})).ok()


async def test_a_change_archives_and_restores(coach: CoachClient) -> None:
    """By PATCH and by external identifier as by the operations of their own, with their events."""
    ana = await coach.create_customer("Ana", externalId="crm:1")
    path = f"/coach/customers/{ana['_id']}"
    changed = (await coach.patch(path, {"isArchived": True, "phone": "1"})).ok()
    assert (changed["version"], changed["customerRoleData"]["isArchived"], changed["phone"]) == (1, True, "1")
    assert ((await coach.customers())["totalDocs"], (await coach.customers(archived="true"))["totalDocs"]) == (0, 1)
    by_external_id = "/coach/customers/by-external-id/crm:1"
    assert (await coach.put(by_external_id, {"phone": "2"})).ok()["customerRoleData"]["isArchived"] is True
    reply = await coach.put(by_external_id, {"isArchived": False})
    restored = reply.ok()
    assert ((await coach.customers())["totalDocs"], restored["customerRoleData"]["isArchived"]) == (1, False)
    new = (await coach.put("/coach/customers/by-external-id/crm:2", {"name": "Bo", "isArchived": True})).ok(201)
    assert new["customerRoleData"]["isArchived"] is True
    (await coach.patch(path, {"isArchived": "yes"})).refused(400, "isArchived")
    types = ["customer.archived", "customer.unarchived"]
    await coach.wait_until_numbered(reply.headers["X-Change-Id"])
    events = (await coach.get("/coach/events", types=types, customerId=ana["_id"])).ok()["docs"]
    assert [each["type"] for each in events] == types
