"""Assignments of programs as they are stored and returned."""

from __future__ import annotations

from typing import Literal, TypedDict

from coaching_service.core.database.models import Stored
from coaching_service.core.ids import ObjectId
from coaching_service.training.schedule.models import ScheduleConflict

Status = Literal["current", "ended", "upcoming"]


class AssignmentContent(TypedDict):
    """A program assigned to a client; the blocks are stored by training/workouts and name it (`assignmentId`).

    `programName` is the name at that time. `startDate` is the date of day 1, `endDate` of the last block when it
    was assigned. `endedDate` is the client's local date on which a coach ended it; None until then.
    """

    customerId: ObjectId
    programId: ObjectId
    programName: str
    startDate: str
    endDate: str
    endedDate: str | None


class StoredAssignment(AssignmentContent, Stored):
    """A stored assignment."""


class _Dated(TypedDict):
    date: str


class AssignmentsEnd(TypedDict):
    """The latest `endDate` of the `assignments` of a client (`_id`), and the last block that is left, if any."""

    _id: ObjectId
    endDate: str
    assignments: list[ObjectId]
    lastBlock: list[_Dated]


class AssignmentResult(TypedDict):
    """What an assignment put on the calendar, or with `dryRun` would put: the date of each block, in order."""

    blocks: int
    assignmentId: ObjectId | None
    dates: list[str]
    conflicts: list[ScheduleConflict]
    dryRun: bool
    changeId: ObjectId | None


class ClientProgram(TypedDict):
    """A program of a client, as it is read."""

    _id: ObjectId
    programId: ObjectId
    name: str
    startDate: str
    endDate: str
    blocks: int
    completedBlocks: int
    status: Status
