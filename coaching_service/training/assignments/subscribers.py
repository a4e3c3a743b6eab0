"""Reactions of assigned programs: the schedule of a client is shifted, and an undo restores workouts."""

from __future__ import annotations

from coaching_service.core.changes.models import NamedDocument
from coaching_service.core.changes.undo import DocumentsMoved, RestorationPlanned
from coaching_service.core.database.context import Context
from coaching_service.training.assignments import store
from coaching_service.training.assignments.models import Shift
from coaching_service.training.workouts.blocks.events import ScheduleShifted
from coaching_service.training.workouts.reports import blocks as queries


async def follow_shift(ctx: Context, event: ScheduleShifted) -> None:
    """Store with assignments that their workouts have been shifted."""
    for assignment in await store.find_all(ctx, event.customer_id):
        if assignment["_id"] in event.assignment_ids:
            shifts: list[Shift] = [*assignment.get("shifts", ()), {"first": event.first, "days": event.days}]
            await store.set_fields(ctx, assignment, {"shifts": shifts})


async def require_single_copies(ctx: Context, event: RestorationPlanned) -> None:
    """Raise Conflict if a deleted workout is to be restored whose place a sync has given to another."""
    workouts = [each for each in event.documents if each.kind == "workout"]
    removed = {each.before["_id"] for each in workouts if each.before is not None and each.after is None}
    restored = [each.after for each in workouts if each.before is None and each.after is not None]
    sources = {(each.get("assignmentId"), each.get("programBlockId")) for each in restored}
    copies = [each for each in restored if each.get("assignmentId") and each.get("programBlockId")]
    taken: list[NamedDocument] = [
        {"kind": "workout", "_id": found["_id"]}
        for program_id in {each["programId"] for each in copies}
        for found in await queries.find_assigned(
            ctx, program_id, sorted({each["assignmentId"] for each in copies if each["programId"] == program_id})
        )
        if (found["assignmentId"], found.get("programBlockId")) in sources and found["_id"] not in removed
    ]
    if taken:
        raise DocumentsMoved(taken)
