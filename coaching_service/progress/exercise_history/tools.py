"""Exercise history for assistants."""

from __future__ import annotations

from coaching_service.core.auth.access import coach
from coaching_service.core.auth.permissions import CUSTOMERS
from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import Document
from coaching_service.core.database.transactions import gather_reads
from coaching_service.core.ids import ObjectId
from coaching_service.core.mcp.arguments import CustomerArgument, ToolPage
from coaching_service.core.mcp.tools import Tools
from coaching_service.core.validation import Boolean, Identifier
from coaching_service.library.exercises import service as exercises
from coaching_service.people.customers import service as customers
from coaching_service.progress.exercise_history import service

tools = Tools()


class ExerciseHistory(ToolPage, CustomerArgument):
    """Whose history of which exercise, and which page of it."""

    exerciseId = Identifier(required=True, metadata={"description": "The exercise's _id, from list_exercises."})
    includeIncomplete = Boolean(
        load_default=False, metadata={"description": "Also sessions that were scheduled and not done."}
    )


@tools.tool("Read an exercise's history", access=coach(CUSTOMERS.VIEW), takes=ExerciseHistory())
async def get_exercise_history(
    ctx: Context, customer_id: ObjectId, exercise_id: ObjectId, page: int, page_size: int, *, include_incomplete: bool
) -> Document:
    """Read what a client did of one exercise, session by session, the newest first: sets, volume load, best set and
    estimated one-repetition maximum with its formula; loads are in loadUnit. Gives docs, totalDocs, hasNextPage and
    nextPage."""
    client, named, found = await gather_reads(
        ctx,
        customers.get_visible_reference(ctx, customer_id),
        exercises.load_names(ctx, [exercise_id]),
        service.page(ctx, customer_id, exercise_id, page=page, size=page_size, planned_too=include_incomplete),
    )
    return {
        "customer": client,
        "exercise": {"_id": exercise_id, "name": named[exercise_id]["name"]},
        **found,
        "docs": [_session(session) for session in found["docs"]],
    }


def _session(session: Document) -> Document:
    told = {key: of for key, of in session.items() if key not in ("wblockId", "sets", "bestSet")}
    best = session["bestSet"]
    return {
        **told,
        "workoutId": session["wblockId"],
        "sets": [_told(done) for done in session["sets"]],
        "bestSet": None if best is None else _told(best),
    }


def _told(done: Document) -> Document:
    return {key: of for key, of in done.items() if of is not None}
