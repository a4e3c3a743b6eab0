"""What a client has achieved: exercises and their records, measurements, which are entered here, and photos."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import timedelta
from typing import Annotated, Any, Literal, TypedDict

from marshmallow import fields

from coaching_service.core import validation
from coaching_service.core.auth import customer
from coaching_service.core.database.context import Context, gather_reads
from coaching_service.core.errors import BadRequest
from coaching_service.core.fields import Default, input_of
from coaching_service.core.http.responses import Download
from coaching_service.core.ids import ObjectId
from coaching_service.library.exercises import service as exercises
from coaching_service.people.activity import models
from coaching_service.progress import exercise_history, personal_records, progress_photos
from coaching_service.progress.metrics import service as metrics
from coaching_service.training.workouts.blocks.items import show_loads
from coaching_service.training.workouts.reports.exercises import LiftResult
from coaching_service.training.workouts.sets import RecordKey, unit_of
from coaching_service.web import charts
from coaching_service.web import pages as web_pages
from coaching_service.web.formatting import format_date, label_day, quantity, record_name
from coaching_service.web.forms import ReceivedFiles
from coaching_service.web.views import customer_details
from coaching_service.web.views import results as view_results

pages = web_pages.Pages("/train")


# --- How to do an exercise, and what the client has done in it --------------------------------------------------------


_exercise = pages.below("/exercises/{exerciseId}")
_SESSIONS_PER_PAGE = 8
_PERIODS = {"3": "3 months", "12": "1 year", "120": "All"}
_DAYS_PER_MONTH = 30.5
_DISTANCES = 2
_USUAL_COLUMNS = (models.ESTIMATED_ONE_REP_MAX, models.HEAVIEST_LOAD)
_COLUMNS: dict[models.RecordType, str] = {
    models.ESTIMATED_ONE_REP_MAX: "Estimated 1RM",
    models.HEAVIEST_LOAD: "Top load",
    **{
        each: models.RECORD_NAMES[each]
        for each in (models.LEAST_ASSISTANCE, models.LONGEST_TIME, models.FARTHEST_DISTANCE)
    },
}


class _ExerciseQuery(web_pages.PageQuery):
    months: Annotated[str, validation.Choice(*_PERIODS), Default("12")]


@_exercise.get("", access=customer(), template="train/exercise.html")
async def own_exercise_page(ctx: Context, exercise_id: ObjectId, query: _ExerciseQuery) -> dict[str, Any]:
    """An exercise with the client's records, progress and workouts."""
    client_id, today = ctx.caller.id, ctx.caller.today()
    first = today - timedelta(days=round(int(query["months"]) * _DAYS_PER_MONTH))
    exercise, sessions, results, records = await gather_reads(
        ctx,
        exercises.get_for_client(ctx, exercise_id),
        exercise_history.list_sessions(ctx, client_id, exercise_id, page=query["page"], size=_SESSIONS_PER_PAGE),
        exercise_history.list_results(ctx, client_id, [exercise_id], str(first), str(today)),
        personal_records.list_records(ctx, client_id),
    )
    unit = ctx.caller.load_unit
    done = view_results.show_results(ctx, results[exercise_id])
    # The values of workouts, the latest first; assistance, times and distances only if any has them.
    bests = [{best["kind"]: round(best["value"], 1) for best in result["bests"]} for result in done]
    shown = [each for each in _COLUMNS if each in _USUAL_COLUMNS or any(each in of_workout for of_workout in bests)]
    columns = [f"{_COLUMNS[each]}, {unit_of(each) or unit}" for each in shown]
    rows = [
        (format_date(each["date"]), *map(of_workout.get, shown), each["volumeLoad"], each["sets"])
        for each, of_workout in zip(done, bests, strict=True)
    ]
    return {
        "exercise": exercise,
        "uploads": [each for each in exercise["media"] if each["source"] == "upload"],
        "links": [each for each in exercise["media"] if each["source"] != "upload"],
        "periods": _PERIODS,
        "records": view_results.describe_records(
            view_results.show_records(ctx, [each for each in records if each["exerciseId"] == exercise_id])
        ),
        "charts": _list_charts(done, unit),
        "headings": ["Workout", *columns, f"Volume, {unit}", "Sets"],
        "rows": rows[::-1],
        "page": sessions,
        "sessions": [
            {**session, "sets": [view_results.describe_set(done, unit) for done in session["sets"]]}
            for session in show_loads(sessions["docs"], ctx, unit)
        ],
        "page_url": web_pages.list_url(f"/train/exercises/{exercise_id}", {"months": query["months"]}),
    }


