"""What every operation reads, writes, returns and logs: the shards that it needs, its example, and no secret.

The shard key of every collection: what is unique is unique on a cluster, and requests read the shards they need.
"""

from __future__ import annotations

import io
import json
import re
import sys
from collections.abc import AsyncIterator, Iterator
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import structlog
from aiohttp import web
from aiohttp.test_utils import TestServer
from aiohttp.typedefs import Handler
from click.testing import CliRunner
from pymongo.monitoring import CommandStartedEvent

from coaching_service import features, logs
from coaching_service.app import create_app
from coaching_service.command_line.group import main
from coaching_service.core.database.connection import CommandObserver
from coaching_service.core.database.context import Services
from coaching_service.core.database.declared import Placement, ShardKey
from coaching_service.core.database.documents import registry
from coaching_service.core.http.routes import Route, routes_of
from coaching_service.documentation.openapi import DRY_RUN_EXAMPLE
from coaching_service.settings import Settings
from tests.conftest import PASSWORD
from tests.contract import test_examples
from tests.contract.test_declared import OF_RECORDS, call, fill_path
from tests.contract.test_policy import assert_same, in_order, read_policy
from tests.support.client import CoachClient, Reply
from tests.support.declared_world import World
from tests.support.sampled import some

Command = dict[str, Any]


def describe_placement(placement: Placement) -> str:
    if not isinstance(placement, ShardKey):
        return "unsharded"
    return " ".join([*placement.fields, *(["hashed"] if placement.is_hashed else [])])


def test_every_collection_has_the_placement_of_the_policy() -> None:
    declared = [f"{name}: {describe_placement(each.placement)}" for name, each in registry.items()]
    assert_same("placements.txt", declared)


@cache
def read_shard_keys() -> dict[str, tuple[str, ...]]:
    """The fields of the shard key of each sharded collection, by the policy."""
    placements = dict(line.split(": ") for line in read_policy("placements.txt"))
    keys = {name: tuple(text.removesuffix(" hashed").split()) for name, text in placements.items()}
    return {name: key for name, key in keys.items() if key != ("unsharded",)}


def test_every_unique_index_begins_with_the_shard_key() -> None:
    """By the two policies alone: each shard enforces a unique index by itself, so equal keys must be on one shard."""
    keys, checked = read_shard_keys(), 0
    for line in read_policy("indexes.txt"):
        name, _, description = line.partition(": ")
        fields, *options = description.split(", ")
        if name in keys and "unique" in options:
            checked += 1
            assert tuple(fields.split())[: len(keys[name])] == keys[name], line
    assert checked > 15


in_request: ContextVar[bool] = ContextVar("in_request", default=False)


@web.middleware
async def mark_request(request: web.Request, handler: Handler) -> web.StreamResponse:
    in_request.set(True)
    return await handler(request)


@dataclass
class Recorded:
    """What one call of every operation has read and written, returned and logged."""

    company: CoachClient
    commands: list[Command] = field(default_factory=list)
    answers: list[tuple[str, bytes]] = field(default_factory=list)
    # Of the first call of each operation.
    statuses: dict[str, int] = field(default_factory=dict)
    # By operation, where the document has an example.
    responses: dict[str, Any] = field(default_factory=dict)
    log: str = ""

    async def call(self, client: CoachClient, route: Route, world: World) -> Reply:
        reply: Reply = await call(client, route, fill_path(route, world), world)
        self.statuses.setdefault(route.operation_id, reply.status)
        self.answers.append((f"{route.method} {route.path}", reply.raw))
        return reply


def in_order_of_calls() -> list[Route]:
    """Protected routes: reads, changes, deletions; what is in something else is deleted before it."""

    def rank(route: Route) -> int:
        if route.operation_id == "deleteOwnPushSubscription":
            return 1  # before a new password ends the session of the device
        if route.method == "DELETE":
            return 4 if route.operation_id == "deleteCustomer" else 3  # the client last, whose session others need
        return 0 if route.method == "GET" else 2

    deletions = in_order([each for each in routes_of(features.ROUTES) if each.method == "DELETE"])
    return sorted([*test_examples.in_order(routes_of(features.ROUTES)), *deletions], key=rank)


