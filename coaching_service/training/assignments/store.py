"""Assignments of programs in the database."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from coaching_service.core.database.connection import Index
from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import Documents, Filter, PipelineStage
from coaching_service.core.database.portable import TRAINING, Portable
from coaching_service.core.database.recording import Action, EventData, History
from coaching_service.core.events import EventValue
from coaching_service.core.ids import ObjectId
from coaching_service.training.assignments.models import AssignmentContent, AssignmentsEnd, Shift, StoredAssignment


def _event(action: Action, known: Mapping[str, Any], paths: Collection[str]) -> EventData | None:
    """Return the event of a program's end; an undo of the end assigns it again, without new workouts."""
    if action == "changed" and "endedDate" not in paths:
        return None
    data: dict[str, EventValue] = {"programId": known["programId"], "assignmentId": known["_id"]}
    if action == "deleted" or known["endedDate"] is not None:
        return {"type": "program.ended", "data": data}
    return {"type": "program.assigned", "data": {**data, "startDate": known["startDate"], "blocks": 0}}


assignments = Documents[StoredAssignment](
    "programAssignments",
    (Index(("customerId", "-startDate", "-_id")), Index(("programId", "endedDate", "customerId"))),
    client_field="customerId",
    history=History("program_assignment", _event, ("programId", "startDate", "endedDate")),
    transfer=Portable(
        StoredAssignment,
        TRAINING,
        references={"customerId": "customers"},
    ),
)
_BY_PROGRAM = assignments.index_name("programId", "endedDate", "customerId")
_BY_CLIENT = assignments.index_name("customerId", "-startDate", "-_id")


async def create(ctx: Context, assignment_id: ObjectId, assignment: AssignmentContent) -> None:
    """Store a new assignment."""
    await assignments.insert(ctx, {"_id": assignment_id, **assignment})


async def find_all(ctx: Context, customer_id: ObjectId) -> list[StoredAssignment]:
    """Return a client's assignments, latest start first."""
    return await assignments.find(ctx, {"customerId": customer_id}, sort=("-startDate", "-_id"))


async def find_running(ctx: Context, program_id: ObjectId) -> list[StoredAssignment]:
    """Return the assignments of a program that no coach has ended, by client."""
    where = {"programId": program_id, "endedDate": None}
    return await assignments.find(ctx, where, sort=("customerId", "_id"), hint=_BY_PROGRAM)


async def find_of_program(
    ctx: Context, program_id: ObjectId, assignment_ids: Sequence[ObjectId]
) -> list[StoredAssignment]:
    """Return the assignments of a program among `assignment_ids`."""
    where = {"programId": program_id, "_id": {"$in": list(assignment_ids)}}
    return await assignments.find(ctx, where, hint=_BY_PROGRAM)


async def find_one(ctx: Context, customer_id: ObjectId, assignment_id: ObjectId) -> StoredAssignment | None:
    """Return a client's assignment, or None."""
    return await assignments.find_one(ctx, {"customerId": customer_id, "_id": assignment_id})


async def find_ends(ctx: Context, customer_ids: Sequence[ObjectId], *stages: PipelineStage) -> list[AssignmentsEnd]:
    """Return the latest `endDate` of the assignments of clients that have not been ended, with what `stages` add."""
    condition: Filter = {"customerId": {"$in": list(customer_ids)}, "endedDate": None}
    group = {"_id": "$customerId", "endDate": {"$max": "$endDate"}, "assignments": {"$push": "$_id"}}
    return await assignments.aggregate(ctx, condition, {"$group": group}, *stages, hint=_BY_CLIENT)


async def set_ended(ctx: Context, customer_id: ObjectId, assignment_id: ObjectId, day: str) -> None:
    """Set the date on which an assignment was ended."""
    where = {"customerId": customer_id, "_id": assignment_id}
    await assignments.update(ctx, where, {"$set": {"endedDate": day}})


async def set_group(ctx: Context, assignment: StoredAssignment, group: str) -> None:
    """Store through which group a client has a program."""
    where = {"customerId": assignment["customerId"], "_id": assignment["_id"]}
    await assignments.update(ctx, where, {"$set": {"groupName": group}}, version=assignment["version"])


async def add_shift(ctx: Context, customer_id: ObjectId, assignment_ids: Sequence[ObjectId], shift: Shift) -> None:
    """Store that blocks of assignments of a client have been shifted."""
    for assignment in await find_all(ctx, customer_id):
        if assignment["_id"] in assignment_ids:
            where = {"customerId": customer_id, "_id": assignment["_id"]}
            shifts = [*assignment.get("shifts", ()), shift]
            await assignments.update(ctx, where, {"$set": {"shifts": shifts}}, version=assignment["version"])


async def set_taken_over(
    ctx: Context, assignment: StoredAssignment, block_ids: Sequence[ObjectId], end_date: str
) -> None:
    """Store which blocks of the program an assignment has taken over, and the date of its last block."""
    where = {"customerId": assignment["customerId"], "_id": assignment["_id"]}
    fields = {"programBlockIds": list(block_ids), "endDate": end_date}
    await assignments.update(ctx, where, {"$set": fields}, version=assignment["version"])
