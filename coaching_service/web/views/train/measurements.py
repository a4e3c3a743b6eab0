"""A client's measurements: a form to enter values, and the history of each metric."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any, TypedDict

from marshmallow import fields

from coaching_service.core.auth.access import customer
from coaching_service.core.database.context import Context
from coaching_service.core.database.transactions import gather_reads
from coaching_service.core.errors import BadRequest
from coaching_service.core.field_schemas import input_of
from coaching_service.core.fields import Default
from coaching_service.core.ids import ObjectId
from coaching_service.core.validation import Date, ListOf
from coaching_service.progress.metrics import service as metrics
from coaching_service.web import charts
from coaching_service.web.formatting import quantity
from coaching_service.web.pages import Pages, Redirect
from coaching_service.web.views.train.layout import label_day
from coaching_service.web.views.unusual_values import (
    Confirmation,
    ValueDate,
    ValueRow,
    entered_values,
    require_confirmed_values,
    require_past_date,
)

pages = Pages("/train/measurements")
_MAX_VALUES = 200
_LATEST = 30  # how many values are shown at once


class _DateQuery(TypedDict):
    date: Annotated[str | None, Date()]


class _Value(ValueRow):
    metricsSetId: ObjectId


class _Values(Confirmation):
    date: Annotated[str, Date()]
    values: Annotated[list[_Value], ListOf(fields.Nested(input_of(_Value)), maximum=_MAX_VALUES), Default(list)]


@pages.get("", access=customer(), query=_DateQuery, template="train/measurements.html")
async def measurements_page(ctx: Context, query: _DateQuery) -> dict[str, Any]:
    """The latest value of each metric, and the form to enter values for today or another date."""
    today = ctx.caller.today()
    return {
        "metric_sets": await metrics.list_measurements(ctx, ctx.caller.id, str(today)),
        "today": today,
        "date": query["date"] or today,
        "label_day": partial(label_day, today=today),
    }


@pages.post("", access=customer(), form=_Values, on=measurements_page)
async def record_own_values(ctx: Context, form: _Values) -> Redirect:
    """Record the values that were entered; a metric without one keeps what it has."""
    require_past_date("date", form["date"], ctx.caller.today())
    entered = entered_values(form["values"])
    if not entered:
        raise BadRequest("Enter at least one value.")
    await require_confirmed_values(ctx, ctx.caller.id, form["date"], entered, confirmed=form["confirmed"])
    for each in form["values"]:
        if (value := each["value"]) is not None:
            await metrics.record(ctx, ctx.caller.id, each["metricsSetId"], each["metricId"], form["date"], value)
    return Redirect(pages.prefix, f"{quantity(len(entered), 'value')} saved.")


@pages.get("/{metricsSetId}/{metricId}", access=customer(), template="train/measurement.html")
async def measurement_page(ctx: Context, metrics_set_id: ObjectId, metric_id: ObjectId) -> dict[str, Any]:
    """The history of one metric."""
    history, metric = await gather_reads(
        ctx,
        metrics.list_history(ctx, ctx.caller.id, metrics_set_id, metric_id),
        metrics.find_metric(ctx, metrics_set_id, metric_id),
    )
    unit = metric["metricUnit"]["shortName"]
    today = ctx.caller.today()
    points = [(entry["date"], entry["value"]) for entry in history if entry["date"] <= str(today)]
    newest_first = [(entry["date"], entry["value"]) for entry in reversed(history)]
    has_change = len(points) > 1
    return {
        "metric": metric,
        "unit": unit,
        "points": points,
        "chart": charts.lines(points, unit, f"{metric['name']} in {unit} by date") if has_change else None,
        "change": points[-1][1] - points[0][1] if has_change else None,
        "label_day": partial(label_day, today=today),
        "path": f"{pages.prefix}/{metrics_set_id}/{metric_id}",
        "latest_values": newest_first[:_LATEST],
        "earlier_values": newest_first[_LATEST:],
    }


@pages.post("/{metricsSetId}/{metricId}/delete", access=customer(), form=ValueDate, on=measurement_page)
async def delete_own_value(ctx: Context, metrics_set_id: ObjectId, metric_id: ObjectId, form: ValueDate) -> Redirect:
    """Delete the value of a metric on a date."""
    await metrics.delete_value(ctx, ctx.caller.id, metrics_set_id, metric_id, form["date"])
    return Redirect(f"{pages.prefix}/{metrics_set_id}/{metric_id}", "Value deleted.")
