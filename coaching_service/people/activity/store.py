"""Events in the database: at most one of a type for one source, so that repeating what caused it adds nothing."""

from __future__ import annotations

from datetime import datetime

from coaching_service.core.database.connection import Index
from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import Document, Documents
from coaching_service.core.database.transactions import gather_reads
from coaching_service.core.ids import ObjectId

events = Documents[Document](
    "activity",
    (Index(("customerId", "-date", "-_id")), Index(("customerId", "sourceId", "type"), unique=True)),
    client_field="customerId",
)
_WIRE = ("type", "date", "data")


async def put(
    ctx: Context, customer_id: ObjectId, source_id: ObjectId, kind: str, date: datetime, data: Document
) -> None:
    """Store an event, or bring the one of this type and source up to date."""
    where = {"customerId": customer_id, "sourceId": source_id, "type": kind}
    await events.upsert(ctx, where, {"date": date, "data": data})


async def correct(ctx: Context, customer_id: ObjectId, source_id: ObjectId, kind: str, data: Document) -> None:
    """Replace what an event is about, if there is one of this type and source."""
    where = {"customerId": customer_id, "sourceId": source_id, "type": kind}
    await events.update(ctx, where, {"$set": {"data": data}})


async def drop(ctx: Context, customer_id: ObjectId, source_id: ObjectId, kinds: tuple[str, ...]) -> None:
    """Remove the events of these types and this source."""
    await events.delete_many(ctx, {"customerId": customer_id, "sourceId": source_id, "type": {"$in": list(kinds)}})


async def page(ctx: Context, customer_id: ObjectId, *, skip: int, limit: int) -> tuple[list[Document], int]:
    """One page of a client's events, newest first, and how many there are."""
    where = {"customerId": customer_id}
    docs, total = await gather_reads(
        ctx,
        events.find(ctx, where, sort=("-date", "-_id"), skip=skip, limit=limit, fields=_WIRE),
        events.count(ctx, where),
    )
    return docs, total
