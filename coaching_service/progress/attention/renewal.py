"""The background jobs that renew the figures stored with clients: after a change, and once a local day.

A permanent job finds the companies that have clients whose figures are due, and queues a job for each, which any
process claims: one kind for changes, and one for the day, each with a place of its own in every process. So a backlog
of the day delays no change, and processes share it by company.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

import structlog

from coaching_service.core.database.connection import as_service_error
from coaching_service.core.database.context import Context, Services
from coaching_service.core.errors import NotFound, Unavailable
from coaching_service.core.ids import ObjectId
from coaching_service.core.jobs import queue
from coaching_service.core.jobs.queue import Job, RunAgain
from coaching_service.people.account.events import CompanyResumed, FigureSettingsChanged
from coaching_service.people.customers import derived_figures
from coaching_service.people.customers.attention_events import RENEWAL
from coaching_service.people.customers.models import Customer, FigureLane
from coaching_service.people.team import service as team
from coaching_service.progress.attention import service as attention

FIND_DUE = "renew_compliance"
RENEW_CHANGED = "renew_changed_figures"
RENEW_DAILY = "renew_daily_figures"
MARK_ALL_DUE = "mark_all_figures_due"
# The companies of changes are queued first.
KINDS: dict[FigureLane, str] = {"changes": RENEW_CHANGED, "daily": RENEW_DAILY}
_BATCH = 200
_MARKED_BATCH = 1_000
# Clients whose companies are queued at once; the companies of all others follow.
_SEARCHED = 10_000
# The contract promises new figures within 10 seconds of a change.
_PAUSE = timedelta(seconds=3)
# Clients whose renewal fails are postponed, so that they do not block the others.
_POSTPONEMENT = timedelta(hours=1)
log = structlog.get_logger("coaching_service.attention")


async def queue_due(services: Services, _: Job) -> RunAgain:
    """Queue the renewal of each company that has clients whose figures are due, unless it is queued or running.

    Runs again in three seconds: clients that change all the time are renewed that often, not all the time.
    """
    for lane, kind in KINDS.items():
        company_ids = await derived_figures.find_due_companies(services, lane, _SEARCHED)
        await queue.enqueue_for_companies(services, kind, company_ids, {"last": None})
    return RunAgain(_PAUSE)


async def renew_changed(services: Services, job: Job) -> RunAgain | None:
    """Renew the figures of the next 200 clients of the job's company that have changed."""
    return await _renew_next(services, job, "changes")


async def renew_daily(services: Services, job: Job) -> RunAgain | None:
    """Renew the figures of the next 200 clients of the job's company whose local day has begun."""
    return await _renew_next(services, job, "daily")


async def _renew_next(services: Services, job: Job, lane: FigureLane) -> RunAgain | None:
    """Renew the figures of the next 200 clients of the job's company that are due, with the same queries as of one.

    Clients that change in the meantime stay due. If the renewal fails, or the company is suspended or being erased,
    these clients are postponed for an hour. Raises Unavailable while the database cannot be used.
    """
    company_id = queue.company_of(job)
    due = await derived_figures.list_due(services, company_id, lane, job.arguments["last"], _BATCH)
    if due and not await _renew(services, company_id, due):
        ids = [client["_id"] for client in due]
        await derived_figures.postpone(services, company_id, lane, ids, _POSTPONEMENT)
    return RunAgain(progress={"last": due[-1]["_id"]}) if len(due) == _BATCH else None


async def _renew(services: Services, company_id: ObjectId, clients: Sequence[Customer]) -> bool:
    try:
        owner = await team.get_owner(services, company_id)
        if owner.company.is_suspended:
            return False
        await attention.renew_due(Context(services, owner, operation=RENEWAL, interface="system"), clients)
    except NotFound:  # the company is being erased
        return False
    except Exception as error:
        known = as_service_error(error)
        if isinstance(known, Unavailable):
            raise
        if known is None:
            log.exception("figures of clients not renewed", company=str(company_id), clients=len(clients))
        else:
            log.warning("figures of clients not renewed at the moment", company=str(company_id), reason=known.message)
        return False
    return True


async def queue_renewal_of_all(ctx: Context, _: FigureSettingsChanged | CompanyResumed | None = None) -> None:
    """Have the figures of all clients renewed: what they are computed with has changed, or could not be followed."""
    await queue.enqueue(ctx, MARK_ALL_DUE, {"last": None})


async def mark_all_due(services: Services, job: Job) -> RunAgain | None:
    """Mark the figures of the next 1,000 clients of the job's company as due."""
    company_id = queue.company_of(job)
    last = await derived_figures.mark_all_due(services, company_id, job.arguments["last"], _MARKED_BATCH)
    return None if last is None else RunAgain(progress={"last": last})
