"""Every POST that changes coaching data is executed once for each `Idempotency-Key`; the others refuse or ignore it.

test_retried_transactions.py calls all of them twice.
"""

from __future__ import annotations

import asyncio
import secrets
from dataclasses import replace
from typing import Any

import pytest

from coaching_service import features
from coaching_service.core.database.context import Context
from coaching_service.core.http.routes import Route, routes_of
from coaching_service.core.idempotency import Claim, StoredResponse, run_once
from coaching_service.core.ids import ObjectId
from tests.contract.test_declared import call, fill_path
from tests.support.client import MONDAY, SUNDAY, UNKNOWN, CoachClient, Reply
from tests.support.declared_world import World
from tests.support.service_process import until
from tests.support.training import block_with, exercise_of

# Contract 1: keys, team and invitations refuse a key; sign-in and impersonation ignore it.
REFUSED = {
    "POST /coach/api-keys",
    "POST /coach/employees",
    "POST /coach/customers/{customerId}/invitation",
    "POST /coach/sandbox",
    "POST /push-subscriptions",
    "POST /customer/push-subscriptions",
}
IGNORED = {
    "POST /auth/register",
    "POST /auth/confirm-email",
    "POST /auth/confirm-email/resend",
    "POST /auth/login",
    "POST /auth/second-factor",
    "POST /auth/second-factor/totp",
    "POST /auth/second-factor/totp/confirm",
    "POST /auth/second-factor/options",
    "POST /auth/passkeys/options",
    "POST /auth/passkeys",
    "POST /auth/refresh",
    "POST /auth/logout",
    "POST /auth/password/forgot",
    "POST /auth/password/reset",
    "POST /auth/first-access",
    "POST /coach/customers/{customerId}/impersonate",
}
CHANGES_NOTHING = {"POST /exercises/resolve"}
CONVERSION = "POST /coach/account/load-unit"  # the other operations of a company are refused meanwhile


def name_of(route: Route) -> str:
    return f"{route.method} {route.path}"


def without_dry_run(route: Route) -> Route:
    example = route.example
    return replace(route, example={each: example[each] for each in example if each != "dryRun"} if example else example)


POSTS = {name_of(route): route for route in routes_of(features.ROUTES) if route.method == "POST"}
EXECUTED_ONCE = POSTS.keys() - REFUSED - IGNORED - CHANGES_NOTHING


def test_which_operations_take_a_key() -> None:
    assert {name for name, route in POSTS.items() if route.idempotent} == EXECUTED_ONCE
    assert {name for name, route in POSTS.items() if route.refuses_key} == REFUSED
    assert not [route for route in routes_of(features.ROUTES) if route.method != "POST" and route.idempotent]


def assert_repeated(first: Reply, second: Reply, name: str) -> None:
    """Assert that a repeated request was executed once and has the first response again."""
    assert "Idempotent-Replayed" not in first.headers, name
    assert (second.status, second.json) == (first.status, first.json), name
    assert second.headers["Idempotent-Replayed"] == "true", name
    assert without_own_headers(second) == without_own_headers(first), name


def without_own_headers(reply: Reply) -> dict[str, str]:
    """The headers of a response without those that belong to one request."""
    own = {"date", "x-request-id", "idempotent-replayed"}
    return {name: value for name, value in reply.headers.items() if name.lower() not in own}


@pytest.mark.parametrize("prefer", ["respond-async", 'handling=strict, Respond-Async; x="y"'])
async def test_a_repetition_of_a_request_for_a_job_has_the_same_headers(coach: CoachClient, prefer: str) -> None:
    ids = [(await coach.create_customer())["_id"]]
    headers = {"Prefer": prefer, "Idempotency-Key": "job"}
    archive = ("/coach/customers/bulk/archive", {"ids": ids})
    first, second = [await coach.post(*archive, headers=headers) for _ in range(2)]
    assert (second.ok(202), second.headers["Idempotent-Replayed"]) == (first.ok(202), "true")
    assert without_own_headers(second) == without_own_headers(first)
    assert ObjectId.is_valid(first.headers["X-Change-Id"])
    applied = "respond-async" if prefer == "respond-async" else "handling=strict, respond-async"
    assert first.headers["Preference-Applied"] == applied
    dry = await coach.post(archive[0], {"ids": ids, "dryRun": True}, headers={"Prefer": "respond-async"})
    assert (dry.ok()["ok"], dry.headers.get("Preference-Applied")) == (1, None)


async def test_a_conversion_of_loads_is_started_once(coach: CoachClient) -> None:
    body, key = {"loadUnit": "lb"}, {"Idempotency-Key": secrets.token_hex(8)}
    await start_with_a_load(coach)
    first = await coach.post("/coach/account/load-unit", body, headers=key)

    async def repeat() -> Reply | None:
        reply = await coach.post("/coach/account/load-unit", body, headers=key)
        return None if reply.status == 503 else reply  # 503 while the loads are being converted

    second = await until(repeat, "the loads are converted")
    assert (second.ok(202), second.headers["Idempotent-Replayed"]) == (first.ok(202), "true")
    assert await coach.ctx.db["companyJobs"].count_documents({"companyId": coach.ctx.company_id}) == 1


async def test_a_key_is_refused(shared_company: CoachClient, shared_world: World) -> None:
    for name in sorted(REFUSED):
        path = fill_path(POSTS[name], shared_world)
        reply = await call(shared_company, POSTS[name], path, shared_world, headers={"Idempotency-Key": "one"})
        assert reply.refused(400)["code"] == "IDEMPOTENCY_NOT_SUPPORTED", name


