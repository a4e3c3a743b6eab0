"""A company with something of every kind, whose only client is recognised by name."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from aiohttp.test_utils import TestServer

from coaching_service.demo import samples
from tests.conftest import NewCompany
from tests.contract.test_areas import NAME, Studio
from tests.integrations.conftest import few_samples
from tests.support.client import CoachClient
from tests.support.declared_world import World, make_world


@pytest.fixture(scope="module")
async def named_client(new_company: NewCompany, public_server: TestServer) -> Studio:
    """The company, its server, and the identifiers of everything; the client is NAME."""
    coach = await new_company()
    world = await make_world(coach)
    (await coach.patch(f"/coach/customers/{world['customerId']}", {"name": NAME})).ok()
    return Studio(coach, public_server, world)


@pytest.fixture(scope="module", autouse=True)
def small_sandboxes() -> Iterator[None]:
    """A new sandbox has one client: all of the sample data take three seconds."""
    with few_samples(4, samples.WITH_FORM_CHECK):
        yield


@pytest.fixture(scope="session")
async def shared_company(new_company: NewCompany) -> CoachClient:
    """The company of `shared_world`."""
    return await new_company()


@pytest.fixture(scope="session")
async def shared_world(shared_company: CoachClient) -> World:
    """A document of each kind, for tests whose requests are refused, so that they leave it as it is."""
    return await make_world(shared_company)
