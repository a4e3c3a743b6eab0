"""A client's own export: what the client may read, as a ZIP archive."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Collection, Mapping
from itertools import chain
from typing import Any

from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import declared_collections
from coaching_service.core.database.portable import file_holders
from coaching_service.core.database.transactions import gather_reads
from coaching_service.core.http.downloads import Download
from coaching_service.core.ids import ObjectId
from coaching_service.lifecycle.export.service import Records, write_archive
from coaching_service.people.customers import service as customers
from coaching_service.people.own_profile import service as own_profile
from coaching_service.people.own_profile.models import OwnProfile
from coaching_service.training.visibility import service as visibility

# The collections whose records a client may read. Notes, the history of changes, reasons for attention, check-ins and
# programs planned ahead, and what the service needs for itself are for coaches only.
COLLECTIONS = (
    "availability",
    "formResponses",
    "messages",
    "metricAssignments",
    "metricEntries",
    "personalRecords",
    "planVersions",
    "progressPhotos",
    "trainingMaxes",
    "workoutBlocks",
)
# Collections whose records are on days of the calendar, which can be hidden; a record that a coach entered (`manual`)
# is not part of a day.
_BY_DAY = ("formResponses", "personalRecords", "workoutBlocks")
# What coaches and their systems store with a record.
_PRIVATE = ("customerId", "externalId", "metadata", "reviewedAt", "reviewedBy", "clientTexts")


async def export_own(ctx: Context) -> Download:
    """Return the export of the caller, a client: only what the client may read. Raises NotFound."""
    profile, customer, hidden = await gather_reads(
        ctx,
        own_profile.get(ctx),
        customers.get_visible(ctx, ctx.caller.id, ("profilePhoto",)),
        visibility.find_days_hidden_from_caller(ctx, ctx.caller.id),
    )

    def read_all(_start: int, _end: int) -> AsyncGenerator[bytes, None]:
        file_ids = {
            each["fileId"] for each in file_holders(customer)
        }  # those of the records are added while these are read
        records = ((name, _read(ctx, name, hidden, file_ids)) for name in COLLECTIONS)
        return write_archive(ctx, ctx.caller.id, chain([("profile", _only(profile))], records), file_ids.__contains__)

    return Download("application/zip", "my-training.zip", read_all)


async def _only(profile: OwnProfile) -> Records:
    yield {name: value for name, value in profile.items() if name != "profilePhotoUrl"}


async def _read(ctx: Context, name: str, hidden: Collection[str], file_ids: set[ObjectId]) -> Records:
    """Yield the records of a collection, and add the files that they refer to."""
    collection = declared_collections()[name]
    where = {str(collection.client_field): ctx.caller.id}
    async for document in collection.stream(ctx, where, ("_id",), hint=collection.by_client):
        if name in _BY_DAY and document["date"] in hidden and document.get("source") != "manual":
            continue
        file_ids.update(each["fileId"] for each in file_holders(document))
        yield _without_private(document)


def _without_private(value: Any) -> Any:
    """Return a record without what is only for coaches, in nested documents too."""
    if isinstance(value, Mapping):
        return {name: _without_private(inner) for name, inner in value.items() if name not in _PRIVATE}
    return [_without_private(inner) for inner in value] if isinstance(value, list) else value
