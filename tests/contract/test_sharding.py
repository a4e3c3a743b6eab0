"""The shard key of every collection: what is unique is unique on a cluster, and requests read the shards they need."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from aiohttp.typedefs import Handler
from click.testing import CliRunner
from pymongo.monitoring import CommandStartedEvent

from coaching_service import features
from coaching_service.app import create_app
from coaching_service.command_line.group import main
from coaching_service.core.database.collections import Placement, ShardKey
from coaching_service.core.database.context import Services
from coaching_service.core.database.documents import declared_collections
from coaching_service.core.database.monitor import CommandObserver
from coaching_service.core.http.routes import routes_of
from coaching_service.settings import Settings
from tests.contract.test_declared import call, fill_path
from tests.contract.test_policy import assert_same, in_order, read_policy
from tests.support.client import CoachClient
from tests.support.declared_world import make_world

Command = dict[str, Any]


def describe_placement(placement: Placement) -> str:
    if not isinstance(placement, ShardKey):
        return "unsharded"
    return " ".join([*placement.fields, *(["hashed"] if placement.is_hashed else [])])


def test_every_collection_has_the_placement_of_the_policy() -> None:
    declared = [f"{name}: {describe_placement(each.placement)}" for name, each in declared_collections().items()]
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


@pytest.fixture
def commands(monkeypatch: pytest.MonkeyPatch) -> list[Command]:
    """The commands of requests that `mark_request` has seen; those of background work are left out."""
    seen: list[Command] = []

    def record(_: CommandObserver, event: CommandStartedEvent) -> None:
        if in_request.get():
            seen.append(dict(event.command))

    monkeypatch.setattr(CommandObserver, "started", record)
    return seen


@pytest.fixture
async def marking_server(settings: Settings, services: Services) -> AsyncIterator[TestServer]:
    """A server of the same services, with the middleware."""
    app = create_app(settings, services)
    app.middlewares.insert(0, mark_request)
    listening = TestServer(app)
    await listening.start_server()
    yield listening
    await listening.close()


async def test_requests_read_and_write_only_the_shard_of_their_company(
    coach: CoachClient, marking_server: TestServer, commands: list[Command]
) -> None:
    """Every operation is called once. What it reads and writes without the shard key is in the policy, with a reason."""
    world = await make_world(coach)
    caller, anonymous = CoachClient(marking_server, coach.key, coach.ctx), CoachClient(marking_server, None, None)
    try:
        for route in in_order(routes_of(features.ROUTES)):
            await call(caller, route, fill_path(route, world), world)
        for route in routes_of(features.ROUTES):
            if route.access.audience == "public":
                await call(anonymous, route, fill_path(route, world), world)
    finally:
        await caller.close()
        await anonymous.close()

    recorded = {line for command in list(commands) for line in exceptions_of(command)}
    listed = {line.partition(" -- ")[0] for line in read_policy("sharded_commands.txt")}
    assert len(commands) > 2_000
    assert (sorted(recorded - listed), sorted(listed - recorded)) == ([], [])
    assert not [line for line in listed if ": upsert " in line], "MongoDB refuses them without the shard key"


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
    collections = declared_collections()
    expected = {name for name, each in collections.items() if each.cross_company_reason} | set(collections) - set(
        read_shard_keys()
    )
    assert sorted(name for name in expected if f"`{name}`" not in text) == []
