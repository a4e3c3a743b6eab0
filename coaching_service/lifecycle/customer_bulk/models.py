"""Requests and results of bulk operations."""

from __future__ import annotations

from typing import NotRequired, TypedDict

from coaching_service.core.ids import ObjectId
from coaching_service.people.customers.models import CustomerFilter
from coaching_service.training.schedule.models import OnConflict, SkipReason


class Selection(TypedDict):
    """Which clients: `ids`, or `filter` with optional `excludeIds`. `dryRun`: nothing is written.

    Operations on schedules take `assignedProgramId` in place of `filter`: the clients a program runs for.
    """

    ids: NotRequired[list[ObjectId]]
    filter: NotRequired[CustomerFilter]
    excludeIds: NotRequired[list[ObjectId]]
    assignedProgramId: NotRequired[ObjectId]
    dryRun: bool


class GroupsChange(Selection):
    """Groups to add or to remove."""

    groups: list[str]


class TrainerChange(Selection):
    """The coach to assign; null: none."""

    coachId: ObjectId | None


class ProgramAssignment(Selection):
    """The program to assign, and the date of its first day."""

    programId: ObjectId
    startDate: str
    weekdays: list[int] | None
    onConflict: OnConflict


class MetricsSetAssignment(Selection):
    """The metric set to assign."""

    metricsSetId: ObjectId


class BulkMessage(Selection):
    """The message to send to each client."""

    text: str


class Failure(TypedDict):
    """A client who was not changed, and why: `code` is NOT_FOUND, FORBIDDEN, CONFLICT or BAD_REQUEST."""

    customerId: ObjectId
    code: str
    message: str


class SkippedWorkout(TypedDict):
    """A workout that was left alone, and why."""

    wblockId: ObjectId
    code: SkipReason


class ClientChange(TypedDict):
    """What an operation on schedules changed of a client: how many workouts, and which it left alone.

    `moreSkipped` is the number of those that are not listed, if there are any.
    """

    customerId: ObjectId
    changed: int
    skipped: list[SkippedWorkout]
    moreSkipped: NotRequired[int]


class BulkResult(TypedDict):
    """The numbers of distinct clients requested and changed, and those who failed."""

    requested: int
    ok: int
    failed: list[Failure]
    results: NotRequired[list[ClientChange]]


class CustomerConflict(TypedDict):
    """A block that a client had on a day to which a program is assigned."""

    customerId: ObjectId
    date: str
    wblockId: ObjectId
    name: str


class BulkAssignmentResult(BulkResult):
    """The result of assigning a program; in a dry run with the blocks on its days, of at most 1,000 clients."""

    conflicts: NotRequired[list[CustomerConflict]]
