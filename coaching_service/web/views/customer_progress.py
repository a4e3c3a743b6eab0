"""A client's progress: charts, personal records, training maximums, and how the results in one exercise develop."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, timedelta
from typing import Annotated, Any, TypedDict

from markupsafe import Markup

from coaching_service.core.auth import CUSTOMERS, METRICS, coach
from coaching_service.core.database.context import Context, gather_reads
from coaching_service.core.errors import require_by_id
from coaching_service.core.fields import Default
from coaching_service.core.ids import ObjectId
from coaching_service.core.list_selection import page_document, skip_of
from coaching_service.core.query import Period
from coaching_service.core.text import normalize, straighten
from coaching_service.core.validation import Choice, Number
from coaching_service.library import metric_sets
from coaching_service.library.exercises import service as exercises
from coaching_service.people.activity import models as activity_models
from coaching_service.progress import compliance, exercise_history, personal_records, progress_photos, workload
from coaching_service.progress.metrics import service as metrics
from coaching_service.progress.metrics.service import MetricsSetReference, NewMetricEntry
from coaching_service.progress.personal_records import PersonalRecord
from coaching_service.training import training_maxes
from coaching_service.training.workouts.reports import blocks as block_reports
from coaching_service.training.workouts.reports.exercises import LiftResult
from coaching_service.training.workouts.sets import MAX_LOAD, RecordKey, unit_of
from coaching_service.web import charts, formatting
from coaching_service.web import pages as web_pages
from coaching_service.web.views import results as view_results
from coaching_service.web.views.customer_details import compare_over_period, load_weights, pair_photos
from coaching_service.web.views.customer_layout import customer_path, get_today, load_header

# --- A client's personal records and training maximums, and how the results in one exercise develop -------------------


PERIODS = {"4": "4 weeks", "13": "3 months", "26": "6 months", "52": "1 year"}


class PeriodQuery(TypedDict):
    """The number of weeks to show."""

    weeks: Annotated[str, Choice(*PERIODS), Default("13")]


def first_monday(today: date, weeks: int) -> date:
    """Return the Monday on which a period of `weeks` calendar weeks begins that includes `today` in its last week."""
    return today - timedelta(days=today.weekday() + 7 * (weeks - 1))


def first_day(today: date, weeks: int) -> date:
    """Return the first day of measurements and photos in a period: 13 weeks are never less than three months."""
    return today - timedelta(days=7 * weeks + 1)


pages = web_pages.Pages("/app/customers/{customerId}", locks="customer")

_CHARTED = (
    activity_models.LEAST_ASSISTANCE,
    activity_models.LONGEST_TIME,
    activity_models.FARTHEST_DISTANCE,
    activity_models.FASTEST,
)
_DISTANCES, _LIFTS_PER_PAGE = 2, 24
_TREND = timedelta(weeks=52)


@pages.get("/progress/exercises/{exerciseId}", access=coach(CUSTOMERS.VIEW), template="customer/lift.html")
async def lift_page(ctx: Context, customer_id: ObjectId, exercise_id: ObjectId, query: PeriodQuery) -> dict[str, Any]:
    """A client's results in an exercise in the last weeks."""
    customer = await load_header(ctx, customer_id)
    today = ctx.caller.today(customer["timezone"])
    monday = first_monday(today, int(query["weeks"]))
    sessions, names = await gather_reads(
        ctx,
        exercise_history.read_progress(
            ctx, customer_id, exercise_id, {"startDate": str(monday), "endDate": str(today), "groupBy": "session"}
        ),
        exercises.get_names(ctx, {exercise_id}),
    )
    unit = ctx.caller.company.load_unit
    return {
        "customer": customer,
        "exercise": names[exercise_id],
        "periods": PERIODS,
        "charts": _list_charts(sessions, unit),
        "sessions": [
            (each, view_results.describe_set(best, unit)["amount"] if (best := each["bestSet"]) else "–")
            for each in reversed(sessions)
        ],
    }


