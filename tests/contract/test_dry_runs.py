"""`dryRun` is never ignored: every operation that does not support it refuses it.

test_dry_run_effects.py compares all documents before and after those of the others.
"""

from __future__ import annotations

from typing import Any

import aiohttp
import pytest

from coaching_service import features
from coaching_service.core.http.routes import Route, routes_of
from coaching_service.core.ids import ObjectId
from tests.contract.test_declared import client_for, fill_path, identifiers_for, put_identifiers
from tests.support.client import MONDAY, SUNDAY, CoachClient
from tests.support.declared_world import World
from tests.support.training import Json, exercise_of

SUPPORTED = {
    "PUT /coach/customers/by-external-id/{externalId}",
    "PUT /exercises/by-external-id/{externalId}",
    "PUT /coach/programs/by-external-id/{externalId}",
    "PUT /coach/customers/{customerId}/wblocks/by-external-id/{externalId}",
    "POST /coach/customers/batch",
    "POST /coach/customers/bulk/archive",
    "POST /coach/customers/bulk/unarchive",
    "POST /coach/customers/bulk/groups-add",
    "POST /coach/customers/bulk/groups-remove",
    "POST /coach/customers/bulk/assign-trainer",
    "POST /coach/customers/bulk/assign-program",
    "POST /coach/customers/bulk/assign-metrics-set",
    "POST /coach/customers/bulk/message",
    "POST /coach/customers/bulk/check-in-create",
    "POST /coach/customers/bulk/form-remind",
    "POST /coach/customers/bulk/schedule-adjust",
    "POST /coach/customers/bulk/schedule-clear",
    "POST /coach/customers/bulk/schedule-copy",
    "POST /coach/customers/bulk/schedule-replace-exercise",
    "POST /coach/customers/bulk/schedule-shift",
    "POST /coach/customers/bulk/delete",
    "POST /coach/customers/{customerId}/wblocks",
    "POST /coach/customers/{customerId}/wblocks/batch",
    "POST /coach/customers/{customerId}/wblocks/shift",
    "POST /coach/customers/{customerId}/wblocks/upsert",
    "POST /coach/customers/{customerId}/logs/upsert",
    "POST /coach/customers/{customerId}/schedule/copy",
    "POST /coach/customers/{customerId}/schedule/adjust",
    "POST /coach/customers/{customerId}/schedule/replace-exercise",
    "POST /coach/customers/{customerId}/schedule/clear",
    "POST /coach/customers/{customerId}/schedule/resume",
    "POST /coach/customers/{customerId}/metric-values",
    "PUT /coach/customers/{customerId}/visibility",
    "POST /coach/programs/{programId}/wblocks",
    "POST /coach/programs/{programId}/copy-days",
    "POST /coach/programs/{programId}/assign",
    "POST /coach/programs/{programId}/sync",
    "POST /coach/import",
    "POST /customer/import",
    "POST /coach/programs/import",
    "POST /coach/account/load-unit",
}
WRITING = {f"{route.method} {route.path}": route for route in routes_of(features.ROUTES) if route.method != "GET"}


def test_which_operations_support_it() -> None:
    assert {name for name, route in WRITING.items() if route.takes_dry_run} == SUPPORTED


async def send(company: CoachClient, route: Route, world: World, **query: Any) -> Any:
    """Call an operation with its example and `dryRun`."""
    client = await client_for(company, route, world)
    body: dict[str, Any] = {}
    if route.multipart is not None:
        body["data"] = aiohttp.FormData({**(route.example or {}), "dryRun": "true"}, default_to_multipart=True)
    else:
        body["json"] = {**put_identifiers(route.example or {}, identifiers_for(route, world)), "dryRun": True}
    return await client.send(route.method, fill_path(route, world), **body)


async def test_it_is_refused(shared_company: CoachClient, shared_world: World) -> None:
    for name in sorted(WRITING.keys() - SUPPORTED):
        reply = await send(shared_company, WRITING[name], shared_world)
        assert reply.status == 400, (name, reply.raw)
        assert [(each["field"], each["code"]) for each in reply.json["errors"]] == [("dryRun", "NOT_SUPPORTED")], name