@pytest.fixture(scope="module")
async def recorded(
    settings: Settings, services: Services, company: CoachClient, world: World
) -> AsyncIterator[Recorded]:
    """The commands are those of requests that `mark_request` has seen, without background work; the log is at `debug`."""
    everything, log, before = Recorded(company), io.BytesIO(), structlog.get_config()
    stderr = io.TextIOWrapper(log, write_through=True)

    def record(_: CommandObserver, event: CommandStartedEvent) -> None:
        if in_request.get():
            everything.commands.append(dict(event.command))

    app = create_app(settings, services)
    app.middlewares.insert(0, mark_request)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stderr", stderr)
        logs.configure("json", "debug")  # a line of the console has the same fields
        async with TestServer(app) as server:
            caller, anonymous = CoachClient(server, company.key, company.ctx), CoachClient(server, None, None)
            await test_examples.train(caller, world)
            responses = everything.responses = await test_examples.special_responses(anonymous, caller)
            await caller.wait_until_numbered(world["changeId"])  # then the lists are not empty
            with pytest.MonkeyPatch.context() as recording:
                recording.setattr(CommandObserver, "started", record)
                for route in in_order_of_calls():
                    reply = await everything.call(caller, test_examples.unconditional(route), world)
                    has_example = route.method != "DELETE" and route.returns not in (None, bytes)
                    if has_example and route.operation_id not in responses:
                        responses[route.operation_id] = reply.ok(route.status)
                    if route.takes_dry_run and route.status == 201:
                        shown = await everything.call(caller, test_examples.as_dry_run(route), world)
                        responses[f"{route.operation_id}{DRY_RUN_EXAMPLE}"] = shown.ok(200)
                for route in routes_of(features.ROUTES):
                    if route.access.audience == "public":
                        await everything.call(anonymous, route, world)
            for route in some(routes_of(features.ROUTES), 40):
                example = route.example if route.multipart is None else None
                reply = await anonymous.send(route.method, fill_path(route, {}), json=example or {})
                everything.answers.append((f"{route.method} {route.path}", reply.raw))
            await anonymous.post("/auth/login", {"email": PRIVATE_EMAIL, "password": WRONG_PASSWORD})
            await anonymous.post("/auth/login", {"email": company.ctx.caller.email, "password": PASSWORD})
            await caller.close()
            await anonymous.close()
        structlog.configure(**before)
    everything.log = log.getvalue().decode()
    yield everything


def test_requests_read_and_write_only_the_shard_of_their_company(recorded: Recorded) -> None:
    """Every operation is called once. What it reads and writes without the shard key is in the policy, with a reason."""
    found = {line for command in list(recorded.commands) for line in exceptions_of(command)}
    listed = {line.partition(" -- ")[0] for line in read_policy("sharded_commands.txt")}
    assert len(recorded.commands) > 2_000
    assert (sorted(found - listed), sorted(listed - found)) == ([], [])
    assert not [line for line in listed if ": upsert " in line], "MongoDB refuses them without the shard key"


def test_the_response_examples_are_real_responses(recorded: Recorded) -> None:
    test_examples.compare_with_recorded(recorded.responses)


def test_identifiers_of_the_own_company_are_known(recorded: Recorded) -> None:
    """The identifiers that tests/hostile show to be unknown to another company exist."""
    statuses = {route.operation_id: (recorded.statuses[route.operation_id], route.status) for route in OF_RECORDS}
    # 409: the exercise of the example is not shared.
    assert {name: found for name, (found, expected) in statuses.items() if found not in (expected, 409)} == {}


PRIVATE_EMAIL, WRONG_PASSWORD = "very.private@example.com", "a wrong password"


async def test_responses_and_log_lines_contain_no_secret(recorded: Recorded, settings: Settings) -> None:
    """No answer, log line or error holds a password, hash, key (except create and reveal), token or master key."""
    stored = await stored_secrets(recorded.company)
    secrets_of_ours = {*stored, *settings.secret_keys, "argon2id"}
    for where, raw in recorded.answers:
        leaked = {secret for secret in secrets_of_ours if secret.encode() in raw}
        assert not leaked, where
    lines, owner = recorded.log, recorded.company
    assert "/coach/customers/{customerId}" in lines
    for secret in {
        *secrets_of_ours,
        str(owner.key),
        PASSWORD,
        WRONG_PASSWORD,
        PRIVATE_EMAIL,
        str(owner.ctx.caller.email),
    }:
        assert secret not in lines


async def stored_secrets(coach: CoachClient) -> set[str]:
    """Every hash stored for the company."""
    found: set[str] = set()
    for collection in ("apiKeys", "identities", "sessions", "passwordResets", "customers"):
        async for document in coach.ctx.db[collection].find({"companyId": coach.ctx.company_id}):
            text = json.dumps(document, default=str)
            found |= {part for part in text.split('"') if len(part) == 64 or part.startswith("$argon2")}
    assert len(found) > 4
    return found


