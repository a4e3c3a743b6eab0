"""Schemas of workout blocks, and of items in responses; items in requests are in item_schemas.py."""

from __future__ import annotations

from marshmallow import Schema, fields

from coaching_service.core.external_identity import ExternalIdFilter, IdentityFields, IdentityResult
from coaching_service.core.list_selection import UpdatedSince
from coaching_service.core.query import DateRange
from coaching_service.core.validation import (
    Boolean,
    Choice,
    Date,
    DateTime,
    DryRun,
    Identifier,
    Input,
    Integer,
    ListOf,
    Output,
    Text,
    Version,
)
from coaching_service.core.variants import Variant
from coaching_service.library.exercises.models import ASSISTANCE
from coaching_service.library.forms.schemas import AnswerValue, Question
from coaching_service.library.metric_sets.schemas import Metric
from coaching_service.training.workouts.items.content import MAX_ITEMS
from coaching_service.training.workouts.items.schemas import NEW_ITEM
from coaching_service.training.workouts.sets.schemas import planned_set_response


class CalendarQuery(DateRange, ExternalIdFilter, UpdatedSince):
    """The blocks of a calendar to read."""


class WorkoutBlockFields(IdentityFields):
    """The fields of a workout block on a client's calendar."""

    name = Text(required=True)
    date = Date(required=True)
    isRest = Boolean(load_default=False, metadata={"description": "A day of rest, without work."})


class BlockItems(Input):
    """The items of a new block."""

    items = ListOf(
        NEW_ITEM, maximum=MAX_ITEMS, load_default=list, metadata={"description": "The items, in order. Default: none."}
    )


class ScheduledWorkoutBlock(WorkoutBlockFields, BlockItems):
    """A workout block with items for a client's calendar."""


class NewWorkoutBlock(ScheduledWorkoutBlock, DryRun):
    """A workout block with items for a client's calendar, created all or nothing."""


class WorkoutBlockCopy(Input):
    """The date of a copy."""

    date = Date(required=True)


class WorkoutBlockShift(DryRun):
    """The first date of the blocks to shift, and the number of days."""

    class Meta(DryRun.Meta):
        include = {"from": Date(required=True)}

    days = Integer(minimum=-3_660, maximum=3_660, required=True)


class WorkoutBlockShiftResult(Output):
    """How many blocks were shifted."""

    shifted = fields.Integer()


class ItemMoveSource(Input):
    """Where an item is."""

    wblockId = Identifier(required=True)
    witemId = Identifier(required=True)


class ItemMoveTarget(Input):
    """Where an item is moved to: `index` from 0; past the end is the end."""

    wblockId = Identifier(required=True)
    index = Integer(minimum=0, required=True)


class ItemMove(Input):
    """The move of an item; without `source` or `target` it is the documented 500."""

    source = fields.Nested(ItemMoveSource, allow_none=True, load_default=None)
    target = fields.Nested(ItemMoveTarget, allow_none=True, load_default=None)
    version = Version()


class ExerciseSummary(Output):
    """The name and instructions of an exercise."""

    _id = Identifier()
    name = fields.String()
    defaultInstructions = fields.String(allow_none=True)
    loadType = Choice(
        ASSISTANCE, metadata={"description": "Only if the loads are help, and less is better.", "optional": True}
    )


class CustomerSet(Output):
    """A set as the client did it."""

    index = fields.Integer()
    exerciseId = Identifier(
        allow_none=True,
        metadata={"description": "The exercise of the set: in a circuit, and in an item with `swappedFor`."},
    )
    round = fields.Integer(allow_none=True, metadata={"description": "In a circuit: the round of the set, from 1."})
    reps = fields.Integer(allow_none=True)
    load = fields.Float(allow_none=True)  # type: ignore[assignment]  # a field of this name does not affect marshmallow's own method
    seconds = fields.Float(allow_none=True)
    meters = fields.Float(allow_none=True)
    rpe = fields.Float(allow_none=True)
    rir = fields.Float(allow_none=True)
    isCompleted = fields.Boolean()
    loggedAt = DateTime(
        metadata={
            "description": "When the client did the set. Only of sets that were logged one by one.",
            "optional": True,
        }
    )


