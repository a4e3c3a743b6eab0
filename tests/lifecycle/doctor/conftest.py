"""A demo company, and a new company, whose data the tests of `coaching-service doctor` damage."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from coaching_service.core.database.context import Context
from coaching_service.settings import Settings
from tests.support.doctor import Restored, check, findings_of, open_company, open_demo


@pytest.fixture(scope="package")
async def ctx(settings: Settings) -> AsyncIterator[Context]:
    """The owner of the demo company, on a database of its own with numbered changes."""
    async with open_demo(settings, "doctor") as demo:
        yield demo


@pytest.fixture
async def new_ctx(settings: Settings) -> AsyncIterator[Context]:
    """The owner of a new company with six clients, on a database of its own with numbered changes."""
    async with open_company(settings) as company:
        yield company


@pytest.fixture
async def restored(ctx: Context) -> AsyncIterator[Restored]:
    """Changes that are undone, and leave the database clean."""
    instance = Restored(ctx)
    yield instance
    await instance.restore()
    assert findings_of(await check(ctx.services)) == []
