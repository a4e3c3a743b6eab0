"""Metric sets over REST."""

from __future__ import annotations

from coaching_service.core.auth.access import METRICS, coach
from coaching_service.core.database.context import Context
from coaching_service.core.errors import NotFound
from coaching_service.core.field_schemas import input_of, output_of
from coaching_service.core.http.routes import Routes, list_of
from coaching_service.core.ids import ObjectId
from coaching_service.core.list_selection import UpdatedSince
from coaching_service.core.validation import patch_of
from coaching_service.library.metric_sets import service
from coaching_service.library.metric_sets.models import MetricSet, MetricSetChange, MetricUnit, NewMetricsSet, unit_id

routes = Routes("", tag="Metric sets")
_SETS = "/coach/metrics-sets"
_METRICS_SET = output_of(MetricSet, name="MetricsSet")


@routes.get(_SETS, access=coach(METRICS.VIEW), returns=list_of(_METRICS_SET))
async def list_metrics_sets(ctx: Context, query: UpdatedSince) -> list[MetricSet]:
    """List the metric sets by name."""
    return await service.list_all(ctx, updated_since=query.get("updatedSince"))


@routes.post(
    _SETS,
    access=coach(METRICS.CREATE),
    returns=_METRICS_SET,
    errors=(NotFound,),
    example={"name": "Body", "metrics": [{"name": "Body weight", "metricUnitId": str(unit_id("kg"))}]},
)
async def create_metrics_set(ctx: Context, body: NewMetricsSet) -> MetricSet:
    """Create a metric set."""
    return await service.create(ctx, body)


@routes.get(f"{_SETS}/{{metricsSetId}}", access=coach(METRICS.VIEW), returns=_METRICS_SET)
async def get_metrics_set(ctx: Context, metrics_set_id: ObjectId) -> MetricSet:
    """Read a metric set."""
    return await service.get(ctx, metrics_set_id)


@routes.patch(
    f"{_SETS}/{{metricsSetId}}",
    access=coach(METRICS.EDIT),
    body=patch_of(input_of(NewMetricsSet), name="MetricsSetChange"),
    returns=_METRICS_SET,
    example={"assignAutomatically": True, "version": 0},
)
async def update_metrics_set(ctx: Context, metrics_set_id: ObjectId, body: MetricSetChange) -> MetricSet:
    """Change a metric set.

    A metric sent with its `_id` remains the same metric; one left out is archived, and its history remains.
    """
    return await service.update(ctx, metrics_set_id, body)


@routes.delete(f"{_SETS}/{{metricsSetId}}", access=coach(METRICS.DELETE))
async def delete_metrics_set(ctx: Context, metrics_set_id: ObjectId) -> None:
    """Delete a metric set.

    Recorded values remain.
    """
    await service.delete(ctx, metrics_set_id)


@routes.get("/metrics-units", access=coach(METRICS.VIEW))
async def list_metric_units(_: Context) -> list[MetricUnit]:
    """List the units in which metrics are recorded."""
    return service.list_units()
