"""The figures stored with clients, as the background job renews them."""

from __future__ import annotations

from coaching_service.core.database.context import Services
from coaching_service.core.ids import ObjectId
from coaching_service.core.jobs.queue import Job, RunAgain
from coaching_service.features import STEPS
from coaching_service.people.customers import derived_figures
from coaching_service.progress.attention.renewal import KINDS


async def renew_figures(services: Services) -> None:
    """Renew the figures of all clients that are due, without waiting for the jobs."""
    for lane, kind in KINDS.items():
        for company_id in await derived_figures.find_due_companies(services, lane, 10_000):
            again: RunAgain | None = RunAgain(progress={"last": None})
            while again is not None:
                again = await STEPS[kind](services, Job(ObjectId(), again.progress or {}, 1, company_id))
