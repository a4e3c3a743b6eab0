"""The background jobs that renew the figures stored with clients: after a change, and once a local day."""

from __future__ import annotations

from datetime import timedelta

import structlog

from coaching_service.core.database.connection import as_service_error
from coaching_service.core.database.context import Context, Services
from coaching_service.core.errors import NotFound
from coaching_service.core.ids import ObjectId
from coaching_service.core.jobs import queue
from coaching_service.core.jobs.queue import Job, RunAgain
from coaching_service.people.account.events import CompanyResumed, FigureSettingsChanged
from coaching_service.people.customers import derived_figures
from coaching_service.people.customers.models import Customer
from coaching_service.people.team import service as team
from coaching_service.progress.attention import service as attention

RENEW = "renew_compliance"
MARK_ALL_DUE = "mark_all_figures_due"
_BATCH = 200
_MARKED_BATCH = 1_000
# The contract promises new figures within 10 seconds of a change.
_PAUSE = timedelta(seconds=4)
# Clients whose renewal fails are postponed, so that they do not block the others.
_POSTPONEMENT = timedelta(hours=1)
log = structlog.get_logger("coaching_service.attention")


async def renew_batch(services: Services, _: Job) -> RunAgain:
    """Renew the figures of at most 200 clients that are due, company by company.

    Clients that change in the meantime stay due. If the renewal of a company's clients fails, or the company is
    suspended or being erased, they are postponed for an hour. Runs again at once if more clients may be due, else in
    four seconds: clients that change all the time are then renewed every four seconds, not all the time.
    """
    due = await derived_figures.list_due(services, _BATCH)
    clients_of: dict[ObjectId, list[Customer]] = {}
    for client in due:
        clients_of.setdefault(client["companyId"], []).append(client)
    for company_id, clients in clients_of.items():
        if not await _renew(services, company_id, clients):
            ids = [client["_id"] for client in clients]
            await derived_figures.postpone(services, company_id, ids, _POSTPONEMENT)
    return RunAgain() if len(due) == _BATCH else RunAgain(_PAUSE)


async def _renew(services: Services, company_id: ObjectId, clients: list[Customer]) -> bool:
    try:
        owner = await team.load_owner(services, company_id)
        if owner.company.is_suspended:
            return False
        await attention.renew_due(Context(services, owner, interface="system"), clients)
    except NotFound:  # the company is being erased
        return False
    except Exception as error:
        if (known := as_service_error(error)) is None:
            log.exception("figures of clients not renewed", company=str(company_id), clients=len(clients))
        else:
            log.warning("figures of clients not renewed at the moment", company=str(company_id), reason=known.message)
        return False
    return True


async def queue_renewal_of_all(ctx: Context, _: FigureSettingsChanged | CompanyResumed | None = None) -> None:
    """Have the figures of all clients renewed: what they are computed with has changed, or could not be followed."""
    await queue.enqueue(ctx, MARK_ALL_DUE, {"last": None})


async def mark_all_due(services: Services, job: Job) -> RunAgain | None:
    """Mark the figures of the next 1,000 clients of the job's company as due, so that `renew_batch` renews them."""
    if job.company_id is None:
        raise RuntimeError("the job names no company")
    last = await derived_figures.mark_all_due(services, job.company_id, job.arguments["last"], _MARKED_BATCH)
    return None if last is None else RunAgain(progress={"last": last})
