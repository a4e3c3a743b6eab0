"""The schemas of requests and responses of the bulk operations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from marshmallow import Schema, ValidationError, validates_schema

from coaching_service.core.field_schemas import input_of, output_of
from coaching_service.lifecycle.customer_bulk import models
from coaching_service.training.schedule.schemas import (
    ExerciseReplacement,
    ScheduleAdjustment,
    ScheduleClearing,
    ScheduleCopy,
)
from coaching_service.training.workouts.blocks.schemas import WorkoutBlockShift


class _Selected(models.Strict):
    @validates_schema
    def one_or_the_other(self, data: models.CustomerSelection, **_: Any) -> None:
        """Either `ids` or `filter`; `excludeIds` only with `filter`."""
        if ("ids" in data) == ("filter" in data):
            raise ValidationError("needs either ids or filter", "selection")
        if "excludeIds" in data and "ids" in data:
            raise ValidationError("may accompany filter only", "excludeIds")


class _SomeGroups(_Selected):
    @validates_schema
    def some_groups(self, data: Mapping[str, Any], **_: Any) -> None:
        """At least one group."""
        if not data.get("groups"):
            raise ValidationError("should not be empty", "groups")


class _SelectedSchedules(models.Strict):
    @validates_schema
    def one_or_the_other(self, data: models.Selection, **_: Any) -> None:
        """One of `ids`, `filter` and `assignedProgramId`; `excludeIds` not with `ids`."""
        if sum(name in data for name in ("ids", "filter", "assignedProgramId")) != 1:
            raise ValidationError("needs either ids or filter, or assignedProgramId", "selection")
        if "excludeIds" in data and "ids" in data:
            raise ValidationError("may accompany filter or assignedProgramId only", "excludeIds")


def _of_schedules(name: str, change: type[Schema], description: str) -> Schema:
    return input_of(models.Selection, _SelectedSchedules, change, name=name, description=description)()


SELECTION = input_of(models.CustomerSelection, _Selected)()
GROUPS_CHANGE = input_of(models.BulkGroupsChange, _SomeGroups)()
TRAINER_ASSIGNMENT = input_of(models.BulkTrainerAssignment, _Selected)()
PROGRAM_ASSIGNMENT = input_of(models.BulkProgramAssignment, _Selected)()
METRICS_SET_ASSIGNMENT = input_of(models.BulkMetricsSetAssignment, _Selected)()
MESSAGE = input_of(models.BulkMessage, _Selected)()
SCHEDULE_ADJUSTMENT = _of_schedules(
    "BulkScheduleAdjustment",
    ScheduleAdjustment,
    "The clients, the days of their calendars, and how the items change.",
)
EXERCISE_REPLACEMENT = _of_schedules(
    "BulkExerciseReplacement",
    ExerciseReplacement,
    "The clients, the exercise to replace, the one that takes its place, and the days.",
)
SCHEDULE_CLEARING = _of_schedules(
    "BulkScheduleClearing", ScheduleClearing, "The clients, and the days of their calendars to clear."
)
SCHEDULE_SHIFT = _of_schedules(
    "BulkScheduleShift",
    WorkoutBlockShift,
    "The clients, the first date of the blocks to shift, and the number of days.",
)
SCHEDULE_COPY = _of_schedules(
    "BulkScheduleCopy",
    ScheduleCopy,
    "The clients, the days of their calendars to copy, and the date on which the first copy begins.",
)
SCHEDULE_RESULT = output_of(
    models.BulkResult,
    name="BulkScheduleResult",
    description="The result of an operation on the schedules of many clients.",
    with_private=("results",),
)