async def test_a_key_is_refused_only_after_access_is_checked(coach: CoachClient) -> None:
    reply = await coach.post("/coach/api-keys", {"name": "Extra"}, headers={"Idempotency-Key": "one"})
    assert reply.refused(403)["code"] == "SESSION_REQUIRED"


async def start_with_a_load(coach: CoachClient) -> None:
    customer, exercise = await coach.create_customer(), await coach.create_exercise()
    await block_with(coach, customer, exercise_of(exercise))


async def squat_loads(coach: CoachClient, customer: dict[str, Any]) -> list[float]:
    return [
        planned["load"]
        for block in await coach.calendar(customer)
        for item in block["items"]
        for planned in item["exerciseSets"]
    ]


async def test_a_relative_change_is_made_once(coach: CoachClient) -> None:
    customer, exercise = await coach.create_customer(), await coach.create_exercise()
    block = await coach.schedule(customer)
    client = f"/coach/customers/{customer['_id']}"
    (await coach.post(f"{client}/wblocks/{block['_id']}/witems", exercise_of(exercise))).ok(201)
    loads = await squat_loads(coach, customer)
    body = {"startDate": MONDAY, "endDate": SUNDAY, "progression": {"load": {"add": 5}}}

    replies = await asyncio.gather(
        *(coach.post(f"{client}/schedule/adjust", body, headers={"Idempotency-Key": "adjust"}) for _ in range(4))
    )

    assert {reply.status for reply in replies} <= {200, 409}
    assert all(reply.headers["Retry-After"] == "1" for reply in replies if reply.status == 409)
    assert await squat_loads(coach, customer) == [load + 5 for load in loads]
    other = await coach.post(
        f"{client}/schedule/adjust", {**body, "endDate": MONDAY}, headers={"Idempotency-Key": "adjust"}
    )
    assert other.refused(409)["code"] == "IDEMPOTENCY_KEY_REUSED"
    assert "Retry-After" not in other.headers


async def test_a_running_request_is_a_conflict_with_a_time_to_wait(coach: CoachClient) -> None:
    body, replies = {"name": "Ana"}, []

    async def work(_: Context) -> tuple[StoredResponse, None]:
        replies.append(await coach.post("/coach/customers", body, headers={"Idempotency-Key": "one"}))
        return StoredResponse(201, b"{}"), None

    await run_once(coach.ctx, Claim.of(coach.ctx, "one", "POST", "/coach/customers", body), None, work)

    assert replies[0].refused(409)["code"] == "IDEMPOTENCY_KEY_IN_USE"
    assert replies[0].headers["Retry-After"] == "1"


async def test_a_bulk_operation_that_was_cut_off_continues(coach: CoachClient) -> None:
    """Deleted clients are not reported as unknown by the repetition."""
    ids = [(await coach.create_customer(name))["_id"] for name in ("Ana", "Bo")]
    path, body, key = "/coach/customers/bulk/delete", {"ids": [*ids, UNKNOWN]}, {"Idempotency-Key": "delete"}
    first = (await coach.post(path, body, headers=key)).ok()
    assert (first["ok"], [each["customerId"] for each in first["failed"]]) == (2, [UNKNOWN])
    await coach.ctx.db["replays"].delete_one({"companyId": coach.ctx.company_id, "answer": {"$exists": True}})

    resumed = await coach.post(path, body, headers=key)

    assert "Idempotent-Replayed" not in resumed.headers
    assert resumed.ok() == first
    assert ObjectId.is_valid(resumed.headers["X-Change-Id"])


async def test_a_dry_run_of_a_bulk_operation_ignores_the_key(coach: CoachClient) -> None:
    customer = await coach.create_customer()
    path, key = "/coach/customers/bulk/archive", {"Idempotency-Key": "archive"}
    body = {"ids": [customer["_id"]]}
    assert (await coach.post(path, {**body, "dryRun": True}, headers=key)).ok()["ok"] == 1
    assert "Idempotent-Replayed" not in (await coach.post(path, body, headers=key)).headers
    assert (await coach.get(f"/coach/customers/{customer['_id']}")).ok()["customerRoleData"]["isArchived"] is True


@pytest.mark.parametrize("batch", [False, True], ids=["change", "batch"])
async def test_an_undo_that_was_cut_off_continues(coach: CoachClient, *, batch: bool) -> None:
    """The repetition counts what is undone already, and returns the same change."""
    customer = await coach.create_customer()
    if batch:
        archived = await coach.post("/coach/customers/bulk/archive", {"ids": [customer["_id"]]})
    else:
        archived = await coach.put("/coach/customers/archive", {"id": customer["_id"]})
    path, key = f"/coach/changes/{archived.headers['X-Change-Id']}/undo", {"Idempotency-Key": "undo"}
    first = (await coach.post(path, headers=key)).ok()
    assert (await coach.post(path, headers=key)).headers["Idempotent-Replayed"] == "true"
    await coach.ctx.db["replays"].delete_one({"companyId": coach.ctx.company_id, "answer": {"$exists": True}})

    resumed = await coach.post(path, headers=key)
    assert resumed.ok() == first
    assert resumed.headers["X-Change-Id"] == first["changeId"]
    again = await coach.post(path)
    assert again.ok()["ok"] == 0 if batch else again.refused(409)
