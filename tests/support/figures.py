"""The figures stored with clients, as the background job renews them."""

from __future__ import annotations

from coaching_service.core.database.context import Services
from coaching_service.core.ids import ObjectId
from coaching_service.core.jobs.queue import Job, RunAgain
from coaching_service.progress.attention.renewal import renew_batch


async def renew_figures(services: Services) -> None:
    """Renew the figures of all clients that are due, without waiting for the job."""
    while await renew_batch(services, Job(ObjectId(), {}, 1)) == RunAgain():
        pass
