"""The job that removes the values before and after once a change can no longer be undone."""

from __future__ import annotations

from datetime import timedelta

from coaching_service.core.changes import store
from coaching_service.core.database.context import Services
from coaching_service.core.jobs.queue import Job, RunAgain

REMOVE_OLD_PATCHES = "remove_old_patches"
_INTERVAL = timedelta(hours=1)


async def remove_old_patches(services: Services, job: Job) -> RunAgain:
    """Remove the outdated ones of a batch of changes; runs again at once while there are more, else in an hour."""
    del job
    return RunAgain() if await store.remove_old_patches(services) else RunAgain(_INTERVAL)
