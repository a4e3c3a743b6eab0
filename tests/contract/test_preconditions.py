"""`If-Match` and `If-None-Match` on each operation that writes: kept, or refused, never ignored (contract 1)."""

from __future__ import annotations

import asyncio

from coaching_service import features
from coaching_service.core.http.handlers import find_version_read, takes_if_match, takes_if_none_match
from coaching_service.core.http.routes import Route, routes_of
from tests.contract.test_declared import call, fill_path
from tests.support.client import MONDAY, CoachClient, Reply
from tests.support.declared_world import World
from tests.support.sampled import MORE

ROUTES = routes_of(features.ROUTES)
WRITES = {f"{route.method} {route.path}": route for route in ROUTES if route.writes}
UPSERTS = {
    "PUT /coach/customers/by-external-id/{externalId}",
    "PUT /coach/customers/{customerId}/wblocks/by-external-id/{externalId}",
    "PUT /coach/programs/by-external-id/{externalId}",
    "PUT /exercises/by-external-id/{externalId}",
}
CANNOT_KEEP = {
    "DELETE /auth/second-factor",
    "DELETE /auth/passkeys/{passkeyId}",
    "DELETE /coach/employees/{employeeId}/second-factor",
    "DELETE /coach/customers/{customerId}/second-factor",
    "PATCH /coach/customers/groups/{name}",
    "DELETE /coach/message-templates/{messageTemplateId}",
    "DELETE /coach/customers/{customerId}/wblocks/{wblockId}/witems/{witemId}/media/{mediaId}",
    "PUT /coach/media/{mediaId}/reviewed",
    "DELETE /coach/media/{mediaId}/comments/{commentId}",
    "DELETE /customer/wblocks/{wblockId}/witems/{witemId}/media/{mediaId}",
    "DELETE /customer/media/{mediaId}/comments/{commentId}",
    "PATCH /me",
    "DELETE /coach/api-keys/{keyId}",
    "DELETE /coach/assistants/{assistantId}",
    "DELETE /coach/applications/{grantId}",
    "PUT /coach/customers/{customerId}/password",
    "DELETE /coach/customers/{customerId}/availability/{availabilityId}",
    "DELETE /customer/availability/{availabilityId}",
    "PUT /coach/customers/groups/{name}/program",
    "DELETE /coach/customers/groups/{name}/program",
    "PUT /customer/wblocks/{wblockId}/witems/{witemId}/sets",
    "DELETE /customer/wblocks/{wblockId}",
    "PUT /customer/me/password",
    "DELETE /push-subscriptions/{subscriptionId}",
    "DELETE /customer/push-subscriptions/{subscriptionId}",
    "PUT /coach/customers/{customerId}/visibility",
    "PUT /coach/customers/{customerId}/training-maxes/{exerciseId}",
    "DELETE /exercises/{exerciseId}/override",
    "DELETE /exercises/{exerciseId}/media/{mediaId}",
    "DELETE /coach/customers/{customerId}/metrics-sets/{metricsSetId}",
    "DELETE /coach/customers/{customerId}/metrics-sets/{metricsSetId}/metrics/{metricId}/history/{date}",
    "DELETE /customer/metrics-sets/{metricsSetId}/metrics/{metricId}/history/{date}",
    "PUT /coach/form-responses/{responseId}/reviewed",
    "PUT /coach/customers/{customerId}/messages/read",
    "DELETE /customer/messages/{messageId}",
    "PUT /customer/messages/read",
    "PUT /coach/attention/{customerId}",
    "DELETE /customer/progress-photos/{photoId}",
    "DELETE /coach/customers/{customerId}/calendar-link",
}
# Tried below: the examples name a client, and an exercise, that they cannot be used on.
OWN_TEST = {
    "PUT /coach/customers/archive",
    "PUT /coach/customers/unarchive",
    "PUT /exercises/{exerciseId}/override",
}
KEEP = sorted(name for name in WRITES if not name.startswith("POST") and name not in CANNOT_KEEP)
STALE = '"987654"'
UNUSUAL = (f"W/{STALE}", "3", '"x"', "")


