"""Creating and changing records by their identifiers in another system."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.support.client import MONDAY, TUESDAY, CoachClient
from tests.support.training import employee_key

PATHS = {
    "/coach/customers": {"name": "Ana", "sendInvitation": False},
    "/exercises": {"name": "Squat"},
    "/coach/programs": {"name": "Base"},
    "/coach/customers/{customer}/wblocks": {"name": "Legs", "date": MONDAY},
}
TASK = {"type": "TASK", "taskFields": {"title": "Walk"}}


@pytest.fixture(params=PATHS)
async def path(request: pytest.FixtureRequest, coach: CoachClient) -> str:
    """The path of each kind of record."""
    return str(request.param).replace("{customer}", (await coach.create_customer("Owner"))["_id"])


def body_of(path: str) -> dict[str, Any]:
    return PATHS["/coach/customers/{customer}/wblocks" if path.endswith("wblocks") else path]


async def test_the_first_request_creates_and_the_next_ones_change_what_is_sent(coach: CoachClient, path: str) -> None:
    by_id = f"{path}/by-external-id/crm:1@x"
    (await coach.put(by_id, {"metadata": {"k": "v"}})).refused(400, "name is required")
    created = (await coach.put(by_id, body_of(path) | {"metadata": {"k": "v"}, "externalId": "other"})).ok(201)
    assert (created["externalId"], created["metadata"], created["version"]) == ("crm:1@x", {"k": "v"}, 0)
    assert "firstAccessToken" not in created

    changed = (await coach.put(by_id, {"name": "New name", "version": 0})).ok(200)
    assert changed["_id"] == created["_id"]
    assert (changed["name"], changed["metadata"], changed["version"]) == ("New name", {"k": "v"}, 1)
    assert (await coach.put(by_id, {"name": "x", "version": 0})).refused(409)["code"] == "VERSION_CONFLICT"
    (await coach.put(f"{path}/by-external-id/a%20b", body_of(path))).refused(400, "externalId")
    (await coach.put(f"{path}/by-external-id/archive", body_of(path))).ok(201)
    (await coach.get(by_id)).refused(405)


async def test_ten_at_once_create_one(coach: CoachClient, path: str) -> None:
    by_id = f"{path}/by-external-id/x"
    replies = await asyncio.gather(*(coach.put(by_id, body_of(path)) for _ in range(10)))
    assert sorted(reply.status for reply in replies) == [200] * 9 + [201]
    assert len({reply.json["_id"] for reply in replies}) == 1


async def test_deleted_records_are_created_again(coach: CoachClient, path: str) -> None:
    by_id = f"{path}/by-external-id/x"
    first = (await coach.put(by_id, body_of(path))).ok(201)
    (await coach.delete(f"{path}/{first['_id']}")).ok(204)
    assert (await coach.put(by_id, body_of(path))).ok(201)["_id"] != first["_id"]


async def test_items_of_a_block_are_created_and_replaced_until_something_is_done(coach: CoachClient) -> None:
    customer = await coach.create_customer()
    path = f"/coach/customers/{customer['_id']}/wblocks"
    by_id = f"{path}/by-external-id/x"
    block = (await coach.put(by_id, {"name": "Legs", "date": MONDAY, "items": [TASK, TASK]})).ok(201)
    assert len(block["items"]) == 2
    assert len((await coach.put(by_id, {"date": TUESDAY})).ok()["items"]) == 2
    block = (await coach.put(by_id, {"items": [TASK]})).ok()
    assert (block["date"], len(block["items"])) == (TUESDAY, 1)
    unknown = {"type": "EXERCISE", "exerciseId": customer["_id"], "exerciseSets": [{"type": "reps"}]}
    (await coach.put(by_id, {"name": "Not stored", "items": [unknown]})).refused(404)

    log = f"{path}/{block['_id']}/witems/{block['items'][0]['_id']}/log"
    (await coach.put(log, {"isCompleted": True})).ok()
    refused = (await coach.put(by_id, {"name": "Not stored", "items": [TASK]})).refused(409)
    assert refused["code"] == "WORKOUT_LOGGED"
    assert (await coach.put(by_id, {"isRest": False})).ok()["name"] == "Legs"


async def test_the_identifier_of_another_clients_block_is_taken(coach: CoachClient) -> None:
    paths = [f"/coach/customers/{(await coach.create_customer())['_id']}/wblocks/by-external-id/x" for _ in range(2)]
    body = {"name": "Legs", "date": MONDAY}
    (await coach.put(paths[0], body)).ok(201)
    assert (await coach.put(paths[1], body)).refused(409)["code"] == "EXTERNAL_ID_TAKEN"


async def test_an_employee_needs_both_permissions_and_the_client_in_scope(coach: CoachClient) -> None:
    by_id = "/coach/customers/by-external-id/x"
    (await coach.put(by_id, body_of("/coach/customers"))).ok(201)
    for permission in ("customers.create", "customers.edit"):
        alone = coach.with_key(await employee_key(coach, permission))
        (await alone.put(by_id, {"name": "x"})).refused(403)
    both = coach.with_key(await employee_key(coach, "customers.view", "customers.create", "customers.edit"))
    assert (await both.put(by_id, {"name": "x"})).refused(403)["code"] == "CUSTOMER_OUT_OF_SCOPE"
