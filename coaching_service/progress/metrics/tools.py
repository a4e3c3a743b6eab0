"""A client's metrics for assistants."""

from __future__ import annotations

from coaching_service.core.auth.access import coach
from coaching_service.core.auth.permissions import METRICS
from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import Document
from coaching_service.core.database.transactions import gather_reads
from coaching_service.core.ids import ObjectId
from coaching_service.core.mcp.arguments import CustomerArgument, ToolPage, paged
from coaching_service.core.mcp.tools import Tools
from coaching_service.core.validation import Date, Identifier, Number
from coaching_service.people.customers import service as customers
from coaching_service.progress.metrics import service

tools = Tools()


class MetricArgument(CustomerArgument):
    """A tool about one metric of a client."""

    metricsSetId = Identifier(required=True, metadata={"description": "The set's _id, from list_metric_sets."})
    metricId = Identifier(required=True, metadata={"description": "The metric's _id, from list_metric_sets."})


class MetricHistory(MetricArgument, ToolPage):
    """Which metric, and which page of its history."""


class RecordMetric(MetricArgument):
    """A value to record."""

    date = Date(required=True, metadata={"description": "The day it was measured, YYYY-MM-DD, the client's date."})
    value = Number(
        minimum=-1e9, maximum=1e9, required=True, metadata={"description": "The value, in the metric's unit."}
    )


@tools.tool("List a client's metrics", access=coach(METRICS.VIEW), takes=CustomerArgument())
async def list_metric_sets(ctx: Context, customer_id: ObjectId) -> Document:
    """List the metric sets a client is assigned, such as body weight or girths: each metric with its _id, unit, first
    and latest value. The values over time come from get_metric_history."""
    client, sets = await gather_reads(
        ctx, customers.get_visible_reference(ctx, customer_id), service.assigned(ctx, customer_id)
    )
    docs = [{**each["metricsSet"], "metrics": [_metric(metric) for metric in each["metrics"]]} for each in sets]
    return {"customer": client, **paged(docs, 1, max(1, len(docs)))}


def _metric(assigned: Document) -> Document:
    metric = assigned["metric"]
    return {
        "_id": metric["_id"],
        "name": metric["name"],
        "unit": metric["metricUnit"]["shortName"],
        "initialValue": assigned["initialValue"],
        "currentValue": assigned["currentValue"],
    }


@tools.tool("Read a metric's history", access=coach(METRICS.VIEW), takes=MetricHistory())
async def get_metric_history(
    ctx: Context, customer_id: ObjectId, metrics_set_id: ObjectId, metric_id: ObjectId, page: int, page_size: int
) -> Document:
    """Read what was recorded of one metric of a client, the newest date first. Gives docs (date and value), the
    metric's name and unit, totalDocs, hasNextPage and nextPage."""
    client, metric, entries = await gather_reads(
        ctx,
        customers.get_visible_reference(ctx, customer_id),
        service.metric_of(ctx, metrics_set_id, metric_id),
        service.history(ctx, customer_id, metrics_set_id, metric_id),
    )
    return {"customer": client, "metric": _named(metric), **paged(entries[::-1], page, page_size)}


@tools.tool(
    *("Record a metric",),
    access=coach(METRICS.EDIT),
    takes=RecordMetric(),
    writes=True,
    destructive=True,
    idempotent=True,
)
async def record_metric(
    ctx: Context, customer_id: ObjectId, metrics_set_id: ObjectId, metric_id: ObjectId, date: str, value: float
) -> Document:
    """Record a value of one of a client's assigned metrics on a date. A value there already for that date is replaced:
    previousValue tells which, null for none. Sets are assigned by the coach, in the application."""
    before = await service.value_on(ctx, customer_id, metric_id, date)
    await service.record(ctx, customer_id, metrics_set_id, metric_id, date, value)
    client, metric = await gather_reads(
        ctx, customers.get_visible_reference(ctx, customer_id), service.metric_of(ctx, metrics_set_id, metric_id)
    )
    return {"customer": client, "metric": _named(metric), "date": date, "value": value, "previousValue": before}


def _named(metric: Document) -> Document:
    return {"_id": metric["_id"], "name": metric["name"], "unit": metric["metricUnit"]["shortName"]}
