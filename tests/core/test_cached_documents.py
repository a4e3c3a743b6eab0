"""What changes documents that other processes cache returns when none of them uses an earlier state."""

from __future__ import annotations

import ast
import asyncio
import inspect
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

import pytest
from aiohttp.test_utils import TestServer

from coaching_service import runtime
from coaching_service.app import create_app
from coaching_service.core.database import across_companies
from coaching_service.core.database.context import Context, Services, in_transaction
from coaching_service.core.database.documents import Documents, now, registry
from coaching_service.core.errors import InvalidApiKey
from coaching_service.core.ids import ObjectId
from coaching_service.library.exercises import store as exercise_store
from coaching_service.lifecycle import administration
from coaching_service.lifecycle.administration import Operator
from coaching_service.people import account, api_keys, team
from coaching_service.people.api_keys import ApiKey, keys
from coaching_service.settings import Settings
from tests.conftest import PASSWORD
from tests.people.test_second_factor import address, answer, challenged, code_of, employee_of, set_up, sign_in
from tests.support.client import CoachClient, Reply
from tests.support.syntax import parse
from tests.support.transfer import export

SECONDS = 0.25
Write = Callable[[Context, ApiKey], Awaitable[Any]]

# Every write of stored documents, on a key. Those of documents that are new, or that are not cached, are in NOT_CACHED.
WRITES: dict[str, Write] = {
    "update": lambda ctx, key: keys.update(ctx, {"_id": key["_id"]}, {"$set": {"name": "b"}}),
    "rewrite": lambda ctx, key: keys.rewrite(ctx, {"_id": key["_id"]}, lambda _: {"name": "b"}),
    "rewrite_each": lambda ctx, key: keys.rewrite_each(ctx, [(key, {"name": "b"})]),
    "upsert": lambda ctx, key: keys.upsert(ctx, {"_id": key["_id"]}, {"name": "b"}),
    "upsert_many": lambda ctx, key: keys.upsert_many(ctx, ("_id",), [{"_id": key["_id"], "name": "b"}]),
    "update_many": lambda ctx, key: keys.update_many(ctx, {"_id": key["_id"]}, {"$set": {"name": "b"}}),
    "update_each": lambda ctx, key: keys.update_each(ctx, {"_id": key["_id"]}, {"name": "b"}),
    "restore_each": lambda ctx, key: keys.restore_each(ctx, [({**key}, {"$set": {"name": "b"}}, {**key, "name": "b"})]),
    "delete": lambda ctx, key: keys.delete(ctx, {"_id": key["_id"]}),
    "delete_many": lambda ctx, key: keys.delete_many(ctx, {"_id": key["_id"]}),
}
DERIVED: dict[str, Write] = {
    "set_derived": lambda ctx, key: keys.set_derived(ctx, {"_id": key["_id"]}, {"$set": {"name": "b"}}),
    "set_derived_and_read": lambda ctx, key: keys.set_derived_and_read(
        ctx, {"_id": key["_id"]}, {"$set": {"name": "b"}}, ("name",)
    ),
    "set_derived_each": lambda ctx, key: keys.set_derived_each(ctx, [({"_id": key["_id"]}, {"$set": {"name": "b"}})]),
    "increment_each": lambda ctx, key: keys.increment_each(ctx, [({"_id": key["_id"]}, {"uses": 1})] * 2),
}
NOT_CACHED = {
    "acquire",
    "release",
    "store_now",
    "write_each",
    "renew",
    "claim",
    "import_many",
    "insert",
    "insert_computed",
    "insert_many",
    "insert_or_count",
    "reinsert",
    "erase_batch",
    "increment",
    "upsert_not_durable",
}
READS = {
    "aggregate",
    "count",
    "count_backlog",
    "is_held",
    "find",
    "find_one",
    "find_whole",
    "list_ids_after",
}


def test_every_write_is_covered() -> None:
    methods = {
        name
        for writer in (Documents, across_companies)
        for name, each in inspect.getmembers(writer, inspect.iscoroutinefunction)
        if not name.startswith("_")
    }
    assert methods == {*WRITES, *DERIVED, *NOT_CACHED, *READS}


def test_what_is_cached_is_what_keys_are_read_with() -> None:
    cached = {name for name, each in registry.items() if each.is_cached}
    assert cached == {"apiKeys", "coaches", "companies"}
    assert Services.__dataclass_fields__["cache_seconds"].default == SECONDS


