"""A client's personal records and training maximums, and how the results in one exercise develop."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime, timedelta
from typing import Annotated, Any, TypedDict

from markupsafe import Markup

from coaching_service.core.auth.access import CUSTOMERS, coach
from coaching_service.core.database.context import Context
from coaching_service.core.database.transactions import gather_reads
from coaching_service.core.fields import Default
from coaching_service.core.ids import ObjectId
from coaching_service.core.pagination import page_document, skip_of
from coaching_service.core.text import normalize, straighten
from coaching_service.core.validation import Choice, Number
from coaching_service.library.exercises import service as exercises
from coaching_service.people.activity.record_types import (
    FARTHEST_DISTANCE,
    FASTEST,
    LEAST_ASSISTANCE,
    LONGEST_TIME,
    LOWER_IS_BETTER,
    RECORD_NAMES,
)
from coaching_service.progress.exercise_history import service
from coaching_service.progress.exercise_history.models import SESSION, ProgressPoint
from coaching_service.progress.exercise_history.service import read_progress
from coaching_service.progress.personal_records import service as personal_records
from coaching_service.progress.personal_records.models import PersonalRecord
from coaching_service.training.training_maxes import service as training_maxes
from coaching_service.training.training_maxes.models import TrainingMax
from coaching_service.training.workouts.items.descriptions import format_number
from coaching_service.training.workouts.reports.models import LiftResult
from coaching_service.training.workouts.sets import MAX_LOAD, RecordKey, unit_of
from coaching_service.web import charts
from coaching_service.web.formatting import (
    best_records,
    format_date,
    format_duration,
    format_record_value,
    name_options,
    quantity,
    record_name,
)
from coaching_service.web.page_queries import Search, list_url
from coaching_service.web.pages import Pages, Redirect
from coaching_service.web.views.customer_layout import customer_path, load_header
from coaching_service.web.views.train.lift_words import main_points
from coaching_service.web.views.unusual_values import Confirmation

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


pages = Pages("/app/customers/{customerId}")

_CHARTED = (LEAST_ASSISTANCE, LONGEST_TIME, FARTHEST_DISTANCE, FASTEST)
_DISTANCES, _LIFTS_PER_PAGE = 2, 24
_TREND = timedelta(weeks=52)
Point = tuple[str, float]


class LiftChart(TypedDict):
    """A value of each session: `points` are `(date, value)`, `best` is the first of the best."""

    name: str
    unit: str
    points: list[Point]
    best: Point
    drawing: Markup


class SessionRow(TypedDict):
    """A session in words and numbers; loads are in the company's unit."""

    date: str
    best_set: str
    estimate: float | None
    sets: int
    reps: int
    volume_load: float


@pages.get("/progress/exercises/{exerciseId}", access=coach(CUSTOMERS.VIEW), template="customer/lift.html")
async def lift_page(ctx: Context, customer_id: ObjectId, exercise_id: ObjectId, query: PeriodQuery) -> dict[str, Any]:
    """A client's results in an exercise in the last weeks."""
    customer = await load_header(ctx, customer_id)
    today = ctx.caller.today(customer["timezone"])
    monday = first_monday(today, int(query["weeks"]))
    sessions, names = await gather_reads(
        ctx,
        read_progress(ctx, customer_id, exercise_id, str(monday), str(today), SESSION),
        exercises.get_names(ctx, {exercise_id}),
    )
    unit = ctx.caller.company.load_unit
    return {
        "customer": customer,
        "exercise": names[exercise_id],
        "weeks": query["weeks"],
        "periods": PERIODS,
        "unit": unit,
        "charts": _draw_charts(sessions, unit),
        "sessions": [_describe(session, unit) for session in reversed(sessions)],
    }


def _draw_charts(sessions: Sequence[ProgressPoint], unit: str) -> list[LiftChart]:
    """Return the charts of the values of sessions; repetitions of the best set only where it has no load."""
    estimates = [
        (each["date"], round(each["estimatedOneRepMax"]["value"], 1)) for each in sessions if each["estimatedOneRepMax"]
    ]
    best_sets = [(each["date"], each["bestSet"]) for each in sessions if each["bestSet"]]
    reps = [(date, float(best["reps"])) for date, best in best_sets if best["reps"] and not best["load"]]
    loads = [(each["date"], each["volumeLoad"]) for each in sessions if each["volumeLoad"]]
    values = [
        ("Estimated 1RM", unit, estimates, max),
        *(
            (record_name(key._asdict()), unit_of(key.type) or unit, points, min if key.type in LOWER_IS_BETTER else max)
            for key, points in _other_bests(sessions).items()
        ),
        ("Most reps without load", "reps", reps, max),
        ("Volume load", unit, loads, max),
    ]
    return [
        {
            "name": name,
            "unit": of_values,
            "points": points,
            "best": best(points, key=lambda point: point[1]),
            "drawing": charts.lines(points, of_values, f"{name} in {of_values} by session"),
        }
        for name, of_values, points, best in values
        if points
    ]


def _other_bests(sessions: Sequence[ProgressPoint]) -> dict[RecordKey, list[Point]]:
    """Return the best values of sessions that are neither loads nor repetitions; the two distances done most often."""
    points: dict[RecordKey, list[Point]] = {}
    for session in sessions:
        for best in session["bests"]:
            if best["type"] in _CHARTED:
                key = RecordKey(best["type"], best["meters"])
                points.setdefault(key, []).append((session["date"], best["value"]))
    distances = sorted((key for key in points if key.type == FASTEST), key=lambda key: len(points[key]), reverse=True)
    return {key: points[key] for key in sorted(points.keys() - distances[_DISTANCES:], key=lambda each: each.order)}


