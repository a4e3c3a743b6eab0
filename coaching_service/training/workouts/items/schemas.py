"""Workout items in requests, by type."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from marshmallow import ValidationError, fields, validates_schema

from coaching_service.core.validation import TEXT_LENGTH, Choice, Identifier, Input, Integer, ListOf, Text, patch_of
from coaching_service.core.variants import ChangeByStoredType, Variant
from coaching_service.library.forms.models import questions_field
from coaching_service.training.workouts.sets.schemas import PlannedSets

_TIME = re.compile(r"([01]\d|2[0-3]):[0-5]\d", re.ASCII)


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
    """Exercises that are done one after another, for a number of rounds."""

    circuitName = Text(required=True)
    circuitExercises = ListOf(fields.Nested(NewCircuitExercise), minimum=1, maximum=50, required=True)
    rounds = Integer(minimum=1, maximum=1000, load_default=1)


class NewTaskFields(Input):
    """A task."""

    title = Text(required=True)
    description = _instructions()


class TaskItemDetails(Input):
    """A task that is not an exercise."""

    taskFields = fields.Nested(NewTaskFields, required=True)


class NewWorkoutForm(Input):
    """A form of the library, or one made for this item."""

    formId = Identifier(allow_none=True)
    name = Text()
    questions = questions_field()

    @validates_schema
    def has_form_or_questions(self, data: Mapping[str, Any], **_: Any) -> None:
        """Require name and questions unless there is a `formId`."""
        if data.get("formId") is not None:
            return
        for name in ("name", "questions"):
            if name not in data:
                raise ValidationError("is required (or a formId)", name)


class FormItemDetails(Input):
    """A form to fill in."""

    form = fields.Nested(NewWorkoutForm, required=True)


class NewMetricsFields(Input):
    """The metric set to record."""

    metricsSetId = Identifier(required=True)


class MetricsItemDetails(Input):
    """A metric set to record."""

    metricsFields = fields.Nested(NewMetricsFields, required=True)


class ScheduledTime(Text):
    """A time of day `HH:MM` in the client's time zone, or a date-time in ISO 8601."""

    def __init__(self, **options: Any) -> None:
        super().__init__(max_length=40, metadata={"example": "08:30"} | options.pop("metadata", {}), **options)

    def _deserialize(self, value: Any, attr: str | None, data: Any, **_: Any) -> str:
        text = super()._deserialize(value, attr, data)
        if not _TIME.fullmatch(text) and not _is_date_time(text):
            raise ValidationError("must be a time HH:MM, or a date-time in ISO 8601")
        return text


def _is_date_time(text: str) -> bool:
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False
    return ":" in text


class NewReminderFields(Input):
    """A reminder and its time."""

    scheduledTime = ScheduledTime(required=True)
    message = Text(max_length=2_000, required=True)


class ReminderItemDetails(Input):
    """A reminder."""

    reminderFields = fields.Nested(NewReminderFields, required=True)


_DETAILS: dict[str, type[Input]] = {
    "EXERCISE": ExerciseItemDetails,
    "CIRCUIT": CircuitItemDetails,
    "TASK": TaskItemDetails,
    "FORM": FormItemDetails,
    "METRICS": MetricsItemDetails,
    "REMINDER": ReminderItemDetails,
}


def _new_item(item_type: str, details: type[Input]) -> type[Input]:
    """Return the schema of a new item: its details and its type."""
    name = details.__name__.replace("Details", "")
    built: type[Input] = type(f"New{name}", (details,), {"type": Choice(item_type, required=True)})
    return built


NEW_ITEM = Variant({item_type: _new_item(item_type, details) for item_type, details in _DETAILS.items()})
ITEM_CHANGE = ChangeByStoredType(
    {
        item_type: patch_of(details, name=details.__name__.replace("Details", "Change"))
        for item_type, details in _DETAILS.items()
    }
)