def _list_charts(sessions: Sequence[exercise_history.ProgressPoint], unit: str) -> list[tuple[Any, ...]]:
    """Return the name, unit, points and best point of each chart; repetitions of a best set only if it has no load."""
    estimates = [
        (each["date"], round(each["estimatedOneRepMax"]["value"], 1)) for each in sessions if each["estimatedOneRepMax"]
    ]
    best_sets = [(each["date"], each["bestSet"]) for each in sessions if each["bestSet"]]
    reps = [(date, float(best["reps"])) for date, best in best_sets if best["reps"] and not best["load"]]
    loads = [(each["date"], each["volumeLoad"]) for each in sessions if each["volumeLoad"]]
    # The best values that are neither loads nor repetitions; of distances the two done most often.
    others: dict[RecordKey, list[tuple[str, float]]] = {}
    for session in sessions:
        for best in session["bests"]:
            if best["type"] in _CHARTED:
                others.setdefault(RecordKey(best["type"], best["meters"]), []).append((session["date"], best["value"]))
    distances = sorted(
        (key for key in others if key.type == activity_models.FASTEST), key=lambda key: len(others[key]), reverse=True
    )
    values = [
        ("Estimated 1RM", unit, estimates, max),
        *(
            (
                formatting.record_name(key._asdict()),
                unit_of(key.type) or unit,
                others[key],
                min if key.type in activity_models.LOWER_IS_BETTER else max,
            )
            for key in sorted(others.keys() - distances[_DISTANCES:], key=lambda each: each.order)
        ),
        ("Most reps without load", "reps", reps, max),
        ("Volume load", unit, loads, max),
    ]
    return [
        (name, of_values, points, best_of(points, key=lambda point: point[1]))
        for name, of_values, points, best_of in values
        if points
    ]


class _RecordsQuery(web_pages.Search):
    exerciseId: ObjectId | None


class _TrainingMaxForm(view_results.Confirmation):
    exerciseId: ObjectId
    value: Annotated[float | None, Number(minimum=0, maximum=MAX_LOAD)]


@pages.get("/records", access=coach(CUSTOMERS.VIEW), template="customer/records.html")
async def records_page(ctx: Context, customer_id: ObjectId, query: _RecordsQuery) -> dict[str, Any]:
    """A client's personal records and training maximums; the query names the exercise to set the maximum of."""
    customer, records, maxes = await gather_reads(
        ctx,
        load_header(ctx, customer_id),
        personal_records.list_records(ctx, customer_id),
        training_maxes.list_training_maxes(ctx, customer_id),
    )
    names = {record["exerciseId"]: record["exerciseName"] for record in records}
    others = {each["exerciseId"] for each in maxes} | ({query["exerciseId"]} if query["exerciseId"] else set())
    loaded = await exercises.get_names(ctx, others - names.keys())
    names |= {key: exercise["name"] for key, exercise in loaded.items()}
    named = [{**each, "exerciseName": names[each["exerciseId"]]} for each in maxes]
    words, by_exercise = straighten(normalize(query["keywords"])).split(), dict[ObjectId, list[PersonalRecord]]()
    for record in records:
        if all(word in straighten(normalize(record["exerciseName"])) for word in words):
            by_exercise.setdefault(record["exerciseId"], []).append(record)
    # The best record of each type, by exercise, the latest first.
    best = map(formatting.best_records, by_exercise.values())
    matching = sorted(best, key=lambda lift: max(record["date"] for record in lift), reverse=True)
    first = skip_of(query["page"], _LIFTS_PER_PAGE)
    shown = matching[first : first + _LIFTS_PER_PAGE]
    today = ctx.caller.today(customer["timezone"])
    results = await exercise_history.list_results(
        ctx, customer_id, [lift[0]["exerciseId"] for lift in shown], str(today - _TREND), str(today)
    )
    unit = ctx.caller.company.load_unit
    lifts = [{"records": lift, "trend": _draw_trend(results[lift[0]["exerciseId"]], unit)} for lift in shown]
    return {
        "customer": customer,
        "page": page_document(lifts, len(matching), query["page"], _LIFTS_PER_PAGE),
        "page_url": web_pages.list_url(customer_path(customer_id, "/records"), {"keywords": query["keywords"]}),
        "maxes": sorted(named, key=lambda each: each["exerciseName"].casefold()),
        "exercises": formatting.name_options(names),
    }


def _draw_trend(results: Sequence[LiftResult], unit: str) -> Markup | None:
    """Return a chart of the value that says most about an exercise, whose name has the first and the last value."""
    record_type, points = view_results.main_points(results)
    if len(points) < 2:
        return None
    first, last = (
        f"{formatting.format_record_value(record_type, round(value, 1), unit_of(record_type) or unit)} "
        f"on {formatting.format_date(date)}"
        for date, value in (points[0], points[-1])
    )
    return charts.sparkline(
        points, f"{activity_models.RECORD_NAMES[record_type]} in the last year: from {first} to {last}"
    )


