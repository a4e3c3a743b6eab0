"""Which metric sets a client is assigned, and one value a metric and date."""

from __future__ import annotations

from collections.abc import Sequence

from coaching_service.core.database.connection import Index
from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import Document, Documents, now
from coaching_service.core.ids import ObjectId

assignments = Documents[Document](
    "metricAssignments",
    (Index(("customerId", "metricsSetId"), unique=True), Index(("customerId", "unassignedAt", "createdAt"))),
    client_field="customerId",
)
entries = Documents[Document](
    "metricEntries",
    (
        Index(("customerId", "metricId", "date"), unique=True),
        Index(("customerId", "witemId")),
    ),
    client_field="customerId",
)


async def assigned(ctx: Context, customer_id: ObjectId) -> list[Document]:
    """What a client is assigned, the longest first."""
    return await assignments.find(ctx, {"customerId": customer_id, "unassignedAt": None}, sort=("createdAt", "_id"))


async def assign(ctx: Context, customer_id: ObjectId, set_id: ObjectId) -> Document:
    """Assign a set, again if it was before."""
    return await assignments.upsert(ctx, {"customerId": customer_id, "metricsSetId": set_id}, {"unassignedAt": None})


async def assign_many(ctx: Context, customer_ids: Sequence[ObjectId], set_id: ObjectId) -> None:
    """Assign a set to many clients, again to those who had it before; those who have it stay untouched."""
    where = {"customerId": {"$in": list(customer_ids)}, "metricsSetId": set_id, "unassignedAt": None}
    have = {each["customerId"] for each in await assignments.find(ctx, where, fields=("customerId",))}
    wheres = [{"customerId": each, "metricsSetId": set_id} for each in customer_ids if each not in have]
    await assignments.upsert_each(ctx, wheres, {"unassignedAt": None})


async def is_assigned(ctx: Context, customer_id: ObjectId, set_id: ObjectId) -> bool:
    """Whether the client is assigned the set at present."""
    where = {"customerId": customer_id, "metricsSetId": set_id}
    found = await assignments.find_one(ctx, where, ("unassignedAt",))
    return found is not None and found["unassignedAt"] is None


async def was_assigned(ctx: Context, customer_id: ObjectId, set_id: ObjectId) -> bool:
    """Whether the client is or was assigned the set."""
    where = {"customerId": customer_id, "metricsSetId": set_id}
    return await assignments.find_one(ctx, where, ("_id",)) is not None


async def unassign(ctx: Context, customer_id: ObjectId, set_id: ObjectId) -> bool:
    """End an assignment; whether there was one."""
    where = {"customerId": customer_id, "metricsSetId": set_id, "unassignedAt": None}
    return await assignments.update(ctx, where, {"$set": {"unassignedAt": now()}}) is not None


async def record(
    ctx: Context,
    customer_id: ObjectId,
    set_id: ObjectId,
    metric_id: ObjectId,
    date: str,
    value: float,
    witem_id: ObjectId | None,
) -> Document:
    """Store a value; one there already for the metric and date is replaced. `witem_id`: the item it was logged with."""
    where = {"customerId": customer_id, "metricId": metric_id, "date": date}
    return await entries.upsert(ctx, where, {"metricsSetId": set_id, "value": value, "witemId": witem_id})


async def value_on(ctx: Context, customer_id: ObjectId, metric_id: ObjectId, date: str) -> float | None:
    """The value of a metric on a date, or None."""
    where = {"customerId": customer_id, "metricId": metric_id, "date": date}
    found = await entries.find_one(ctx, where, ("value",))
    return None if found is None else found["value"]


async def forget_item(ctx: Context, customer_id: ObjectId, witem_id: ObjectId) -> None:
    """Remove the values logged with an item."""
    await entries.delete_many(ctx, {"customerId": customer_id, "witemId": witem_id})


async def redate(ctx: Context, customer_id: ObjectId, witem_ids: Sequence[ObjectId], date: str) -> None:
    """Bring the values logged with items to another date, in place of what is there."""
    where = {"customerId": customer_id, "witemId": {"$in": list(witem_ids)}, "date": {"$ne": date}}
    for entry in await entries.find(ctx, where):
        await entries.delete(ctx, {"customerId": customer_id, "_id": entry["_id"]})
        named = (customer_id, entry["metricsSetId"], entry["metricId"])
        await record(ctx, *named, date, entry["value"], entry["witemId"])


async def history(ctx: Context, customer_id: ObjectId, metric_id: ObjectId) -> list[Document]:
    """`{date, value}` of a metric, by date."""
    where = {"customerId": customer_id, "metricId": metric_id}
    found = await entries.find(ctx, where, sort=("date",), fields=("date", "value"))
    return [{"date": entry["date"], "value": entry["value"]} for entry in found]


async def first_and_last(ctx: Context, customer_id: ObjectId, metric_ids: Sequence[ObjectId]) -> list[Document]:
    """`{_id: metricId, first, last}`: the earliest and the latest value by date."""
    where = {"customerId": customer_id, "metricId": {"$in": list(metric_ids)}}
    return await entries.aggregate(
        ctx,
        where,
        {"$sort": {"metricId": 1, "date": 1}},
        {"$group": {"_id": "$metricId", "first": {"$first": "$value"}, "last": {"$last": "$value"}}},
    )
