"""How a client's results in one exercise develop in a period: charts and sessions."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, timedelta
from typing import Annotated, Any, TypedDict

from markupsafe import Markup

from coaching_service.core.auth.access import coach
from coaching_service.core.auth.permissions import CUSTOMERS
from coaching_service.core.database.context import Context
from coaching_service.core.database.transactions import gather_reads
from coaching_service.core.fields import Default
from coaching_service.core.ids import ObjectId
from coaching_service.core.validation import Choice
from coaching_service.library.exercises import service as exercises
from coaching_service.people.activity.record_types import (
    FARTHEST_DISTANCE,
    FASTEST,
    LEAST_ASSISTANCE,
    LONGEST_TIME,
    LOWER_IS_BETTER,
)
from coaching_service.progress.exercise_history.lift_progress import read_progress
from coaching_service.progress.exercise_history.models import SESSION, ProgressPoint
from coaching_service.training.workouts.items.descriptions import format_number
from coaching_service.training.workouts.sets.records import RecordKey, unit_of
from coaching_service.web import charts
from coaching_service.web.formatting import format_duration, quantity, record_name
from coaching_service.web.pages import Pages
from coaching_service.web.views.customer_layout import load_header

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
_DISTANCES = 2
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


@pages.get(
    "/progress/exercises/{exerciseId}",
    access=coach(CUSTOMERS.VIEW),
    query=PeriodQuery,
    template="customer/lift.html",
)
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
