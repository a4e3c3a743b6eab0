"""The rates of every client renewed once a local day, in bounded steps."""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta

from coaching_service.kernel.background.jobs import Again, Job
from coaching_service.kernel.errors import NotFound
from coaching_service.kernel.storage.context import Context, Services, in_transaction
from coaching_service.kernel.storage.documents import Document
from coaching_service.kernel.storage.ids import ObjectId
from coaching_service.people.customers import service as customers
from coaching_service.people.team import service as team
from coaching_service.progress.compliance import service as compliance

RENEW = "renew_compliance"
_BATCH = 200
_PAUSE = timedelta(minutes=10)


async def renew_some(services: Services, job: Job) -> Again:
    """One step: the rates of at most 200 clients of one company whose local day has changed since they were made.

    Each company's in a transaction: a log at the same time is not overwritten with older rates. It asks again at once
    while there are more, else in ten minutes. `job` carries nothing.
    """
    del job
    due = await customers.with_stale_figures(services, _BATCH)
    by_company: dict[ObjectId, list[Document]] = {}
    for client in due:
        by_company.setdefault(client["companyId"], []).append(client)
    renewed = False
    for company_id, clients in by_company.items():
        with suppress(NotFound):  # a company that is being erased: its clients go
            ctx = Context(services, await team.operator(services, company_id))
            await in_transaction(ctx, lambda tx, clients=clients: compliance.keep(tx, clients))  # type: ignore[misc]
            renewed = True
    return Again() if renewed else Again(_PAUSE)
