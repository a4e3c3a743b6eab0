"""Metric sets: what a company measures, and in which units."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from coaching_service.core.database.context import Context
from coaching_service.core.errors import NotFound, invalid_field
from coaching_service.core.fields import take
from coaching_service.core.ids import ObjectId
from coaching_service.library.metric_sets import store
from coaching_service.library.metric_sets.models import (
    Metric,
    MetricSet,
    MetricSetChange,
    MetricSetFields,
    MetricSetWithArchived,
    MetricUnit,
    NewMetric,
    NewMetricsSet,
    StoredMetric,
    StoredMetricSet,
)
from coaching_service.library.metric_sets.units import UNITS


async def list_all(ctx: Context, *, updated_since: datetime | None = None) -> list[MetricSet]:
    """Return the company's metric sets, sorted by name; with `updated_since` (UTC), those changed then or later."""
    return [present(metric_set) for metric_set in await store.find_all(ctx, updated_since=updated_since)]


async def list_with_archived(ctx: Context) -> list[MetricSetWithArchived]:
    """Return the company's metric sets with their archived metrics, sorted by name."""
    return [_with_archived(metric_set) for metric_set in await store.find_all(ctx)]


async def get(ctx: Context, set_id: ObjectId) -> MetricSet:
    """Return a metric set. Raises NotFound."""
    if (metric_set := await store.find_one(ctx, set_id)) is None:
        raise NotFound("metrics set")
    return present(metric_set)


async def get_with_archived(ctx: Context, set_id: ObjectId, *, include_deleted: bool) -> MetricSetWithArchived:
    """Return a metric set with its archived metrics. Raises NotFound, for a deleted set unless `include_deleted`."""
    metric_sets = await store.find_by_ids(ctx, [set_id], include_deleted=include_deleted)
    if not metric_sets:
        raise NotFound("metrics set")
    return _with_archived(metric_sets[0])


async def list_automatic(ctx: Context) -> list[MetricSet]:
    """Return the sets that are assigned to every new client."""
    return [present(metric_set) for metric_set in await store.find_automatic(ctx)]


async def get_by_id(ctx: Context, set_ids: Iterable[ObjectId]) -> dict[ObjectId, MetricSetWithArchived]:
    """Return the metric sets by identifier, deleted ones included."""
    ids = set(set_ids)
    if not ids:
        return {}
    metric_sets = await store.find_by_ids(ctx, list(ids), include_deleted=True)
    return {metric_set["_id"]: _with_archived(metric_set) for metric_set in metric_sets}


async def create(ctx: Context, metric_set: NewMetricsSet) -> MetricSet:
    """Create a metric set. Raises NotFound for an unknown unit."""
    metrics = [_to_stored(ObjectId(), metric) for metric in metric_set["metrics"]]
    return present(await store.create(ctx, {**metric_set, "metrics": metrics}))


async def update(ctx: Context, set_id: ObjectId, change: MetricSetChange) -> MetricSet:
    """Change the fields of a metric set that are sent. A metric left out is archived: its history remains.

    Raises NotFound for the set, a metric or a unit, InvalidFields if the unit of a metric would change, and Conflict
    if the set has changed since `version`.
    """

    def changed_fields(stored: StoredMetricSet) -> MetricSetFields:
        fields = take(MetricSetFields, change)
        if "metrics" in change:
            fields["metrics"] = _merge_metrics(stored["metrics"], change["metrics"])
        return fields

    metric_set = await store.rewrite(ctx, set_id, changed_fields, change.get("version"))
    if metric_set is None:
        raise NotFound("metrics set")
    return present(metric_set)


async def delete(ctx: Context, set_id: ObjectId) -> None:
    """Delete a metric set; recorded values remain. Raises NotFound."""
    if not await store.soft_delete(ctx, set_id):
        raise NotFound("metrics set")


def list_units() -> list[MetricUnit]:
    """Return every unit."""
    return list(UNITS.values())


def present(stored: StoredMetricSet) -> MetricSet:
    """Return a stored metric set as it is read."""
    return {**take(MetricSet, stored), "metrics": _present_metrics(stored["metrics"], archived=False)}


def _with_archived(stored: StoredMetricSet) -> MetricSetWithArchived:
    return {**present(stored), "archivedMetrics": _present_metrics(stored["metrics"], archived=True)}


def _present_metrics(metrics: Sequence[StoredMetric], *, archived: bool) -> list[Metric]:
    return [
        {"_id": metric["_id"], "name": metric["name"], "metricUnit": UNITS[metric["metricUnitId"]]}
        for metric in metrics
        if metric["isArchived"] is archived
    ]


def _merge_metrics(stored: Sequence[StoredMetric], sent: Sequence[NewMetric]) -> list[StoredMetric]:
    """Return the sent metrics followed by the stored ones that were left out, archived."""
    sent_ids = [metric["_id"] for metric in sent if "_id" in metric]
    if len(set(sent_ids)) < len(sent_ids):
        raise invalid_field("metrics", "must name each metric only once", code="DUPLICATE")
    remaining = {metric["_id"]: metric for metric in stored}
    merged: list[StoredMetric] = []
    for metric in sent:
        previous = remaining.pop(metric["_id"], None) if "_id" in metric else None
        if previous is None and "_id" in metric:
            raise NotFound("metric")
        if previous is not None and previous["metricUnitId"] != metric["metricUnitId"]:
            message = "must keep the unit of each metric; remove the metric and add a new one instead"
            raise invalid_field("metrics", message, code="UNIT_CHANGED")
        merged.append(_to_stored(previous["_id"] if previous else ObjectId(), metric))
    return merged + [{**metric, "isArchived": True} for metric in remaining.values()]


def _to_stored(metric_id: ObjectId, metric: NewMetric) -> StoredMetric:
    if metric["metricUnitId"] not in UNITS:
        raise NotFound("metric unit")
    return {"_id": metric_id, "name": metric["name"], "metricUnitId": metric["metricUnitId"], "isArchived": False}