pages.act(
    "/records",
    "set_training_max",
    training_maxes.set_by_coach,
    "Changes saved.",
    access=coach(CUSTOMERS.EDIT),
    on=records_page,
    form=_TrainingMaxForm,
    fields=("exerciseId", "value"),
)


# --- A client's progress in charts: compliance, workload, muscle volume and metrics -----------------------------------

_DAY_LABELS = {
    "done": "completed",
    "part": "partly completed",
    "missed": "missed",
    "ahead": "scheduled",
    "rest": "rest",
    "away": "away or ill",
    "none": "nothing scheduled",
}
_MAX_CHARTED_MUSCLES, _MAX_LIFTS = 12, 24
_MAX_PHOTO_DATES = 50


class _ValueForm(MetricsSetReference, NewMetricEntry, view_results.Confirmation):
    """A value of a metric to record."""


@pages.get("/progress", access=coach(CUSTOMERS.VIEW), template="customer/progress.html")
async def progress_page(ctx: Context, customer_id: ObjectId, query: PeriodQuery) -> dict[str, Any]:
    """A client's progress in the last weeks."""
    customer = await load_header(ctx, customer_id)
    today = ctx.caller.today(customer["timezone"])
    weeks = int(query["weeks"])
    monday = first_monday(today, weeks)
    period: Period = {"startDate": str(monday), "endDate": str(today)}
    sunday = monday + timedelta(days=7 * weeks - 1)
    all_sets = await metric_sets.list_all(ctx) if METRICS.VIEW in ctx.caller.permissions else []
    load, muscles, completed, outline, assigned_sets, lifts, photos, weights = await gather_reads(
        ctx,
        workload.read(ctx, customer_id, {**period, "groupBy": "week"}),
        workload.get_volume(ctx, customer_id, period),
        compliance.read(ctx, customer_id, {"from": str(monday), "to": str(sunday)}),
        block_reports.list_days(ctx, customer_id, monday, sunday, today=today),
        _load_assigned_sets(ctx, customer_id, str(first_day(today, weeks)), str(today)),
        exercise_history.list_done(ctx, customer_id, page=1, size=_MAX_LIFTS),
        progress_photos.list_photos(ctx, customer_id, page=1, size=_MAX_PHOTO_DATES),
        load_weights(ctx, customer_id),
    )
    trained = sorted((each for each in muscles["muscleGroups"] if each["sets"]), key=lambda each: -each["sets"])
    statuses = [(day["date"], "ahead" if day["status"] == "planned" else day["status"] or "none") for day in outline]
    compared = compare_over_period(photos["docs"], first_day(today, weeks), today)
    existing_ids = {metric_set["_id"] for metric_set in all_sets}
    assigned_ids = {metric_set["_id"] for metric_set in assigned_sets}
    assignable = [metric_set for metric_set in all_sets if metric_set["_id"] not in assigned_ids]
    return {
        "customer": customer,
        "periods": PERIODS,
        "today": today,
        "workload": load,
        "weekly": {
            name: [(charts.short(each["date"]), each[name]) for each in load["periods"]]
            for name in ("volumeLoad", "sets")
        },
        "muscle_unit": muscles["loadUnit"],
        "muscles": trained,
        "muscle_sets": [(each["name"], each["sets"]) for each in trained[:_MAX_CHARTED_MUSCLES]],
        "compliance": completed,
        # The keys of _DAY_LABELS are also the CSS classes of the days in the chart.
        "days": [(day, status, _DAY_LABELS[status]) for day, status in statuses],
        "day_labels": _DAY_LABELS,
        "completed_by_week": [
            (week[0]["date"], sum(day["isWorkoutDay"] for day in week), sum(day["isCompleted"] for day in week))
            for at in range(0, len(completed["dailyCompliance"]), 7)
            for week in [completed["dailyCompliance"][at : at + 7]]
        ],
        "lifts": lifts["docs"],
        "photo_dates": [record["createdAt"] for record in compared],
        "photo_pairs": pair_photos(compared[0], compared[1], customer["name"], weights) if compared else [],
        "assigned_sets": [
            {**metric_set, "isDeleted": metric_set["_id"] not in existing_ids} for metric_set in assigned_sets
        ],
        "assignable_sets": assignable if METRICS.EDIT in ctx.caller.permissions else [],
    }


