"""A client's metrics for assistants."""

from __future__ import annotations

from coaching_service.core.auth.access import METRICS, coach
from coaching_service.core.database.context import Context
from coaching_service.core.database.transactions import gather_reads
from coaching_service.core.ids import ObjectId
from coaching_service.core.mcp.arguments import (
    CustomerArgument,
    OpenDates,
    PageOfLines,
    ToolPage,
    format_figure,
    list_answer,
    paged,
)
from coaching_service.core.mcp.results import Answer, Reason, Written, find_reasons, typed
from coaching_service.core.mcp.tools import Tools
from coaching_service.core.validation import CalendarDate, Identifier, Number
from coaching_service.people.customers import service as customers
from coaching_service.progress.metrics import service
from coaching_service.progress.metrics.models import Measurement, MeasurementSet

tools = Tools()


class MetricArgument(CustomerArgument):
    """A metric of a client."""

    metricsSetId = Identifier(required=True, metadata={"description": "From list_metric_sets."})
    metricId = Identifier(required=True, metadata={"description": "From list_metric_sets."})


class MetricHistory(MetricArgument, OpenDates, ToolPage):
    """The metric, the dates, and the page of its history."""


class RecordMetric(MetricArgument):
    """A value to record."""

    date = CalendarDate(required=True, metadata={"description": "The day it was measured."})
    value = Number(
        minimum=-1e9, maximum=1e9, required=True, metadata={"description": "The value, in the metric's unit."}
    )


@tools.tool("List a client's metrics", access=coach(METRICS.VIEW), takes=CustomerArgument(), returns=PageOfLines)
async def list_metric_sets(ctx: Context, customer_id: ObjectId) -> Answer:
    """List the metric sets a client is assigned, such as body weight or girths: each metric with its _id, first and
    latest value."""
    customer, sets = await gather_reads(
        ctx, customers.get_visible_reference(ctx, customer_id), service.list_measurements(ctx, customer_id)
    )
    page, ids = paged(sets, 1, max(1, len(sets))), [each["_id"] for each in sets]
    return list_answer(
        f"Metric sets of {typed(customer['name'])}", page, [_describe_set(each) for each in sets], ids=ids
    )


def _describe_set(metric_set: MeasurementSet) -> str:
    lines = [f"{typed(metric_set['name'])} [{metric_set['_id']}]"]
    for each in metric_set["measurements"]:
        metric = each["metric"]
        lines.append(f"  {typed(metric['name'])} [{metric['_id']}]: {_describe_values(each)}")
    return "\n".join(lines)


def _describe_values(measured: Measurement) -> str:
    first, latest, unit = measured["first"], measured["latest"], measured["metric"]["metricUnit"]["shortName"]
    if first is None or latest is None:
        return f"no value, in {unit}"
    entries = [first, latest] if first["date"] != latest["date"] else [latest]
    return " -> ".join(f"{format_figure(each['value'])} {unit} on {each['date']}" for each in entries)


@tools.tool("Read a metric's history", access=coach(METRICS.VIEW), takes=MetricHistory(), returns=PageOfLines)
async def get_metric_history(
    ctx: Context,
    customer_id: ObjectId,
    metrics_set_id: ObjectId,
    metric_id: ObjectId,
    page: int,
    page_size: int,
    start_date: str | None,
    end_date: str | None,
) -> Answer:
    """Read the values of one metric of a client, newest first, and the difference from the oldest to the newest."""
    customer, metric, entries = await gather_reads(
        ctx,
        customers.get_visible_reference(ctx, customer_id),
        service.find_metric(ctx, metrics_set_id, metric_id),
        service.list_history(ctx, customer_id, metrics_set_id, metric_id),
    )
    between = [
        entry
        for entry in entries
        if (start_date is None or entry["date"] >= start_date) and (end_date is None or entry["date"] <= end_date)
    ]
    history, unit = paged(between[::-1], page, page_size), metric["metricUnit"]["shortName"]
    title = f"{typed(metric['name'])} in {unit} of {typed(customer['name'])}"
    if len(between) > 1:
        difference = round(between[-1]["value"] - between[0]["value"], 4)
        title += f", {difference:+.15g} from {between[0]['date']} to {between[-1]['date']}"
    lines = [f"{entry['date']}: {format_figure(entry['value'])}" for entry in history["docs"]]
    return list_answer(title, history, lines)


@tools.tool(
    "Record a metric",
    access=coach(METRICS.EDIT),
    takes=RecordMetric(),
    writes=True,
    locks="customer",
    destructive=True,
    idempotent=True,
    confirms=(Reason.FAR_DATE, Reason.FAR_VALUE),
)
async def record_metric(
    ctx: Context, customer_id: ObjectId, metrics_set_id: ObjectId, metric_id: ObjectId, date: str, value: float
) -> Written:
    """Record a value of one of a client's assigned metrics on a date, today at the latest. An existing value of that
    date is replaced."""
    previous_value = await service.find_value(ctx, customer_id, metric_id, date)
    far = await service.find_far_values(ctx, customer_id, date, {metric_id: value})
    await service.record(ctx, customer_id, metrics_set_id, metric_id, date, value)
    customer, metric = await gather_reads(
        ctx, customers.get_visible_reference(ctx, customer_id), service.find_metric(ctx, metrics_set_id, metric_id)
    )
    before = "" if previous_value is None else f"{_write(previous_value)} → "
    last = f" The last value, of {entry['date']}, is {_write(entry['value'])}." if (entry := far.get(metric_id)) else ""
    unit = metric["metricUnit"]["shortName"]
    after = f"{_write(value)} {unit}"
    line = f"Recorded {typed(metric['name'])} {before}{after} on {date} for {typed(customer['name'])}.{last}"
    return Written(
        line,
        {"customerId": customer_id, "metricId": metric_id},
        find_reasons(today=ctx.caller.today(), dates=(date,), far_values=bool(far)),
        details={"value": value, "previousValue": previous_value},
    )


def _write(value: float) -> str:
    """Return a value with all of its digits, and without an exponent."""
    return f"{value:.15g}"
