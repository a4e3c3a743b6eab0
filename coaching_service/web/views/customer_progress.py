"""A client's progress in charts: compliance, workload, muscle volume and metrics."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from functools import partial
from typing import Any, TypedDict

from markupsafe import Markup

from coaching_service.core.auth.access import CUSTOMERS, METRICS, coach
from coaching_service.core.database.context import Context
from coaching_service.core.database.transactions import gather_reads
from coaching_service.core.errors import require_by_id
from coaching_service.core.ids import ObjectId
from coaching_service.library.metric_sets import service as metric_sets
from coaching_service.library.metric_sets.models import Metric, MetricSet
from coaching_service.progress import volume
from coaching_service.progress.compliance import service as compliance
from coaching_service.progress.compliance.models import Compliance
from coaching_service.progress.exercise_history import service as exercise_history
from coaching_service.progress.metrics import service as metrics
from coaching_service.progress.metrics.models import MetricHistoryEntry, MetricsSetReference, NewMetricEntry
from coaching_service.progress.progress_photos import service as progress_photos
from coaching_service.progress.volume import MuscleGroupVolume, MuscleVolume
from coaching_service.progress.workload import service as workload
from coaching_service.progress.workload.service import Workload, WorkloadPeriod
from coaching_service.training.workouts.reports import blocks
from coaching_service.training.workouts.reports.blocks import CalendarDay
from coaching_service.web import charts
from coaching_service.web.pages import ConfirmedAction, Pages, Redirect
from coaching_service.web.views.customer_layout import customer_path, get_today, load_header
from coaching_service.web.views.customer_records import PERIODS, PeriodQuery, first_day, first_monday
from coaching_service.web.views.photos import compare_over_period, load_weights, pair_photos
from coaching_service.web.views.unusual_values import (
    Confirmation,
    ValueDate,
    require_confirmed_values,
    require_past_date,
)

pages = Pages("/app/customers/{customerId}")
_DAY_LABELS = {
    "done": "completed",
    "part": "partly completed",
    "missed": "missed",
    "ahead": "scheduled",
    "rest": "rest",
    "away": "away or ill",
    "none": "nothing scheduled",
}
_MAX_CHARTED_MUSCLES = 12
_MAX_LIFTS = 24
_MAX_PHOTO_DATES = 50

Point = tuple[str, float]


class _ValueForm(MetricsSetReference, NewMetricEntry, Confirmation):
    """A value of a metric to record."""


class MetricSummary(TypedDict):
    """A metric in a period: points are `(date, value)`; `change` is the difference since `change_since`."""

    _id: ObjectId
    name: str
    unit: str
    latest: Point | None
    change: float | None
    change_since: str | None
    future: list[MetricHistoryEntry]
    chart: Markup | None
    points: list[Point]


class MetricSetSummary(TypedDict):
    """An assigned metric set with its metrics."""

    _id: ObjectId
    name: str
    metrics: list[MetricSummary]


class WorkloadSummary(TypedDict):
    """The weekly workload in a period; `ratio` is the acute to chronic workload ratio."""

    unit: str
    periods: list[WorkloadPeriod]
    load_chart: Markup | None
    sets_chart: Markup | None
    sessions: int
    ratio: float | None


class MuscleSummary(TypedDict):
    """The muscle groups trained in a period, most sets first."""

    unit: str
    trained: list[MuscleVolume]
    chart: Markup | None


class ComplianceSummary(TypedDict):
    """Compliance in a period; `weeks` are `(Monday, scheduled days, completed days)`."""

    rate: float | None
    total: int
    completed: int
    chart: Markup
    day_labels: dict[str, str]
    weeks: list[tuple[str, int, int]]


@pages.get("/progress", access=coach(CUSTOMERS.VIEW), template="customer/progress.html")
async def progress_page(ctx: Context, customer_id: ObjectId, query: PeriodQuery) -> dict[str, Any]:
    """A client's progress in the last weeks."""
    customer = await load_header(ctx, customer_id)
    today = ctx.caller.today(customer["timezone"])
    weeks = int(query["weeks"])
    monday = first_monday(today, weeks)
    period = (str(monday), str(today))
    sunday = monday + timedelta(days=7 * weeks - 1)
    load, muscles, completed_days, outline, assigned_sets, all_sets, lifts, photos, weights = await gather_reads(
        ctx,
        workload.get_workload(ctx, customer_id, *period, "week"),
        volume.get_volume(ctx, customer_id, *period),
        compliance.get_compliance(ctx, customer_id, str(monday), str(sunday)),
        blocks.list_days(ctx, customer_id, monday, sunday, today=today),
        _load_assigned_sets(ctx, customer_id, (str(first_day(today, weeks)), str(today))),
        _load_metric_sets(ctx),
        exercise_history.list_done_exercises(ctx, customer_id, page=1, size=_MAX_LIFTS),
        progress_photos.list_photos(ctx, customer_id, page=1, size=_MAX_PHOTO_DATES),
        load_weights(ctx, customer_id),
    )
    compared = compare_over_period(photos["docs"], first_day(today, weeks), today)
    existing_ids = {metric_set["_id"] for metric_set in all_sets}
    assigned_ids = {metric_set["_id"] for metric_set in assigned_sets}
    assignable = [metric_set for metric_set in all_sets if metric_set["_id"] not in assigned_ids]
    return {
        "customer": customer,
        "weeks": query["weeks"],
        "periods": PERIODS,
        "today": today,
        "workload": _summarize_workload(load),
        "muscles": _summarize_muscles(muscles),
        "compliance": _summarize_compliance(completed_days, outline, str(today)),
        "lifts": lifts["docs"],
        "photo_dates": [record["createdAt"] for record in compared],
        "photo_pairs": pair_photos(compared[0], compared[1], customer["name"], weights) if compared else [],
        "assigned_sets": [
            {**metric_set, "isDeleted": metric_set["_id"] not in existing_ids} for metric_set in assigned_sets
        ],
        "assignable_sets": assignable if METRICS.EDIT in ctx.caller.permissions else [],
    }