async def _load_assigned_sets(ctx: Context, customer_id: ObjectId, first: str, today: str) -> list[dict[str, Any]]:
    """Return the metric sets assigned to a client with the values recorded from a date to today, and after today."""
    if METRICS.VIEW not in ctx.caller.permissions:
        return []
    assignments = await metrics.list_assigned(ctx, customer_id)
    keys = [
        (assignment["metricsSet"]["_id"], entry["metric"]["_id"])
        for assignment in assignments
        for entry in assignment["metrics"]
    ]
    histories = await gather_reads(ctx, *(metrics.list_history(ctx, customer_id, *key) for key in keys))
    history_of = {metric_id: history for (_, metric_id), history in zip(keys, histories, strict=True)}
    return [
        {
            "_id": assignment["metricsSet"]["_id"],
            "name": assignment["metricsSet"]["name"],
            "metrics": [
                {
                    "metric": entry["metric"],
                    "latest": recorded[-1] if recorded else None,
                    "points": [point for point in recorded if point[0] >= first],
                    "future": [each for each in history if each["date"] > today],
                }
                for entry in assignment["metrics"]
                for history in [history_of[entry["metric"]["_id"]]]
                for recorded in [[(each["date"], each["value"]) for each in history if each["date"] <= today]]
            ],
        }
        for assignment in assignments
    ]


@pages.post("/progress", access=coach(METRICS.EDIT), on=progress_page)
async def record_value(ctx: Context, customer_id: ObjectId, form: _ValueForm) -> web_pages.Redirect:
    """Record a value of a metric, replacing the value of the same date; one far from the last is asked about."""
    view_results.require_past_date("date", form["date"], await get_today(ctx, customer_id))
    entered = {"value": (form["metricId"], form["value"])}
    await view_results.require_confirmed_values(ctx, customer_id, form["date"], entered, confirmed=form["confirmed"])
    await metrics.record(ctx, customer_id, form["metricsSetId"], form["metricId"], form["date"], form["value"])
    return web_pages.Redirect(customer_path(customer_id, "/progress"), "Value saved.")


@pages.get(
    "/progress/sets/{metricsSetId}/metrics/{metricId}",
    access=coach(CUSTOMERS.VIEW, METRICS.VIEW),
    template="customer/metric.html",
)
async def metric_page(
    ctx: Context, customer_id: ObjectId, metrics_set_id: ObjectId, metric_id: ObjectId
) -> dict[str, Any]:
    """All values of a metric, newest first, which a coach may delete."""
    customer, metric, history = await gather_reads(
        ctx,
        load_header(ctx, customer_id),
        metrics.find_metric(ctx, metrics_set_id, metric_id),
        metrics.list_history(ctx, customer_id, metrics_set_id, metric_id),
    )
    return {"customer": customer, "metric": metric, "values": history[::-1], "set_id": metrics_set_id}


pages.act(
    "/progress/sets/{metricsSetId}/metrics/{metricId}/delete",
    "delete_value",
    metrics.delete_value,
    "Value deleted. You can undo this in the history.",
    access=coach(METRICS.EDIT),
    on=metric_page,
    form=view_results.ValueDate,
    fields=("date",),
    deletes=True,
)
pages.act(
    "/progress/sets",
    "assign_set",
    metrics.assign,
    "{metricsSet[name]} assigned.",
    access=coach(METRICS.EDIT),
    on=progress_page,
    form=MetricsSetReference,
    fields=("metricsSetId",),
)


@pages.confirm(
    "/progress/sets/{metricsSetId}/end",
    metrics.unassign,
    "Metric set unassigned. Recorded values are not deleted.",
    to=f"{pages.prefix}/progress",
    access=coach(METRICS.EDIT),
    template="customer/unassign_metric_set.html",
)
async def unassign_set(ctx: Context, customer_id: ObjectId, metrics_set_id: ObjectId) -> dict[str, Any]:
    """Unassign a metric set; its values are stored and return when it is assigned again."""
    customer, assignments = await gather_reads(
        ctx, load_header(ctx, customer_id), metrics.list_assigned(ctx, customer_id)
    )
    sets = (assignment["metricsSet"] for assignment in assignments)
    return {"customer": customer, "metric_set": require_by_id(sets, metrics_set_id, "assignment")}
