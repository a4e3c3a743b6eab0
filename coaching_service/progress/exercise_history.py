"""The exercises that a client has done, and the training sessions with one of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from itertools import groupby
from typing import Annotated, Any, Literal, TypeAlias, TypedDict

from marshmallow import ValidationError, fields, validates_schema

from coaching_service.core import list_selection, mcp
from coaching_service.core.auth import CUSTOMERS, coach, customer
from coaching_service.core.database.context import Context, gather_reads
from coaching_service.core.errors import invalid_field
from coaching_service.core.fields import Default, Description, Part, query_of
from coaching_service.core.http.routes import Routes
from coaching_service.core.ids import ObjectId
from coaching_service.core.list_selection import Page, PageFields, PageQuery, part_of
from coaching_service.core.mcp import Answer, Tools, typed
from coaching_service.core.query import Period, SearchedRange
from coaching_service.core.validation import Boolean, Choice, Date, Identifier, Text
from coaching_service.library.exercises import service as exercises
from coaching_service.library.exercises.models import OWN_EXERCISE, ExerciseReference, OwnExercise
from coaching_service.people.activity.models import RecordType
from coaching_service.people.customers import service as customers
from coaching_service.training import visibility
from coaching_service.training.set_text import write_done
from coaching_service.training.workout_text.finding import resolve_exercises
from coaching_service.training.workouts import sets as workout_sets
from coaching_service.training.workouts.blocks.items import show_loads
from coaching_service.training.workouts.items import service as totals
from coaching_service.training.workouts.items.models import CUSTOMER_SET, WorkItem
from coaching_service.training.workouts.reports import exercises as exercise_reports
from coaching_service.training.workouts.reports.exercises import LiftResult
from coaching_service.training.workouts.sets import CustomerSet

# --- A client's history of an exercise, as it is asked for and returned -----------------------------------------------


GroupBy = Literal["session", "week"]
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
        Default("session"),
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


routes = Routes("/coach/customers/{customerId}", tag="Exercise history")
own_routes = Routes("/customer/exercise/{exerciseId}", tag="The client's own")


@routes.get("/exercises", access=coach(CUSTOMERS.VIEW), query=PageQuery())
async def list_done_exercises(ctx: Context, customer_id: ObjectId, query: PageFields) -> Page[DoneExercise]:
    """List the exercises that a client has done, the one done latest first.

    In a session of an exercise at least one set of it was completed that is not warm-up. `ids` are exercises. The order
    changes with each session, so only the first page has a `nextCursor`: the others follow it by identifier, each once.
    """
    return await list_done(ctx, customer_id, **part_of(query))


async def list_done(
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
    done = await exercise_reports.find_done_exercises(ctx, customer_id, without=hidden)
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


def summarize_sets(items: Sequence[WorkItem], exercise_id: ObjectId) -> DoneSets:
    """Return what was done for an exercise in some items, without warm-up sets: the best of it, and totals."""
    working = [
        (done, totals.load_meaning(item, exercise_id))
        for item in items
        for trained_id, done in totals.working_sets(item)
        if trained_id == exercise_id
    ]
    best, estimated = workout_sets.best_set(working), None
    if best and (estimate := workout_sets.estimate_of_set(*best)) is not None:  # the highest: the best set has it
        estimated = OneRepMaxEstimate(
            value=round(estimate.value, 2), formula=estimate.formula, setIndex=best[0]["index"]
        )
    return {
        "bestSet": best[0] if best else None,
        "estimatedOneRepMax": estimated,
        "volumeLoad": totals.round_total(sum(totals.volume_of(item, exercise_id) for item in items)),
        "sets": len(working),
        "reps": sum(done["reps"] or 0 for done, _ in working),
    }


# --- How a client's results in one exercise develop, by session or week -----------------------------------------------


MAX_DAYS = 3_700


@routes.get(
    "/exercise/{exerciseId}/progress",
    access=coach(CUSTOMERS.VIEW),
    query=query_of(ProgressQuery, SearchedRange)(),
    operation_id="getExerciseProgress",
)
async def read_progress(
    ctx: Context, customer_id: ObjectId, exercise_id: ObjectId, query: ProgressQuery
) -> list[ProgressPoint]:
    """Read how a client's results in an exercise develop, by date.

    One entry for each session, or for each week with a session; warm-up sets do not count. The estimated 1RM is of
    the best set: Epley up to 12 reps, to which repetitions in reserve (RIR, or 10 - RPE) are added first, the load
    itself for 1.
    """
    # Weeks begin on Monday. Days that are hidden from a client are left out of what this client reads.
    start_date, end_date = query["startDate"], query["endDate"]
    if (date.fromisoformat(end_date) - date.fromisoformat(start_date)).days >= MAX_DAYS:
        raise invalid_field("endDate", f"must be less than {MAX_DAYS} days after startDate", code="RANGE_TOO_LONG")
    _, _, visible, done = await gather_reads(
        ctx,
        customers.get_visible(ctx, customer_id),
        exercises.require_known(ctx, exercise_id),
        visibility.find_visibility(ctx, customer_id),
        exercise_reports.find_exercise_sessions_between(ctx, customer_id, exercise_id, start_date, end_date),
    )
    sessions = [session for session in done if visible.allows(day=session["date"])]
    unit = ctx.caller.company.load_unit
    if query["groupBy"] == "session":
        return [_summarize(session["date"], [session], exercise_id, unit) for session in sessions]

    def monday_of(session: exercise_reports.ExerciseSession) -> str:
        day = date.fromisoformat(session["date"])
        return str(day - timedelta(days=day.weekday()))

    weeks = groupby(sessions, key=monday_of)
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
    for result in await exercise_reports.find_lift_results(
        ctx, customer_id, exercise_ids, start_date, end_date, without=hidden
    ):
        results[result["exerciseId"]].append(result)
    return results


def _summarize(
    first_day: str, sessions: Sequence[exercise_reports.ExerciseSession], exercise_id: ObjectId, load_unit: str
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


# --- The sessions with an exercise ------------------------------------------------------------------------------------


@routes.get("/exercise/{exerciseId}/history", access=coach(CUSTOMERS.VIEW), query=query_of(HistoryQuery, PageQuery)())
async def list_exercise_history(
    ctx: Context, customer_id: ObjectId, exercise_id: ObjectId, query: HistoryQuery
) -> Page[ExerciseSession]:
    """Read a client's history of an exercise, newest first.

    One entry for each session, on the date of its workout block; `ids` are workout blocks. A session has at least one
    completed set of the exercise that is not warm-up. Estimated 1RM: Epley up to 12 reps, to which repetitions in
    reserve (RIR, or 10 - RPE) are added first, the load itself for 1. Where the load is added to the body's
    (`loadType` `added`), it is of the whole weight, by the latest body weight of the 30 days up to the session.
    """
    with_planned = query["includeIncomplete"]
    return await list_sessions(ctx, customer_id, exercise_id, include_incomplete=with_planned, **part_of(query))


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
        ctx, "exercise-history", filters, exercise_reports.SESSION_ORDER, page=page, size=size, after=after
    )
    hidden = await visibility.find_days_hidden_from_caller(ctx, customer_id)
    _, _, (stored, total) = await gather_reads(
        ctx,
        customers.get_visible(ctx, customer_id),
        exercises.require_known(ctx, exercise_id),
        exercise_reports.find_exercise_sessions(
            ctx, customer_id, exercise_id, list_part, selection, include_planned=include_incomplete, without=hidden
        ),
    )

    def describe(block: exercise_reports.ExerciseSession) -> ExerciseSession:
        done = summarize_sets(block["items"], exercise_id)
        return {
            "date": block["date"],
            "wblockId": block["_id"],
            "isCompleted": all(item["isCompleted"] for item in block["items"]),
            "sets": totals.logged_sets(block["items"], exercise_id),
            "volumeLoad": done["volumeLoad"],
            "loadUnit": ctx.caller.company.load_unit,
            "bestSet": done["bestSet"],
            "estimatedOneRepMax": done["estimatedOneRepMax"],
        }

    return list_part.present(stored, total, describe)


# --- Of clients over REST ---------------------------------------------------------------------------------------------


@own_routes.get("", access=customer(), returns=OWN_EXERCISE)
async def get_own_exercise(ctx: Context, exercise_id: ObjectId) -> OwnExercise:
    """Read how to do an exercise: its instructions, video and pictures."""
    return await exercises.get_for_client(ctx, exercise_id)


@own_routes.get("/progress", access=customer(), query=query_of(ProgressQuery, SearchedRange)())
async def get_own_exercise_progress(ctx: Context, exercise_id: ObjectId, query: ProgressQuery) -> list[ProgressPoint]:
    """Read how my results in an exercise develop, by date.

    One entry for each session, or for each week with a session; warm-up sets do not count. The estimated 1RM is of
    the best set: Epley up to 12 reps, to which repetitions in reserve (RIR, or 10 - RPE) are added first, the load
    itself for 1. Days that are hidden from the client are left out.
    """
    return await read_progress(ctx, ctx.caller.id, exercise_id, query)


@own_routes.get("/history", access=customer(), query=query_of(HistoryQuery, PageQuery)())
async def list_own_exercise_history(ctx: Context, exercise_id: ObjectId, query: HistoryQuery) -> Page[ExerciseSession]:
    """Read my history of an exercise, newest first.

    One entry for each session, on the date of its workout block; days that are hidden from the client are left out.
    """
    with_planned = query["includeIncomplete"]
    return await list_sessions(ctx, ctx.caller.id, exercise_id, include_incomplete=with_planned, **part_of(query))


# --- MCP tool for the history of an exercise --------------------------------------------------------------------------


tools = Tools()


class ExerciseSessions(mcp.Lines):
    """The sessions, by the workouts' `_id`, and the progress by week."""

    exerciseId: ObjectId
    weeks: list[str]


