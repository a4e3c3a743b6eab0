"""The figures stored with clients, as the background job renews them."""

from __future__ import annotations

from datetime import timedelta

from coaching_service.core.database.context import Context, Services
from coaching_service.core.ids import ObjectId, stable_id
from coaching_service.core.jobs import queue
from coaching_service.core.jobs.queue import Job, RunAgain
from coaching_service.features import STEPS
from coaching_service.people.customers import derived_figures
from coaching_service.progress.attention.renewal import KINDS


async def postpone_renewal(ctx: Context) -> None:
    """Queue the renewal of a new company's figures a day later: the application has no events of attention until then."""
    for kind in KINDS.values():
        identifier = stable_id("job", kind, str(ctx.company_id))
        await queue.enqueue(ctx, kind, {"last": None}, after=timedelta(days=1), identifier=identifier)


async def renew_figures(services: Services) -> None:
    """Renew the figures of all clients that are due, without waiting for the jobs."""
    for lane, kind in KINDS.items():
        for company_id in await derived_figures.find_due_companies(services, lane, 10_000):
            again: RunAgain | None = RunAgain(progress={"last": None})
            while again is not None:
                again = await STEPS[kind](services, Job(ObjectId(), again.progress or {}, 1, company_id))
