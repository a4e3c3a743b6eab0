"""The figures stored with clients, as the background jobs renew them.

In the application of the tests these jobs do not run by themselves (`pause_renewal`): they make changes and events, which
tests count, at any moment. A test renews the figures of its company, or has the application do it (`renewal`).
"""

from __future__ import annotations

import asyncio
from datetime import timedelta

from coaching_service.core.database.context import Context, Services
from coaching_service.core.database.documents import now
from coaching_service.core.ids import ObjectId, stable_id
from coaching_service.core.jobs import queue, worker
from coaching_service.core.jobs.queue import Job, RunAgain
from coaching_service.features import STEPS
from coaching_service.people.customers import derived_figures
from coaching_service.progress.attention.renewal import FIND_DUE, KINDS


async def pause_renewal(services: Services) -> None:
    """Postpone the job that finds due figures by an hour, the longest that a start of the application leaves."""
    await worker.ensure_standing_jobs(services, [FIND_DUE])
    postponed = {"$set": {"runAfter": now() + timedelta(hours=1)}}
    await services.db["jobs"].update_one({"_id": stable_id("job", FIND_DUE)}, postponed)


async def resume_renewal(services: Services) -> None:
    """Let the application renew figures by itself from now on."""
    due = {"$set": {"runAfter": now()}}
    await services.db["jobs"].update_one({"_id": stable_id("job", FIND_DUE)}, due)


async def queue_renewals(ctx: Context) -> None:
    """Queue the renewal of the company's figures again and again, as the job that finds them does."""
    while True:
        for kind in KINDS.values():
            await queue.enqueue_for_companies(ctx.services, kind, [ctx.company_id], {"last": None})
        await asyncio.sleep(0.2)  # between two rounds; the service pauses for three seconds


async def renew_figures(ctx: Context) -> None:
    """Renew the figures of the company's clients that are due, without waiting for the jobs."""
    for kind in KINDS.values():
        await _renew(ctx.services, kind, ctx.company_id)


async def renew_all_figures(services: Services) -> None:
    """Renew the figures of all companies' clients that are due."""
    for lane, kind in KINDS.items():
        for company_id in await derived_figures.find_due_companies(services, lane, 10_000):
            await _renew(services, kind, company_id)


async def _renew(services: Services, kind: str, company_id: ObjectId) -> None:
    again: RunAgain | None = RunAgain(progress={"last": None})
    while again is not None:
        again = await STEPS[kind](services, Job(ObjectId(), again.progress or {}, 1, company_id))
