"""The rates of every client renewed once a local day, in bounded steps."""

from __future__ import annotations

from datetime import timedelta

import structlog

from coaching_service.core.database.context import Context, Services
from coaching_service.core.database.documents import Document
from coaching_service.core.database.transactions import in_transaction
from coaching_service.core.errors import NotFound
from coaching_service.core.ids import ObjectId
from coaching_service.core.jobs.queue import Job, RunAgain
from coaching_service.people.customers import derived_figures
from coaching_service.people.team import service as team
from coaching_service.progress.compliance import service as compliance

RENEW = "renew_compliance"
_BATCH = 200
_PAUSE = timedelta(minutes=10)
# Those of whom it failed would come first for ever, and some day nobody else would have a turn.
_PUT_OFF = timedelta(hours=1)
log = structlog.get_logger("coaching_service.compliance")


async def renew_some(services: Services, job: Job) -> RunAgain:
    """One step: the rates of at most 200 clients whose local day has changed since they were made.

    Each company's in a transaction: a log at the same time is not overwritten with older rates. A company of which it
    fails, or that is being erased, is put off for an hour. It asks again at once while there are more, else in ten
    minutes. `job` carries nothing.
    """
    del job
    due = await derived_figures.list_due(services, _BATCH)
    by_company: dict[ObjectId, list[Document]] = {}
    for client in due:
        by_company.setdefault(client["companyId"], []).append(client)
    for company_id, clients in by_company.items():
        if not await _renewed(services, company_id, clients):
            ids = [client["_id"] for client in clients]
            await derived_figures.postpone(services, company_id, ids, _PUT_OFF)
    return RunAgain() if due else RunAgain(_PAUSE)


async def _renewed(services: Services, company_id: ObjectId, clients: list[Document]) -> bool:
    try:
        ctx = Context(services, await team.load_owner(services, company_id))
        await in_transaction(ctx, lambda tx: compliance.keep(tx, clients))
    except NotFound:  # a company that is being erased: its clients go
        return False
    except Exception:
        log.exception("compliance not renewed", company=str(company_id), clients=len(clients))
        return False
    return True