def _list_charts(results: Sequence[LiftResult], unit: str) -> list[tuple[str, str, list[tuple[str, float]]]]:
    """Return the name, unit and points of values that two workouts have; repetitions only where nothing was lifted."""
    names: dict[RecordKey, str] = {
        RecordKey(models.ESTIMATED_ONE_REP_MAX): "Estimated 1RM",
        RecordKey(models.HEAVIEST_LOAD): "Top load",
        RecordKey(models.LEAST_ASSISTANCE): "Least assistance",
        RecordKey(models.MOST_REPS): "Most reps in a set",
        RecordKey(models.LONGEST_TIME): "Longest time",
        RecordKey(models.FARTHEST_DISTANCE): "Farthest distance",
    }
    # The fastest times over the two distances that most workouts have.
    fastest = (best for result in results for best in result["bests"] if best["kind"] == models.FASTEST)
    frequent = Counter(RecordKey(best["kind"], best.get("meters")) for best in fastest).most_common(_DISTANCES)
    names |= {key: record_name(key._asdict()) for key, _ in frequent}
    if view_results.best_points(results, RecordKey(models.HEAVIEST_LOAD)):
        del names[RecordKey(models.MOST_REPS)]
    values = [
        (
            name,
            "reps" if key.type == models.MOST_REPS else unit_of(key.type) or unit,
            view_results.best_points(results, key),
        )
        for key, name in names.items()
    ]
    volumes = [(each["date"], each["volumeLoad"]) for each in results if each["volumeLoad"]]
    return [each for each in [*values, ("Volume (load × reps)", unit, volumes)] if len(each[2]) > 1]


# --- A client's progress photos: taking them, the list by date, and two dates side by side ----------------------------


_photos = pages.below("/photos")
_DATES_PER_PAGE = 6
_COMPARED_DATES = 100


class _PhotosQuery(web_pages.PageQuery):
    """`left` and `right` are dates to compare; `date` is the one with which the form for photos begins."""

    left: Annotated[str, validation.Text(allow_blank=True), Default("")]
    right: Annotated[str, validation.Text(allow_blank=True), Default("")]
    side: Annotated[str | None, validation.Choice(*customer_details.SIDES)]
    date: Annotated[str | None, validation.SearchedDate()]


class _PictureQuery(TypedDict):
    side: Annotated[str, validation.Choice(*customer_details.SIDES), Default("front")]
    size: Annotated[Literal["small", "full"], Default("full")]


def describe_photos(
    record: progress_photos.ProgressPhoto, weights: customer_details.Weights | None = None
) -> dict[str, Any]:
    """Return what the pages show of the photos of one date."""
    day, sides = record["createdAt"], customer_details.sides_of(record)
    return {"_id": record["_id"], "date": day, "sides": sides, "weight": customer_details.weight_at(weights, day)}