_WEEKS = 12
# What a week says besides the estimate and the volume.
_OTHER_BESTS = ("longest_time", "farthest_distance", "fastest", "least_assistance")


class ExerciseHistory(mcp.ToolPage, mcp.CustomerArgument):
    """The client, the exercise, and the page of its history."""

    exercise = Text(
        load_default=None,
        allow_none=True,
        metadata={"description": "Its name or _id.", **mcp.LISTED_AS_REQUIRED},
    )
    includeIncomplete = Boolean(load_default=False, metadata={"description": "Also sessions not done."})
    exerciseId = Identifier(load_default=None, allow_none=True, metadata=mcp.UNLISTED)

    @validates_schema
    def names_an_exercise(self, data: Mapping[str, Any], **_: Any) -> None:
        """Require an exercise."""
        if data["exercise"] is None and data["exerciseId"] is None:
            raise ValidationError("is required", "exercise")


@tools.tool(
    "Read an exercise's history", access=coach(CUSTOMERS.VIEW), takes=ExerciseHistory(), returns=ExerciseSessions
)
async def get_exercise_history(
    ctx: Context,
    customer_id: ObjectId,
    exercise: str | None,
    exercise_id: ObjectId | None,
    page: int,
    page_size: int,
    *,
    include_incomplete: bool,
) -> Answer:
    """Read a client's sessions with one exercise, newest first, and the progress of the last 12 weeks: sets, bests,
    estimated 1RM and volume load, without warm-up sets."""
    if exercise_id is None:
        [exercise_id] = await resolve_exercises(ctx, {"exercise": str(exercise)}, customer_id, ["exercise"])
    today = await customers.get_local_date(ctx, customer_id)
    first = today - timedelta(days=today.weekday(), weeks=_WEEKS - 1)
    customer, names, sessions, weeks = await gather_reads(
        ctx,
        customers.get_visible_reference(ctx, customer_id),
        exercises.get_names(ctx, [exercise_id]),
        list_sessions(ctx, customer_id, exercise_id, page=page, size=page_size, include_incomplete=include_incomplete),
        read_progress(
            ctx, customer_id, exercise_id, {"startDate": str(first), "endDate": str(today), "groupBy": "week"}
        ),
    )
    load_unit = ctx.caller.load_unit
    name = names[exercise_id]["name"]
    shown = show_loads(sessions["docs"], ctx, load_unit)
    title = f"{typed(name)} of {typed(customer['name'])}, loads in {load_unit}, sessions"
    lines = []
    for session in shown:
        results = [] if session["bestSet"] is None else [f"best {_write_sets([session['bestSet']], load_unit)}"]
        if (estimate := session["estimatedOneRepMax"]) is not None:
            results.append(f"estimated 1RM {mcp.format_figure(estimate['value'])}")
        results.append(f"volume {mcp.format_figure(session['volumeLoad'])}")
        not_completed = "" if session["isCompleted"] else " (not completed)"
        done = f"{session['date']} {_write_sets(session['sets'], load_unit)}{not_completed}"
        lines.append(f"{done}; {', '.join(results)} [{session['wblockId']}]")
    weeks_in_words = [_write_week(week) for week in show_loads(weeks, ctx, load_unit)]
    answer = mcp.list_answer(title, sessions, lines, ids=[each["wblockId"] for each in shown])
    data = {**answer.data, "exerciseId": exercise_id, "weeks": weeks_in_words}
    return Answer("\n".join([answer.text, *weeks_in_words]), data)


def _write_sets(sets: Sequence[CustomerSet], load_unit: str) -> str:
    """Return sets as text, numbered from 1: a session may have them from several items."""
    renumbered: list[CustomerSet] = [
        {**each, "index": index, "exerciseId": None, "round": None} for index, each in enumerate(sets, 1)
    ]
    return write_done(renumbered, load_unit) if renumbered else "-"


def _write_week(week: ProgressPoint) -> str:
    parts = []
    if (estimate := week["estimatedOneRepMax"]) is not None:
        parts.append(f"estimated 1RM {mcp.format_figure(estimate['value'])}")
    for best in week["bests"]:
        if best["type"] in _OTHER_BESTS:
            distance = "" if best["meters"] is None else f" {mcp.format_figure(best['meters'], 'm')}"
            value = mcp.format_figure(best["value"], best["unit"])
            parts.append(f"{best['type'].replace('_', ' ')}{distance} {value}")
    parts += [f"volume {mcp.format_figure(week['volumeLoad'])}", f"{week['sets']} sets"]
    return f"week of {week['date']}: {', '.join(parts)}"
