"""Settings: metric sets, the metrics that are recorded for clients and their units."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any, TypedDict

from coaching_service.core.auth.access import METRICS, coach
from coaching_service.core.database.context import Context
from coaching_service.core.errors import BadRequest, require_by_id
from coaching_service.core.field_schemas import input_of
from coaching_service.core.fields import take
from coaching_service.core.ids import ObjectId
from coaching_service.core.validation import Version
from coaching_service.library.metric_sets import service as metric_sets
from coaching_service.library.metric_sets.models import MetricSet, MetricSetChange, MetricSetDetails, NewMetric
from coaching_service.web.pages import ConfirmedAction, Pages, Redirect

pages = Pages("/app/settings/metric-sets")
_MAX_METRICS = 100


class _NewMetricSet(MetricSetDetails):
    metricName: str
    metricUnitId: ObjectId


class _MetricSetUpdate(MetricSetDetails):
    version: Annotated[int, Version()]


class _MetricName(TypedDict):
    metricId: ObjectId
    name: str


def _set_path(set_id: ObjectId) -> str:
    return f"/app/settings/metric-sets/{set_id}"


def _unit_options() -> list[tuple[str, str]]:
    return [(str(unit["_id"]), f"{unit['name']} ({unit['shortName']})") for unit in metric_sets.list_units()]


@pages.get("", access=coach(METRICS.VIEW), template="settings/metric_sets.html")
async def metric_sets_page(ctx: Context) -> dict[str, Any]:
    """The metric sets, by name."""
    return {"sets": await metric_sets.list_all(ctx), "units": _unit_options()}


@pages.post("", access=coach(METRICS.CREATE), on=metric_sets_page)
async def create_metric_set(ctx: Context, form: _NewMetricSet) -> Redirect:
    """Create a set with its first metric."""
    metric: NewMetric = {"name": form["metricName"], "metricUnitId": form["metricUnitId"]}
    metric_set = await metric_sets.create(ctx, {**take(MetricSetDetails, form), "metrics": [metric]})
    return Redirect(_set_path(metric_set["_id"]), f"{metric_set['name']} created. Add more metrics to it here.")


@pages.get("/{metricsSetId}", access=coach(METRICS.VIEW), template="settings/metric_set.html")
async def metric_set_page(ctx: Context, metrics_set_id: ObjectId) -> dict[str, Any]:
    """One metric set and its metrics."""
    metric_set = await metric_sets.get(ctx, metrics_set_id)
    return {"set": metric_set, "version": metric_set["version"], "units": _unit_options()}


@pages.post("/{metricsSetId}", access=coach(METRICS.EDIT), form=_MetricSetUpdate, on=metric_set_page)
async def update_metric_set(ctx: Context, metrics_set_id: ObjectId, form: MetricSetChange) -> Redirect:
    """Rename a set, and set whether it is assigned to new clients automatically."""
    await metric_sets.update(ctx, metrics_set_id, form)
    return Redirect(_set_path(metrics_set_id), "Changes saved.")


@pages.post(
    "/{metricsSetId}/metrics", access=coach(METRICS.EDIT), form=input_of(NewMetric)(exclude=["_id"]), on=metric_set_page
)
async def add_metric(ctx: Context, metrics_set_id: ObjectId, form: NewMetric) -> Redirect:
    """Add a metric to a set."""
    metric_set = await metric_sets.get(ctx, metrics_set_id)
    if len(metric_set["metrics"]) >= _MAX_METRICS:
        raise BadRequest(f"A set must not hold more than {_MAX_METRICS} metrics")
    await _save_metrics(ctx, metric_set, [*_to_input(metric_set), form])
    return Redirect(_set_path(metrics_set_id), f"{form['name']} added.")


@pages.post("/{metricsSetId}/names", access=coach(METRICS.EDIT), on=metric_set_page)
async def rename_metric(ctx: Context, metrics_set_id: ObjectId, form: _MetricName) -> Redirect:
    """Rename a metric; its recorded values stay."""
    metric_set = await metric_sets.get(ctx, metrics_set_id)
    metrics = _to_input(metric_set)
    require_by_id(metrics, form["metricId"], "metric")["name"] = form["name"]
    await _save_metrics(ctx, metric_set, metrics)
    return Redirect(_set_path(metrics_set_id), "Metric renamed.")


@pages.confirm(
    "/{metricsSetId}/metrics/{metricId}/remove",
    access=coach(METRICS.EDIT),
    template="settings/remove_metric.html",
    deletes=True,
)
async def remove_metric(ctx: Context, metrics_set_id: ObjectId, metric_id: ObjectId) -> ConfirmedAction:
    """Remove a metric from its set; its recorded values stay."""
    metric_set = await metric_sets.get(ctx, metrics_set_id)
    removed = require_by_id(metric_set["metrics"], metric_id, "metric")

    async def remove() -> None:
        if len(metric_set["metrics"]) == 1:
            raise BadRequest("A set needs at least one metric: delete the set instead")
        remaining = [metric for metric in _to_input(metric_set) if metric["_id"] != metric_id]
        await _save_metrics(ctx, metric_set, remaining)

    return ConfirmedAction(
        {"set": metric_set, "metric": removed}, remove, Redirect(_set_path(metrics_set_id), "Metric removed.")
    )


def _to_input(metric_set: MetricSet) -> list[NewMetric]:
    """Return the metrics of a set as the service accepts them."""
    return [
        {"_id": metric["_id"], "name": metric["name"], "metricUnitId": metric["metricUnit"]["_id"]}
        for metric in metric_set["metrics"]
    ]


async def _save_metrics(ctx: Context, metric_set: MetricSet, metrics: list[NewMetric]) -> None:
    await metric_sets.update(ctx, metric_set["_id"], {"metrics": metrics, "version": metric_set["version"]})


@pages.confirm(
    "/{metricsSetId}/delete", access=coach(METRICS.DELETE), template="settings/delete_metric_set.html", deletes=True
)
async def delete_metric_set(ctx: Context, metrics_set_id: ObjectId) -> ConfirmedAction:
    """Delete a set; recorded values stay."""
    metric_set = await metric_sets.get(ctx, metrics_set_id)
    done = Redirect(pages.prefix, f"{metric_set['name']} deleted.")
    return ConfirmedAction({"set": metric_set}, partial(metric_sets.delete, ctx, metrics_set_id), done)
