"""A client's own export: what the client may read, as a ZIP archive."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Collection, Iterator, Mapping
from typing import Any

from coaching_service.core.database import files
from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import declared_collections, now
from coaching_service.core.database.transactions import gather_reads
from coaching_service.core.http.downloads import Download
from coaching_service.core.ids import ObjectId
from coaching_service.lifecycle.export.archive import Archive
from coaching_service.lifecycle.export.service import add_file
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
# Collections whose records are on days of the calendar, which can be hidden.
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
        return _zip(ctx, profile, hidden, set(_file_ids(customer)))

    return Download("application/zip", "my-training.zip", read_all)


async def _zip(
    ctx: Context, profile: OwnProfile, hidden: Collection[str], file_ids: set[ObjectId]
) -> AsyncGenerator[bytes, None]:
    """Yield the archive. `file_ids` are the files of the profile; the files of the records are added."""
    archive = Archive()
    async for output in archive.add_records("records/profile.jsonl", _only(profile)):
        yield output
    for name in COLLECTIONS:
        async for output in archive.add_records(f"records/{name}.jsonl", _read(ctx, name, hidden, file_ids)):
            yield output
    async for file in files.iterate_files_of_client(ctx, ctx.caller.id):
        if file["_id"] in file_ids:
            async for output in add_file(ctx, archive, file):
                yield output
    yield archive.close({"customerId": ctx.caller.id, "exportedAt": now()})


async def _only(profile: OwnProfile) -> AsyncIterator[Mapping[str, Any]]:
    yield {name: value for name, value in profile.items() if name != "profilePhotoUrl"}


async def _read(
    ctx: Context, name: str, hidden: Collection[str], file_ids: set[ObjectId]
) -> AsyncIterator[Mapping[str, Any]]:
    """Yield the records of a collection, and add the files that they refer to."""
    collection = declared_collections()[name]
    where = {str(collection.client_field): ctx.caller.id}
    async for document in collection.stream(ctx, where, ("_id",), hint=collection.by_client):
        if name in _BY_DAY and document["date"] in hidden:
            continue
        file_ids.update(_file_ids(document))
        yield _without_private(document)


def _file_ids(value: Any) -> Iterator[ObjectId]:
    """Yield the files, without thumbnails, that a record refers to."""
    if isinstance(value, Mapping):
        if isinstance(value.get("fileId"), ObjectId):
            yield value["fileId"]
        for inner in value.values():
            yield from _file_ids(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _file_ids(inner)


def _without_private(value: Any) -> Any:
    """Return a record without what is only for coaches, in nested documents too."""
    if isinstance(value, Mapping):
        return {name: _without_private(inner) for name, inner in value.items() if name not in _PRIVATE}
    return [_without_private(inner) for inner in value] if isinstance(value, list) else value
