"""Reading numbered changes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from coaching_service.core.changes import store
from coaching_service.core.changes.models import DocumentPatch, NumberedChange, StoredChange
from coaching_service.core.changes.numbering import batches
from coaching_service.core.changes.numbering.batches import find_last_number, find_position_at
from coaching_service.core.changes.store import (
    NEWEST_FIRST,
    find_one,
    find_removed,
    is_written_with,
    list_batch,
    list_clients_created_by_batch,
    list_clients_updated_by_batch,
    list_newest,
)
from coaching_service.core.database.context import Context
from coaching_service.core.database.worker_thread import on_worker_thread
from coaching_service.core.ids import ObjectId

__all__ = [
    "NEWEST_FIRST",
    "NumberedPage",
    "find_last_number",
    "find_one",
    "find_position_at",
    "find_removed",
    "is_written_with",
    "list_batch",
    "list_by_ids",
    "list_clients_created_by_batch",
    "list_clients_updated_by_batch",
    "list_created",
    "list_newest",
    "list_numbered",
    "load_credentials",
    "load_patches",
]

_NUMBERING_DELAY = timedelta(days=1)  # a change has its number by then


@dataclass(frozen=True)
class NumberedPage:
    """Changes in the order of their numbers, the number to continue from, and whether there may be more.

    Erased changes are left out, so there may be more after a page without any.
    """

    changes: Sequence[NumberedChange]
    until: int
    has_more: bool


async def list_by_ids(ctx: Context, change_ids: Sequence[ObjectId]) -> list[StoredChange]:
    """Return those changes that exist, numbered or not, in the order of `change_ids`, without their patches."""
    stored = {change["_id"]: change for change in await store.find_by_ids(ctx, change_ids)}
    return [stored[change_id] for change_id in change_ids if change_id in stored]


async def list_created(ctx: Context, change_id: ObjectId, kind: str) -> list[ObjectId]:
    """Return the documents of a kind that a change, or the changes of a batch, have created."""
    if (change := await store.find_one(ctx, change_id)) is None:
        return await store.list_created_by_batch(ctx, change_id, kind)
    created = [each for each in change["documents"] if each["kind"] == kind and each["action"] == "created"]
    return sorted(each["_id"] for each in created)


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
        until = max(after, await find_last_number(ctx))
        numbered = await store.find_client_numbers(ctx, customer_id, since - _NUMBERING_DELAY, after, until, limit)
    has_more = len(numbered) == limit
    if numbered and (has_more or customer_id is None):
        until = numbered[-1]["lastSeq"]
    changes = await store.find_numbered(ctx, [each["_id"] for each in numbered]) if numbered else []
    return NumberedPage(changes, until, has_more)


async def load_patches(ctx: Context, changes: Sequence[StoredChange]) -> dict[ObjectId, DocumentPatch]:
    """Return the values of the documents of changes before and after, by document; without those not stored.

    No two of the changes are about the same document.
    """
    of_changes = await store.find_patches(ctx, [change["_id"] for change in changes])
    for change in changes:
        if "parts" in change:
            of_changes[change["_id"]] = await store.find_parts(ctx, change["_id"])
    return {patch["_id"]: patch for patches in of_changes.values() for patch in patches}
