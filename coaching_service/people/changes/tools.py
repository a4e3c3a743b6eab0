"""Undo for assistants."""

from __future__ import annotations

from coaching_service.core.auth.access import coach
from coaching_service.core.changes import history
from coaching_service.core.database.context import Context
from coaching_service.core.database.recording import DocumentChange
from coaching_service.core.errors import Conflict
from coaching_service.core.ids import ObjectId
from coaching_service.core.mcp.arguments import Arguments
from coaching_service.core.mcp.confirmation import Reason, count_span, find_reasons
from coaching_service.core.mcp.results import Written
from coaching_service.core.mcp.tools import Tools
from coaching_service.core.validation import Identifier
from coaching_service.people.changes import service
from coaching_service.people.changes.undo import undo_change

tools = Tools()


class Undo(Arguments):
    """The change to undo."""

    changeId = Identifier(
        required=True, metadata={"description": "From the result of the tool that made the change, or get_activity."}
    )


async def _wait_for_number(ctx: Context, change_id: ObjectId) -> None:
    """Wait until the change has its number: the transaction could not see it."""
    if not await history.list_batch(ctx, change_id):
        await service.find_visible(ctx, change_id)


@tools.tool(
    "Undo a change",
    access=coach(),
    takes=Undo(),
    writes=True,
    destructive=True,
    confirms=(Reason.MANY_DAYS, Reason.MANY_CLIENTS),
    prepare=_wait_for_number,
)
async def undo(ctx: Context, change_id: ObjectId) -> Written:
    """Undo one change that you have made, within 30 days: everything is as it was before, unless something of it has
    been changed again since. You cannot undo what others have done. An undo can be undone."""
    changes = await history.list_batch(ctx, change_id) or [await service.find_visible(ctx, change_id)]
    result = await undo_change(ctx, change_id)
    if result["failed"]:
        raise Conflict("Some of it has been changed again since", code="VERSION_CONFLICT")
    return Written(
        f"Undid: {service.describe_changes(changes)}.",
        reasons=find_reasons(days=_count_days(list(ctx.changes.documents.values()))),
    )


def _count_days(documents: list[DocumentChange]) -> int:
    """The days from the first to the last whose workouts are changed: before or after, whichever are more."""
    workouts = [document for document in documents if document.history.kind == "workout"]
    days: tuple[set[object], set[object]] = (set(), set())
    for workout in workouts:
        dates = workout.values.get("date", (workout.known["date"],) * 2)
        if workout.action != "created":
            days[0].add(dates[0])
        if workout.action != "deleted":
            days[1].add(dates[1])
    dated = [[str(day) for day in each if isinstance(day, str)] for each in days]
    return max(*map(len, days), *map(count_span, dated))
