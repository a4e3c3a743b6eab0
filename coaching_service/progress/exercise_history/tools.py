"""Exercise history for assistants."""

from __future__ import annotations

from coaching_service.core.auth.access import coach
from coaching_service.core.auth.permissions import CUSTOMERS
from coaching_service.core.database.context import Context
from coaching_service.core.database.transactions import gather_reads
from coaching_service.core.ids import ObjectId
from coaching_service.core.mcp.arguments import CustomerArgument, ToolPage, numbered
from coaching_service.core.mcp.tools import Tools
from coaching_service.core.validation import Boolean, Identifier
from coaching_service.library.exercises import service as exercises
from coaching_service.people.customers import service as customers
from coaching_service.progress.exercise_history import service
from coaching_service.progress.exercise_history.models import ExerciseSession
from coaching_service.training.workouts.set_models import CustomerSet

tools = Tools()


class ExerciseHistory(ToolPage, CustomerArgument):
    """The client, the exercise, and the page of its history."""

    exerciseId = Identifier(required=True, metadata={"description": "The exercise's _id, from list_exercises."})
    includeIncomplete = Boolean(
        load_default=False, metadata={"description": "Also sessions that were scheduled and not done."}
    )


@tools.tool("Read an exercise's history", access=coach(CUSTOMERS.VIEW), takes=ExerciseHistory())
async def get_exercise_history(
    ctx: Context, customer_id: ObjectId, exercise_id: ObjectId, page: int, page_size: int, *, include_incomplete: bool
) -> dict[str, object]:
    """Read a client's sessions with one exercise, the newest first: sets, volume load, best set and estimated
    one-repetition maximum with its formula; loads are in loadUnit. A session has a completed set that is not warm-up.
    Returns docs, totalDocs, hasNextPage and nextPage."""
    customer, names, sessions = await gather_reads(
        ctx,
        customers.get_visible_reference(ctx, customer_id),
        exercises.load_names(ctx, [exercise_id]),
        service.list_sessions(
            ctx, customer_id, exercise_id, page=page, size=page_size, include_incomplete=include_incomplete
        ),
    )
    return {
        "customer": customer,
        "exercise": {"_id": exercise_id, "name": names[exercise_id]["name"]},
        **numbered(sessions),
        "docs": [_describe_session(session) for session in sessions["docs"]],
    }


def _describe_session(session: ExerciseSession) -> dict[str, object]:
    return {
        "date": session["date"],
        "workoutId": session["wblockId"],
        "isCompleted": session["isCompleted"],
        "sets": [_describe_set(logged) for logged in session["sets"]],
        "volumeLoad": session["volumeLoad"],
        "loadUnit": session["loadUnit"],
        "bestSet": _describe_set(session["bestSet"]) if session["bestSet"] else None,
        "estimatedOneRepMax": session["estimatedOneRepMax"],
    }


def _describe_set(logged: CustomerSet) -> dict[str, object]:
    return {name: value for name, value in logged.items() if value is not None}
