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
from coaching_service.core.jobs.alone import for_each_alone
from coaching_service.core.jobs.queue import Job, RunAgain
from coaching_service.people.account.events import CompanyResumed, FigureSettingsChanged
from coaching_service.people.customers import derived_figures
from coaching_service.people.customers.attention_events import RENEWAL
from coaching_service.people.customers.models import Customer, FigureLane
from coaching_service.people.team import service as team
from coaching_service.progress.attention import digest
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
# Of the clients of a company that cannot be loaded, or is suspended.
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

    Clients that change in the meantime stay due. Those whose renewal fails wait, as `for_each_alone` says, and all for
    an hour if the company cannot be loaded, is suspended or being erased. Raises Unavailable while the database cannot
    be used.
    """
    company_id = queue.company_of(job)
    due = await derived_figures.list_due(services, company_id, lane, job.arguments["last"], _BATCH)
    for client, wait in (await _renew(services, company_id, due) if due else {}).items():
        await derived_figures.postpone(services, company_id, lane, [client], wait)
    return RunAgain(progress={"last": due[-1]["_id"]}) if len(due) == _BATCH else None


async def _renew(services: Services, company_id: ObjectId, clients: Sequence[Customer]) -> dict[ObjectId, timedelta]:
    """Renew the figures of clients, and return how long to wait for each client for whom it failed."""
    try:
        owner = await team.get_owner(services, company_id)
    except NotFound:  # the company is being erased
        owner = None
    except Exception as error:
        if isinstance(as_service_error(error), Unavailable):
            raise
        log.exception("figures of a company not renewed", company=str(company_id))
        owner = None
    if owner is None or owner.company.is_suspended:
        return dict.fromkeys((client["_id"] for client in clients), _POSTPONEMENT)
    ctx = Context(services, owner, operation=RENEWAL, interface="system")
    by_id = {each["_id"]: each for each in clients}

    async def renew(ids: Sequence[ObjectId]) -> None:
        await attention.renew_due(ctx, [by_id[each] for each in ids])

    await digest.plan(ctx)
    return await for_each_alone(services, "figures", company_id, by_id, renew)


async def queue_renewal_of_all(ctx: Context, _: FigureSettingsChanged | CompanyResumed | None = None) -> None:
    """Have the figures of all clients renewed: what they are computed with has changed, or could not be followed."""
    await queue.enqueue(ctx, MARK_ALL_DUE, {"last": None})


async def mark_all_due(services: Services, job: Job) -> RunAgain | None:
    """Mark the figures of the next 1,000 clients of the job's company as due."""
    company_id = queue.company_of(job)
    last = await derived_figures.mark_all_due(services, company_id, job.arguments["last"], _MARKED_BATCH)
    return None if last is None else RunAgain(progress={"last": last})
