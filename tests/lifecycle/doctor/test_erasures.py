"""An erasure in progress is no damage."""

from __future__ import annotations

from datetime import timedelta

from aiohttp.test_utils import TestServer

from coaching_service import features
from coaching_service.app import create_app
from coaching_service.core.changes.numbering import sequencing
from coaching_service.core.database.context import Context, Services
from coaching_service.core.database.documents import now
from coaching_service.core.ids import ObjectId
from coaching_service.core.jobs import worker
from coaching_service.installation import migrations
from coaching_service.lifecycle.erasure import ERASE_CUSTOMER
from coaching_service.people.customers import service as customers
from coaching_service.settings import Settings
from tests.support.client import CoachClient
from tests.support.companies import create_company
from tests.support.databases import INDEX_STATE, remove_documents
from tests.support.declared_world import make_world
from tests.support.doctor import check, findings_of, is_numbered
from tests.support.sampled import MORE
from tests.support.service_process import until


async def test_erasures_in_progress_are_no_findings(
    settings: Settings, new_services: Services, password_hash: str
) -> None:
    """What a deleted client leaves is erased step by step; the client has a document of each kind."""
    services = new_services
    await remove_documents(services.db, but_of=(INDEX_STATE, migrations.COLLECTION))
    company = await create_company(services, password_hash)
    ctx = Context(services).acting_as(company.owner)
    async with TestServer(create_app(settings, services)) as server:
        coach = CoachClient(server, company.key, ctx)
        customer_id = ObjectId((await make_world(coach))["customerId"])
        await coach.close()
    checked = ("references", "companies", "files-missing", "files-unreferenced", "client-numbers")
    assert findings_of(await check(services, *checked)) == []

    await customers.erase(ctx, customer_id)
    erase = {ERASE_CUSTOMER: features.STEPS[ERASE_CUSTOMER]}
    steps = 0
    while await worker.run_due(services, erase, at=now() + timedelta(minutes=5), limit=1):
        steps += 1
        if steps < 3 or steps % 4 == 0 or MORE > 1:
            assert findings_of(await check(services, *checked)) == []
    assert steps > 3
    async with sequencing(services):
        await until(lambda: is_numbered(services), "all changes are numbered")
    [(name, finding)] = findings_of(await check(services))
    assert (name, finding.is_notice) == ("change-numbers", True)
