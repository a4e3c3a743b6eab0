"""A company with something of every kind, whose only client is recognised by name."""

from __future__ import annotations

import pytest
from aiohttp.test_utils import TestServer

from tests.conftest import NewCompany
from tests.contract.test_areas import Studio
from tests.support.declared_world import make_world

NAME = "Quetzalli"


@pytest.fixture(scope="module")
async def named_client(new_company: NewCompany, public_server: TestServer) -> Studio:
    """The company, its server, and the identifiers of everything; the client is NAME."""
    coach = await new_company()
    world = await make_world(coach)
    (await coach.patch(f"/coach/customers/{world['customerId']}", {"name": NAME})).ok()
    return Studio(coach, public_server, world)