def test_few_functions_write_without_waiting() -> None:
    """What they change decides no access: when a key was used, and under which master key it is encrypted."""
    writes = {
        "bulk_write",
        "delete_many",
        "delete_one",
        "find_one_and_update",
        "replace_one",
        "update_many",
        "update_one",
    }
    functions = {
        (module.__name__.removeprefix("coaching_service."), function.name)
        for module in (team, account, api_keys, across_companies.Sealed)
        for function in ast.walk(parse(inspect.getsource(module)))
        if isinstance(function, ast.AsyncFunctionDef)
        for each in ast.walk(function)
        if isinstance(each, ast.Attribute) and each.attr in writes and not isinstance(each.value, ast.Name)
    }
    assert functions == {("Sealed", "rotate_master_key"), ("people.team", "set_last_used")}


@pytest.fixture
async def key(coach: CoachClient) -> ApiKey:
    """A stored key."""
    created = await api_keys.create(coach.ctx, "a")
    stored = await keys.find_one(coach.ctx, {"_id": created["_id"]})
    assert stored is not None
    return stored


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
async def test_a_write_outside_of_a_transaction_waits(coach: CoachClient, key: ApiKey, write: Write) -> None:
    began = time.monotonic()
    await write(coach.ctx, key)
    assert time.monotonic() - began >= SECONDS
    stored = await coach.ctx.db["apiKeys"].find_one({"_id": key["_id"]})
    assert stored is None or stored["name"] == "b"


@pytest.mark.parametrize("write", [*WRITES.values(), *DERIVED.values()], ids=[*WRITES, *DERIVED])
async def test_a_transaction_waits_after_its_commit(coach: CoachClient, key: ApiKey, write: Write) -> None:
    began = time.monotonic()
    await in_transaction(coach.ctx, lambda tx: write(tx, key))
    assert time.monotonic() - began >= SECONDS


async def test_counts_and_computed_documents_cannot_be_cached(coach: CoachClient) -> None:
    services, where = coach.ctx.services, {"companyId": coach.ctx.company_id}
    with pytest.raises(RuntimeError, match="cached"):
        await across_companies.increment(keys, services, [(where, {"uses": 1})])
    with pytest.raises(RuntimeError, match="cached"):
        await across_companies.insert_computed(keys, coach.ctx, {ObjectId(): {"companyId": coach.ctx.company_id}})
    with pytest.raises(RuntimeError, match="cached"):
        await across_companies.upsert_not_durable(keys, services, ObjectId(), [{"$set": {"uses": 1}}])


@pytest.mark.parametrize("write", DERIVED.values(), ids=DERIVED)
async def test_a_write_without_a_transaction_is_refused(coach: CoachClient, key: ApiKey, write: Write) -> None:
    with pytest.raises(RuntimeError, match="transactional"):
        await write(coach.ctx, key)


# --- every way to end or to change access ----------------------------------------------------------------------------


@dataclass(frozen=True)
class World:
    """A company at one process: the owner's session, and an employee with a key."""

    coach: CoachClient
    owner: CoachClient
    key: str
    employee_path: str
    exercise_path: str

    @property
    def operator(self) -> Operator:
        return Operator(self.coach.ctx.services, "root")

    @property
    def company_id(self) -> ObjectId:
        return self.coach.ctx.company_id


@pytest.fixture
async def world(coach: CoachClient, interactive: CoachClient, password_hash: str) -> World:
    email = f"eli@{coach.ctx.company_id}.test"
    employee = await team.create(coach.ctx, "Eli", email, ["exercises.view"], "all", password_hash)
    principal = await team.get_principal(coach.ctx.services, employee["_id"])
    assert principal is not None
    key = (await api_keys.create(coach.ctx.acting_as(principal), "Eli's"))["key"]
    exercise = (await coach.get("/exercises/unified", pageSize=1, pageNum=1)).ok()["docs"][0]
    return World(coach, interactive, key, f"/coach/employees/{employee['_id']}", f"/exercises/{exercise['_id']}")


@pytest.fixture
async def elsewhere(settings: Settings, world: World) -> AsyncIterator[CoachClient]:
    """The key at another process of the service."""
    async with runtime.open_services(settings) as services, TestServer(create_app(settings, services)) as server:
        client = CoachClient(server, world.key, None)
        yield client
        await client.close()


