"""The exercises that a client has done, and the training sessions with one of them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, timedelta
from itertools import groupby
from typing import Annotated, Literal, NotRequired, TypeAlias, TypedDict

from marshmallow import fields

from coaching_service.core import list_selection
from coaching_service.core.database.context import Context
from coaching_service.core.database.transactions import gather_reads
from coaching_service.core.errors import invalid_field
from coaching_service.core.fields import Default, Description, Part
from coaching_service.core.ids import ObjectId
from coaching_service.core.query import Period
from coaching_service.core.validation import Choice, Date
from coaching_service.library.exercises import service as exercises
from coaching_service.library.exercises.models import ExerciseReference
from coaching_service.people.activity.models import RecordType
from coaching_service.people.customers import service as customers
from coaching_service.training.visibility import service as visibility
from coaching_service.training.workouts import sets as workout_sets
from coaching_service.training.workouts.items import totals
from coaching_service.training.workouts.items.models import CUSTOMER_SET, WorkItem
from coaching_service.training.workouts.reports import exercises as exercise_queries
from coaching_service.training.workouts.reports import models as query_models
from coaching_service.training.workouts.reports.models import LiftResult

# --- A client's history of an exercise, as it is asked for and returned -----------------------------------------------


GroupBy = Literal["session", "week"]
SESSION: GroupBy = "session"
WEEK: GroupBy = "week"
_BEST_SET = (
    "Highest estimated 1RM, else highest load (lowest assistance), else most reps, else farthest distance and its "
    "shortest time, else longest time."
)


class HistoryQuery(list_selection.PageFields):
    """A page of the history, and whether it includes sessions that were scheduled and not done."""

    includeIncomplete: Annotated[bool, Default(False)]


class ProgressQuery(Period):
    """The date range (less than 3,700 days), and how its sessions are grouped."""

    groupBy: Annotated[
        GroupBy,
        Default(SESSION),
        Description("`session`: each session; `week`: the weeks with a session. Default: `session`."),
    ]


class OneRepMaxEstimate(TypedDict):
    """An estimated one-repetition maximum, in the company's unit of load."""

    value: float
    formula: Annotated[
        str,
        Choice(*workout_sets.FORMULAS),
        Description(
            "`epley`: load x (1 + reps / 30); `epley_rir`, `epley_rpe`: with the repetitions in reserve (RIR, or 10 - "
            "RPE) added to the reps; `load`: one repetition. With `_body_weight`: of the whole weight, as the load is "
            "added to the body's."
        ),
    ]
    setIndex: Annotated[int, Description("The index of the set it is computed from: `bestSet`.")]


class ProgressBest(TypedDict):
    """The best value of a type of record in a session or a week."""

    type: RecordType
    value: Annotated[float, Description("In `unit`.")]
    unit: Annotated[str, Choice(*workout_sets.RECORD_UNITS)]
    reps: int | None
    meters: Annotated[float | None, Description("The distance of `fastest`; null otherwise.")]


class ProgressPoint(TypedDict):
    """What was done for an exercise in a session or a week, without warm-up sets."""

    date: Annotated[str, Date(), Description("The date of the session, or the Monday of the week.")]
    bestSet: Annotated[workout_sets.CustomerSet | None, fields.Nested(CUSTOMER_SET), Description(_BEST_SET)]
    estimatedOneRepMax: Annotated[
        OneRepMaxEstimate | None,
        Description("The estimate of `bestSet`; null above 12 reps, and of added loads without a body weight."),
    ]
    bests: Annotated[list[ProgressBest], Description("The best value of each type of record that it has.")]
    volumeLoad: Annotated[float, Description("Sum of reps x load, in the company's unit.")]
    sets: Annotated[int, Description("Completed sets; a drop set counts as a set.")]
    reps: int


DoneSets: TypeAlias = Part[ProgressPoint, Literal["bestSet", "estimatedOneRepMax", "volumeLoad", "sets", "reps"]]


class DoneExercise(TypedDict):
    """An exercise that a client has done."""

    exercise: ExerciseReference
    lastDate: Annotated[str, Date(), Description("The date of the latest session.")]
    sessions: Annotated[int, Description("Sessions with a completed set of the exercise that is not warm-up.")]


class ExerciseSession(TypedDict):
    """A session of one exercise."""

    date: Annotated[str, Date()]
    wblockId: ObjectId
    isCompleted: bool
    sets: Annotated[list[workout_sets.CustomerSet], fields.List(fields.Nested(CUSTOMER_SET))]
    volumeLoad: Annotated[
        float, Description("Sum of reps x load over completed sets that are not warm-up, in `loadUnit`.")
    ]
    loadUnit: Annotated[str, Choice("kg", "lb")]
    bestSet: Annotated[
        workout_sets.CustomerSet | None,
        fields.Nested(CUSTOMER_SET),
        Description(f"{_BEST_SET} Without warm-up sets."),
    ]
    estimatedOneRepMax: Annotated[
        OneRepMaxEstimate | None,
        Description(
            "The highest of its sets: the estimate of `bestSet`; null above 12 reps, and of added loads without "
            "a body weight."
        ),
    ]


