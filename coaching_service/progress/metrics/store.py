"""Metric assignments and values in the database: at most one value for a metric and date."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from coaching_service.core.database.connection import Index
from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import Documents, Filter
from coaching_service.core.database.portable import RECORDS, Portable
from coaching_service.core.database.recording import Action, EventData, History
from coaching_service.core.ids import ObjectId
from coaching_service.progress.metrics.models import (
    MetricHistoryEntry,
    MetricRange,
    NewEntry,
    StoredAssignment,
    StoredEntry,
)


def _event(action: Action, known: Mapping[str, Any], _: Collection[str]) -> EventData | None:
    is_assigned = action != "deleted" and known["unassignedAt"] is None
    data = {"metricsSetId": known["metricsSetId"]}
    return {"type": "metrics_set.assigned" if is_assigned else "metrics_set.unassigned", "data": data}


assignments = Documents[StoredAssignment](
    "metricAssignments",
    (Index(("customerId", "metricsSetId"), unique=True), Index(("customerId", "unassignedAt", "createdAt"))),
    client_field="customerId",
    history=History("metrics_assignment", _event, ("metricsSetId", "unassignedAt")),
    transfer=Portable(StoredAssignment, RECORDS, references={"customerId": "customers", "metricsSetId": "metricSets"}),
)
entries = Documents[StoredEntry](
    "metricEntries",
    (
        Index(("customerId", "metricId", "date"), unique=True),
        Index(("customerId", "witemId")),
    ),
    client_field="customerId",
    history=History("metric_value"),
    transfer=Portable(
        StoredEntry,
        RECORDS,
        references={"customerId": "customers", "metricsSetId": "metricSets"},
    ),
)


async def list_assignments(ctx: Context, customer_id: ObjectId) -> list[StoredAssignment]:
    """Return the current assignments of a client, oldest first."""
    return await assignments.find(ctx, {"customerId": customer_id, "unassignedAt": None}, sort=("createdAt", "_id"))


async def find_assignment(ctx: Context, customer_id: ObjectId, set_id: ObjectId) -> StoredAssignment | None:
    """Return the current or former assignment of a set to a client, or None."""
    return await assignments.find_one(ctx, {"customerId": customer_id, "metricsSetId": set_id})


async def assign_many(ctx: Context, customer_ids: Sequence[ObjectId], set_id: ObjectId) -> None:
    """Assign a set to several clients; the caller has checked that both exist and may be accessed."""
    where = {"customerId": {"$in": list(customer_ids)}, "metricsSetId": set_id, "unassignedAt": None}
    current = await assignments.find(ctx, where, fields=("customerId",))
    assigned_ids = {assignment["customerId"] for assignment in current}
    new = [
        {"customerId": customer_id, "metricsSetId": set_id, "unassignedAt": None}
        for customer_id in dict.fromkeys(customer_ids)
        if customer_id not in assigned_ids
    ]
    await assignments.upsert_many(ctx, ("customerId", "metricsSetId"), new)


async def record(ctx: Context, new_entries: Sequence[NewEntry]) -> list[StoredEntry]:
    """Store values of metrics, each another metric or date, replacing existing ones; returns them in the same order."""
    return await entries.upsert_many(ctx, ("customerId", "metricId", "date"), new_entries)


async def find_last_until(
    ctx: Context, customer_id: ObjectId, metric_ids: Sequence[ObjectId], date: str
) -> dict[ObjectId, MetricHistoryEntry]:
    """Return the latest value until a date of each metric that has one."""
    where: Filter = {"customerId": customer_id, "metricId": {"$in": list(metric_ids)}, "date": {"$lte": date}}
    latest = {"date": {"$last": "$date"}, "value": {"$last": "$value"}}
    stages = ({"$sort": {"metricId": 1, "date": 1}}, {"$group": {"_id": "$metricId", **latest}})
    latest_entries = await entries.aggregate(ctx, where, *stages)
    return {each["_id"]: {"date": each["date"], "value": each["value"]} for each in latest_entries}


async def list_history(ctx: Context, customer_id: ObjectId, metric_id: ObjectId) -> list[MetricHistoryEntry]:
    """Return the values of a metric by date."""
    where = {"customerId": customer_id, "metricId": metric_id}
    stored = await entries.find(ctx, where, sort=("date",), fields=("date", "value"))
    return [{"date": entry["date"], "value": entry["value"]} for entry in stored]


async def find_ranges(
    ctx: Context, customer_id: ObjectId, metric_ids: Sequence[ObjectId], last_date: str | None = None
) -> list[MetricRange]:
    """Return the earliest and latest value by date of each metric that has one, those after `last_date` left out."""
    where: Filter = {"customerId": customer_id, "metricId": {"$in": list(metric_ids)}}
    if last_date is not None:
        where["date"] = {"$lte": last_date}
    return await entries.aggregate(
        ctx,
        where,
        {"$sort": {"metricId": 1, "date": 1}},
        {
            "$group": {
                "_id": "$metricId",
                "first": {"$first": "$value"},
                "firstDate": {"$first": "$date"},
                "last": {"$last": "$value"},
                "lastDate": {"$last": "$date"},
            }
        },
    )
