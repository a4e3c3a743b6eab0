"""Metric sets: what a company measures, and in which units."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any, NotRequired, TypeAlias, TypedDict

from marshmallow import fields

from coaching_service.core import fields as core_fields
from coaching_service.core.auth import METRICS, coach
from coaching_service.core.database import declared
from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import Documents, Filter, now
from coaching_service.core.errors import NotFound, invalid_field, require_found
from coaching_service.core.fields import Default, Description, input_of, output_of
from coaching_service.core.http.routes import Routes, list_of
from coaching_service.core.ids import ObjectId, stable_id
from coaching_service.core.list_selection import UPDATED, UpdatedSince
from coaching_service.core.text import normalize
from coaching_service.core.validation import ListOf, Text, patch_of

# --- Metric sets as they are sent, stored and read --------------------------------------------------------------------


class MetricUnit(TypedDict):
    """A unit of measurement."""

    _id: ObjectId
    name: str
    shortName: str


class NewMetric(TypedDict):
    """A metric of a set; `_id` refers to one that the set already has."""

    _id: NotRequired[ObjectId]
    name: Annotated[str, Text()]
    metricUnitId: ObjectId


class MetricSetDetails(TypedDict):
    """The fields of a metric set without its metrics."""

    name: Annotated[str, Text()]
    assignAutomatically: Annotated[bool, Default(False), Description(request="Assign the set to every new client.")]


class NewMetricsSet(MetricSetDetails):
    """A metric set to create."""

    metrics: Annotated[list[NewMetric], ListOf(fields.Nested(input_of(NewMetric)), minimum=1)]


class StoredMetric(TypedDict):
    """A metric in a stored set; an archived one is no longer recorded, but its history remains."""

    _id: ObjectId
    name: str
    metricUnitId: ObjectId
    isArchived: bool


class MetricSetContent(MetricSetDetails):
    """The content of a stored metric set."""

    metrics: list[StoredMetric]


class StoredMetricSet(MetricSetContent, declared.Stored):
    """A metric set in the database."""


class Metric(TypedDict):
    """A metric with its unit."""

    _id: ObjectId
    name: str
    metricUnit: MetricUnit


class MetricSet(MetricSetDetails, declared.Returned):
    """A set of metrics that can be assigned to clients."""

    metrics: list[Metric]


class MetricSetWithArchived(MetricSet):
    """A metric set with its archived metrics."""

    archivedMetrics: list[Metric]


MetricSetChange: TypeAlias = core_fields.Change[NewMetricsSet]
MetricSetFields: TypeAlias = core_fields.Partial[MetricSetContent]


# --- The units in which metrics are recorded; they are the same for every company -------------------------------------


_UNITS = (
    ("Kilograms", "kg"),
    ("Pounds", "lb"),
    ("Centimeters", "cm"),
    ("Inches", "in"),
    ("Meters", "m"),
    ("Kilometers", "km"),
    ("Miles", "mi"),
    ("Percent", "%"),
    ("Count", "count"),
    ("Score", "score"),
    ("Steps", "steps"),
    ("Seconds", "s"),
    ("Minutes", "min"),
    ("Hours", "h"),
    ("Beats per minute", "bpm"),
    ("Milliseconds", "ms"),
    ("Millimeters of mercury", "mmHg"),
    ("Degrees Celsius", "°C"),
    ("Kilocalories", "kcal"),
    ("Grams", "g"),
    ("Milliliters", "ml"),
    ("Liters", "l"),
    ("Watts", "W"),
    ("Milliliters per kilogram and minute", "ml/kg/min"),
    ("Millimoles per liter", "mmol/l"),
    ("Milligrams per deciliter", "mg/dl"),
)

UNITS: dict[ObjectId, MetricUnit] = {
    stable_id("metric unit", name): {"_id": stable_id("metric unit", name), "name": name, "shortName": short}
    for name, short in _UNITS
}


def unit_id(short_name: str) -> ObjectId:
    """Return the identifier of the unit with this short name. Raises KeyError."""
    return {unit["shortName"]: identifier for identifier, unit in UNITS.items()}[short_name]


# --- Metric sets in the database. Deleted ones remain for the history and the items that refer to them ----------------


def _event(_: declared.Action, known: Mapping[str, Any], paths: Collection[str]) -> declared.EventData | None:
    if "deletedAt" not in paths or known["deletedAt"] is None:
        return None
    return {"type": "metrics_set.deleted", "data": {"metricsSetId": known["_id"]}}


def _complete_imported(metric_set: dict[str, Any]) -> dict[str, Any]:
    """Return an imported set with its private fields. Raises InvalidFields for unknown units."""
    if any(metric["metricUnitId"] not in UNITS for metric in metric_set["metrics"]):
        raise invalid_field("metrics.metricUnitId", "is not the identifier of a unit", code="NOT_FOUND")
    return {**metric_set, "sortName": normalize(metric_set["name"])}


_metric_sets = Documents[StoredMetricSet](
    "metricSets",
    (
        declared.Index(("deletedAt", "sortName", "_id")),
        declared.Index(("deletedAt", "assignAutomatically")),
        declared.Index(("_id",)),
        declared.Index(("deletedAt", UPDATED)),
    ),
    private=("companyId", "sortName", "deletedAt"),
    history=declared.History("metrics_set", _event, ("deletedAt",)),
    transfer=declared.Portable(
        StoredMetricSet,
        declared.LIBRARY,
        extra={"deletedAt": datetime | None},
        checks={"metrics.name": Text()},
        complete=_complete_imported,
    ),
)
_BY_UPDATE = _metric_sets.index_name("deletedAt", UPDATED)


async def find_all(ctx: Context, *, updated_since: datetime | None = None) -> list[StoredMetricSet]:
    """Return the company's metric sets, or those changed at `updated_since` (UTC) or later, sorted by name."""
    where, hint = ({}, None) if updated_since is None else ({UPDATED: {"$gte": updated_since}}, _BY_UPDATE)
    return await _metric_sets.find(ctx, {"deletedAt": None, **where}, sort=("sortName", "_id"), hint=hint)


