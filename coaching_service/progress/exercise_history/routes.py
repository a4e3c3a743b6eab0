"""Exercise history over REST."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from marshmallow import ValidationError, validates_schema

from coaching_service.core.auth import CUSTOMERS, coach, customer
from coaching_service.core.database.context import Context
from coaching_service.core.database.transactions import gather_reads
from coaching_service.core.field_schemas import query_of
from coaching_service.core.http.routes import Routes
from coaching_service.core.ids import ObjectId
from coaching_service.core.list_selection import Page, PageFields, PageQuery, part_of
from coaching_service.core.mcp import arguments
from coaching_service.core.mcp.results import Answer, typed
from coaching_service.core.mcp.tools import Tools
from coaching_service.core.query import SearchedRange
from coaching_service.core.validation import Boolean, Identifier, Text
from coaching_service.library.exercises import service as exercises
from coaching_service.library.exercises.models import OWN_EXERCISE, OwnExercise
from coaching_service.people.activity.models import FARTHEST_DISTANCE, FASTEST, LEAST_ASSISTANCE, LONGEST_TIME
from coaching_service.people.customers import service as customers
from coaching_service.progress.exercise_history import service
from coaching_service.training.set_text.done import write_done
from coaching_service.training.workout_text.finding import resolve_exercises
from coaching_service.training.workouts.blocks.load_conversion import show_loads
from coaching_service.training.workouts.sets import CustomerSet

routes = Routes("/coach/customers/{customerId}", tag="Exercise history")
own_routes = Routes("/customer/exercise/{exerciseId}", tag="The client's own")


@routes.get("/exercises", access=coach(CUSTOMERS.VIEW), query=PageQuery())
async def list_done_exercises(ctx: Context, customer_id: ObjectId, query: PageFields) -> Page[service.DoneExercise]:
    """List the exercises that a client has done, the one done latest first.

    In a session of an exercise at least one set of it was completed that is not warm-up. `ids` are exercises. The order
    changes with each session, so only the first page has a `nextCursor`: the others follow it by identifier, each once.
    """
    return await service.list_done_exercises(ctx, customer_id, **part_of(query))


@routes.get(
    "/exercise/{exerciseId}/progress",
    access=coach(CUSTOMERS.VIEW),
    query=query_of(service.ProgressQuery, SearchedRange)(),
)
async def get_exercise_progress(
    ctx: Context, customer_id: ObjectId, exercise_id: ObjectId, query: service.ProgressQuery
) -> list[service.ProgressPoint]:
    """Read how a client's results in an exercise develop, by date.

    One entry for each session, or for each week with a session; warm-up sets do not count. The estimated 1RM is of
    the best set: Epley up to 12 reps, to which repetitions in reserve (RIR, or 10 - RPE) are added first, the load
    itself for 1.
    """
    return await service.read_progress(
        ctx, customer_id, exercise_id, query["startDate"], query["endDate"], query["groupBy"]
    )


@routes.get(
    "/exercise/{exerciseId}/history", access=coach(CUSTOMERS.VIEW), query=query_of(service.HistoryQuery, PageQuery)()
)
async def list_exercise_history(
    ctx: Context, customer_id: ObjectId, exercise_id: ObjectId, query: service.HistoryQuery
) -> Page[service.ExerciseSession]:
    """Read a client's history of an exercise, newest first.

    One entry for each session, on the date of its workout block; `ids` are workout blocks. A session has at least one
    completed set of the exercise that is not warm-up. Estimated 1RM: Epley up to 12 reps, to which repetitions in
    reserve (RIR, or 10 - RPE) are added first, the load itself for 1. Where the load is added to the body's
    (`loadType` `added`), it is of the whole weight, by the latest body weight of the 30 days up to the session.
    """
    return await service.list_sessions(
        ctx,
        customer_id,
        exercise_id,
        include_incomplete=query["includeIncomplete"],
        **part_of(query),
    )


@own_routes.get("", access=customer(), returns=OWN_EXERCISE)
async def get_own_exercise(ctx: Context, exercise_id: ObjectId) -> OwnExercise:
    """Read how to do an exercise: its instructions, video and pictures."""
    return await exercises.get_for_client(ctx, exercise_id)


@own_routes.get("/progress", access=customer(), query=query_of(service.ProgressQuery, SearchedRange)())
async def get_own_exercise_progress(
    ctx: Context, exercise_id: ObjectId, query: service.ProgressQuery
) -> list[service.ProgressPoint]:
    """Read how my results in an exercise develop, by date.

    One entry for each session, or for each week with a session; warm-up sets do not count. The estimated 1RM is of
    the best set: Epley up to 12 reps, to which repetitions in reserve (RIR, or 10 - RPE) are added first, the load
    itself for 1. Days that are hidden from the client are left out.
    """
    return await service.read_progress(
        ctx, ctx.caller.id, exercise_id, query["startDate"], query["endDate"], query["groupBy"]
    )


@own_routes.get("/history", access=customer(), query=query_of(service.HistoryQuery, PageQuery)())
async def list_own_exercise_history(
    ctx: Context, exercise_id: ObjectId, query: service.HistoryQuery
) -> Page[service.ExerciseSession]:
    """Read my history of an exercise, newest first.

    One entry for each session, on the date of its workout block; days that are hidden from the client are left out.
    """
    return await service.list_sessions(
        ctx,
        ctx.caller.id,
        exercise_id,
        include_incomplete=query["includeIncomplete"],
        **part_of(query),
    )


# --- MCP tool for the history of an exercise --------------------------------------------------------------------------


tools = Tools()


class ExerciseSessions(arguments.PageOfLines):
    """The sessions, by the workouts' `_id`, and the progress by week."""

    exerciseId: ObjectId
    weeks: list[str]


