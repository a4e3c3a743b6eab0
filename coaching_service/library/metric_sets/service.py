"""Metric sets: what a company measures, and in which units."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import Filter, now
from coaching_service.core.errors import NotFound, invalid_field, require_found
from coaching_service.core.fields import take
from coaching_service.core.ids import ObjectId
from coaching_service.core.text import normalize
from coaching_service.library.metric_sets import store
from coaching_service.library.metric_sets.models import (
    UNITS,
    Metric,
    MetricSet,
    MetricSetChange,
    MetricSetContent,
    MetricSetFields,
    MetricSetWithArchived,
    MetricUnit,
    NewMetric,
    NewMetricsSet,
    StoredMetric,
    StoredMetricSet,
)


async def list_all(ctx: Context, *, updated_since: datetime | None = None) -> list[MetricSet]:
    """Return the company's metric sets, sorted by name; with `updated_since` (UTC), those changed then or later."""
    return [present(metric_set) for metric_set in await store.find_all(ctx, updated_since=updated_since)]


async def list_with_archived(ctx: Context) -> list[MetricSetWithArchived]:
    """Return the company's metric sets with their archived metrics, sorted by name."""
    return [_with_archived(metric_set) for metric_set in await store.find_all(ctx)]


async def get(ctx: Context, set_id: ObjectId) -> MetricSet:
    """Return a metric set. Raises NotFound."""
    return present(require_found(await store.metric_sets.find_one(ctx, _existing(set_id)), "metrics set"))


def _existing(set_id: ObjectId) -> Filter:
    return {"_id": set_id, "deletedAt": None}


async def get_with_archived(ctx: Context, set_id: ObjectId, *, include_deleted: bool) -> MetricSetWithArchived:
    """Return a metric set with its archived metrics. Raises NotFound, for a deleted set unless `include_deleted`."""
    where = {"_id": set_id} if include_deleted else _existing(set_id)
    return _with_archived(require_found(await store.metric_sets.find_one(ctx, where), "metrics set"))


async def list_automatic(ctx: Context) -> list[MetricSet]:
    """Return the sets that are assigned to every new client."""
    automatic = await store.metric_sets.find(ctx, {"deletedAt": None, "assignAutomatically": True})
    return [present(metric_set) for metric_set in automatic]


async def get_by_id(ctx: Context, set_ids: Iterable[ObjectId]) -> dict[ObjectId, MetricSetWithArchived]:
    """Return the metric sets by identifier, deleted ones included."""
    ids = set(set_ids)
    if not ids:
        return {}
    metric_sets = await store.metric_sets.find(ctx, {"_id": {"$in": list(ids)}})
    return {metric_set["_id"]: _with_archived(metric_set) for metric_set in metric_sets}


async def create(ctx: Context, metric_set: NewMetricsSet) -> MetricSet:
    """Create a metric set. Raises NotFound for an unknown unit."""
    metrics = [_to_stored(ObjectId(), metric) for metric in metric_set["metrics"]]
    content: MetricSetContent = {**metric_set, "metrics": metrics}
    private = {"sortName": normalize(content["name"]), "deletedAt": None}
    return present(await store.metric_sets.insert(ctx, {**content, **private}))


async def update(ctx: Context, set_id: ObjectId, change: MetricSetChange) -> MetricSet:
    """Change the fields of a metric set that are sent. A metric left out is archived: its history remains.

    Raises NotFound for the set, a metric or a unit, InvalidFields if the unit of a metric would change, and Conflict
    if the set has changed since `version`.
    """

    def changed_fields(stored: StoredMetricSet) -> Mapping[str, object]:
        fields = take(MetricSetFields, change)
        if "metrics" in change:
            fields["metrics"] = _merge_metrics(stored["metrics"], change["metrics"])
        return {**fields, "sortName": normalize(fields["name"])} if "name" in fields else fields

    version = change.get("version")
    metric_set = await store.metric_sets.rewrite(ctx, _existing(set_id), changed_fields, version=version)
    return present(require_found(metric_set, "metrics set"))


async def delete(ctx: Context, set_id: ObjectId) -> None:
    """Delete a metric set; recorded values remain. Raises NotFound."""
    deleted = await store.metric_sets.update(ctx, _existing(set_id), {"$set": {"deletedAt": now()}})
    require_found(deleted, "metrics set")


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