class SkippedItem(Output):
    """Why a client skipped an item."""

    reason = fields.String(allow_none=True, metadata={"description": "The reason; null if none was given."})


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
        SkippedItem,
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


class WorkoutBlockQuery(Input):
    """What to add to a workout block."""

    include = Choice(
        "lastTime",
        metadata={
            "description": "`lastTime`: adds to each exercise what the client did in its latest session before the "
            "date of the block."
        },
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


class TaskFields(Output):
    """A task."""

    title = fields.String()
    description = fields.String(allow_none=True)


class TaskItem(_Item):
    """A task that is not an exercise."""

    type = Choice("TASK")
    taskFields = fields.Nested(TaskFields)


class WorkoutForm(Output):
    """The form as it was scheduled; `formId` is null if it was made for this item."""

    formId = Identifier(allow_none=True)
    name = fields.String()
    questions = fields.List(fields.Nested(Question))


class FormAnswer(Output):
    """An answer to a question."""

    questionId = Identifier()
    value = AnswerValue()


class FormItem(_Item):
    """A form to fill in."""

    type = Choice("FORM")
    form = fields.Nested(WorkoutForm)
    answers = fields.List(
        fields.Nested(FormAnswer),
        allow_none=True,
        metadata={"description": "The answers, by question; null without the permission `forms.view`."},
    )


class MetricsFields(Output):
    """The metric set to record."""

    metricsSetId = Identifier()
    name = fields.String()
    metrics = fields.List(fields.Nested(Metric))


class MetricValue(Output):
    """A logged value of a metric."""

    metricId = Identifier()
    value = fields.Float()


class MetricsItem(_Item):
    """A metric set to record."""

    type = Choice("METRICS")
    metricsFields = fields.Nested(MetricsFields)
    values = fields.List(
        fields.Nested(MetricValue),
        allow_none=True,
        metadata={"description": "The recorded values; null without the permission `metrics.view`."},
    )


class ReminderFields(Output):
    """A reminder and its time."""

    scheduledTime = fields.String(metadata={"description": "As it was sent: `HH:MM` or an ISO date-time."})
    time = fields.String(metadata={"description": "The time of day of `scheduledTime`, `HH:MM`."})
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


class WorkoutBlock(IdentityResult):
    """A workout block with its items in order."""

    _id = Identifier()
    customerId = Identifier(
        allow_none=True, metadata={"description": "The client of the calendar; null for a block of a program."}
    )
    name = fields.String()
    date = Date(
        allow_none=True, metadata={"description": "The date of a client's block; null for a block of a program."}
    )
    day = fields.Integer(allow_none=True, metadata={"description": "The program's day, from 1."})
    order = fields.Integer(metadata={"description": "Position among the blocks of the day, from 0."})
    isRest = fields.Boolean()
    isCompleted = fields.Boolean(metadata={"description": "Whether the block has items and all of them are completed."})
    durationMinutes = fields.Float(allow_none=True)
    sessionRpe = fields.Float(allow_none=True)
    feeling = fields.Integer(
        allow_none=True, metadata={"description": "How the client felt in the session, 1 (bad) to 5 (good)."}
    )
    comment = fields.String(allow_none=True)
    programId = Identifier(allow_none=True)
    assignmentId = Identifier(
        allow_none=True,
        metadata={"description": "The assignment of a program that the block came from; null otherwise."},
    )
    checkInId = Identifier(
        allow_none=True,
        metadata={
            "description": "The recurring check-in that scheduled it; null otherwise. Compliance, sessions and "
            "operations on the schedule ignore blocks of check-ins."
        },
    )
    items = fields.List(item_response())
    createdAt = DateTime()
    updatedAt = DateTime()
    version = fields.Integer()
