"""A client's progress photos. A photo that is replaced or deleted goes in the same transaction, bytes and all."""

from __future__ import annotations

from datetime import datetime

from coaching_service.core.database import files
from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import Document
from coaching_service.core.database.files import StoredFile
from coaching_service.core.database.transactions import gather_reads, in_transaction
from coaching_service.core.dates import local_date
from coaching_service.core.errors import BadRequest, NotFound
from coaching_service.core.ids import ObjectId
from coaching_service.core.links import file_url
from coaching_service.core.pagination import Page, page_document, skip_of
from coaching_service.people.activity import service as activity
from coaching_service.people.customers import service as customers
from coaching_service.progress.progress_photos import store
from coaching_service.progress.progress_photos.store import SIDES


async def page(ctx: Context, customer_id: ObjectId, *, page: int, size: int) -> Page[Document]:
    """One page of a client's photo records, newest first. Raises NotFound, Forbidden."""
    _, (docs, total) = await gather_reads(
        ctx,
        customers.visible(ctx, customer_id),
        store.page(ctx, customer_id, skip=skip_of(page, size), limit=size),
    )
    return page_document([present(ctx, record) for record in docs], total, page, size)


async def read(ctx: Context, customer_id: ObjectId, record_id: ObjectId) -> Document:
    """The photos of one date. Raises NotFound, Forbidden."""
    _, record = await gather_reads(ctx, customers.visible(ctx, customer_id), store.one(ctx, customer_id, record_id))
    if record is None:
        raise NotFound("progress photo")
    return present(ctx, record)


async def add(
    ctx: Context, customer_id: ObjectId, taken: str | datetime, side_index: str, file: StoredFile | None
) -> Document:
    """Put a photo (if there is one) to the record of a date, which is made if it is missing. Gives the record.

    `taken`: a date, or a moment in UTC, which counts for the date that it was where the client is. Raises NotFound,
    Forbidden.
    """

    async def added(tx: Context) -> Document:
        client = await customers.visible(tx, customer_id, (*customers.SCOPE_FIELDS, "timezone"))
        zone = client["timezone"] or tx.caller.company.timezone
        date = taken if isinstance(taken, str) else str(local_date(taken, zone))
        before = await store.of_date(tx, customer_id, date)
        if file is None and before is not None:
            return before
        record = await store.put(tx, customer_id, date, _side(side_index, file))
        if file is not None:
            await files.discard(tx, _ids(before, SIDES[side_index]))
            facts = {"photoId": record["_id"], "side": SIDES[side_index], "day": date}
            await activity.happened(tx, "photo_added", customer_id, record["_id"], **facts)
            await customers.was_active(tx, customer_id)
        return record

    return present(ctx, await in_transaction(ctx, added))


async def replace(
    ctx: Context, customer_id: ObjectId, record_id: ObjectId, side_index: str, file: StoredFile | None
) -> Document:
    """Put another photo in a side's place. Raises NotFound, Forbidden; BadRequest without a file."""
    await customers.visible(ctx, customer_id)
    if file is None:
        raise BadRequest(["imageFile is required"])

    async def replaced(tx: Context) -> Document:
        before = await store.one(tx, customer_id, record_id)
        record = await store.change(tx, record_id, _side(side_index, file)) if before is not None else None
        if record is None:
            raise NotFound("progress photo")
        await files.discard(tx, _ids(before, SIDES[side_index]))
        return record

    return present(ctx, await in_transaction(ctx, replaced))


async def remove(ctx: Context, customer_id: ObjectId, record_id: ObjectId) -> None:
    """Delete a record with its photos. Raises NotFound, Forbidden."""
    await customers.visible(ctx, customer_id)

    async def removed(tx: Context) -> None:
        record = await store.remove(tx, customer_id, record_id)
        if record is None:
            raise NotFound("progress photo")
        await activity.undone(tx, customer_id, record_id, "photo_added")
        await files.discard(tx, [identifier for side in SIDES.values() for identifier in _ids(record, side)])

    await in_transaction(ctx, removed)


def present(ctx: Context, record: Document) -> Document:
    """A stored record as it is read, with links that are good for two hours."""
    photos: Document = {}
    for side in SIDES.values():
        kept = record.get("sides", {}).get(side)
        photos[f"{side}Key"] = str(kept["fileId"]) if kept else None
        photos[f"{side}Url"] = file_url(ctx.services, kept["fileId"]) if kept else None
        photos[f"{side}ThumbnailUrl"] = file_url(ctx.services, kept["thumbnailId"]) if kept else None
    return {
        "_id": record["_id"],
        "customerId": record["customerId"],
        "createdAt": record["date"],
        "photos": photos,
        "updatedAt": record["updatedAt"],
        "version": record["version"],
    }


def _side(side_index: str, file: StoredFile | None) -> Document:
    if file is None:
        return {}
    return {f"sides.{SIDES[side_index]}": {"fileId": file.id, "thumbnailId": file.thumbnail_id}}


def _ids(record: Document | None, side: str) -> list[ObjectId]:
    kept = (record or {}).get("sides", {}).get(side)
    return [identifier for identifier in (kept or {}).values() if identifier is not None]
