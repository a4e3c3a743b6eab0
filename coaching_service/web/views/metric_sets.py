"""Settings, metric sets: what is measured of clients, and in which units."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from marshmallow import fields

from coaching_service.core.auth.access import coach
from coaching_service.core.auth.permissions import METRICS
from coaching_service.core.database.context import Context
from coaching_service.core.errors import BadRequest, NotFound
from coaching_service.core.ids import ObjectId
from coaching_service.core.validation import Identifier, Input, Text, Version
from coaching_service.library.metric_sets import service as metric_sets
from coaching_service.library.metric_sets.models import Metric, MetricInput, MetricSetChange
from coaching_service.library.metric_sets.schemas import NewMetric
from coaching_service.web.pages import Pages, Redirect

pages = Pages("/app/settings/metric-sets")
_MAXIMUM = 100
NamedMetric = TypeVar("NamedMetric", Metric, MetricInput)


class _NewSet(Input):
    name = Text(required=True)
    assignAutomatically = fields.Boolean(load_default=False)
    metricName = Text(required=True)
    metricUnitId = Identifier(required=True)


class _SetChange(Input):
    name = Text(required=True)
    assignAutomatically = fields.Boolean(required=True)
    version = Version(required=True)


class _Rename(Input):
    metricId = Identifier(required=True)
    name = Text(required=True)


def _here(set_id: ObjectId) -> str:
    return f"/app/settings/metric-sets/{set_id}"


def _units() -> list[tuple[str, str]]:
    return [(str(unit["_id"]), f"{unit['name']} ({unit['shortName']})") for unit in metric_sets.list_units()]


@pages.get("", access=coach(METRICS.VIEW), template="settings/metric_sets.html")
async def metric_sets_page(ctx: Context) -> dict[str, Any]:
    """The metric sets by name."""
    return {"sets": await metric_sets.list_all(ctx), "units": _units()}


@pages.post("", access=coach(METRICS.CREATE), form=_NewSet(), on=metric_sets_page)
async def new_metric_set(ctx: Context, form: dict[str, Any]) -> Redirect:
    """A new set, with the first that is measured in it."""
    metric: MetricInput = {"name": form["metricName"], "metricUnitId": form["metricUnitId"]}
    made = await metric_sets.create(
        ctx, {"name": form["name"], "assignAutomatically": form["assignAutomatically"], "metrics": [metric]}
    )
    return Redirect(_here(made["_id"]), f"{made['name']} is made. What else is measured in it?")


@pages.get("/{metricsSetId}", access=coach(METRICS.VIEW), template="settings/metric_set.html")
async def metric_set_page(ctx: Context, metrics_set_id: ObjectId) -> dict[str, Any]:
    """A metric set with what is measured in it."""
    found = await metric_sets.read(ctx, metrics_set_id)
    return {"set": found, "version": found["version"], "units": _units()}


@pages.post("/{metricsSetId}", access=coach(METRICS.EDIT), form=_SetChange(), on=metric_set_page)
async def change_metric_set(ctx: Context, metrics_set_id: ObjectId, form: MetricSetChange) -> Redirect:
    """Name a set anew, and say whether new clients get it."""
    await metric_sets.change(ctx, metrics_set_id, form)
    return Redirect(_here(metrics_set_id), "The changes are kept.")


@pages.post("/{metricsSetId}/metrics", access=coach(METRICS.EDIT), form=NewMetric(exclude=["_id"]), on=metric_set_page)
async def add_metric(ctx: Context, metrics_set_id: ObjectId, form: MetricInput) -> Redirect:
    """Measure something more in a set."""

    def more(metrics: list[MetricInput]) -> list[MetricInput]:
        if len(metrics) >= _MAXIMUM:
            raise BadRequest([f"A set must not hold more than {_MAXIMUM} metrics"])
        return [*metrics, form]

    await _rewrite(ctx, metrics_set_id, more)
    return Redirect(_here(metrics_set_id), f"{form['name']} is added.")


@pages.post("/{metricsSetId}/names", access=coach(METRICS.EDIT), form=_Rename(), on=metric_set_page)
async def rename_metric(ctx: Context, metrics_set_id: ObjectId, form: dict[str, Any]) -> Redirect:
    """Name a metric anew; what was recorded of it stays."""

    def renamed(metrics: list[MetricInput]) -> list[MetricInput]:
        one = _named(metrics, form["metricId"])
        return [{**metric, "name": form["name"]} if metric is one else metric for metric in metrics]

    await _rewrite(ctx, metrics_set_id, renamed)
    return Redirect(_here(metrics_set_id), "The metric has a new name.")


@pages.get(
    "/{metricsSetId}/metrics/{metricId}/remove",
    access=coach(METRICS.EDIT),
    template="settings/remove_metric.html",
)
async def remove_metric_page(ctx: Context, metrics_set_id: ObjectId, metric_id: ObjectId) -> dict[str, Any]:
    """What follows from taking a metric out of its set."""
    found = await metric_sets.read(ctx, metrics_set_id)
    return {"set": found, "metric": _named(found["metrics"], metric_id)}


@pages.post("/{metricsSetId}/metrics/{metricId}/remove", access=coach(METRICS.EDIT), on=remove_metric_page)
async def remove_metric(ctx: Context, metrics_set_id: ObjectId, metric_id: ObjectId) -> Redirect:
    """Take a metric out of its set; what was recorded of it stays."""

    def fewer(metrics: list[MetricInput]) -> list[MetricInput]:
        one = _named(metrics, metric_id)
        if len(metrics) == 1:
            raise BadRequest(["A set needs something that is measured in it: delete the set instead"])
        return [metric for metric in metrics if metric is not one]

    await _rewrite(ctx, metrics_set_id, fewer)
    return Redirect(_here(metrics_set_id), "The metric is not measured any more.")


async def _rewrite(ctx: Context, set_id: ObjectId, change: Callable[[list[MetricInput]], list[MetricInput]]) -> None:
    """Replace a set's metrics by a function of those it has."""
    found = await metric_sets.read(ctx, set_id)
    metrics: list[MetricInput] = [
        {"_id": metric["_id"], "name": metric["name"], "metricUnitId": metric["metricUnit"]["_id"]}
        for metric in found["metrics"]
    ]
    await metric_sets.change(ctx, set_id, {"metrics": change(metrics), "version": found["version"]})


def _named(metrics: Sequence[NamedMetric], metric_id: ObjectId) -> NamedMetric:
    for metric in metrics:
        if metric["_id"] == metric_id:
            return metric
    raise NotFound("metric")


@pages.get("/{metricsSetId}/delete", access=coach(METRICS.DELETE), template="settings/delete_metric_set.html")
async def delete_metric_set_page(ctx: Context, metrics_set_id: ObjectId) -> dict[str, Any]:
    """What follows from deleting a set."""
    return {"set": await metric_sets.read(ctx, metrics_set_id)}


@pages.post("/{metricsSetId}/delete", access=coach(METRICS.DELETE), on=delete_metric_set_page)
async def delete_metric_set(ctx: Context, metrics_set_id: ObjectId) -> Redirect:
    """Delete a set; what was recorded stays."""
    found = await metric_sets.read(ctx, metrics_set_id)
    await metric_sets.remove(ctx, metrics_set_id)
    return Redirect("/app/settings/metric-sets", f"{found['name']} is deleted.")
