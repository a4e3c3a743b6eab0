"""Plan versions in the database, numbered from 1 for each client."""

from __future__ import annotations

from coaching_service.core.database.connection import Index
from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import Document, Documents
from coaching_service.core.database.transactions import gather_reads
from coaching_service.core.ids import ObjectId

plans = Documents[Document](
    "planVersions",
    (Index(("customerId", "-number"), unique=True),),
    client_field="customerId",
)
counters = Documents[Document]("planCounters", (Index(("customerId",), unique=True),), client_field="customerId")


async def page(ctx: Context, customer_id: ObjectId, *, skip: int, limit: int) -> tuple[list[Document], int]:
    """One page of a client's plan versions, newest first, and how many there are."""
    where = {"customerId": customer_id}
    docs, total = await gather_reads(
        ctx, plans.find(ctx, where, sort=("-number",), skip=skip, limit=limit), plans.count(ctx, where)
    )
    return docs, total


async def one(ctx: Context, customer_id: ObjectId, plan_id: ObjectId) -> Document | None:
    """The version, or None."""
    return await plans.find_one(ctx, {"customerId": customer_id, "_id": plan_id})


async def next_number(ctx: Context, customer_id: ObjectId) -> int:
    """The next number, never given twice, not even after a version was deleted."""
    counter = await counters.upsert(ctx, {"customerId": customer_id}, {})
    number: int = counter["version"] + 1
    return number


async def add(ctx: Context, plan: Document) -> Document:
    """Store a new version."""
    return await plans.insert(ctx, plan)


async def remove(ctx: Context, customer_id: ObjectId, plan_id: ObjectId) -> Document | None:
    """Remove a version; gives what it was, or None."""
    return await plans.delete(ctx, {"customerId": customer_id, "_id": plan_id})