Change = Callable[[World], Awaitable[Any]]
Answer = Callable[[Reply], Any]


async def delete_key(world: World) -> None:
    [key] = [each for each in (await world.owner.get("/coach/api-keys")).ok() if each["name"] == "Eli's"]
    (await world.owner.delete(f"/coach/api-keys/{key['_id']}")).ok(204)


async def set_permissions(world: World) -> None:
    body = {"permissions": ["metrics.view"], "customersScope": "assigned"}
    (await world.owner.put(f"{world.employee_path}/permissions", body)).ok()


async def rename_employee(world: World) -> None:
    (await world.owner.patch(world.employee_path, {"name": "Elias"})).ok()


async def remove_employee(world: World) -> None:
    (await world.owner.delete(world.employee_path)).ok(204)


async def suspend_company(world: World) -> None:
    await administration.suspend_company(world.operator, world.company_id, "not paid")


async def delete_company(world: World) -> None:
    (await world.owner.send("DELETE", "/coach/account", json={"password": PASSWORD})).ok(204)


def status(reply: Reply) -> int:
    return reply.status


def permissions(reply: Reply) -> Any:
    return reply.ok()["permissions"]


def name(reply: Reply) -> Any:
    return reply.ok()["name"]


# The change, and what it changes at the other process: the path, what of its response, and that before and after.
CHANGES: dict[str, tuple[Change, str, Answer, Any, Any]] = {
    "key deleted": (delete_key, "/me", status, 200, 401),
    "permissions set": (set_permissions, "/me", permissions, ["exercises.view"], ["metrics.view"]),
    "permission withdrawn": (set_permissions, "EXERCISE", status, 200, 403),
    "employee renamed": (rename_employee, "/me", name, "Eli", "Elias"),
    "employee removed": (remove_employee, "/me", status, 200, 401),
    "company suspended": (suspend_company, "/me", status, 200, 403),
    "company deleted": (delete_company, "/me", status, 200, 401),
}


@pytest.mark.parametrize(("change", "path", "answer", "before", "after"), CHANGES.values(), ids=CHANGES)
async def test_the_next_request_to_another_process_sees_a_change(
    world: World, elsewhere: CoachClient, change: Change, path: str, answer: Answer, before: Any, after: Any
) -> None:
    path = world.exercise_path if path == "EXERCISE" else path

    async def use() -> None:
        while True:  # so that the key is read just before the change is committed
            await elsewhere.get(path)

    assert answer(await elsewhere.get(path)) == before
    using = asyncio.create_task(use())
    await change(world)
    using.cancel()
    await asyncio.gather(using, return_exceptions=True)
    assert answer(await elsewhere.get(path)) == after


async def test_the_first_override_applies_at_another_process(world: World, settings: Settings) -> None:
    exercise_id = ObjectId(world.exercise_path.rpartition("/")[2])
    async with runtime.open_services(settings) as services:
        await api_keys.authenticate(services, world.key)
        body: dict[str, object] = {"videoLink": None, "defaultInstructions": "Heels down.", "aliases": []}
        (await world.coach.put(f"{world.exercise_path}/override", body)).ok()
        ctx = Context(services, await api_keys.authenticate(services, world.key))
        assert await exercise_store.find_own_instructions(ctx, [exercise_id]) == {exercise_id: "Heels down."}


async def test_an_export_after_the_first_load_says_that_there_are_loads(coach: CoachClient, settings: Settings) -> None:
    services = replace(coach.ctx.services, cache_seconds=3600)
    async with TestServer(create_app(settings, services)) as server:
        here = CoachClient(server, coach.key, replace(coach.ctx, services=services))
        assert json.loads((await export(here))["account.json"])["hasStoredLoads"] is False
        await in_transaction(coach.ctx, account.lock_stored_unit)
        assert json.loads((await export(here))["account.json"])["hasStoredLoads"] is True
        await here.close()


async def test_both_of_two_revocations_wait(world: World) -> None:
    """The second one, which finds no key, must not be answered before the first."""
    [key] = [each for each in (await world.owner.get("/coach/api-keys")).ok() if each["name"] == "Eli's"]

    async def revoke() -> tuple[int, bool]:
        began = time.monotonic()
        reply = await world.owner.delete(f"/coach/api-keys/{key['_id']}")
        return reply.status, time.monotonic() - began >= SECONDS

    assert sorted(await asyncio.gather(revoke(), revoke())) == [(204, True), (404, True)]


