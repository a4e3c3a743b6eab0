"""An erasure in progress is no damage."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from coaching_service import features
from coaching_service.core.changes.numbering import sequencing
from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import now
from coaching_service.core.jobs import worker
from coaching_service.lifecycle.erasure import ERASE_CUSTOMER
from coaching_service.people.customers import service as customers
from coaching_service.settings import Settings
from tests.support.doctor import (
    check,
    findings_of,
    is_numbered,
    open_demo,
)
from tests.support.service_process import until


@pytest.fixture
async def ctx(settings: Settings) -> AsyncIterator[Context]:
    """A demo company that no other test uses: what is erased is not restored."""
    async with open_demo(settings, "erased") as demo:
        yield demo


async def test_erasures_in_progress_are_no_findings(ctx: Context) -> None:
    """What a deleted client leaves is erased step by step."""
    note = await ctx.db["notes"].find_one({})
    assert note is not None
    await customers.erase(ctx, note["customerId"])
    erase = {ERASE_CUSTOMER: features.STEPS[ERASE_CUSTOMER]}
    steps = 0
    while await worker.run_due(ctx.services, erase, at=now() + timedelta(minutes=5), limit=1):
        steps += 1
        checked = ("references", "companies", "files-missing", "files-unreferenced", "client-numbers")
        assert findings_of(await check(ctx.services, *checked)) == []
    assert steps > 3
    async with sequencing(ctx.services):
        await until(lambda: is_numbered(ctx.services), "all changes are numbered")
    [(name, finding)] = findings_of(await check(ctx.services))
    assert (name, finding.is_notice) == ("change-numbers", True)
