"""Services that tests start and stop."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp.test_utils import TestServer
from pymongo import MongoClient

from coaching_service import runtime
from coaching_service.app import create_app
from coaching_service.core.database.context import Context
from coaching_service.core.ids import ObjectId
from coaching_service.library.exercises import service as exercises
from coaching_service.people import api_keys, team
from coaching_service.settings import Settings
from tests.reliability.replica_set import ReplicaSet, running_replica_set
from tests.support.client import CoachClient
from tests.support.drill import database_of, require_whole
from tests.support.own_application import OwnApplication, running_application
from tests.support.sampled import MORE
from tests.support.service_process import Service


@pytest.fixture
async def service(tmp_path: Path) -> AsyncIterator[Service]:
    """A service for a test to start and stop; its folder does not exist yet."""
    instance = Service(tmp_path / "data")
    try:
        yield instance
    finally:
        await instance.clean_up()


@pytest.fixture
def own_database(settings: Settings) -> Iterator[dict[str, str]]:
    """Settings that name a new database on the server of the tests: a service that ends may write after the deletion."""
    name = f"{settings.mongodb_database}_served_{ObjectId()}"
    yield {
        "MONGODB_URI": str(settings.mongodb_uri),
        "MONGODB_DATABASE": name,
        "SECRET_KEYS": ",".join(settings.secret_keys),
    }
    with MongoClient[Any](str(settings.mongodb_uri)) as client:
        client.drop_database(name)


@pytest.fixture(scope="package" if MORE == 1 else "module")
async def application(settings: Settings, password_hash: str) -> AsyncIterator[OwnApplication]:
    """An application on a database of its own, for tests that kill other processes on it; after them it has to be whole.

    In the proofs it is another one for each module.
    """
    async with running_application(settings, "killed", password_hash) as running:
        await exercises.publish_shared(running.services)
        yield running
        await running.require_whole()


@pytest.fixture
async def coach(application: OwnApplication) -> AsyncIterator[CoachClient]:
    """A company's owner on that application."""
    client = await application.new_coach()
    yield client
    await client.close()


@pytest.fixture(scope="package")
def replica_set(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ReplicaSet]:
    """A replica set of three members."""
    with running_replica_set(tmp_path_factory.mktemp("replica-set")) as running:
        yield running


@pytest.fixture(scope="package")
async def replica_set_coach(replica_set: ReplicaSet, settings: Settings) -> AsyncIterator[CoachClient]:
    """A coach of a service on that replica set; after the tests that freeze members of it, it has to be whole."""
    own = settings.model_copy(
        update={"mongodb_uri": replica_set.uri, "database_timeout_seconds": 10, "database_response_seconds": 2}
        | {"webhooks_allow_http": True, "webhooks_allow_private": True}
    )
    async with runtime.open_services(own) as services:
        await runtime.make_indexes(services)
        owner = await team.create_company(Context(services), "Faults", "Olga", "olga@faults.test", "no hash")
        ctx = Context(services).acting_as(owner)
        key = (await api_keys.create(ctx, "Test"))["key"]
        async with TestServer(create_app(own, services)) as server:
            client = CoachClient(server, key, ctx)
            yield client
            await require_whole(str(server.make_url("")).rstrip("/"), str(key), **database_of(own))
            await client.close()
