"""Workout items in responses, by type; in requests see schemas.py."""

from __future__ import annotations

from marshmallow import Schema, fields

from coaching_service.core.field_schemas import output_of
from coaching_service.core.schemas_by_type import Variant
from coaching_service.core.validation import Choice, Date, DateTime, Identifier, Output
from coaching_service.library.exercises.models import ExerciseName
from coaching_service.training.workouts.items import models
from coaching_service.training.workouts.sets import models as sets
from coaching_service.training.workouts.sets.schemas import planned_set_response

ExerciseSummary = output_of(
    ExerciseName, name="ExerciseSummary", description="The name and instructions of an exercise."
)
CustomerSet = output_of(
    sets.CustomerSet, description="A set as the client did it.", first=("index", "exerciseId", "round")
)
TaskFields = output_of(models.TaskFields)
_SKIPPED = output_of(models.Skip, name="SkippedItem")
_FORM = output_of(
    models.ItemForm,
    name="WorkoutForm",
    description="The form as it was scheduled; `formId` is null if it was made for this item.",
)


class SwappedExercise(Output):
    """The exercise that a client did in place of the planned one."""

    exerciseId = Identifier()
    exercise = fields.Nested(ExerciseSummary)
    reason = fields.String(allow_none=True, metadata={"description": "The reason; null if none was given."})


class _Item(Output):
    _id = Identifier()
    order = fields.Integer(metadata={"description": "Position in the block, from 0."})
    isCompleted = fields.Boolean()
    completedAt = DateTime(allow_none=True)
    comment = fields.String(allow_none=True)
    pain = fields.String(allow_none=True)
    skipped = fields.Nested(
        _SKIPPED,
        allow_none=True,
        metadata={"description": "Set if the client skipped the item; it is not completed then."},
    )
    swappedFor = fields.Nested(
        SwappedExercise,
        allow_none=True,
        metadata={"description": "Set if the client did another exercise; the logged sets have its `exerciseId`."},
    )
    createdAt = DateTime()
    updatedAt = DateTime()
    version = fields.Integer(metadata={"description": "The block's version."})


class LastTime(Output):
    """The latest session of an exercise before the date of the block."""

    date = Date()
    wblockId = Identifier()
    sets = fields.List(
        fields.Nested(CustomerSet), metadata={"description": "The logged sets of the exercise, as in its history."}
    )


class ExerciseItem(_Item):
    """An exercise with its sets."""

    type = Choice("EXERCISE")
    exerciseId = Identifier()
    exercise = fields.Nested(ExerciseSummary)
    exerciseSets = fields.List(planned_set_response())
    exerciseInstructions = fields.String(allow_none=True)
    customerSets = fields.List(fields.Nested(CustomerSet))
    supersetId = fields.String(allow_none=True)
    lastTime = fields.Nested(
        LastTime,
        allow_none=True,
        metadata={
            "description": "The latest session of the exercise before the date of the block; null without one. Only "
            "with `include=lastTime`.",
            "optional": True,
        },
    )


class CircuitExercise(Output):
    """An exercise of a circuit."""

    exerciseId = Identifier()
    exercise = fields.Nested(ExerciseSummary)
    sets = fields.List(planned_set_response(), metadata={"description": "The sets of one round."})
    instructions = fields.String(allow_none=True)
    plannedSetsTotal = fields.Integer(metadata={"description": "The number of sets in all rounds."})


class CircuitItem(_Item):
    """Exercises that are done one after another, for a number of rounds."""

    type = Choice("CIRCUIT")
    circuitName = fields.String()
    circuitExercises = fields.List(fields.Nested(CircuitExercise))
    rounds = fields.Integer()
    customerSets = fields.List(fields.Nested(CustomerSet))


class TaskItem(_Item):
    """A task that is not an exercise."""

    type = Choice("TASK")
    taskFields = fields.Nested(TaskFields)


class FormItem(_Item):
    """A form to fill in."""

    type = Choice("FORM")
    form = fields.Nested(_FORM)
    answers = fields.List(
        fields.Nested(output_of(models.FormAnswer)),
        allow_none=True,
        metadata={"description": "The answers, by question; null without the permission `forms.view`."},
    )


class MetricsItem(_Item):
    """A metric set to record."""

    type = Choice("METRICS")
    metricsFields = fields.Nested(output_of(models.MetricsFields))
    values = fields.List(
        fields.Nested(output_of(models.MetricValue)),
        allow_none=True,
        metadata={"description": "The recorded values; null without the permission `metrics.view`."},
    )


class ReminderFields(Output):
    """A reminder and its time."""

    scheduledTime = fields.String(metadata={"description": "As it was sent: `HH:MM` or an ISO date-time."})
    time = fields.String(
        metadata={
            "description": "When the client is reminded: the time of day of `scheduledTime`, `HH:MM`. With an offset "
            "from UTC it is converted to the client's time zone; in a program or template it is as it was written."
        }
    )
    message = fields.String()


class ReminderItem(_Item):
    """A reminder."""

    type = Choice("REMINDER")
    reminderFields = fields.Nested(ReminderFields)


_ITEMS: dict[str, type[Schema]] = {
    "EXERCISE": ExerciseItem,
    "CIRCUIT": CircuitItem,
    "TASK": TaskItem,
    "FORM": FormItem,
    "METRICS": MetricsItem,
    "REMINDER": ReminderItem,
}


def item_response() -> Variant:
    """Return the field of a workout item in a response."""
    return Variant(_ITEMS)