routes = Routes("", tag="Metric sets")
_SETS = "/coach/metrics-sets"
_METRICS_SET = output_of(MetricSet, name="MetricsSet")


async def list_all(ctx: Context, *, updated_since: datetime | None = None) -> list[MetricSet]:
    """Return the company's metric sets, sorted by name; with `updated_since` (UTC), those changed then or later."""
    return [present(metric_set) for metric_set in await find_all(ctx, updated_since=updated_since)]


@routes.get(_SETS, access=coach(METRICS.VIEW), returns=list_of(_METRICS_SET))
async def list_metrics_sets(ctx: Context, query: UpdatedSince) -> list[MetricSet]:
    """List the metric sets by name."""
    return await list_all(ctx, updated_since=query.get("updatedSince"))


async def list_with_archived(ctx: Context) -> list[MetricSetWithArchived]:
    """Return the company's metric sets with their archived metrics, sorted by name."""
    return [_with_archived(metric_set) for metric_set in await find_all(ctx)]


@routes.get(f"{_SETS}/{{metricsSetId}}", access=coach(METRICS.VIEW), returns=_METRICS_SET, operation_id="getMetricsSet")
async def get(ctx: Context, metrics_set_id: ObjectId) -> MetricSet:
    """Read a metric set."""
    return present(require_found(await _metric_sets.find_one(ctx, _existing(metrics_set_id)), "metrics set"))


def _existing(set_id: ObjectId) -> Filter:
    return {"_id": set_id, "deletedAt": None}


async def get_with_archived(ctx: Context, set_id: ObjectId, *, include_deleted: bool) -> MetricSetWithArchived:
    """Return a metric set with its archived metrics. Raises NotFound, for a deleted set unless `include_deleted`."""
    where = {"_id": set_id} if include_deleted else _existing(set_id)
    return _with_archived(require_found(await _metric_sets.find_one(ctx, where), "metrics set"))


async def list_automatic(ctx: Context) -> list[MetricSet]:
    """Return the sets that are assigned to every new client."""
    automatic = await _metric_sets.find(ctx, {"deletedAt": None, "assignAutomatically": True})
    return [present(metric_set) for metric_set in automatic]


async def get_by_id(ctx: Context, set_ids: Iterable[ObjectId]) -> dict[ObjectId, MetricSetWithArchived]:
    """Return the metric sets by identifier, deleted ones included."""
    if not (ids := set(set_ids)):
        return {}
    metric_sets = await _metric_sets.find(ctx, {"_id": {"$in": list(ids)}})
    return {metric_set["_id"]: _with_archived(metric_set) for metric_set in metric_sets}


