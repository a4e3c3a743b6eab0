"""Form responses in the database: at most one for a workout item."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from coaching_service.core.database.connection import Index
from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import Documents, Filter, PipelineStage
from coaching_service.core.database.portable import RECORDS, Portable
from coaching_service.core.database.recording import History
from coaching_service.core.fields import names_of
from coaching_service.core.ids import ObjectId
from coaching_service.people.customers.models import DatedCount
from coaching_service.progress.form_responses.models import FormResponse, ResponseFields, ReviewFields, StoredResponse

INBOX_ORDER = ("-date", "-_id")

responses = Documents[StoredResponse](
    "formResponses",
    (
        Index(("customerId", "-date", "-_id")),
        Index(("customerId", "witemId"), unique=True),
        Index((*INBOX_ORDER, "customerId")),
        Index((*INBOX_ORDER, "customerId", "formId"), partial_filter=(("reviewedAt", {"$eq": None}),)),
        Index(("formId", *INBOX_ORDER)),
        Index(("customerId", "updatedAt"), partial_filter=(("reviewedAt", {"$eq": None}),)),
    ),
    client_field="customerId",
    history=History("form_response"),
    transfer=Portable(
        StoredResponse,
        RECORDS,
        references={"customerId": "customers"},
        keeps=("updatedAt",),  # when it was answered
    ),
)
_NOT_REVIEWED = responses.index_name("customerId", "updatedAt")
_RETURNED_FIELDS = names_of(FormResponse)


async def upsert(ctx: Context, customer_id: ObjectId, item_id: ObjectId, response: ResponseFields) -> ObjectId:
    """Store the response to an item, replacing the previous one; other answers have to be reviewed again.

    Returns its identifier.
    """
    where = {"customerId": customer_id, "witemId": item_id}
    previous = await responses.find_one(ctx, where, ("answers", "reviewedAt", "reviewedBy"))
    same = previous is not None and previous["answers"] == response["answers"]
    review: ReviewFields = {
        "reviewedAt": previous.get("reviewedAt") if previous and same else None,
        "reviewedBy": previous.get("reviewedBy") if previous and same else None,
    }
    return (await responses.upsert(ctx, where, {**response, **review}))["_id"]


async def find_one(ctx: Context, response_id: ObjectId) -> StoredResponse | None:
    """Return a response of any client, or None."""
    return await responses.find_one(ctx, {"_id": response_id})


async def set_review(ctx: Context, response: StoredResponse, review: ReviewFields) -> StoredResponse | None:
    """Set whether a response is reviewed; None if it has been deleted."""
    where = {"customerId": response["customerId"], "_id": response["_id"]}
    return await responses.update(ctx, where, {"$set": dict(review)})


async def find_inbox(
    ctx: Context,
    position: Filter,
    *,
    reviewed: bool | None,
    form_id: ObjectId | None,
    customer_ids: Sequence[ObjectId] | None,
    dates: Filter,
    limit: int,
) -> list[StoredResponse]:
    """Return at most `limit` responses at a cursor's `position` of the list, newest first.

    Of the clients `customer_ids` (None: all), to one form, with a `date` that satisfies `dates`; `reviewed` or not.
    """
    where: Filter = {"$and": [position, {"date": dates}]} if dates else position
    if reviewed is not None:
        where = {**where, "reviewedAt": {"$ne": None} if reviewed else None}
    if form_id is not None:
        where = {**where, "formId": form_id}
    if customer_ids is not None:
        where = {**where, "customerId": {"$in": list(customer_ids)}}
    return await responses.find(ctx, where, sort=INBOX_ORDER, limit=limit)


async def count_not_reviewed(ctx: Context, customer_ids: Sequence[ObjectId]) -> list[DatedCount]:
    """Return how many responses no coach has reviewed, of clients with any. Access is not checked."""
    where: Filter = {"customerId": {"$in": list(customer_ids)}, "reviewedAt": None}
    group = {"_id": "$customerId", "count": {"$sum": 1}, "newest": {"$max": "$updatedAt"}}
    return await responses.aggregate(ctx, where, {"$group": group}, hint=_NOT_REVIEWED)


async def find_newest_unreviewed(ctx: Context, customer_ids: Sequence[ObjectId]) -> list[StoredResponse]:
    """Return the newest response that no coach has reviewed, of clients with any. Access is not checked."""
    where: Filter = {"customerId": {"$in": list(customer_ids)}, "reviewedAt": None}
    order: PipelineStage = {"$sort": {"customerId": 1, "updatedAt": 1}}
    group: PipelineStage = {"$group": {"_id": "$customerId", "newest": {"$last": "$$ROOT"}}}
    newest: PipelineStage = {"$replaceRoot": {"newRoot": "$newest"}}
    return await responses.aggregate(ctx, where, order, group, newest, hint=_NOT_REVIEWED)


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
    listed = await responses.find(ctx, where, sort=INBOX_ORDER, fields=_RETURNED_FIELDS)
    return [present(response) for response in listed]


async def find_item_ids(
    ctx: Context, customer_id: ObjectId, response_ids: Sequence[ObjectId]
) -> dict[ObjectId, ObjectId]:
    """Return the item that each of some responses of a client answers."""
    where: Filter = {"customerId": customer_id, "_id": {"$in": list(response_ids)}}
    listed = await responses.find(ctx, where, fields=("witemId",), hint="_id_")
    return {response["_id"]: response["witemId"] for response in listed}


def present(stored: StoredResponse) -> FormResponse:
    """Return a stored response as it is returned."""
    returned = {name: stored.get(name) for name in _RETURNED_FIELDS}
    return cast("FormResponse", returned)