def _describe(session: ProgressPoint, unit: str) -> SessionRow:
    best, estimate = session["bestSet"], session["estimatedOneRepMax"]
    parts: list[str] = []
    if best is not None:
        parts += [quantity(best["reps"], "rep")] if best["reps"] else []
        parts += [f"{format_number(best['load'])} {unit}"] if best["load"] else []
        parts += [format_number(best["meters"], "m")] if best["meters"] else []
        parts += [format_duration(best["seconds"])] if best["seconds"] else []
    return {
        "date": session["date"],
        "best_set": " × ".join(parts),
        "estimate": round(estimate["value"], 1) if estimate else None,
        "sets": session["sets"],
        "reps": session["reps"],
        "volume_load": session["volumeLoad"],
    }


class _RecordsQuery(Search):
    exerciseId: ObjectId | None


class LiftCard(TypedDict):
    """The records of an exercise, the best of each type; `trend` is a small chart of the last year."""

    _id: ObjectId
    name: str
    records: list[PersonalRecord]
    date: str
    trend: Markup | None


class _TrainingMaxForm(Confirmation):
    exerciseId: ObjectId
    value: Annotated[float | None, Number(minimum=0, maximum=MAX_LOAD)]


class _NamedMax(TypedDict):
    """A training maximum with the name of its exercise."""

    exerciseName: str
    value: float | None
    updatedAt: datetime


@pages.get("/records", access=coach(CUSTOMERS.VIEW), template="customer/records.html")
async def records_page(ctx: Context, customer_id: ObjectId, query: _RecordsQuery) -> dict[str, Any]:
    """A client's personal records and training maximums; the query names the exercise to set the maximum of."""
    customer, records, maxes = await gather_reads(
        ctx,
        load_header(ctx, customer_id),
        personal_records.list_records(ctx, customer_id),
        training_maxes.list_training_maxes(ctx, customer_id),
    )
    names = await _load_names(ctx, records, maxes, query["exerciseId"])
    named: list[_NamedMax] = [
        {"exerciseName": names[each["exerciseId"]], "value": each["value"], "updatedAt": each["updatedAt"]}
        for each in maxes
    ]
    matching = _by_exercise(records, query["keywords"])
    first = skip_of(query["page"], _LIFTS_PER_PAGE)
    shown = matching[first : first + _LIFTS_PER_PAGE]
    today = ctx.caller.today(customer["timezone"])
    results = await service.list_results(
        ctx, customer_id, [lift[0]["exerciseId"] for lift in shown], str(today - _TREND), str(today)
    )
    lifts = [_describe_lift(lift, results[lift[0]["exerciseId"]], ctx.caller.company.load_unit) for lift in shown]
    return {
        "customer": customer,
        "page": page_document(lifts, len(matching), query["page"], _LIFTS_PER_PAGE),
        "page_url": list_url(customer_path(customer_id, "/records"), {"keywords": query["keywords"]}),
        "keywords": query["keywords"],
        "maxes": sorted(named, key=lambda each: each["exerciseName"].casefold()),
        "exercises": name_options(names),
        "chosen": str(query["exerciseId"] or ""),
        "unit": ctx.caller.company.load_unit,
    }


def _by_exercise(records: Sequence[PersonalRecord], keywords: str) -> list[list[PersonalRecord]]:
    """Return the best record of each type, by exercise with every keyword in its name, the latest first."""
    words = straighten(normalize(keywords)).split()
    by_exercise: dict[ObjectId, list[PersonalRecord]] = {}
    for record in records:
        if all(word in straighten(normalize(record["exerciseName"])) for word in words):
            by_exercise.setdefault(record["exerciseId"], []).append(record)
    return sorted(map(best_records, by_exercise.values()), key=_latest_date, reverse=True)


def _latest_date(lift: Sequence[PersonalRecord]) -> str:
    return max(record["date"] for record in lift)


def _describe_lift(records: list[PersonalRecord], results: Sequence[LiftResult], unit: str) -> LiftCard:
    return {
        "_id": records[0]["exerciseId"],
        "name": records[0]["exerciseName"],
        "records": records,
        "date": _latest_date(records),
        "trend": _draw_trend(results, unit),
    }


def _draw_trend(results: Sequence[LiftResult], unit: str) -> Markup | None:
    """Return a chart of the value that says most about an exercise, whose name has the first and the last value."""
    record_type, points = main_points(results)
    if len(points) < 2:
        return None
    first, last = (
        f"{format_record_value(record_type, round(value, 1), unit_of(record_type) or unit)} on {format_date(date)}"
        for date, value in (points[0], points[-1])
    )
    return charts.sparkline(points, f"{RECORD_NAMES[record_type]} in the last year: from {first} to {last}")


async def _load_names(
    ctx: Context, records: Sequence[PersonalRecord], maxes: Sequence[TrainingMax], chosen: ObjectId | None
) -> dict[ObjectId, str]:
    """Return the names of the exercises with a record or a maximum, and of the chosen one."""
    names = {record["exerciseId"]: record["exerciseName"] for record in records}
    others = {each["exerciseId"] for each in maxes} | ({chosen} if chosen else set())
    loaded = await exercises.get_names(ctx, others - names.keys())
    return names | {key: exercise["name"] for key, exercise in loaded.items()}


@pages.post("/records", access=coach(CUSTOMERS.EDIT), on=records_page)
async def set_training_max(ctx: Context, customer_id: ObjectId, form: _TrainingMaxForm) -> Redirect:
    """Set or remove the training maximum of an exercise."""
    await training_maxes.set_training_max(ctx, customer_id, form["exerciseId"], form["value"])
    return Redirect(customer_path(customer_id, "/records"), "Changes saved.")
