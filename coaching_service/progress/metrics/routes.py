"""A client's metrics over REST."""

from __future__ import annotations

from coaching_service.core.auth.access import coach
from coaching_service.core.auth.permissions import METRICS
from coaching_service.core.database.context import Context
from coaching_service.core.errors import Conflict, LegacyFailure
from coaching_service.core.http.routes import Routes, list_of
from coaching_service.core.ids import ObjectId
from coaching_service.progress.metrics import models, schemas, service

routes = Routes("/coach/customers/{customerId}/metrics-sets", tag="Metrics")

_LEGACY = ("METRICS_SET_MISSING",)


@routes.get("", access=coach(METRICS.VIEW), returns=list_of(schemas.AssignedMetricsSet))
async def list_assigned_metrics_sets(ctx: Context, customer_id: ObjectId) -> list[models.AssignedMetricSet]:
    """List the metric sets a client is assigned.

    With each metric's earliest and latest value by date.
    """
    return await service.list_assigned(ctx, customer_id)


@routes.post(
    "",
    access=coach(METRICS.EDIT),
    body=schemas.MetricsSetReference(),
    returns=schemas.AssignedMetricsSet,
    errors=(LegacyFailure,),
    legacy_codes=_LEGACY,
    example={"metricsSetId": "66f0c0ffee0000000000abcd"},
)
async def assign_metrics_set(
    ctx: Context, customer_id: ObjectId, body: models.MetricsSetReference
) -> models.AssignedMetricSet:
    """Assign a metric set to a client.

    If it was assigned before, its history is available again. A set that does not exist: 500 with `code`
    METRICS_SET_MISSING.
    """
    return await service.assign(ctx, customer_id, body["metricsSetId"])


@routes.delete("/{metricsSetId}", access=coach(METRICS.EDIT), errors=(LegacyFailure,), legacy_codes=_LEGACY)
async def unassign_metrics_set(ctx: Context, customer_id: ObjectId, metrics_set_id: ObjectId) -> None:
    """End the assignment of a metric set.

    Its history stays readable; new values are 409.
    """
    await service.unassign(ctx, customer_id, metrics_set_id)


@routes.post(
    "/{metricsSetId}/entries",
    access=coach(METRICS.EDIT),
    body=schemas.NewMetricEntry(),
    returns=schemas.MetricEntry,
    errors=(LegacyFailure, Conflict),
    legacy_codes=_LEGACY,
    example={"metricId": "66f0c0ffee0000000000abcd", "date": "2026-03-02", "value": 72.5},
)
async def record_metric_value(
    ctx: Context, customer_id: ObjectId, metrics_set_id: ObjectId, body: models.NewMetricEntry
) -> models.MetricEntry:
    """Record a metric's value on a date.

    A second value for the date replaces the first.
    """
    return await service.record(ctx, customer_id, metrics_set_id, body["metricId"], body["date"], body["value"])


@routes.get(
    "/{metricsSetId}/metrics/{metricId}/history",
    access=coach(METRICS.VIEW),
    returns=list_of(schemas.MetricHistoryEntry),
    errors=(LegacyFailure,),
    legacy_codes=_LEGACY,
)
async def list_metric_history(
    ctx: Context, customer_id: ObjectId, metrics_set_id: ObjectId, metric_id: ObjectId
) -> list[models.MetricHistoryEntry]:
    """Read a metric's history by date."""
    return await service.list_history(ctx, customer_id, metrics_set_id, metric_id)
