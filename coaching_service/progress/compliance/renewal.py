"""The background job that renews the figures stored with clients: after a change of schedule, and once a local day."""

from __future__ import annotations

from datetime import timedelta

import structlog

from coaching_service.core.database.context import Context, Services
from coaching_service.core.database.transactions import in_transaction
from coaching_service.core.errors import NotFound
from coaching_service.core.ids import ObjectId
from coaching_service.core.jobs.queue import Job, RunAgain
from coaching_service.people.customers import derived_figures
from coaching_service.people.team import service as team
from coaching_service.progress.compliance import service as compliance
from coaching_service.progress.compliance.models import ClientTimezone

RENEW = "renew_compliance"
_BATCH = 200
# The contract promises new figures within 10 seconds of a change.
_PAUSE = timedelta(seconds=4)
# Clients whose renewal fails are postponed, so that they do not block the others.
_POSTPONEMENT = timedelta(hours=1)
log = structlog.get_logger("coaching_service.compliance")


async def renew_batch(services: Services, _: Job) -> RunAgain:
    """Renew the figures of at most 200 clients that are due, company by company.

    Each company's clients are renewed in one transaction, so that a log recorded at the same time is not overwritten
    with older figures. If that fails, or the company is being erased, its clients are postponed for an hour. Runs
    again at once while clients are due, else in four seconds.
    """
    due = await derived_figures.list_due(services, _BATCH)
    clients_of: dict[ObjectId, list[ClientTimezone]] = {}
    for client in due:
        clients_of.setdefault(client["companyId"], []).append({"_id": client["_id"], "timezone": client["timezone"]})
    for company_id, clients in clients_of.items():
        if not await _renew(services, company_id, clients):
            ids = [client["_id"] for client in clients]
            await derived_figures.postpone(services, company_id, ids, _POSTPONEMENT)
    return RunAgain() if due else RunAgain(_PAUSE)


async def _renew(services: Services, company_id: ObjectId, clients: list[ClientTimezone]) -> bool:
    try:
        ctx = Context(services, await team.load_owner(services, company_id), interface="system")
        await in_transaction(ctx, lambda tx: compliance.store_figures(tx, clients))
    except NotFound:  # the company is being erased
        return False
    except Exception:
        log.exception("figures of clients not renewed", company=str(company_id), clients=len(clients))
        return False
    return True
