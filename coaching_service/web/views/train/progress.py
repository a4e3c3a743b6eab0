"""What a client has achieved: the exercises done with their records, and measurements, which are entered here."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from functools import partial
from typing import Annotated, Any, TypedDict

from markupsafe import Markup
from marshmallow import fields

from coaching_service.core.auth.access import customer
from coaching_service.core.database.context import Context
from coaching_service.core.database.transactions import gather_reads
from coaching_service.core.errors import BadRequest
from coaching_service.core.field_schemas import input_of
from coaching_service.core.fields import Default
from coaching_service.core.ids import ObjectId
from coaching_service.core.validation import CalendarDate, ListOf, SearchedDate
from coaching_service.library.exercises import service as exercises
from coaching_service.people.activity.record_types import RECORD_NAMES
from coaching_service.progress.exercise_history import service
from coaching_service.progress.exercise_history import service as exercise_history
from coaching_service.progress.exercise_history.models import DoneExercise
from coaching_service.progress.metrics import service as metrics
from coaching_service.progress.personal_records import service as personal_records
from coaching_service.progress.personal_records.models import PersonalRecord
from coaching_service.progress.progress_photos import service as progress_photos
from coaching_service.training.workouts.reports.models import LiftResult
from coaching_service.web import charts
from coaching_service.web.formatting import quantity
from coaching_service.web.page_queries import PageQuery, list_url
from coaching_service.web.pages import Pages, Redirect
from coaching_service.web.views.train.layout import label_day
from coaching_service.web.views.train.lift_words import NamedRecord, describe_records, main_points, show_records
from coaching_service.web.views.train.photos import describe_photos
from coaching_service.web.views.unusual_values import (
    Confirmation,
    ValueDate,
    ValueRow,
    entered_values,
    require_confirmed_values,
    require_past_date,
)

pages = Pages("/train")
_progress, _measurements = pages.below("/progress"), pages.below("/measurements")
_LIFTS_PER_PAGE = 12
_TREND = timedelta(weeks=26)
_MAX_MEASUREMENTS = 4
_MAX_VALUES = 200
_LATEST = 30  # how many values are shown at once


class LiftCard(TypedDict):
    """An exercise that the client did; `trend` is a small chart. One that the company has deleted has no page."""

    _id: ObjectId
    name: str
    has_page: bool
    last_date: str
    sessions: int
    records: list[NamedRecord]
    trend: Markup | None


@_progress.get("", access=customer(), template="train/progress.html")
async def progress_page(ctx: Context, query: PageQuery) -> dict[str, Any]:
    """The client's exercises, the one done latest first; the latest measurements and photos on the first page."""
    client_id, today = ctx.caller.id, ctx.caller.today()
    done, records, metric_sets, photos = await gather_reads(
        ctx,
        exercise_history.list_done_exercises(ctx, client_id, page=query["page"], size=_LIFTS_PER_PAGE),
        personal_records.list_records(ctx, client_id),
        metrics.list_measurements(ctx, client_id, str(today)),
        progress_photos.list_photos(ctx, client_id, page=1, size=1),
    )
    ids = [each["exercise"]["_id"] for each in done["docs"]]
    results, usable = await gather_reads(
        ctx,
        service.list_results(ctx, client_id, ids, str(today - _TREND), str(today)),
        exercises.get_usable_names(ctx, ids),
    )
    shown = show_records(ctx, records)
    measurements = [
        {"set_id": metric_set["_id"], **each}
        for metric_set in metric_sets
        for each in metric_set["measurements"]
        if each["latest"]
    ]
    return {
        "page": done,
        "lifts": [_describe_lift(each, shown, results[each["exercise"]["_id"]], usable) for each in done["docs"]],
        "has_metrics": any(metric_set["measurements"] for metric_set in metric_sets),
        "measurements": measurements[:_MAX_MEASUREMENTS],
        "photos": describe_photos(photos["docs"][0]) if photos["docs"] else None,
        "label_day": partial(label_day, today=today),
        "page_url": list_url(_progress.prefix, {}),
    }


def _describe_lift(
    done: DoneExercise, records: Sequence[PersonalRecord], results: Sequence[LiftResult], usable: Any
) -> LiftCard:
    exercise_id, name = done["exercise"]["_id"], done["exercise"]["name"]
    record_type, points = main_points(results)
    label = f"{RECORD_NAMES[record_type]} in the last 6 months"
    return {
        "_id": exercise_id,
        "name": name,
        "has_page": exercise_id in usable,
        "last_date": done["lastDate"],
        "sessions": done["sessions"],
        "records": describe_records(record for record in records if record["exerciseId"] == exercise_id),
        "trend": charts.sparkline(points, label) if len(points) > 1 else None,
    }


class _DateQuery(TypedDict):
    date: Annotated[str | None, SearchedDate()]


class _Value(ValueRow):
    metricsSetId: ObjectId


class _Values(Confirmation):
    date: Annotated[str, CalendarDate()]
    values: Annotated[list[_Value], ListOf(fields.Nested(input_of(_Value)), maximum=_MAX_VALUES), Default(list)]


@_measurements.get("", access=customer(), template="train/measurements.html")
async def measurements_page(ctx: Context, query: _DateQuery) -> dict[str, Any]:
    """The latest value of each metric, and the form to enter values for today or another date."""
    today = ctx.caller.today()
    return {
        "metric_sets": await metrics.list_measurements(ctx, ctx.caller.id, str(today)),
        "today": today,
        "date": query["date"] or today,
        "label_day": partial(label_day, today=today),
    }


@_measurements.post("", access=customer(), on=measurements_page)
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
    return Redirect(_measurements.prefix, f"{quantity(len(entered), 'value')} saved.")


@_measurements.get("/{metricsSetId}/{metricId}", access=customer(), template="train/measurement.html")
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
        "page_path": f"{_measurements.prefix}/{metrics_set_id}/{metric_id}",
        "latest_values": newest_first[:_LATEST],
        "earlier_values": newest_first[_LATEST:],
    }


@_measurements.post("/{metricsSetId}/{metricId}/delete", access=customer(), on=measurement_page, deletes=True)
async def delete_own_value(ctx: Context, metrics_set_id: ObjectId, metric_id: ObjectId, form: ValueDate) -> Redirect:
    """Delete the value of a metric on a date."""
    await metrics.delete_value(ctx, ctx.caller.id, metrics_set_id, metric_id, form["date"])
    return Redirect(f"{_measurements.prefix}/{metrics_set_id}/{metric_id}", "Value deleted.")
