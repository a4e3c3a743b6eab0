"""The schemas of requests for operations on a schedule, with the checks that concern several fields."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import Any

from marshmallow import validates_schema

from coaching_service.core.field_schemas import input_of, output_of
from coaching_service.core.query import DateRange
from coaching_service.core.validation import DryRun, Input, invalid
from coaching_service.training.schedule import models

_MAX_DAYS = 366


class ScheduleRange(DateRange):
    """`startDate` and `endDate`, both included, at most 366 days."""

    @validates_schema
    def is_at_most_a_year(self, data: Mapping[str, str], **_: Any) -> None:
        """Require at most 366 days."""
        require_at_most_a_year(data["startDate"], data["endDate"])


def require_at_most_a_year(first: str, last: str) -> None:
    """Raise ValidationError if there are more than 366 days from `first` to `last`, both included."""
    if (date.fromisoformat(last) - date.fromisoformat(first)).days >= _MAX_DAYS:
        raise invalid(f"must be within {_MAX_DAYS} days of startDate", "RANGE_TOO_LONG", "endDate")


class ProgramRange(Input):
    """The checks of `startDay` and `endDay`."""

    @validates_schema
    def is_at_most_a_year(self, data: Mapping[str, int], **_: Any) -> None:
        """Require the end not to be before the start, and at most 366 days."""
        if data["endDay"] < data["startDay"]:
            raise invalid("must not be before startDay", "BEFORE_START", "endDay")
        if data["endDay"] - data["startDay"] >= _MAX_DAYS:
            raise invalid(f"must be within {_MAX_DAYS} days of startDay", "RANGE_TOO_LONG", "endDay")


class _OpenRange(Input):
    @validates_schema
    def is_at_most_a_year(self, data: Mapping[str, Any], **_: Any) -> None:
        """Require the end not to be before the start, and at most 366 days."""
        if data["endDate"] is None:
            return
        if data["endDate"] < data["startDate"]:
            raise invalid("must not be before startDate", "BEFORE_START", "endDate")
        require_at_most_a_year(data["startDate"], data["endDate"])


WorkoutBlockBatch = input_of(models.WorkoutBlockBatch, DryRun)
WorkoutBlockUpserts = input_of(models.WorkoutBlockUpserts, DryRun)
ScheduleCopy = input_of(models.ScheduleCopy, ScheduleRange, DryRun)
ProgramDaysCopy = input_of(models.ProgramDaysCopy, ProgramRange, DryRun)
ScheduleAdjustment = input_of(models.ScheduleAdjustment, ScheduleRange, DryRun)
ExerciseReplacement = input_of(models.ExerciseReplacement, _OpenRange, DryRun)
ScheduleClearing = input_of(models.ScheduleClearing, ScheduleRange, DryRun)
ProgramFromCalendar = input_of(models.ProgramFromCalendar, ScheduleRange)
ScheduleChange = output_of(models.ScheduleResult, name="ScheduleChange")
ReplacedExercise = output_of(models.ReplacedExercise)
AdjustedLoads = output_of(models.AdjustedSchedule, name="AdjustedLoads")