@_photos.get("", access=customer(), template="train/photos.html")
async def photos_page(ctx: Context, query: _PhotosQuery) -> dict[str, Any]:
    """The photos by date, two of them side by side, and the form to add one."""
    page, newest, weights = await gather_reads(
        ctx,
        progress_photos.list_photos(ctx, ctx.caller.id, page=query["page"], size=_DATES_PER_PAGE),
        progress_photos.list_photos(ctx, ctx.caller.id, page=1, size=_COMPARED_DATES),
        customer_details.find_weights(ctx, ctx.caller.id),
    )
    today = ctx.caller.today()
    newest_first = [describe_photos(record, weights) for record in newest["docs"]]
    by_side = {side: [each for each in newest_first if side in each["sides"]] for side in customer_details.SIDES}
    sides = [side for side in customer_details.SIDES if len(by_side[side]) > 1]  # those of two dates
    comparison, compared = None, list[dict[str, Any]]()
    if sides:
        side = query["side"] if query["side"] in sides else sides[0]
        by_date = {each["date"]: each for each in by_side[side]}
        left, right = by_date.get(query["left"], by_side[side][-1]), by_date.get(query["right"], by_side[side][0])
        comparison = {"side": side, "left": left, "right": right, "dates": [*by_date], "sides": sides}
        # Pictures of full size are large, so they are sent to those who compare.
        size = "full" if query["left"] or query["right"] or query["side"] else "small"
        for photos in (left, right):
            path, day = f"{_photos.prefix}/{photos['_id']}/picture?side={side}", photos["date"]
            shown = customer_details.show_photo(f"{path}&size={size}", path, side.capitalize(), day, weights)
            compared.append(shown | {"caption": label_day(day, today)})
    dates = [describe_photos(record, weights) for record in page["docs"]]
    return {
        "page": page,
        "photo_dates": [each for each in dates if each["sides"]],
        "comparison": comparison,
        "compared": compared,
        "weights": weights,
        "page_url": web_pages.list_url(_photos.prefix, {}),
    }


@_photos.post("", access=customer(), form=customer_details.PHOTOS_FORM, on=photos_page)
async def add_own_photos(ctx: Context, form: customer_details.PhotosForm, files: ReceivedFiles) -> web_pages.Redirect:
    """Add the photos of a date, replacing the photos of the same sides, and offer the form for missing ones."""
    day = form["createdAt"]
    view_results.require_past_date("createdAt", day, ctx.caller.today())
    record, notice = await customer_details.add_received(ctx, ctx.caller.id, day, files)
    is_complete = len(customer_details.sides_of(record)) == len(customer_details.SIDES)
    return web_pages.Redirect(_photos.prefix if is_complete else f"{_photos.prefix}?date={day}", notice)


@_photos.get("/{photoId}/picture", access=customer(), template="")
async def picture(ctx: Context, photo_id: ObjectId, query: _PictureQuery) -> Download:
    """One picture, for the client who is signed in; browsers do not keep it."""
    is_small = query["size"] == "small"
    return await progress_photos.get_picture(ctx, ctx.caller.id, photo_id, query["side"], small=is_small)


@_photos.confirm(
    "/{photoId}/delete",
    lambda ctx, photo_id: progress_photos.delete(ctx, ctx.caller.id, photo_id),
    "Photos deleted.",
    access=customer(),
    template="train/delete_photos.html",
)
async def delete_own_photos(ctx: Context, photo_id: ObjectId) -> dict[str, Any]:
    """Delete the photos of a date."""
    return {"photos": describe_photos(await progress_photos.get(ctx, ctx.caller.id, photo_id))}


# --- What a client has achieved: the exercises done with their records, and measurements, which are entered here ------


_progress, _measurements = pages.below("/progress"), pages.below("/measurements")
_LIFTS_PER_PAGE = 12
_TREND = timedelta(weeks=26)
_MAX_MEASUREMENTS = 4
_MAX_VALUES = 200
_LATEST = 30  # how many values are shown at once


