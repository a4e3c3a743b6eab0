"""How to do an exercise, and what the client has done in it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import timedelta
from functools import partial
from typing import Annotated, Any, TypedDict

from markupsafe import Markup

from coaching_service.core.auth.access import customer
from coaching_service.core.database.context import Context
from coaching_service.core.database.transactions import gather_reads
from coaching_service.core.fields import Default
from coaching_service.core.ids import ObjectId
from coaching_service.core.validation import Choice
from coaching_service.library.exercises import service as exercises
from coaching_service.people.activity import record_types
from coaching_service.people.activity.record_types import RECORD_NAMES
from coaching_service.progress.exercise_history import service
from coaching_service.progress.exercise_history import service as exercise_history
from coaching_service.progress.exercise_history.models import ExerciseSession
from coaching_service.progress.personal_records import service as personal_records
from coaching_service.training.workouts.blocks.load_conversion import show_loads
from coaching_service.training.workouts.reports.models import LiftResult
from coaching_service.training.workouts.sets import RecordKey, unit_of
from coaching_service.web import charts
from coaching_service.web.formatting import format_date, record_name
from coaching_service.web.page_queries import PageQuery, list_url
from coaching_service.web.pages import Pages
from coaching_service.web.views.train.layout import label_day
from coaching_service.web.views.train.lift_words import (
    DoneSet,
    Point,
    best_points,
    describe_records,
    describe_set,
    show_records,
    show_results,
)

pages = Pages("/train/exercises/{exerciseId}")
_SESSIONS_PER_PAGE = 8
_PERIODS = {"3": "3 months", "12": "1 year", "120": "All"}
_DAYS_PER_MONTH = 30.5
_DISTANCES = 2
_USUAL_COLUMNS = (record_types.ESTIMATED_ONE_REP_MAX, record_types.HEAVIEST_LOAD)
_COLUMNS: dict[record_types.RecordType, str] = {
    record_types.ESTIMATED_ONE_REP_MAX: "Estimated 1RM",
    record_types.HEAVIEST_LOAD: "Top load",
    **{
        each: RECORD_NAMES[each]
        for each in (record_types.LEAST_ASSISTANCE, record_types.LONGEST_TIME, record_types.FARTHEST_DISTANCE)
    },
}


class _ExerciseQuery(PageQuery):
    months: Annotated[str, Choice(*_PERIODS), Default("12")]


class LiftChart(TypedDict):
    """A value of each workout: `points` are `(date, value)`."""

    name: str
    unit: str
    points: list[Point]
    drawing: Markup


class ValueTable(TypedDict):
    """The values of workouts in numbers: a row for each, the latest first."""

    headings: list[str]
    rows: list[tuple[str | float | None, ...]]


class Session(TypedDict):
    """The sets of one workout."""

    date: str
    wblockId: ObjectId
    sets: list[DoneSet]


@pages.get("", access=customer(), template="train/exercise.html")
async def own_exercise_page(ctx: Context, exercise_id: ObjectId, query: _ExerciseQuery) -> dict[str, Any]:
    """An exercise with the client's records, progress and workouts."""
    client_id, today = ctx.caller.id, ctx.caller.today()
    first = today - timedelta(days=round(int(query["months"]) * _DAYS_PER_MONTH))
    exercise, sessions, results, records = await gather_reads(
        ctx,
        exercises.get_for_client(ctx, exercise_id),
        exercise_history.list_sessions(ctx, client_id, exercise_id, page=query["page"], size=_SESSIONS_PER_PAGE),
        service.list_results(ctx, client_id, [exercise_id], str(first), str(today)),
        personal_records.list_records(ctx, client_id),
    )
    unit = ctx.caller.load_unit
    done = show_results(ctx, results[exercise_id])
    return {
        "exercise": exercise,
        "uploads": [each for each in exercise["media"] if each["source"] == "upload"],
        "links": [each for each in exercise["media"] if each["source"] != "upload"],
        "months": query["months"],
        "periods": _PERIODS,
        "unit": unit,
        "records": describe_records(show_records(ctx, [each for each in records if each["exerciseId"] == exercise_id])),
        "charts": _draw_charts(done, unit),
        "results": _tabulate(done, unit),
        "page": sessions,
        "sessions": [_describe_session(session, unit) for session in show_loads(sessions["docs"], ctx, unit)],
        "label_day": partial(label_day, today=today),
        "page_url": list_url(f"/train/exercises/{exercise_id}", {"months": query["months"]}),
    }


def _draw_charts(results: Sequence[LiftResult], unit: str) -> list[LiftChart]:
    """Return the charts of the values that at least two workouts have; repetitions only where no load was lifted."""
    loads = best_points(results, RecordKey(record_types.HEAVIEST_LOAD))
    values = [
        ("Estimated 1RM", unit, best_points(results, RecordKey(record_types.ESTIMATED_ONE_REP_MAX))),
        ("Top load", unit, loads),
        ("Least assistance", unit, best_points(results, RecordKey(record_types.LEAST_ASSISTANCE))),
        ("Most reps in a set", "reps", [] if loads else best_points(results, RecordKey(record_types.MOST_REPS))),
        ("Longest time", "s", best_points(results, RecordKey(record_types.LONGEST_TIME))),
        ("Farthest distance", "m", best_points(results, RecordKey(record_types.FARTHEST_DISTANCE))),
        *((record_name(key._asdict()), "s", best_points(results, key)) for key in _frequent_distances(results)),
        ("Volume (load × reps)", unit, [(each["date"], each["volumeLoad"]) for each in results if each["volumeLoad"]]),
    ]
    return [
        {
            "name": name,
            "unit": of_values,
            "points": points,
            "drawing": charts.lines(points, of_values, f"{name} in {of_values} by workout"),
        }
        for name, of_values, points in values
        if len(points) > 1
    ]


def _frequent_distances(results: Sequence[LiftResult]) -> list[RecordKey]:
    """Return the fastest times over the two distances that most workouts have."""
    counts = Counter(
        RecordKey(best["kind"], best.get("meters"))
        for result in results
        for best in result["bests"]
        if best["kind"] == record_types.FASTEST
    )
    return [key for key, _ in counts.most_common(_DISTANCES)]


def _tabulate(results: Sequence[LiftResult], unit: str) -> ValueTable:
    """Return the values of workouts, the latest first; assistance, times and distances only if any has them."""
    bests = [{best["kind"]: round(best["value"], 1) for best in result["bests"]} for result in results]
    columns = [
        (f"{_COLUMNS[each]}, {unit_of(each) or unit}", [of_workout.get(each) for of_workout in bests])
        for each in _COLUMNS
        if each in _USUAL_COLUMNS or any(each in of_workout for of_workout in bests)
    ]
    columns += [(f"Volume, {unit}", [result["volumeLoad"] for result in results])]
    rows = [
        (format_date(result["date"]), *(values[at] for _, values in columns), result["sets"])
        for at, result in enumerate(results)
    ]
    return {"headings": ["Workout", *(heading for heading, _ in columns), "Sets"], "rows": rows[::-1]}


def _describe_session(session: ExerciseSession, unit: str) -> Session:
    return {
        "date": session["date"],
        "wblockId": session["wblockId"],
        "sets": [describe_set(done, unit) for done in session["sets"]],
    }