class SessionText(TypedDict):
    """A session of an exercise as assistants read it: `sets` and `bestSet` are text, loads in the company's unit."""

    date: str
    workoutId: ObjectId
    isCompleted: bool
    sets: str
    volumeLoad: float
    bestSet: NotRequired[str]
    estimatedOneRepMax: NotRequired[float]


class WeekSummary(TypedDict):
    """A week of an exercise as assistants read it, without warm-up sets; `date` is its Monday."""

    date: str
    volumeLoad: float
    sets: int
    estimatedOneRepMax: NotRequired[float]
    bests: NotRequired[str]


async def list_sessions(
    ctx: Context,
    customer_id: ObjectId,
    exercise_id: ObjectId,
    *,
    page: int,
    size: int,
    include_incomplete: bool = False,
    selection: list_selection.ListSelection = list_selection.ALL_ENTRIES,
    after: str | None = None,
) -> list_selection.Page[ExerciseSession]:
    """Return one page of a client's sessions with an exercise, newest first, or those after a cursor.

    With `include_incomplete` also sessions in which it was scheduled and not done. Days that are hidden from a client
    are left out of what this client reads. Raises NotFound if the company has
    no such client or exercise, Forbidden if the client is outside the caller's scope.
    """
    filters = {
        "customerId": customer_id,
        "exerciseId": exercise_id,
        "includeIncomplete": include_incomplete,
        **selection.for_cursor(),
    }
    list_part = list_selection.ListPart(
        ctx, "exercise-history", filters, exercise_queries.SESSION_ORDER, page=page, size=size, after=after
    )
    hidden = await visibility.find_days_hidden_from_caller(ctx, customer_id)
    _, _, (stored, total) = await gather_reads(
        ctx,
        customers.get_visible(ctx, customer_id),
        exercises.require_known(ctx, exercise_id),
        exercise_queries.find_exercise_sessions(
            ctx, customer_id, exercise_id, list_part, selection, include_planned=include_incomplete, without=hidden
        ),
    )
    load_unit = ctx.caller.company.load_unit
    return list_part.present(stored, total, lambda block: _describe(block, exercise_id, load_unit))


async def list_done_exercises(
    ctx: Context,
    customer_id: ObjectId,
    *,
    page: int,
    size: int,
    selection: list_selection.ListSelection = list_selection.ALL_ENTRIES,
    after: str | None = None,
) -> list_selection.Page[DoneExercise]:
    """Return one page of the exercises that a client did, the one done latest first, or those after a cursor.

    Days that are hidden from a client are left out of what this client reads. Raises NotFound if the company has no
    such client, Forbidden if the client is outside the caller's scope.
    """
    filters = {"customerId": customer_id, **selection.for_cursor()}
    list_part = list_selection.ListPart(
        ctx, "done-exercises", filters, list_selection.RANKED, page=page, size=size, after=after
    )
    _, hidden = await gather_reads(
        ctx,
        customers.get_visible(ctx, customer_id),
        visibility.find_days_hidden_from_caller(ctx, customer_id),
    )
    done = await exercise_queries.find_done_exercises(ctx, customer_id, without=hidden)
    by_id = {each["_id"]: each for each in done if selection.ids is None or each["_id"] in selection.ids}
    ids, cursor = list_part.take_ranked(list(by_id))
    names = await exercises.get_names(ctx, ids)
    docs: list[DoneExercise] = [
        {
            "exercise": {"_id": exercise["_id"], "name": names[exercise["_id"]]["name"]},
            "lastDate": exercise["lastDate"],
            "sessions": exercise["sessions"],
        }
        for exercise in map(by_id.__getitem__, ids)
    ]
    return list_part.numbered(docs, len(by_id), cursor)


def _describe(block: query_models.ExerciseSession, exercise_id: ObjectId, load_unit: str) -> ExerciseSession:
    items = block["items"]
    done = summarize_sets(items, exercise_id)
    return {
        "date": block["date"],
        "wblockId": block["_id"],
        "isCompleted": all(item["isCompleted"] for item in items),
        "sets": totals.logged_sets(items, exercise_id),
        "volumeLoad": done["volumeLoad"],
        "loadUnit": load_unit,
        "bestSet": done["bestSet"],
        "estimatedOneRepMax": done["estimatedOneRepMax"],
    }


