"""What the workout operations read and answer; items as they are sent are in item_schemas.py."""

from __future__ import annotations

from marshmallow import Schema, fields

from coaching_service.core.validation import (
    Boolean,
    Choice,
    Date,
    DateTime,
    Identifier,
    Input,
    Integer,
    Output,
    Text,
    Version,
)
from coaching_service.core.variants import Variant
from coaching_service.library.forms.schemas import AnswerValue, Question
from coaching_service.library.metric_sets.schemas import Metric
from coaching_service.training.workouts.set_schemas import planned_set_answer


class NewWorkoutBlock(Input):
    """What a coach says of a workout block on a client's calendar."""

    name = Text(required=True)
    date = Date(required=True)
    isRest = Boolean(load_default=False, metadata={"description": "A day of rest, with nothing to do."})


class WorkoutBlockCopy(Input):
    """Where a copy goes."""

    date = Date(required=True)


class WorkoutBlockShift(Input):
    """Which blocks to shift, and how far."""

    class Meta(Input.Meta):
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
    """Where an item goes: `index` from 0; past the end is the end."""

    wblockId = Identifier(required=True)
    index = Integer(minimum=0, required=True)


class ItemMove(Input):
    """An item's move. Without `source` or `target` it is the documented 500."""

    source = fields.Nested(ItemMoveSource, allow_none=True, load_default=None)
    target = fields.Nested(ItemMoveTarget, allow_none=True, load_default=None)
    version = Version()


class ExerciseSummary(Output):
    """An exercise as it is called."""

    _id = Identifier()
    name = fields.String()
    defaultInstructions = fields.String(allow_none=True)


class CustomerSet(Output):
    """A set as the client did it."""

    index = fields.Integer()
    exerciseId = Identifier(allow_none=True, metadata={"description": "In a circuit: of which exercise."})
    round = fields.Integer(allow_none=True, metadata={"description": "In a circuit: of which round."})
    reps = fields.Integer(allow_none=True)
    load = fields.Float(allow_none=True)  # type: ignore[assignment]  # a field may be called so
    seconds = fields.Float(allow_none=True)
    meters = fields.Float(allow_none=True)
    rpe = fields.Float(allow_none=True)
    rir = fields.Float(allow_none=True)
    isCompleted = fields.Boolean()


class _Item(Output):
    _id = Identifier()
    order = fields.Integer(metadata={"description": "Position in the block, from 0."})
    isCompleted = fields.Boolean()
    completedAt = DateTime(allow_none=True)
    comment = fields.String(allow_none=True)
    createdAt = DateTime()
    updatedAt = DateTime()
    version = fields.Integer(metadata={"description": "The block's version."})


class ExerciseItem(_Item):
    """An exercise with its sets."""

    type = Choice("EXERCISE")
    exerciseId = Identifier()
    exercise = fields.Nested(ExerciseSummary)
    exerciseSets = fields.List(planned_set_answer())
    exerciseInstructions = fields.String(allow_none=True)
    customerSets = fields.List(fields.Nested(CustomerSet))
    supersetId = fields.String(allow_none=True)


class CircuitExercise(Output):
    """An exercise of a circuit."""

    exerciseId = Identifier()
    exercise = fields.Nested(ExerciseSummary)
    sets = fields.List(planned_set_answer())
    instructions = fields.String(allow_none=True)


class CircuitItem(_Item):
    """Exercises done one after another, round after round."""

    type = Choice("CIRCUIT")
    circuitName = fields.String()
    circuitExercises = fields.List(fields.Nested(CircuitExercise))
    rounds = fields.Integer()
    customerSets = fields.List(fields.Nested(CustomerSet))


class TaskFields(Output):
    """What is to be done."""

    title = fields.String()
    description = fields.String(allow_none=True)


class TaskItem(_Item):
    """Something to do that is no exercise."""

    type = Choice("TASK")
    taskFields = fields.Nested(TaskFields)


class WorkoutForm(Output):
    """The form as it was scheduled; `formId` is null when it was made for this item."""

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
    answers = fields.List(fields.Nested(FormAnswer))


class MetricsFields(Output):
    """What is to be measured."""

    metricsSetId = Identifier()
    name = fields.String()
    metrics = fields.List(fields.Nested(Metric))


class MetricValue(Output):
    """A metric's value."""

    metricId = Identifier()
    value = fields.Float()


class MetricsItem(_Item):
    """A metric set to record."""

    type = Choice("METRICS")
    metricsFields = fields.Nested(MetricsFields)
    values = fields.List(fields.Nested(MetricValue))


class ReminderFields(Output):
    """What the client is reminded of, and when."""

    scheduledTime = fields.String()
    message = fields.String()


class ReminderItem(_Item):
    """Something to be reminded of."""

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


def item_answer() -> Variant:
    """A workout item in an answer."""
    return Variant(_ITEMS)


class WorkoutBlock(Output):
    """A workout block with its items in order."""

    _id = Identifier()
    customerId = Identifier(allow_none=True, metadata={"description": "Whose calendar; null: a program's own block."})
    name = fields.String()
    date = Date(allow_none=True, metadata={"description": "A client's block: its date. A program's: null."})
    day = fields.Integer(allow_none=True, metadata={"description": "The program's day, from 1."})
    order = fields.Integer(metadata={"description": "Position among the blocks of the day, from 0."})
    isRest = fields.Boolean()
    isCompleted = fields.Boolean(metadata={"description": "There are items and all of them are completed."})
    durationMinutes = fields.Float(allow_none=True)
    sessionRpe = fields.Float(allow_none=True)
    comment = fields.String(allow_none=True)
    programId = Identifier(allow_none=True)
    items = fields.List(item_answer())
    createdAt = DateTime()
    updatedAt = DateTime()
    version = fields.Integer()
