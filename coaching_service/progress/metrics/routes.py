"""A client's metrics over REST."""

from __future__ import annotations

from coaching_service.core import mcp, validation
from coaching_service.core.auth import METRICS, coach, customer
from coaching_service.core.database.context import Context, gather_reads
from coaching_service.core.errors import Conflict, LegacyFailure, NotFound
from coaching_service.core.fields import input_of
from coaching_service.core.http.routes import Routes
from coaching_service.core.ids import ObjectId
from coaching_service.core.mcp import Tools
from coaching_service.people.customers import service as customers
from coaching_service.progress.metrics import service as metrics

routes = Routes("/coach/customers/{customerId}/metrics-sets", tag="Metrics", locks="customer")
value_routes = Routes("/coach/customers/{customerId}/metric-values", tag="Metrics", locks="customer")

own_routes = Routes("/customer/metrics-sets", tag="The client's own")

_ENTRY = {"metricId": "66f0c0ffee0000000000abcd", "date": "2026-03-02", "value": 72.5}
_DATE = {"date": validation.SearchedDate(metadata={"pattern": r"^\d{4}-\d{2}-\d{2}$"})}
_LEGACY = ("METRICS_SET_MISSING",)


@routes.get("", access=coach(METRICS.VIEW))
async def list_assigned_metrics_sets(ctx: Context, customer_id: ObjectId) -> list[metrics.AssignedMetricsSet]:
    """List the metric sets a client is assigned.

    With each metric's earliest and latest value by date.
    """
    return await metrics.list_assigned(ctx, customer_id)


@routes.post(
    "",
    access=coach(METRICS.EDIT),
    errors=(LegacyFailure,),
    legacy_codes=_LEGACY,
    example={"metricsSetId": "66f0c0ffee0000000000abcd"},
)
async def assign_metrics_set(
    ctx: Context, customer_id: ObjectId, body: metrics.MetricsSetReference
) -> metrics.AssignedMetricsSet:
    """Assign a metric set to a client.

    If it was assigned before, its history is available again. A set that does not exist: 500 with `code`
    METRICS_SET_MISSING.
    """
    return await metrics.assign(ctx, customer_id, body["metricsSetId"])


@routes.delete("/{metricsSetId}", access=coach(METRICS.EDIT), errors=(LegacyFailure,), legacy_codes=_LEGACY)
async def unassign_metrics_set(ctx: Context, customer_id: ObjectId, metrics_set_id: ObjectId) -> None:
    """End the assignment of a metric set.

    Its history stays readable; new values are 409.
    """
    await metrics.unassign(ctx, customer_id, metrics_set_id)


@routes.post(
    "/{metricsSetId}/entries",
    access=coach(METRICS.EDIT),
    errors=(LegacyFailure, Conflict),
    legacy_codes=_LEGACY,
    example=_ENTRY,
)
async def record_metric_value(
    ctx: Context, customer_id: ObjectId, metrics_set_id: ObjectId, body: metrics.NewMetricEntry
) -> metrics.MetricEntry:
    """Record a metric's value on a date.

    A second value for the date replaces the first. A date after the client's today is 400.
    """
    return await metrics.record(ctx, customer_id, metrics_set_id, body["metricId"], body["date"], body["value"])


@routes.get(
    "/{metricsSetId}/metrics/{metricId}/history",
    access=coach(METRICS.VIEW),
    errors=(LegacyFailure,),
    legacy_codes=_LEGACY,
)
async def list_metric_history(
    ctx: Context, customer_id: ObjectId, metrics_set_id: ObjectId, metric_id: ObjectId
) -> list[metrics.MetricHistoryEntry]:
    """Read a metric's history by date."""
    return await metrics.list_history(ctx, customer_id, metrics_set_id, metric_id)


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
    await metrics.delete_value(ctx, customer_id, metrics_set_id, metric_id, date)


@own_routes.get("", access=customer())
async def list_own_metrics_sets(ctx: Context) -> list[metrics.AssignedMetricsSet]:
    """List the metric sets that I am assigned.

    With each metric's earliest and latest value by date.
    """
    return await metrics.list_assigned(ctx, ctx.caller.id)


