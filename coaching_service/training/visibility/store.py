"""Hidden days in the database: one document a client and hidden day."""

from __future__ import annotations

from collections.abc import Sequence

from coaching_service.core.database.connection import Index
from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import Document, Documents
from coaching_service.core.ids import ObjectId

hidden = Documents[Document]("hiddenDays", (Index(("customerId", "date"), unique=True),), client_field="customerId")


async def between(ctx: Context, customer_id: ObjectId, first: str, last: str) -> set[str]:
    """The hidden days of a client from `first` to `last`."""
    where = {"customerId": customer_id, "date": {"$gte": first, "$lte": last}}
    return {day["date"] for day in await hidden.find(ctx, where, fields=("date",))}


async def show(ctx: Context, customer_id: ObjectId, first: str, last: str) -> None:
    """Show every day from `first` to `last`."""
    await hidden.delete_many(ctx, {"customerId": customer_id, "date": {"$gte": first, "$lte": last}})


async def hide(ctx: Context, customer_id: ObjectId, days: Sequence[str]) -> None:
    """Hide days that are shown."""
    await hidden.insert_many(ctx, [{"customerId": customer_id, "date": day} for day in days])