async def _load_metric_sets(ctx: Context) -> list[MetricSet]:
    return await metric_sets.list_all(ctx) if METRICS.VIEW in ctx.caller.permissions else []


async def _load_assigned_sets(ctx: Context, customer_id: ObjectId, period: tuple[str, str]) -> list[MetricSetSummary]:
    """Return the metric sets assigned to a client with the values recorded in a period."""
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
                _summarize_metric(entry["metric"], history_of[entry["metric"]["_id"]], *period)
                for entry in assignment["metrics"]
            ],
        }
        for assignment in assignments
    ]


def _summarize_metric(metric: Metric, history: list[MetricHistoryEntry], first: str, today: str) -> MetricSummary:
    """Summarize a metric from a date to today; values dated after today are listed separately."""
    unit = metric["metricUnit"]["shortName"]
    recorded = [(entry["date"], entry["value"]) for entry in history if entry["date"] <= today]
    points = [point for point in recorded if point[0] >= first]
    has_change = len(points) > 1
    return {
        "_id": metric["_id"],
        "name": metric["name"],
        "unit": unit,
        "latest": recorded[-1] if recorded else None,
        "change": points[-1][1] - points[0][1] if has_change else None,
        "change_since": points[0][0] if has_change else None,
        "future": [entry for entry in history if entry["date"] > today],
        "chart": charts.lines(points, unit, f"{metric['name']} in {unit} by date") if points else None,
        "points": points,
    }


def _summarize_workload(load: Workload) -> WorkloadSummary:
    unit, periods = load["loadUnit"], load["periods"]
    volume_loads = [(charts.short(period["date"]), period["volumeLoad"]) for period in periods]
    sets = [(charts.short(period["date"]), period["sets"]) for period in periods]
    sessions = sum(period["sessions"] for period in periods)
    return {
        "unit": unit,
        "periods": periods,
        "load_chart": charts.bars(volume_loads, unit, f"Volume load in {unit} by week") if sessions else None,
        "sets_chart": charts.bars(sets, "sets", "Completed sets by week") if sessions else None,
        "sessions": sessions,
        "ratio": periods[-1]["acuteChronicRatio"] if periods else None,
    }


def _summarize_muscles(muscles: MuscleGroupVolume) -> MuscleSummary:
    trained = sorted(
        (muscle for muscle in muscles["muscleGroups"] if muscle["sets"]), key=lambda muscle: -muscle["sets"]
    )
    values = [(muscle["name"], muscle["sets"]) for muscle in trained[:_MAX_CHARTED_MUSCLES]]
    return {
        "unit": muscles["loadUnit"],
        "trained": trained,
        "chart": charts.rows(values, "sets", "Sets by muscle") if values else None,
    }


