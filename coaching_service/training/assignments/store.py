"""Assignments of programs in the database."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from coaching_service.core.database.connection import Index
from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import Documents
from coaching_service.core.database.portable import TRAINING, Portable
from coaching_service.core.database.recording import Action, EventData, History
from coaching_service.core.events import EventValue
from coaching_service.core.ids import ObjectId
from coaching_service.training.assignments.models import AssignmentFields, StoredAssignment


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
BY_PROGRAM = assignments.index_name("programId", "endedDate", "customerId")
BY_CLIENT = assignments.index_name("customerId", "-startDate", "-_id")


async def find_all(ctx: Context, customer_id: ObjectId) -> list[StoredAssignment]:
    """Return a client's assignments, latest start first."""
    return await assignments.find(ctx, {"customerId": customer_id}, sort=("-startDate", "-_id"))


async def find_one(ctx: Context, customer_id: ObjectId, assignment_id: ObjectId) -> StoredAssignment | None:
    """Return a client's assignment, or None."""
    return await assignments.find_one(ctx, {"customerId": customer_id, "_id": assignment_id})


async def set_fields(ctx: Context, assignment: StoredAssignment, fields: AssignmentFields) -> None:
    """Set fields of an assignment. Raises Conflict if it has changed since it was read."""
    where = {"customerId": assignment["customerId"], "_id": assignment["_id"]}
    await assignments.update(ctx, where, {"$set": fields}, version=assignment["version"])