@routes.post(
    _SETS,
    access=coach(METRICS.CREATE),
    returns=_METRICS_SET,
    errors=(NotFound,),
    example={"name": "Body", "metrics": [{"name": "Body weight", "metricUnitId": str(unit_id("kg"))}]},
    operation_id="createMetricsSet",
)
async def create(ctx: Context, body: NewMetricsSet) -> MetricSet:
    """Create a metric set."""
    metrics = [_to_stored(ObjectId(), metric) for metric in body["metrics"]]
    content: MetricSetContent = {**body, "metrics": metrics}
    private = {"sortName": normalize(content["name"]), "deletedAt": None}
    return present(await _metric_sets.insert(ctx, {**content, **private}))


@routes.patch(
    f"{_SETS}/{{metricsSetId}}",
    access=coach(METRICS.EDIT),
    body=patch_of(input_of(NewMetricsSet), name="MetricsSetChange"),
    returns=_METRICS_SET,
    example={"assignAutomatically": True, "version": 0},
    operation_id="updateMetricsSet",
)
async def update(ctx: Context, metrics_set_id: ObjectId, body: MetricSetChange) -> MetricSet:
    """Change a metric set.

    A metric sent with its `_id` remains the same metric; one left out is archived, and its history remains.
    """

    def changed_fields(stored: StoredMetricSet) -> Mapping[str, object]:
        fields = core_fields.take(MetricSetFields, body)
        if "metrics" in body:
            sent_ids = [metric["_id"] for metric in body["metrics"] if "_id" in metric]
            if len(set(sent_ids)) < len(sent_ids):
                raise invalid_field("metrics", "must name each metric only once", code="DUPLICATE")
            remaining = {metric["_id"]: metric for metric in stored["metrics"]}
            merged: list[StoredMetric] = []
            for metric in body["metrics"]:
                previous = remaining.pop(metric["_id"], None) if "_id" in metric else None
                if previous is None and "_id" in metric:
                    raise NotFound("metric")
                if previous is not None and previous["metricUnitId"] != metric["metricUnitId"]:
                    message = "must keep the unit of each metric; remove the metric and add a new one instead"
                    raise invalid_field("metrics", message, code="UNIT_CHANGED")
                merged.append(_to_stored(previous["_id"] if previous else ObjectId(), metric))
            fields["metrics"] = merged + [{**metric, "isArchived": True} for metric in remaining.values()]
        return {**fields, "sortName": normalize(fields["name"])} if "name" in fields else fields

    version = body.get("version")
    metric_set = await _metric_sets.rewrite(ctx, _existing(metrics_set_id), changed_fields, version=version)
    return present(require_found(metric_set, "metrics set"))


@routes.delete(f"{_SETS}/{{metricsSetId}}", access=coach(METRICS.DELETE), operation_id="deleteMetricsSet")
async def delete(ctx: Context, metrics_set_id: ObjectId) -> None:
    """Delete a metric set.

    Recorded values remain.
    """
    deleted = await _metric_sets.update(ctx, _existing(metrics_set_id), {"$set": {"deletedAt": now()}})
    require_found(deleted, "metrics set")


def list_units() -> list[MetricUnit]:
    """Return every unit."""
    return list(UNITS.values())


def present(stored: StoredMetricSet) -> MetricSet:
    """Return a stored metric set as it is read."""
    return {**core_fields.take(MetricSet, stored), "metrics": _present_metrics(stored["metrics"], archived=False)}


def _with_archived(stored: StoredMetricSet) -> MetricSetWithArchived:
    return {**present(stored), "archivedMetrics": _present_metrics(stored["metrics"], archived=True)}


def _present_metrics(metrics: Sequence[StoredMetric], *, archived: bool) -> list[Metric]:
    return [
        {"_id": metric["_id"], "name": metric["name"], "metricUnit": UNITS[metric["metricUnitId"]]}
        for metric in metrics
        if metric["isArchived"] is archived
    ]


def _to_stored(metric_id: ObjectId, metric: NewMetric) -> StoredMetric:
    if metric["metricUnitId"] not in UNITS:
        raise NotFound("metric unit")
    return {"_id": metric_id, "name": metric["name"], "metricUnitId": metric["metricUnitId"], "isArchived": False}


# --- Metric sets over REST --------------------------------------------------------------------------------------------


@routes.get("/metrics-units", access=coach(METRICS.VIEW))
async def list_metric_units(_: Context) -> list[MetricUnit]:
    """List the units in which metrics are recorded."""
    return list_units()