def summarize_sets(items: Sequence[WorkItem], exercise_id: ObjectId) -> DoneSets:
    """Return what was done for an exercise in some items, without warm-up sets: the best of it, and totals."""
    working = [
        (done, totals.load_meaning(item, exercise_id))
        for item in items
        for trained_id, done in totals.working_sets(item)
        if trained_id == exercise_id
    ]
    best = workout_sets.best_set(working)
    return {
        "bestSet": best[0] if best else None,
        "estimatedOneRepMax": _describe_estimate(*best) if best else None,
        "volumeLoad": totals.round_total(sum(totals.volume_of(item, exercise_id) for item in items)),
        "sets": len(working),
        "reps": sum(done["reps"] or 0 for done, _ in working),
    }


def _describe_estimate(best: workout_sets.CustomerSet, meaning: workout_sets.LoadMeaning) -> OneRepMaxEstimate | None:
    """Return the highest estimate of several sets, which the best of them has."""
    estimate = workout_sets.estimate_of_set(best, meaning)
    if estimate is None:
        return None
    return {"value": round(estimate.value, 2), "formula": estimate.formula, "setIndex": best["index"]}


# --- How a client's results in one exercise develop, by session or week -----------------------------------------------


MAX_DAYS = 3_700


async def read_progress(
    ctx: Context, customer_id: ObjectId, exercise_id: ObjectId, start_date: str, end_date: str, group_by: GroupBy
) -> list[ProgressPoint]:
    """Return a client's results in an exercise between two dates, both included, by date.

    Each `session` is an entry, or each `week` (from Monday) with a session. Days that are hidden from a client are left
    out of what this client reads. Raises InvalidFields for more than ten
    years, NotFound if the company has no such client or exercise, Forbidden if the client is outside the caller's
    scope.
    """
    if (date.fromisoformat(end_date) - date.fromisoformat(start_date)).days >= MAX_DAYS:
        raise invalid_field("endDate", f"must be less than {MAX_DAYS} days after startDate", code="RANGE_TOO_LONG")
    _, _, visible, done = await gather_reads(
        ctx,
        customers.get_visible(ctx, customer_id),
        exercises.require_known(ctx, exercise_id),
        visibility.get_visibility(ctx, customer_id),
        exercise_queries.find_exercise_sessions_between(ctx, customer_id, exercise_id, start_date, end_date),
    )
    sessions = [session for session in done if visible.allows(day=session["date"])]
    unit = ctx.caller.company.load_unit
    if group_by == SESSION:
        return [_summarize(session["date"], [session], exercise_id, unit) for session in sessions]
    weeks = groupby(sessions, key=lambda session: _monday_of(session["date"]))
    return [_summarize(monday, list(of_week), exercise_id, unit) for monday, of_week in weeks]


async def list_results(
    ctx: Context, customer_id: ObjectId, exercise_ids: Sequence[ObjectId], start_date: str, end_date: str
) -> dict[ObjectId, list[LiftResult]]:
    """Return what a client did for each exercise between two dates, both included: an entry a workout, by date.

    Days that are hidden from a client are left out of what this client reads. Raises NotFound if the company has no
    such client, Forbidden if the client is outside the caller's scope.
    """
    _, hidden = await gather_reads(
        ctx,
        customers.get_visible(ctx, customer_id),
        visibility.find_days_hidden_from_caller(ctx, customer_id),
    )
    results: dict[ObjectId, list[LiftResult]] = {exercise_id: [] for exercise_id in exercise_ids}
    for result in await exercise_queries.find_lift_results(
        ctx, customer_id, exercise_ids, start_date, end_date, without=hidden
    ):
        results[result["exerciseId"]].append(result)
    return results


def _monday_of(day: str) -> str:
    """Return the Monday of the week that contains a date."""
    parsed = date.fromisoformat(day)
    return str(parsed - timedelta(days=parsed.weekday()))


def _summarize(
    first_day: str, sessions: Sequence[query_models.ExerciseSession], exercise_id: ObjectId, load_unit: str
) -> ProgressPoint:
    items = [item for session in sessions for item in session["items"]]
    of_exercise = totals.best_by_exercise({"date": first_day, "item": item} for item in items).get(exercise_id, {})
    return {
        "date": first_day,
        **summarize_sets(items, exercise_id),
        "bests": [
            {
                "type": key.type,
                "value": of_exercise[key]["value"],
                "unit": workout_sets.unit_of(key.type) or load_unit,
                "reps": of_exercise[key]["reps"],
                "meters": key.meters,
            }
            for key in sorted(of_exercise, key=lambda each: each.order)
        ],
    }
