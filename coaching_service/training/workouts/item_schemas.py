"""Workout items as a coach sends them, type by type."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from marshmallow import ValidationError, fields, validates_schema

from coaching_service.core.validation import TEXT_LENGTH, Choice, Identifier, Input, Integer, ListOf, Text, patch_of
from coaching_service.core.variants import ChangeByStoredType, Variant
from coaching_service.library.forms.schemas import questions_field
from coaching_service.training.workouts.set_schemas import PlannedSets

_CLOCK = re.compile(r"([01]\d|2[0-3]):[0-5]\d", re.ASCII)


def _instructions() -> Text:
    return Text(max_length=TEXT_LENGTH, allow_blank=True, allow_none=True, load_default=None)


class ExerciseItemDetails(Input):
    """An exercise with its sets."""

    exerciseId = Identifier(required=True)
    exerciseSets = PlannedSets(required=True)
    exerciseInstructions = _instructions()
    supersetId = Text(
        allow_none=True, load_default=None, metadata={"description": "Items of a block that share it alternate."}
    )


class NewCircuitExercise(Input):
    """An exercise of a circuit."""

    exerciseId = Identifier(required=True)
    sets = PlannedSets(required=True)
    instructions = _instructions()


class CircuitItemDetails(Input):
    """Exercises done one after another, round after round."""

    circuitName = Text(required=True)
    circuitExercises = ListOf(fields.Nested(NewCircuitExercise), minimum=1, maximum=50, required=True)
    rounds = Integer(minimum=1, maximum=1000, load_default=1)


class NewTaskFields(Input):
    """What is to be done."""

    title = Text(required=True)
    description = _instructions()


class TaskItemDetails(Input):
    """Something to do that is no exercise."""

    taskFields = fields.Nested(NewTaskFields, required=True)


class NewWorkoutForm(Input):
    """A form of the library, or one made for this item."""

    formId = Identifier(allow_none=True)
    name = Text()
    questions = questions_field()

    @validates_schema
    def one_or_the_other(self, data: Mapping[str, Any], **_: Any) -> None:
        """`formId`, or else name and questions."""
        if data.get("formId") is not None:
            return
        for needed in ("name", "questions"):
            if needed not in data:
                raise ValidationError("is required (or a formId)", needed)


class FormItemDetails(Input):
    """A form to fill in."""

    form = fields.Nested(NewWorkoutForm, required=True)


class NewMetricsFields(Input):
    """What is to be measured."""

    metricsSetId = Identifier(required=True)


class MetricsItemDetails(Input):
    """A metric set to record."""

    metricsFields = fields.Nested(NewMetricsFields, required=True)


class ScheduledTime(Text):
    """A time of day `HH:MM` where the client is, or a moment in ISO 8601."""

    def __init__(self, **options: Any) -> None:
        super().__init__(max_length=40, metadata={"example": "08:30"} | options.pop("metadata", {}), **options)

    def _deserialize(self, value: Any, attr: str | None, data: Any, **_: Any) -> str:
        text = super()._deserialize(value, attr, data)
        if not _CLOCK.fullmatch(text):
            try:
                datetime.fromisoformat(text)
            except ValueError:
                raise ValidationError("must be a time HH:MM, or a moment in ISO 8601") from None
        return text


class NewReminderFields(Input):
    """What the client is reminded of, and when."""

    scheduledTime = ScheduledTime(required=True)
    message = Text(max_length=2_000, required=True)


class ReminderItemDetails(Input):
    """Something to be reminded of."""

    reminderFields = fields.Nested(NewReminderFields, required=True)


_DETAILS: dict[str, type[Input]] = {
    "EXERCISE": ExerciseItemDetails,
    "CIRCUIT": CircuitItemDetails,
    "TASK": TaskItemDetails,
    "FORM": FormItemDetails,
    "METRICS": MetricsItemDetails,
    "REMINDER": ReminderItemDetails,
}


def _new(kind: str, details: type[Input]) -> type[Input]:
    """The schema of a new item: its details and its type."""
    name = details.__name__.replace("Details", "")
    built: type[Input] = type(f"New{name}", (details,), {"type": Choice(kind, required=True)})
    return built


NEW_ITEM = Variant({kind: _new(kind, details) for kind, details in _DETAILS.items()})
ITEM_CHANGE = ChangeByStoredType(
    {kind: patch_of(details, name=details.__name__.replace("Details", "Change")) for kind, details in _DETAILS.items()}
)