async def test_false_is_refused_too(coach: CoachClient) -> None:
    error = (await coach.post("/coach/customers", {"name": "Ana", "dryRun": False})).refused(400)
    assert error["errors"][0]["field"] == "dryRun"


@pytest.mark.parametrize(
    "content_type", ["application/octet-stream", "text/plain", "application/x-www-form-urlencoded"]
)
async def test_it_is_refused_in_a_body_of_another_content_type(coach: CoachClient, content_type: str) -> None:
    """An operation that takes no body does not look at the content type of one."""
    path = f"/coach/customers/{(await coach.create_customer())['_id']}"
    for sent in (b'{"dryRun": true}', b"dryRun=true"):
        (await coach.send("DELETE", path, data=sent, headers={"Content-Type": content_type})).refused(400, "dryRun")
    (await coach.get(path)).ok()


async def test_it_is_refused_in_the_query_of_a_write(coach: CoachClient) -> None:
    customer = await coach.create_customer()
    (await coach.send("DELETE", f"/coach/customers/{customer['_id']}?dryRun=true")).refused(400, "dryRun")
    (await coach.get(f"/coach/customers/{customer['_id']}", dryRun="true")).ok()


NEW: dict[str, Json] = {
    "/coach/customers/by-external-id/new-1": {"name": "Ana", "groups": ["Morning"]},
    "/exercises/by-external-id/new-1": {"name": "Sled push", "type": "strength", "level": "beginner"},
    "/coach/programs/by-external-id/new-1": {"name": "Base"},
}


@pytest.mark.parametrize("path", NEW)
async def test_a_dry_run_of_an_upsert_shows_the_new_record(coach: CoachClient, path: str) -> None:
    shown = (await coach.put(path, {**NEW[path], "dryRun": True})).ok(200)
    assert shown["_id"] is None

    created = (await coach.put(path, NEW[path])).ok(201)

    differing = {"_id", "createdAt", "updatedAt"}
    assert {name: value for name, value in shown.items() if name not in differing} == {
        name: value for name, value in created.items() if name not in differing
    }


async def test_a_dry_run_of_an_upsert_shows_the_change(coach: CoachClient) -> None:
    path = "/coach/customers/by-external-id/crm-1"
    created = (await coach.put(path, {"name": "Ana"})).ok(201)
    shown = (await coach.put(path, {"phone": "+34 600", "dryRun": True})).ok(200)
    assert (shown["_id"], shown["phone"]) == (created["_id"], "+34 600")
    assert (await coach.get(f"/coach/customers/{created['_id']}")).ok()["phone"] is None


async def test_a_dry_run_of_a_block_has_no_identifiers_of_new_items(coach: CoachClient) -> None:
    customer, exercise = await coach.create_customer(), await coach.create_exercise()
    path = f"/coach/customers/{customer['_id']}/wblocks/by-external-id/w-1"
    body = {"name": "Legs", "date": MONDAY, "items": [exercise_of(exercise)]}
    shown = (await coach.put(path, {**body, "dryRun": True})).ok(200)
    assert (shown["_id"], shown["items"][0]["_id"]) == (None, None)
    assert shown["items"][0]["exercise"]["_id"] == exercise["_id"]
    assert await coach.calendar(customer, MONDAY, SUNDAY) == []


async def test_a_dry_run_needs_the_permission_of_the_write(coach: CoachClient) -> None:
    key = (
        await (await coach.interactive()).post("/coach/api-keys", {"name": "R", "restrictions": {"readOnly": True}})
    ).ok(201)
    reader = coach.with_key(key["key"])
    refused = (await reader.post("/coach/customers/batch", {"customers": [{"name": "Ana"}], "dryRun": True})).refused(
        403
    )
    assert refused["code"] == "KEY_READ_ONLY"


async def test_shifting_counts_in_a_dry_run(coach: CoachClient) -> None:
    customer = await coach.create_customer()
    block = await coach.schedule(customer)
    path = f"/coach/customers/{customer['_id']}/wblocks/shift"
    body = {"from": MONDAY, "days": 1}
    assert (await coach.post(path, {**body, "dryRun": True})).ok() == {"shifted": 1}
    assert [each["date"] for each in await coach.calendar(customer)] == [block["date"]]
    assert (await coach.post(path, body)).ok() == {"shifted": 1}
    assert ObjectId.is_valid(block["_id"])
