"""Progress photos in the database: one record a client and date, with three sides."""

from __future__ import annotations

from coaching_service.core.database.connection import Index
from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import Document, Documents
from coaching_service.core.database.transactions import gather_reads
from coaching_service.core.ids import ObjectId

SIDES = {"1": "front", "2": "back", "3": "side"}

photos = Documents[Document](
    "progressPhotos",
    (Index(("customerId", "-date"), unique=True),),
    client_field="customerId",
)


async def page(ctx: Context, customer_id: ObjectId, *, skip: int, limit: int) -> tuple[list[Document], int]:
    """One page of a client's records, newest first, and how many there are."""
    where = {"customerId": customer_id}
    docs, total = await gather_reads(
        ctx, photos.find(ctx, where, sort=("-date",), skip=skip, limit=limit), photos.count(ctx, where)
    )
    return docs, total


async def of_date(ctx: Context, customer_id: ObjectId, date: str) -> Document | None:
    """The record of a date, or None."""
    return await photos.find_one(ctx, {"customerId": customer_id, "date": date})


async def one(ctx: Context, customer_id: ObjectId, record_id: ObjectId) -> Document | None:
    """The record, or None."""
    return await photos.find_one(ctx, {"customerId": customer_id, "_id": record_id})


async def put(ctx: Context, customer_id: ObjectId, date: str, fields: Document) -> Document:
    """Set fields of the record of a date, which is made if it is missing."""
    return await photos.upsert(ctx, {"customerId": customer_id, "date": date}, fields)


async def change(ctx: Context, record_id: ObjectId, fields: Document) -> Document | None:
    """Set fields of a record; None when it is gone."""
    return await photos.update(ctx, {"_id": record_id}, {"$set": fields})


async def remove(ctx: Context, customer_id: ObjectId, record_id: ObjectId) -> Document | None:
    """Remove a record; gives what it was, or None."""
    return await photos.delete(ctx, {"customerId": customer_id, "_id": record_id})