def read_of(route: Route) -> Route | None:
    return find_version_read(route, ROUTES)


async def send(company: CoachClient, world: World, route: Route, **headers: str) -> Reply:
    """Call an operation with its example and these headers."""
    reply: Reply = await call(company, route, fill_path(route, world), world, headers=headers)
    return reply


def test_which_operations_keep_the_headers() -> None:
    assert {name for name, route in WRITES.items() if takes_if_match(route, read_of(route))} == set(KEEP)
    assert {name for name, route in WRITES.items() if takes_if_none_match(route)} == UPSERTS


async def test_a_condition_that_cannot_be_kept_is_refused(shared_company: CoachClient, shared_world: World) -> None:
    for name in sorted(WRITES.keys() - set(KEEP)):
        route = WRITES[name]
        for header, value in (("If-Match", '"0"'), ("If-None-Match", "*")):
            reply = await send(shared_company, shared_world, route, **{header: value})
            assert reply.refused(400)["code"] == "NOT_SUPPORTED", (name, header)


async def test_another_version_is_refused(shared_company: CoachClient, shared_world: World) -> None:
    """Weak tags, tags that are no versions, and the version before: nothing is written."""
    for number, name in enumerate(sorted(set(KEEP) - OWN_TEST)):
        route = WRITES[name]
        read = read_of(route)

        before = await send(shared_company, shared_world, read) if read is not None else None
        others = UNUSUAL if MORE > 1 else (UNUSUAL[number % len(UNUSUAL)],)
        for condition in (STALE, *others):
            reply = await send(shared_company, shared_world, route, **{"If-Match": condition})
            assert reply.refused(412)["code"] == "VERSION_CONFLICT", (name, condition)
        if route.path.startswith("/coach") and name not in UPSERTS:
            reply = await send(shared_company, shared_world, route, **{"If-Match": '"1", "2"'})
            assert reply.refused(400)["code"] == "NOT_SUPPORTED", name
        if read is not None and before is not None:
            after = await send(shared_company, shared_world, read)
            assert (after.json, after.headers["ETag"]) == (before.json, f'"{before.json["version"]}"'), name


async def test_the_tag_of_a_record_is_the_condition_of_its_next_change(coach: CoachClient) -> None:
    created = await coach.post("/coach/customers", {"name": "Ana", "sendInvitation": False})
    path = f"/coach/customers/{created.ok(201)['_id']}"
    assert created.headers["ETag"] == '"0"'
    read = await coach.get(path, headers={"Accept-Encoding": "gzip"})
    assert read.headers["ETag"] == '"0"', "also when the body is compressed"

    first, second = await asyncio.gather(
        *(coach.patch(path, {"name": name}, headers={"If-Match": '"0"'}) for name in ("Ann", "Anna"))
    )
    changed, refused = sorted((first, second), key=lambda reply: reply.status)
    assert (changed.ok()["version"], changed.headers["ETag"]) == (1, '"1"')
    assert refused.refused(412)["code"] == "VERSION_CONFLICT"
    # The body's own version answers with 409, and both have to agree.
    assert (await coach.patch(path, {"name": "B", "version": 0})).refused(409)["code"] == "VERSION_CONFLICT"
    (await coach.patch(path, {"name": "B", "version": 0}, headers={"If-Match": '"1"'})).refused(412)
    (await coach.patch(path, {}, headers={"If-Match": '"0"'})).refused(412)
    (await coach.patch(path, {"name": "B"}, headers={"If-Match": "*"})).ok()
    assert (await coach.get(path, headers={"If-None-Match": '"2"'})).ok()["version"] == 2

    (await coach.delete(path, headers={"If-Match": '"1"'})).refused(412)
    (await coach.delete(path, headers={"If-Match": '"2"'})).ok(204)
    (await coach.delete(path, headers={"If-Match": '"2"'})).refused(404)