def exceptions_of(command: Command) -> Iterator[str]:
    """How a command differs from one on a single shard: in a transaction of two shards, or without the shard key."""
    keys, in_transaction = read_shard_keys(), command.get("autocommit") is False
    for access in accesses_of(command):
        key = keys.get(access.collection)
        if key is not None and not set(key) <= access.where:
            yield f"{access.collection}: {access.kind} {' '.join(sorted(access.where))}".strip()
        if in_transaction and key != ("companyId",):
            yield f"transaction: {access.collection}"
        if in_transaction and key is not None and access.kind in ("lookup", "union"):
            yield f"transaction: {access.kind} {access.collection}"


@dataclass(frozen=True)
class Access:
    """What a command does to a collection, and the fields that it is restricted by."""

    collection: str
    kind: str
    where: set[str]


def accesses_of(command: Command) -> Iterator[Access]:
    """What a command reads and writes."""
    kind, collection = next(iter(command.items()))
    match kind:
        case "find" | "count" | "distinct":
            yield Access(collection, kind, set(command.get("filter") or command.get("query") or ()))
        case "findAndModify":
            yield Access(collection, "upsert", set(command["query"]))
        case "update":
            for each in command["updates"]:
                yield Access(collection, "upsert" if each.get("upsert") else kind, set(each["q"]))
        case "delete":
            for each in command["deletes"]:
                yield Access(collection, kind, set(each["q"]))
        case "insert":
            for document in command["documents"]:
                yield Access(collection, kind, set(document))
        case "aggregate":
            yield from accesses_of_pipeline(collection, command["pipeline"], kind, set())


def accesses_of_pipeline(collection: str, pipeline: list[Command], kind: str, joined: set[str]) -> Iterator[Access]:
    """What a pipeline reads, by its first stage and the field it is `joined` by, and what it joins."""
    first = pipeline[0] if pipeline else {}
    if "$changeStream" in first:
        kind = "watch"
    where = first.get("$match", {})
    compared = {field.removeprefix("$") for field in equal_fields(where.get("$expr", {}))}
    yield Access(collection, kind, joined | (set(where) - {"$expr"}) | compared)
    for stage in pipeline:
        if lookup := stage.get("$lookup"):
            field = {lookup["foreignField"]} if "foreignField" in lookup else set()
            yield from accesses_of_pipeline(lookup["from"], lookup.get("pipeline", []), "lookup", field)
        if union := stage.get("$unionWith"):
            yield from accesses_of_pipeline(union["coll"], union.get("pipeline", []), "union", set())


def equal_fields(expression: Command) -> Iterator[str]:
    """The fields that an expression requires to equal a variable."""
    for condition in expression.get("$and", [expression]):
        if isinstance(condition, dict) and isinstance(equal := condition.get("$eq"), list):
            yield from (each for each in equal if isinstance(each, str) and not each.startswith("$$"))


def test_the_plan_shards_what_is_declared() -> None:
    """What operators run is printed from the declarations."""
    result = CliRunner().invoke(main, ["shard", "--plan"], catch_exceptions=False)
    assert result.exit_code == 0
    sharded = set(re.findall(r'^sh.shardCollection\("coaching\.([^"]+)", ', result.output, re.MULTILINE))
    assert sharded == set(read_shard_keys())
    assert 'sh.shardCollection("coaching.customers", {"companyId": 1})' in result.output
    assert 'db.getCollection("rateLimits").createIndex({"_id": "hashed"})' in result.output

    company = ["--company", "65f000000000000000000aff", "--zone", "EU"]
    zone = CliRunner().invoke(main, ["shard", "--plan", *company]).output.splitlines()
    assert (
        'sh.updateZoneKeyRange("coaching.notes", {"companyId": ObjectId("65f000000000000000000aff")}, '
        '{"companyId": ObjectId("65f000000000000000000b00")}, "EU")'
    ) in zone
    assert CliRunner().invoke(main, ["shard"]).exit_code == 2


def test_the_documentation_says_how_queries_across_companies_behave() -> None:
    """Each collection that is read across companies, and each that is not sharded, is in docs/growing.md."""
    text = (Path(__file__).parents[2] / "docs/growing.md").read_text("utf-8")
    collections = registry
    expected = {name for name, each in collections.items() if each.cross_company_reason} | set(collections) - set(
        read_shard_keys()
    )
    assert sorted(name for name in expected if f"`{name}`" not in text) == []
