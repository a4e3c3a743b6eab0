"""Form responses in the database: one for each item answered."""

from __future__ import annotations

from coaching_service.core.database.connection import Index
from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import Document, Documents, Filter
from coaching_service.core.ids import ObjectId

responses = Documents[Document](
    "formResponses",
    (Index(("customerId", "-date", "-_id")), Index(("customerId", "witemId"), unique=True)),
    client_field="customerId",
)
_WIRE = ("formId", "formName", "date", "answers", "createdAt", "updatedAt", "version")


async def put(ctx: Context, customer_id: ObjectId, witem_id: ObjectId, response: Document) -> None:
    """Store what was answered with an item, in place of what was answered before."""
    await responses.upsert(ctx, {"customerId": customer_id, "witemId": witem_id}, response)


async def drop(ctx: Context, customer_id: ObjectId, witem_id: ObjectId) -> None:
    """Remove what was answered with an item."""
    await responses.delete_many(ctx, {"customerId": customer_id, "witemId": witem_id})


async def redate(ctx: Context, customer_id: ObjectId, witem_ids: list[ObjectId], date: str) -> None:
    """Bring what was answered with items to another date."""
    where = {"customerId": customer_id, "witemId": {"$in": witem_ids}}
    await responses.update_many(ctx, where, {"$set": {"date": date}})


async def between(ctx: Context, customer_id: ObjectId, first: str | None, last: str | None) -> list[Document]:
    """A client's responses from `first` to `last` (either may be open), newest first."""
    ends = {"$gte": first, "$lte": last}
    given = {operator: end for operator, end in ends.items() if end is not None}
    where: Filter = {"customerId": customer_id} | ({"date": given} if given else {})
    return await responses.find(ctx, where, sort=("-date", "-_id"), fields=_WIRE)