_WEEKS = 12
# What a week says besides the estimate and the volume.
_OTHER_BESTS = (LONGEST_TIME, FARTHEST_DISTANCE, FASTEST, LEAST_ASSISTANCE)


class ExerciseHistory(arguments.ToolPage, arguments.CustomerArgument):
    """The client, the exercise, and the page of its history."""

    exercise = Text(
        load_default=None,
        allow_none=True,
        metadata={"description": "Its name or _id.", **arguments.LISTED_AS_REQUIRED},
    )
    includeIncomplete = Boolean(load_default=False, metadata={"description": "Also sessions not done."})
    exerciseId = Identifier(load_default=None, allow_none=True, metadata=arguments.UNLISTED)

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
        service.list_sessions(
            ctx, customer_id, exercise_id, page=page, size=page_size, include_incomplete=include_incomplete
        ),
        service.read_progress(ctx, customer_id, exercise_id, str(first), str(today), service.WEEK),
    )
    load_unit = ctx.caller.load_unit
    name = names[exercise_id]["name"]
    docs = [_describe_session(session, load_unit) for session in show_loads(sessions["docs"], ctx, load_unit)]
    title = f"{typed(name)} of {typed(customer['name'])}, loads in {load_unit}, sessions"
    weeks_in_words = _write_weeks([_describe_week(week) for week in show_loads(weeks, ctx, load_unit)])
    answer = arguments.list_answer(
        title,
        sessions,
        [_write_session(doc) for doc in docs],
        ids=[doc["workoutId"] for doc in docs],
    )
    data = {**answer.data, "exerciseId": exercise_id, "weeks": weeks_in_words}
    return Answer("\n".join([answer.text, *weeks_in_words]), data)


def _describe_session(session: service.ExerciseSession, load_unit: str) -> service.SessionText:
    described: service.SessionText = {
        "date": session["date"],
        "workoutId": session["wblockId"],
        "isCompleted": session["isCompleted"],
        "sets": _write_sets(session["sets"], load_unit),
        "volumeLoad": session["volumeLoad"],
    }
    if session["bestSet"] is not None:
        described["bestSet"] = _write_sets([session["bestSet"]], load_unit)
    if session["estimatedOneRepMax"] is not None:
        described["estimatedOneRepMax"] = session["estimatedOneRepMax"]["value"]
    return described


def _write_sets(sets: Sequence[CustomerSet], load_unit: str) -> str:
    """Return sets as text, numbered from 1: a session may have them from several items."""
    renumbered: list[CustomerSet] = [
        {**each, "index": index, "exerciseId": None, "round": None} for index, each in enumerate(sets, 1)
    ]
    return write_done(renumbered, load_unit) if renumbered else "-"


def _describe_week(week: service.ProgressPoint) -> service.WeekSummary:
    described: service.WeekSummary = {"date": week["date"], "volumeLoad": week["volumeLoad"], "sets": week["sets"]}
    if week["estimatedOneRepMax"] is not None:
        described["estimatedOneRepMax"] = week["estimatedOneRepMax"]["value"]
    if bests := [_write_best(best) for best in week["bests"] if best["type"] in _OTHER_BESTS]:
        described["bests"] = ", ".join(bests)
    return described


def _write_best(best: service.ProgressBest) -> str:
    distance = "" if best["meters"] is None else f" {arguments.format_figure(best['meters'], 'm')}"
    return f"{best['type'].replace('_', ' ')}{distance} {arguments.format_figure(best['value'], best['unit'])}"


def _write_session(session: service.SessionText) -> str:
    words = [f"{session['date']} {session['sets']}"]
    if not session["isCompleted"]:
        words[0] += " (not completed)"
    results = [f"best {session['bestSet']}"] if "bestSet" in session else []
    if "estimatedOneRepMax" in session:
        results.append(f"estimated 1RM {arguments.format_figure(session['estimatedOneRepMax'])}")
    results.append(f"volume {arguments.format_figure(session['volumeLoad'])}")
    return f"{'; '.join([*words, ', '.join(results)])} [{session['workoutId']}]"


def _write_weeks(weeks: Sequence[service.WeekSummary]) -> list[str]:
    lines = []
    for week in weeks:
        estimate = week.get("estimatedOneRepMax")
        one_rep_max = "" if estimate is None else f"estimated 1RM {arguments.format_figure(estimate)}, "
        bests = f"{week['bests']}, " if "bests" in week else ""
        volume = arguments.format_figure(week["volumeLoad"])
        lines.append(f"week of {week['date']}: {one_rep_max}{bests}volume {volume}, {week['sets']} sets")
    return lines