@own_routes.post("/{metricsSetId}/entries", access=customer(), errors=(NotFound, Conflict), example=_ENTRY)
async def record_own_metric_value(
    ctx: Context, metrics_set_id: ObjectId, body: metrics.NewMetricEntry
) -> metrics.MetricEntry:
    """Record the value of a metric of mine on a date.

    A second value for the date replaces the first. A date after today is 400, a set that is no longer assigned 409.
    """
    return await metrics.record(ctx, ctx.caller.id, metrics_set_id, body["metricId"], body["date"], body["value"])


@own_routes.get("/{metricsSetId}/metrics/{metricId}/history", access=customer())
async def list_own_metric_history(
    ctx: Context, metrics_set_id: ObjectId, metric_id: ObjectId
) -> list[metrics.MetricHistoryEntry]:
    """Read the history of a metric of mine by date."""
    return await metrics.list_history(ctx, ctx.caller.id, metrics_set_id, metric_id)


@own_routes.delete(
    "/{metricsSetId}/metrics/{metricId}/history/{date}", access=customer(), errors=(NotFound,), path_fields=_DATE
)
async def delete_own_metric_value(ctx: Context, metrics_set_id: ObjectId, metric_id: ObjectId, date: str) -> None:
    """Delete the value that a metric of mine has on a date."""
    await metrics.delete_value(ctx, ctx.caller.id, metrics_set_id, metric_id, date)


@value_routes.post(
    "",
    access=coach(METRICS.EDIT),
    body=input_of(metrics.NewMetricValues, validation.DryRun)(),
    rolls_back=True,
    errors=(NotFound, Conflict),
    example={"values": [_ENTRY]},
)
async def record_metric_values(
    ctx: Context, customer_id: ObjectId, body: metrics.NewMetricValues
) -> metrics.RecordedMetricValues:
    """Record up to 500 values of a client's metrics.

    All or nothing: of any of the metric sets that the client is assigned, each metric once a date. A value replaces the
    one that the date has. A date after the client's today is 400. A message about a value names it
    (`values.2.metricId`).
    """
    return {"recorded": len(await metrics.record_many(ctx, customer_id, body["values"]))}


# --- A client's metrics for assistants --------------------------------------------------------------------------------


tools = Tools()


class MetricArgument(mcp.CustomerArgument):
    """A metric of a client."""

    metricsSetId = validation.Identifier(required=True, metadata={"description": "From list_metric_sets."})
    metricId = validation.Identifier(required=True, metadata={"description": "From list_metric_sets."})


class MetricHistory(MetricArgument, mcp.OpenDates, mcp.ToolPage):
    """The metric, the dates, and the page of its history."""


class RecordMetric(MetricArgument):
    """A value to record."""

    date = validation.CalendarDate(required=True, metadata={"description": "The day it was measured."})
    value = validation.Number(
        minimum=-1e9, maximum=1e9, required=True, metadata={"description": "The value, in the metric's unit."}
    )


@tools.tool(
    "List a client's metrics",
    access=coach(METRICS.VIEW),
    takes=mcp.CustomerArgument(),
    returns=mcp.Lines,
)
async def list_metric_sets(ctx: Context, customer_id: ObjectId) -> mcp.Answer:
    """List the metric sets a client is assigned, such as body weight or girths: each metric with its _id, first and
    latest value."""
    customer, sets = await gather_reads(
        ctx, customers.get_visible_reference(ctx, customer_id), metrics.list_measurements(ctx, customer_id)
    )
    texts = []
    for metric_set in sets:
        lines = [f"{mcp.typed(metric_set['name'])} [{metric_set['_id']}]"]
        for each in metric_set["measurements"]:
            first, latest, unit = each["first"], each["latest"], each["metric"]["metricUnit"]["shortName"]
            known = [] if first is None or latest is None else [first, latest] if first != latest else [latest]
            values = [f"{mcp.format_figure(entry['value'])} {unit} on {entry['date']}" for entry in known]
            name = f"{mcp.typed(each['metric']['name'])} [{each['metric']['_id']}]"
            lines.append(f"  {name}: {' -> '.join(values) or f'no value, in {unit}'}")
        texts.append("\n".join(lines))
    page, ids = mcp.paged(sets, 1, max(1, len(sets))), [each["_id"] for each in sets]
    return mcp.list_answer(f"Metric sets of {mcp.typed(customer['name'])}", page, texts, ids=ids)