async def test_a_request_that_waits_holds_no_slot(coach: CoachClient, settings: Settings) -> None:
    services = replace(coach.ctx.services, cache_seconds=3)
    one_slot = settings.model_copy(update={"database_concurrency": 1})
    async with TestServer(create_app(one_slot, services)) as server:
        here = CoachClient(server, coach.key, replace(coach.ctx, services=services))
        owner = await here.interactive()
        changing = asyncio.create_task(owner.patch("/coach/account", {"timezone": "Asia/Tokyo"}))
        while (await here.get("/coach/account")).ok()["timezone"] != "Asia/Tokyo":
            assert not changing.done()
        assert not changing.done()
        (await changing).ok()
        await here.close()


async def test_a_company_that_has_changed_applies_at_another_process(world: World, settings: Settings) -> None:
    async with runtime.open_services(settings) as services:
        assert (await api_keys.authenticate(services, world.key)).company.timezone == "UTC"
        (await world.owner.patch("/coach/account", {"timezone": "Asia/Tokyo", "loadUnit": "lb"})).ok()
        company = (await api_keys.authenticate(services, world.key)).company
    assert (company.timezone, company.load_unit) == ("Asia/Tokyo", "lb")


async def test_a_key_expires_while_it_is_cached(coach: CoachClient, monkeypatch: pytest.MonkeyPatch) -> None:
    created = await api_keys.create(coach.ctx, "Short", {"expiresAt": now() + timedelta(hours=1)})
    services = replace(coach.ctx.services, cache_seconds=3600)
    await api_keys.authenticate(services, created["key"])
    await coach.ctx.db["apiKeys"].delete_one({"_id": created["_id"]})
    await api_keys.authenticate(services, created["key"])
    monkeypatch.setattr("coaching_service.people.api_keys.now", lambda: now() + timedelta(hours=2))
    with pytest.raises(InvalidApiKey):
        await api_keys.authenticate(services, created["key"])


@pytest.mark.usefixtures("no_failed_sign_ins")
async def test_processes_share_codes_challenges_failures_and_the_rule(
    coach: CoachClient, anonymous: CoachClient, settings: Settings
) -> None:
    """What one process has accepted or counted, or what the owner has changed there, holds for the next request of another."""
    owner = await coach.interactive()
    employee_id, email = await employee_of(coach, anonymous)
    employee = anonymous.with_bearer((await sign_in(anonymous, email)).ok()["accessToken"])
    bearer = {"Authorization": employee.headers["Authorization"]}
    secret, codes = await set_up(owner)
    async with runtime.open_services(settings) as services, TestServer(create_app(settings, services)) as server:
        other = CoachClient(server, None, None)

        async def there(challenge: str, **given: str) -> int:
            return (await other.post("/auth/second-factor", {"challenge": challenge, **given})).status

        async def read(path: str) -> int:
            return (await other.send("GET", path, headers=bearer)).status

        assert await read("/coach/account") == 200
        (await owner.patch("/coach/account", {"requireSecondFactor": True})).ok()
        assert await read("/coach/account") == 403, "the rule"
        assert await read("/me") == 200
        challenge, second = await challenged(anonymous, address(coach)), await challenged(anonymous, address(coach))
        assert await there(challenge, code=code_of(secret)) == 200, "the challenge of another process"
        (await answer(anonymous, challenge, code=code_of(secret, 1))).refused(401), "it was used there"
        (await answer(anonymous, second, code=code_of(secret))).refused(401), "so was the step"
        (await answer(anonymous, second, recoveryCode=codes[0])).ok()
        third = await challenged(anonymous, address(coach))
        assert await there(third, recoveryCode=codes[0]) == 401
        for _ in range(2):
            assert await there(third, code="000000") == 401
            await answer(anonymous, third, code="000000")
        assert await there(third, code="000000") == 429, "failures of both are counted together"
        (await owner.delete(f"/coach/employees/{employee_id}/second-factor")).ok(204)
        await set_up(employee)
        assert await read("/coach/account") == 200
        (await owner.delete(f"/coach/employees/{employee_id}/second-factor")).ok(204)
        assert await read("/me") == 401, "the reset ends sessions"
        await other.close()
