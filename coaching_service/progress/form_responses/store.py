"""Form responses in the database: at most one for a workout item."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from coaching_service.core.database.connection import Index
from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import Documents, Filter
from coaching_service.core.database.recording import History
from coaching_service.core.ids import ObjectId
from coaching_service.progress.form_responses.models import FormResponse, ResponseFields, StoredResponse

responses = Documents[StoredResponse](
    "formResponses",
    (Index(("customerId", "-date", "-_id")), Index(("customerId", "witemId"), unique=True)),
    client_field="customerId",
    history=History("form_response"),
)
_RETURNED_FIELDS = ("formId", "formName", "date", "answers", "createdAt", "updatedAt", "version")


async def upsert(ctx: Context, customer_id: ObjectId, item_id: ObjectId, response: ResponseFields) -> None:
    """Store the response to an item, replacing the previous one."""
    await responses.upsert(ctx, {"customerId": customer_id, "witemId": item_id}, response)


async def delete(ctx: Context, customer_id: ObjectId, item_id: ObjectId) -> None:
    """Delete the response to an item, if there is one."""
    await responses.delete_many(ctx, {"customerId": customer_id, "witemId": item_id})


async def set_date(ctx: Context, customer_id: ObjectId, item_ids: Sequence[ObjectId], date: str) -> None:
    """Set the date of the responses to items."""
    where = {"customerId": customer_id, "witemId": {"$in": list(item_ids)}}
    await responses.update_many(ctx, where, {"$set": {"date": date}})


async def list_between(
    ctx: Context, customer_id: ObjectId, start_date: str | None, end_date: str | None
) -> list[FormResponse]:
    """Return a client's responses between two dates, both included, newest first; None leaves an end open."""
    bounds = {"$gte": start_date, "$lte": end_date}
    condition = {operator: bound for operator, bound in bounds.items() if bound is not None}
    where: Filter = {"customerId": customer_id} | ({"date": condition} if condition else {})
    listed = await responses.find(ctx, where, sort=("-date", "-_id"), fields=_RETURNED_FIELDS)
    return cast("list[FormResponse]", listed)
