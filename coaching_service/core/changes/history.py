"""Reading numbered changes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from coaching_service.core.changes import store
from coaching_service.core.changes.models import DocumentPatch, NumberedChange, StoredChange
from coaching_service.core.changes.numbering import batches
from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import Filter
from coaching_service.core.database.worker_thread import on_worker_thread
from coaching_service.core.ids import ObjectId

NEWEST_FIRST = store.NEWEST_FIRST
_NUMBERING_DELAY = timedelta(days=1)  # a change has its number by then


@dataclass(frozen=True)
class NumberedPage:
    """Changes in the order of their numbers, the number to continue from, and whether there may be more.

    Erased changes are left out, so there may be more after a page without any.
    """

    changes: Sequence[NumberedChange]
    until: int
    has_more: bool


async def find_one(ctx: Context, change_id: ObjectId) -> StoredChange | None:
    """Return a change, numbered or not, without its patch; None if there is none."""
    return await store.find_one(ctx, change_id)


async def list_by_ids(ctx: Context, change_ids: Sequence[ObjectId]) -> list[StoredChange]:
    """Return those changes that exist, numbered or not, in the order of `change_ids`, without their patches."""
    stored = {change["_id"]: change for change in await store.find_by_ids(ctx, change_ids)}
    return [stored[change_id] for change_id in change_ids if change_id in stored]


async def list_batch(ctx: Context, batch_id: ObjectId) -> list[StoredChange]:
    """Return the changes of a bulk operation, in the order of their identifiers, without their patches."""
    return await store.find_batch(ctx, batch_id)


async def list_clients_created_by_batch(ctx: Context, batch_id: ObjectId) -> list[ObjectId]:
    """Return the clients that a bulk operation has created, erased ones excepted, in the order of their identifiers."""
    return await store.find_clients_created_by_batch(ctx, batch_id)


async def load_credentials(ctx: Context, change_ids: Sequence[ObjectId]) -> dict[ObjectId, ObjectId]:
    """Return the key, grant or session with which changes were made, by change."""
    loaded = await store.find_credentials(ctx, change_ids) if change_ids else []
    return {change["_id"]: change["credentialId"] for change in loaded if change["credentialId"] is not None}


@on_worker_thread
async def list_numbered(
    ctx: Context, after: int, limit: int, *, since: datetime, customer_id: ObjectId | None = None
) -> NumberedPage:
    """Return at most `limit` changes whose last number is greater than `after`: of the company, or of a client.

    Raises CursorExpired if numbers after it were assigned before `since`.
    """
    if customer_id is None:
        numbered = await batches.find_after(ctx, after, limit, since)
        until = after
    else:
        await batches.require_available(ctx, after, since)
        until = max(after, await batches.find_last_number(ctx))
        numbered = await store.find_client_numbers(ctx, customer_id, since - _NUMBERING_DELAY, after, until, limit)
    has_more = len(numbered) == limit
    if numbered and (has_more or customer_id is None):
        until = numbered[-1]["lastSeq"]
    changes = await store.find_numbered(ctx, [each["_id"] for each in numbered]) if numbered else []
    return NumberedPage(changes, until, has_more)


async def list_newest(ctx: Context, where: Filter, limit: int) -> list[StoredChange]:
    """Return at most `limit` numbered changes that match `where`, newest first, without their patches."""
    return await store.find_newest(ctx, where, limit)


async def find_position_at(ctx: Context, time: datetime) -> int:
    """Return the number before the first one that was assigned at `time` or later."""
    return await batches.find_position_at(ctx, time)


async def find_last_number(ctx: Context) -> int:
    """Return the number of the last event of the company; 0 if there is none."""
    return await batches.find_last_number(ctx)


async def load_patches(ctx: Context, changes: Sequence[StoredChange]) -> dict[ObjectId, DocumentPatch]:
    """Return the values of the documents of changes before and after, by document; without those not stored.

    No two of the changes are about the same document.
    """
    of_changes = await store.find_patches(ctx, [change["_id"] for change in changes])
    for change in changes:
        if "parts" in change:
            of_changes[change["_id"]] = await store.find_parts(ctx, change["_id"])
    return {patch["_id"]: patch for patches in of_changes.values() for patch in patches}


async def find_removed(
    ctx: Context, customer_id: ObjectId, document_id: ObjectId, list_name: str, element_id: ObjectId
) -> DocumentPatch | None:
    """Return the patch of a client's document with which it lost an element of a list, or was deleted with it.

    None if no change did in the time that patches are stored for.
    """
    return await store.find_removed(ctx, customer_id, document_id, list_name, element_id)
