"""The job that removes the values before and after once a change can no longer be undone."""

from __future__ import annotations

from datetime import timedelta

from coaching_service.core.changes.store import changes
from coaching_service.core.database.context import Services
from coaching_service.core.database.documents import now
from coaching_service.core.jobs.queue import Job, RunAgain

REMOVE_OLD_PATCHES = "remove_old_patches"
_INTERVAL = timedelta(hours=1)
_BATCH = 500


async def remove_old_patches(services: Services, _: Job) -> RunAgain:
    """Remove the expired patches, and hidden feed entries, of a batch of changes.

    Runs again at once while there are more, else in an hour.
    """
    collection, where = changes.across_companies(services), {"patchUntil": {"$lte": now()}}
    old = [change["_id"] async for change in collection.find(where, {"_id": 1}, limit=_BATCH)]
    if not old:
        return RunAgain(_INTERVAL)
    change = {
        "$unset": {"patch": "", "parts": "", "patchUntil": ""},
        "$set": {"undoable": False},
        "$pull": {"feed": {"hiddenBy": {"$ne": None}}},
    }
    await collection.update_many({"_id": {"$in": old}}, change)
    return RunAgain()