@tools.tool("Read a metric's history", access=coach(METRICS.VIEW), takes=MetricHistory(), returns=mcp.Lines)
async def get_metric_history(
    ctx: Context,
    customer_id: ObjectId,
    metrics_set_id: ObjectId,
    metric_id: ObjectId,
    page: int,
    page_size: int,
    start_date: str | None,
    end_date: str | None,
) -> mcp.Answer:
    """Read the values of one metric of a client, newest first, and the difference from the oldest to the newest."""
    customer, metric, entries = await gather_reads(
        ctx,
        customers.get_visible_reference(ctx, customer_id),
        metrics.find_metric(ctx, metrics_set_id, metric_id),
        metrics.list_history(ctx, customer_id, metrics_set_id, metric_id),
    )
    between = [
        entry
        for entry in entries
        if (start_date is None or entry["date"] >= start_date) and (end_date is None or entry["date"] <= end_date)
    ]
    history, unit = mcp.paged(between[::-1], page, page_size), metric["metricUnit"]["shortName"]
    title = f"{mcp.typed(metric['name'])} in {unit} of {mcp.typed(customer['name'])}"
    if len(between) > 1:
        difference = round(between[-1]["value"] - between[0]["value"], 4)
        title += f", {difference:+.15g} from {between[0]['date']} to {between[-1]['date']}"
    lines = [f"{entry['date']}: {mcp.format_figure(entry['value'])}" for entry in history["docs"]]
    return mcp.list_answer(title, history, lines)


@tools.tool(
    "Record a metric",
    access=coach(METRICS.EDIT),
    takes=RecordMetric(),
    writes=True,
    locks="customer",
    destructive=True,
    idempotent=True,
    confirms=(mcp.Reason.FAR_DATE, mcp.Reason.FAR_VALUE),
)
async def record_metric(
    ctx: Context, customer_id: ObjectId, metrics_set_id: ObjectId, metric_id: ObjectId, date: str, value: float
) -> mcp.Written:
    """Record a value of one of a client's assigned metrics on a date, today at the latest. An existing value of that
    date is replaced."""
    previous_value = (await metrics.find_values(ctx, customer_id, [metric_id], [date])).get((metric_id, date))
    far = await metrics.find_far_values(ctx, customer_id, date, {metric_id: value})
    await metrics.record(ctx, customer_id, metrics_set_id, metric_id, date, value)
    customer, metric = await gather_reads(
        ctx, customers.get_visible_reference(ctx, customer_id), metrics.find_metric(ctx, metrics_set_id, metric_id)
    )
    before = "" if previous_value is None else f"{_write(previous_value)} → "
    last = ""
    if (entry := far.get(metric_id)) is not None:
        which = "last" if entry["date"] <= date else "next"
        last = f" The {which} value, of {entry['date']}, is {_write(entry['value'])}."
    unit = metric["metricUnit"]["shortName"]
    after = f"{_write(value)} {unit}"
    about = f"for {mcp.typed(customer['name'])}"
    line = f"Recorded {mcp.typed(metric['name'])} {before}{after} on {date} {about}.{last}"
    return mcp.Written(
        line,
        {"customerId": customer_id, "metricId": metric_id},
        mcp.find_reasons(today=ctx.caller.today(), dates=(date,), far_values=bool(far)),
        details={"value": value, "previousValue": previous_value},
    )


def _write(value: float) -> str:
    """Return a value with all of its digits, and without an exponent."""
    return f"{value:.15g}"