@_progress.get("", access=customer(), template="train/progress.html")
async def progress_page(ctx: Context, query: web_pages.PageQuery) -> dict[str, Any]:
    """The client's exercises, the one done latest first; the latest measurements and photos on the first page."""
    client_id, today = ctx.caller.id, ctx.caller.today()
    done, records, metric_sets, photos = await gather_reads(
        ctx,
        exercise_history.list_done(ctx, client_id, page=query["page"], size=_LIFTS_PER_PAGE),
        personal_records.list_records(ctx, client_id),
        metrics.list_measurements(ctx, client_id, str(today)),
        progress_photos.list_photos(ctx, client_id, page=1, size=1),
    )
    ids = [each["exercise"]["_id"] for each in done["docs"]]
    results, usable = await gather_reads(
        ctx,
        exercise_history.list_results(ctx, client_id, ids, str(today - _TREND), str(today)),
        exercises.get_names(ctx, ids, only_usable=True),
    )
    shown = view_results.show_records(ctx, records)
    lifts = []
    for each in done["docs"]:
        exercise_id = each["exercise"]["_id"]
        record_type, points = view_results.main_points(results[exercise_id])
        label = f"{models.RECORD_NAMES[record_type]} in the last 6 months"
        lifts.append(
            {
                **each,
                "has_page": exercise_id in usable,
                "records": view_results.describe_records(
                    record for record in shown if record["exerciseId"] == exercise_id
                ),
                "trend": charts.sparkline(points, label) if len(points) > 1 else None,
            }
        )
    measurements = [
        {"set_id": metric_set["_id"], **each}
        for metric_set in metric_sets
        for each in metric_set["measurements"]
        if each["latest"]
    ]
    return {
        "page": done,
        "lifts": lifts,
        "has_metrics": any(metric_set["measurements"] for metric_set in metric_sets),
        "measurements": measurements[:_MAX_MEASUREMENTS],
        "photos": describe_photos(photos["docs"][0]) if photos["docs"] else None,
        "page_url": web_pages.list_url(_progress.prefix, {}),
    }


class _DateQuery(TypedDict):
    date: Annotated[str | None, validation.SearchedDate()]


class _Value(view_results.ValueRow):
    metricsSetId: ObjectId


class _Values(view_results.Confirmation):
    date: Annotated[str, validation.CalendarDate()]
    values: Annotated[
        list[_Value], validation.ListOf(fields.Nested(input_of(_Value)), maximum=_MAX_VALUES), Default(list)
    ]


@_measurements.get("", access=customer(), template="train/measurements.html")
async def measurements_page(ctx: Context, query: _DateQuery) -> dict[str, Any]:
    """The latest value of each metric, and the form to enter values for today or another date."""
    today = ctx.caller.today()
    return {
        "metric_sets": await metrics.list_measurements(ctx, ctx.caller.id, str(today)),
        "date": query["date"] or today,
    }


@_measurements.post("", access=customer(), on=measurements_page)
async def record_own_values(ctx: Context, form: _Values) -> web_pages.Redirect:
    """Record the values that were entered; a metric without one keeps what it has."""
    view_results.require_past_date("date", form["date"], ctx.caller.today())
    entered = view_results.entered_values(form["values"])
    if not entered:
        raise BadRequest("Enter at least one value.")
    await view_results.require_confirmed_values(ctx, ctx.caller.id, form["date"], entered, confirmed=form["confirmed"])
    for each in form["values"]:
        if (value := each["value"]) is not None:
            await metrics.record(ctx, ctx.caller.id, each["metricsSetId"], each["metricId"], form["date"], value)
    return web_pages.Redirect(_measurements.prefix, f"{quantity(len(entered), 'value')} saved.")


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
    newest_first = [(entry["date"], entry["value"]) for entry in reversed(history)]
    return {
        "metric": metric,
        "unit": unit,
        "points": [point for point in newest_first[::-1] if point[0] <= str(today)],
        "page_path": f"{_measurements.prefix}/{metrics_set_id}/{metric_id}",
        "latest_values": newest_first[:_LATEST],
        "earlier_values": newest_first[_LATEST:],
    }


_measurements.act(
    "/{metricsSetId}/{metricId}/delete",
    "delete_own_value",
    web_pages.own(metrics.delete_value),
    "Value deleted.",
    access=customer(),
    on=measurement_page,
    form=view_results.ValueDate,
    fields=("date",),
    deletes=True,
)
