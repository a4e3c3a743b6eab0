"""A client's metrics over REST."""

from __future__ import annotations

from coaching_service.core.auth.access import METRICS, coach, customer
from coaching_service.core.database.context import Context
from coaching_service.core.errors import Conflict, LegacyFailure, NotFound
from coaching_service.core.field_schemas import input_of
from coaching_service.core.http.routes import Routes
from coaching_service.core.ids import ObjectId
from coaching_service.core.validation import DryRun, SearchedDate
from coaching_service.progress.metrics import models, service

routes = Routes("/coach/customers/{customerId}/metrics-sets", tag="Metrics", locks="customer")
value_routes = Routes("/coach/customers/{customerId}/metric-values", tag="Metrics", locks="customer")

own_routes = Routes("/customer/metrics-sets", tag="The client's own")

_ENTRY = {"metricId": "66f0c0ffee0000000000abcd", "date": "2026-03-02", "value": 72.5}
_DATE = {"date": SearchedDate(metadata={"pattern": r"^\d{4}-\d{2}-\d{2}$"})}
_LEGACY = ("METRICS_SET_MISSING",)


@routes.get("", access=coach(METRICS.VIEW))
async def list_assigned_metrics_sets(ctx: Context, customer_id: ObjectId) -> list[models.AssignedMetricsSet]:
    """List the metric sets a client is assigned.

    With each metric's earliest and latest value by date.
    """
    return await service.list_assigned(ctx, customer_id)


@routes.post(
    "",
    access=coach(METRICS.EDIT),
    errors=(LegacyFailure,),
    legacy_codes=_LEGACY,
    example={"metricsSetId": "66f0c0ffee0000000000abcd"},
)
async def assign_metrics_set(
    ctx: Context, customer_id: ObjectId, body: models.MetricsSetReference
) -> models.AssignedMetricsSet:
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
    errors=(LegacyFailure, Conflict),
    legacy_codes=_LEGACY,
    example=_ENTRY,
)
async def record_metric_value(
    ctx: Context, customer_id: ObjectId, metrics_set_id: ObjectId, body: models.NewMetricEntry
) -> models.MetricEntry:
    """Record a metric's value on a date.

    A second value for the date replaces the first. A date after the client's today is 400.
    """
    return await service.record(ctx, customer_id, metrics_set_id, body["metricId"], body["date"], body["value"])


@routes.get(
    "/{metricsSetId}/metrics/{metricId}/history",
    access=coach(METRICS.VIEW),
    errors=(LegacyFailure,),
    legacy_codes=_LEGACY,
)
async def list_metric_history(
    ctx: Context, customer_id: ObjectId, metrics_set_id: ObjectId, metric_id: ObjectId
) -> list[models.MetricHistoryEntry]:
    """Read a metric's history by date."""
    return await service.list_history(ctx, customer_id, metrics_set_id, metric_id)


@routes.delete(
    "/{metricsSetId}/metrics/{metricId}/history/{date}",
    access=coach(METRICS.EDIT),
    errors=(LegacyFailure, NotFound),
    legacy_codes=_LEGACY,
    path_fields=_DATE,
)
async def delete_metric_value(
    ctx: Context, customer_id: ObjectId, metrics_set_id: ObjectId, metric_id: ObjectId, date: str
) -> None:
    """Delete a metric's value of a date.

    Also from the log of the workout item that it was recorded with. The change can be undone.
    """
    await service.delete_value(ctx, customer_id, metrics_set_id, metric_id, date)


@own_routes.get("", access=customer())
async def list_own_metrics_sets(ctx: Context) -> list[models.AssignedMetricsSet]:
    """List the metric sets that I am assigned.

    With each metric's earliest and latest value by date.
    """
    return await service.list_assigned(ctx, ctx.caller.id)


@own_routes.post("/{metricsSetId}/entries", access=customer(), errors=(NotFound, Conflict), example=_ENTRY)
async def record_own_metric_value(
    ctx: Context, metrics_set_id: ObjectId, body: models.NewMetricEntry
) -> models.MetricEntry:
    """Record the value of a metric of mine on a date.

    A second value for the date replaces the first. A date after today is 400, a set that is no longer assigned 409.
    """
    return await service.record(ctx, ctx.caller.id, metrics_set_id, body["metricId"], body["date"], body["value"])


@own_routes.get("/{metricsSetId}/metrics/{metricId}/history", access=customer())
async def list_own_metric_history(
    ctx: Context, metrics_set_id: ObjectId, metric_id: ObjectId
) -> list[models.MetricHistoryEntry]:
    """Read the history of a metric of mine by date."""
    return await service.list_history(ctx, ctx.caller.id, metrics_set_id, metric_id)


@own_routes.delete(
    "/{metricsSetId}/metrics/{metricId}/history/{date}", access=customer(), errors=(NotFound,), path_fields=_DATE
)
async def delete_own_metric_value(ctx: Context, metrics_set_id: ObjectId, metric_id: ObjectId, date: str) -> None:
    """Delete the value that a metric of mine has on a date."""
    await service.delete_value(ctx, ctx.caller.id, metrics_set_id, metric_id, date)


@value_routes.post(
    "",
    access=coach(METRICS.EDIT),
    body=input_of(models.NewMetricValues, DryRun)(),
    rolls_back=True,
    errors=(NotFound, Conflict),
    example={"values": [_ENTRY]},
)
async def record_metric_values(
    ctx: Context, customer_id: ObjectId, body: models.NewMetricValues
) -> models.RecordedMetricValues:
    """Record up to 500 values of a client's metrics.

    All or nothing: of any of the metric sets that the client is assigned, each metric once a date. A value replaces the
    one that the date has. A date after the client's today is 400. A message about a value names it
    (`values.2.metricId`).
    """
    return {"recorded": len(await service.record_many(ctx, customer_id, body["values"]))}
