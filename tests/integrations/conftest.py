"""Companies with data of every kind."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest
from aiohttp.test_utils import TestServer

from coaching_service.core.auth import Principal
from coaching_service.core.database.context import Context, Services, in_transaction
from coaching_service.core.ids import ObjectId
from coaching_service.demo import create_assets, ensure_demo, fill_company, samples
from coaching_service.people import api_keys, team
from tests.support.client import CoachClient


@pytest.fixture
async def services_with_demo(services: Services, server: TestServer) -> AsyncIterator[CoachClient]:
    """The owner of the demo company."""
    facts = await ensure_demo(services)
    owner = await team.get_owner(services, ObjectId(facts["companyId"]))
    client = CoachClient(server, facts["apiKey"], Context(services).acting_as(owner))
    yield client
    await client.close()


@contextmanager
def few_samples(weeks: int, *names: str) -> Iterator[None]:
    """The sample data has these clients, or all, with at most so many weeks of training: all take seconds to create."""
    clients = [each for each in samples.CLIENTS if not names or each.name in names]
    few = tuple(replace(each, weeks=min(each.weeks, weeks)) for each in clients)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(samples, "CLIENTS", few)
        patch.setattr(
            samples, "COLLEAGUE", ("Eli Coach", "eli.samples@coaching.test")
        )  # the demo company uses the other address
        yield


@pytest.fixture(scope="session")
async def sampled_company(services: Services, server: TestServer, password_hash: str) -> AsyncIterator[CoachClient]:
    """The owner of a company like the demo company, with fewer clients and weeks, which tests do not change."""
    ctx = Context(services, operation="addSampleData")

    async def fill(tx: Context) -> Principal:
        name, email = "Samples", "samples@coaching.test"
        owner = await team.create_company(tx, name, "Sam Owner", email, password_hash, company_id=assets.company_id)
        await fill_company(tx, owner, assets, lambda _: None, password_hash)
        return owner

    with few_samples(5, "Ana", "Björn", "Chidi", "José", "Mei"):
        assets = await create_assets(ctx)
        ctx = ctx.acting_as(await in_transaction(ctx, fill))
    key = await api_keys.create(ctx, "Test", {"outreach": True})
    client = CoachClient(server, key["key"], ctx)
    yield client
    await client.close()
