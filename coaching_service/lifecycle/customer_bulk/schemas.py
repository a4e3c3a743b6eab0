"""Requests and responses of the bulk operations. Unknown fields are rejected."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from marshmallow import RAISE, ValidationError, fields, validates_schema

from coaching_service.core.validation import (
    Boolean,
    Choice,
    Date,
    Identifier,
    Input,
    Integer,
    ListOf,
    Output,
    StringList,
    Text,
)
from coaching_service.people.customers.schemas import NO_TRAINER
from coaching_service.progress.conversation.models import MAX_TEXT_LENGTH
from coaching_service.training.schedule.schemas import (
    ExerciseReplacement,
    ScheduleAdjustment,
    ScheduleClearing,
    ScheduleCopy,
    on_conflict,
)
from coaching_service.training.workouts.blocks.schemas import WorkoutBlockShift

MAXIMUM = 20_000


class Strict(Input):
    """The base of a request in which unknown fields are rejected."""

    class Meta:
        unknown = RAISE


class TrainerOrNone(Identifier):
    """A coach's identifier, or `none`: clients without a trainer."""

    def __init__(self, **options: Any) -> None:
        super().__init__(metadata={"pattern": f"^([0-9a-fA-F]{{24}}|{NO_TRAINER})$"}, **options)

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> Any:
        return None if value == NO_TRAINER else super()._deserialize(value, attr, data, **kwargs)


class CustomerFilter(Strict):
    """Clients by their properties; an empty list or text matches all clients."""

    archived = Boolean(required=True)
    contains = Text(allow_blank=True)
    groups = StringList(maximum=1_000, allow_none=False)
    assignedTo = ListOf(TrainerOrNone(), maximum=1_000)


class CustomerSelection(Strict):
    """Which clients: `ids`, or `filter` with optional `excludeIds`. `dryRun` writes nothing."""

    ids = ListOf(Identifier(), maximum=MAXIMUM)
    filter = fields.Nested(CustomerFilter)
    excludeIds = ListOf(Identifier(), maximum=MAXIMUM)
    dryRun = Boolean(load_default=False)

    @validates_schema
    def one_or_the_other(self, data: Mapping[str, Any], **_: Any) -> None:
        """Either `ids` or `filter`; `excludeIds` only with `filter`."""
        if ("ids" in data) == ("filter" in data):
            raise ValidationError("needs either ids or filter", "selection")
        if "excludeIds" in data and "ids" in data:
            raise ValidationError("may accompany filter only", "excludeIds")


class BulkGroupsChange(CustomerSelection):
    """Groups to add or to remove."""

    groups = StringList(required=True, allow_none=False)

    @validates_schema
    def some_groups(self, data: Mapping[str, Any], **_: Any) -> None:
        """At least one group."""
        if not data.get("groups"):
            raise ValidationError("should not be empty", "groups")


class BulkTrainerAssignment(CustomerSelection):
    """The coach to assign; null: none."""

    coachId = Identifier(required=True, allow_none=True)


class BulkProgramAssignment(CustomerSelection):
    """The program to assign, and the date of its first day."""

    programId = Identifier(required=True)
    startDate = Date(required=True)
    weekdays = ListOf(
        Integer(minimum=1, maximum=7),
        minimum=1,
        maximum=7,
        allow_none=True,
        load_default=None,
        metadata={"description": "As in assigning a program to one client."},
    )
    onConflict = on_conflict()


class BulkMessage(CustomerSelection):
    """The message to send to each client."""

    text = Text(max_length=MAX_TEXT_LENGTH, required=True, metadata={"description": "Plain text."})


class BulkMetricsSetAssignment(CustomerSelection):
    """The metric set to assign."""

    metricsSetId = Identifier(required=True)


class ScheduleSelection(CustomerSelection):
    """The clients of an operation on schedules: also everyone a program runs for."""

    assignedProgramId = Identifier(
        metadata={
            "description": "In place of `ids` and `filter`: the active clients for whom this program is current or "
            "upcoming."
        }
    )

    @validates_schema
    def one_or_the_other(self, data: Mapping[str, Any], **_: Any) -> None:
        """One of `ids`, `filter` and `assignedProgramId`; `excludeIds` not with `ids`."""
        if sum(name in data for name in ("ids", "filter", "assignedProgramId")) != 1:
            raise ValidationError("needs either ids or filter, or assignedProgramId", "selection")
        if "excludeIds" in data and "ids" in data:
            raise ValidationError("may accompany filter or assignedProgramId only", "excludeIds")


class BulkScheduleAdjustment(ScheduleSelection, ScheduleAdjustment):
    """The clients, the days of their calendars, and how the items change."""


class BulkExerciseReplacement(ScheduleSelection, ExerciseReplacement):
    """The clients, the exercise to replace, the one that takes its place, and the days."""


class BulkScheduleClearing(ScheduleSelection, ScheduleClearing):
    """The clients, and the days of their calendars to clear."""


class BulkScheduleShift(ScheduleSelection, WorkoutBlockShift):
    """The clients, the first date of the blocks to shift, and the number of days."""

    class Meta(ScheduleSelection.Meta, WorkoutBlockShift.Meta):
        unknown = RAISE


class BulkScheduleCopy(ScheduleSelection, ScheduleCopy):
    """The clients, the days of their calendars to copy, and the date on which the first copy begins."""


class BulkFailure(Output):
    """A client who was not changed, and why."""

    customerId = Identifier()
    code = fields.String(metadata={"description": "NOT_FOUND, FORBIDDEN, CONFLICT or BAD_REQUEST."})
    message = fields.String()


class BulkResult(Output):
    """The result: inspect `failed` even though the status is 200."""

    requested = fields.Integer(metadata={"description": "Distinct clients requested."})
    ok = fields.Integer(metadata={"description": "Clients changed, or who would be changed in a dry run."})
    failed = fields.List(fields.Nested(BulkFailure))


class SkippedWorkout(Output):
    """A workout that was left alone, and why."""

    wblockId = Identifier()
    code = Choice(
        "DONE",
        "PARTLY_DONE",
        "DAY_TAKEN",
        metadata={
            "description": "`DONE`: work of it is done. `PARTLY_DONE`: work of some of its items is done, the others "
            "are changed. `DAY_TAKEN`: the day to which it would be copied has workouts."
        },
    )


class ClientChange(Output):
    """What changed of a client's schedule, or in a dry run would."""

    customerId = Identifier()
    changed = fields.Integer(
        metadata={"description": "The number of workouts that were changed, moved, added or removed."}
    )
    skipped = fields.List(fields.Nested(SkippedWorkout), metadata={"description": "The workouts that were left alone."})
    moreSkipped = fields.Integer(
        metadata={
            "description": "The number of skipped workouts that are not listed, if any: all clients together list at "
            "most 100,000.",
            "optional": True,
        }
    )


class BulkScheduleResult(BulkResult):
    """The result of an operation on the schedules of many clients."""

    results = fields.List(
        fields.Nested(ClientChange), metadata={"description": "What changed of each client who is counted in `ok`."}
    )


class CustomerConflict(Output):
    """A block that a client had on a day to which the program is assigned."""

    customerId = Identifier()
    date = Date()
    wblockId = Identifier()
    name = fields.String()


class BulkAssignmentResult(BulkResult):
    """The result of assigning a program to many clients."""

    conflicts = fields.List(
        fields.Nested(CustomerConflict),
        metadata={
            "description": "In a dry run, if any: the blocks on the days of the program, of at most 1,000 clients.",
            "optional": True,
        },
    )