async def test_archiving_and_overrides_keep_the_condition(coach: CoachClient) -> None:
    customer = await coach.create_customer()
    for path, body in (("archive", {"id": customer["_id"]}), ("unarchive", {"id": customer["_id"]})):
        (await coach.put(f"/coach/customers/{path}", body, headers={"If-Match": STALE})).refused(412)
    (await coach.put("/coach/customers/archive", {"id": customer["_id"]}, headers={"If-Match": '"0"'})).ok()
    shared = (await coach.get("/exercises/unified", type="public", pageSize=1, pageNum=1)).ok()["docs"][0]
    override = f"/exercises/{shared['_id']}/override"
    own = await coach.put(override, {"defaultInstructions": "Slowly."})
    (await coach.put(override, {"defaultInstructions": "Fast."}, headers={"If-Match": STALE})).refused(412)
    (await coach.put(override, {"defaultInstructions": "Calmly."}, headers={"If-Match": own.headers["ETag"]})).ok()


async def test_an_item_has_the_version_of_its_block(coach: CoachClient) -> None:
    customer = await coach.create_customer()
    block = await coach.schedule(customer)
    items = f"/coach/customers/{customer['_id']}/wblocks/{block['_id']}/witems"
    created = await coach.post(items, {"type": "TASK", "taskFields": {"title": "Walk"}})
    item, tag = created.ok(201), created.headers["ETag"]
    (await coach.patch(f"{items}/{item['_id']}", {"taskFields": {"title": "Run"}}, headers={"If-Match": tag})).ok()
    (await coach.delete(f"{items}/{item['_id']}", headers={"If-Match": tag})).refused(412)
    version = (await coach.get(f"/coach/customers/{customer['_id']}/wblocks/{block['_id']}")).ok()["version"]
    (await coach.delete(f"{items}/{item['_id']}", headers={"If-Match": f'"{version}"'})).ok(204)


async def test_a_repeated_creation_has_the_same_tag(coach: CoachClient) -> None:
    key = {"Idempotency-Key": "again"}
    replies = [await coach.post("/coach/programs", {"name": "Base"}, headers=key) for _ in range(2)]
    assert [reply.headers["ETag"] for reply in replies] == ['"0"', '"0"']


async def test_only_new_records_are_created(coach: CoachClient) -> None:
    path, body = "/coach/programs/by-external-id/p1", {"name": "Base"}
    (await coach.put(path, body, headers={"If-Match": '"0"'})).refused(412)
    (await coach.put(path, body, headers={"If-Match": "*"})).refused(412)
    assert not (await coach.get("/coach/programs", archived="false", pageSize=5, pageNum=1)).ok()["docs"]
    replies = await asyncio.gather(*(coach.put(path, body, headers={"If-None-Match": "*"}) for _ in range(3)))
    assert sorted(reply.status for reply in replies) == [201, 412, 412]
    refused = await coach.put(path, {"name": "Other"}, headers={"If-None-Match": "*"})
    assert refused.refused(412)["code"] == "ALREADY_EXISTS"
    changed = await coach.put(path, {"name": "Other"}, headers={"If-Match": '"0"'})
    assert (changed.ok()["name"], changed.headers["ETag"]) == ("Other", '"1"')
    for condition in ('"0"', "* , *"):
        refused = await coach.put(path, body, headers={"If-None-Match": condition})
        assert refused.refused(400)["code"] == "NOT_SUPPORTED"


async def test_a_dry_run_compares_too(coach: CoachClient) -> None:
    customer = await coach.create_customer()
    block = {"name": "Legs", "date": MONDAY}
    path = f"/coach/customers/{customer['_id']}/wblocks/by-external-id/b1"
    (await coach.put(path, block, headers={"If-None-Match": "*"})).ok(201)
    (await coach.put(path, block, headers={"If-None-Match": "*"})).refused(412)
