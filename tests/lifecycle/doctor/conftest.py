"""A demo company, and a new company, whose data the tests of `coaching-service doctor` damage."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from coaching_service.core.database.context import Context, Services
from coaching_service.settings import Settings
from tests.support.databases import new_database
from tests.support.doctor import Restored, check, findings_of, open_company, open_demo


@pytest.fixture(scope="package")
async def ctx(settings: Settings) -> AsyncIterator[Context]:
    """The owner of the demo company, on a database of its own with numbered changes; clean again after all tests."""
    async with open_demo(settings, "doctor") as demo:
        yield demo
        assert findings_of(await check(demo.services)) == []


@pytest.fixture(scope="package")
async def new_services(settings: Settings) -> AsyncIterator[Services]:
    """A database of its own for new companies."""
    async with new_database(settings, "new") as (_, services):
        yield services


@pytest.fixture
async def new_ctx(new_services: Services) -> AsyncIterator[Context]:
    """The owner of a new company with six clients and numbered changes, the only one of a database."""
    async with open_company(new_services) as company:
        yield company


@pytest.fixture
async def restored(ctx: Context) -> AsyncIterator[Restored]:
    """Changes that are undone."""
    instance = Restored(ctx)
    yield instance
    await instance.restore()