def _summarize_compliance(result: Compliance, outline: Sequence[CalendarDay], today: str) -> ComplianceSummary:
    daily = result["dailyCompliance"]
    # The keys of _DAY_LABELS are also the CSS classes of the days in the chart.
    statuses = [(day["date"], "ahead" if day["status"] == "planned" else day["status"] or "none") for day in outline]
    days = [(date, status, _DAY_LABELS[status]) for date, status in statuses]
    weeks = [daily[start : start + 7] for start in range(0, len(daily), 7)]
    return {
        "rate": result["workoutCompletionPercentage"],
        "total": result["totalWorkoutDays"],
        "completed": result["completedWorkoutDays"],
        "chart": charts.heat(days, "Workout days by completion", today),
        "day_labels": _DAY_LABELS,
        "weeks": [
            (week[0]["date"], sum(day["isWorkoutDay"] for day in week), sum(day["isCompleted"] for day in week))
            for week in weeks
        ],
    }


@pages.post("/progress", access=coach(METRICS.EDIT), on=progress_page)
async def record_value(ctx: Context, customer_id: ObjectId, form: _ValueForm) -> Redirect:
    """Record a value of a metric, replacing the value of the same date; one far from the last is asked about."""
    require_past_date("date", form["date"], await get_today(ctx, customer_id))
    entered = {"value": (form["metricId"], form["value"])}
    await require_confirmed_values(ctx, customer_id, form["date"], entered, confirmed=form["confirmed"])
    await metrics.record(ctx, customer_id, form["metricsSetId"], form["metricId"], form["date"], form["value"])
    return Redirect(_progress_path(customer_id), "Value saved.")


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
    return {
        "customer": customer,
        "metric": metric,
        "values": history[::-1],
        "progress_path": _progress_path(customer_id),
        "metric_path": f"{_progress_path(customer_id)}/sets/{metrics_set_id}/metrics/{metric_id}",
    }


@pages.post(
    "/progress/sets/{metricsSetId}/metrics/{metricId}/delete", access=coach(METRICS.EDIT), on=metric_page, deletes=True
)
async def delete_value(
    ctx: Context, customer_id: ObjectId, metrics_set_id: ObjectId, metric_id: ObjectId, form: ValueDate
) -> Redirect:
    """Delete the value of a metric on a date."""
    await metrics.delete_value(ctx, customer_id, metrics_set_id, metric_id, form["date"])
    path = f"{_progress_path(customer_id)}/sets/{metrics_set_id}/metrics/{metric_id}"
    return Redirect(path, "Value deleted. You can undo this in the history.")


@pages.post("/progress/sets", access=coach(METRICS.EDIT), on=progress_page)
async def assign_set(ctx: Context, customer_id: ObjectId, form: MetricsSetReference) -> Redirect:
    """Assign a metric set to a client."""
    assignment = await metrics.assign(ctx, customer_id, form["metricsSetId"])
    return Redirect(_progress_path(customer_id), f"{assignment['metricsSet']['name']} assigned.")


@pages.confirm(
    "/progress/sets/{metricsSetId}/end",
    access=coach(METRICS.EDIT),
    template="customer/unassign_metric_set.html",
    deletes=True,
)
async def unassign_set(ctx: Context, customer_id: ObjectId, metrics_set_id: ObjectId) -> ConfirmedAction:
    """Unassign a metric set; its values are stored and return when it is assigned again."""
    customer, assignments = await gather_reads(
        ctx, load_header(ctx, customer_id), metrics.list_assigned(ctx, customer_id)
    )
    sets = (assignment["metricsSet"] for assignment in assignments)
    shown = {"customer": customer, "metric_set": require_by_id(sets, metrics_set_id, "assignment")}
    done = Redirect(_progress_path(customer_id), "Metric set unassigned. Recorded values are not deleted.")
    return ConfirmedAction(shown, partial(metrics.unassign, ctx, customer_id, metrics_set_id), done)


def _progress_path(customer_id: ObjectId) -> str:
    return customer_path(customer_id, "/progress")
