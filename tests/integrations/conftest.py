"""A company with data of every kind."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from aiohttp.test_utils import TestServer

from coaching_service.core.database.context import Context, Services
from coaching_service.core.ids import ObjectId
from coaching_service.demo import ensure_demo
from coaching_service.people import team
from tests.support.client import CoachClient


@pytest.fixture
async def services_with_demo(services: Services, server: TestServer) -> AsyncIterator[CoachClient]:
    """The owner of the demo company."""
    facts = await ensure_demo(services)
    owner = await team.get_owner(services, ObjectId(facts["companyId"]))
    client = CoachClient(server, facts["apiKey"], Context(services).acting_as(owner))
    yield client
    await client.close()
