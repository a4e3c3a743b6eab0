"""What the workout operations read and answer."""

from __future__ import annotations

from marshmallow import Schema, fields

from coaching_service.kernel.validation import (
    TEXT_LENGTH,
    Answer,
    Choice,
    Day,
    Flag,
    Identifier,
    Input,
    Moment,
    Text,
    patch_of,
)
from coaching_service.kernel.variants import Variant
from coaching_service.training.workouts.set_schemas import PlannedSets, planned_set_answer


class BlockDetails(Input):
    """What a coach says of a workout block on a client's calendar."""

    name = Text(required=True)
    date = Day(required=True)
    isRest = Flag(load_default=False, metadata={"description": "A day of rest, with nothing to do."})


# --- items, in -----------------------------------------------------------------------------------------------------


class ExerciseItemDetails(Input):
    """An exercise with its sets."""

    exerciseId = Identifier(required=True)
    exerciseSets = PlannedSets(required=True)
    exerciseInstructions = Text(longest=TEXT_LENGTH, blank=True, allow_none=True, load_default=None)
    supersetId = Text(
        allow_none=True, load_default=None, metadata={"description": "Items of a block that share it alternate."}
    )


class NewTaskFields(Input):
    """What is to be done."""

    title = Text(required=True)
    description = Text(longest=TEXT_LENGTH, blank=True, allow_none=True, load_default=None)


class TaskItemDetails(Input):
    """Something to do that is no exercise."""

    taskFields = fields.Nested(NewTaskFields, required=True)


class NewExerciseItem(ExerciseItemDetails):
    """A new item of type EXERCISE."""

    type = Choice("EXERCISE", required=True)


class NewTaskItem(TaskItemDetails):
    """A new item of type TASK."""

    type = Choice("TASK", required=True)


NEW_ITEM = Variant("NewItem", {"EXERCISE": NewExerciseItem, "TASK": NewTaskItem})
ITEM_CHANGE = patch_of(ExerciseItemDetails, TaskItemDetails, name="ItemChange")

# --- items, out ----------------------------------------------------------------------------------------------------


class ExerciseName(Answer):
    """An exercise as it is called."""

    _id = Identifier()
    name = fields.String()
    defaultInstructions = fields.String(allow_none=True)


class _Item(Answer):
    _id = Identifier()
    order = fields.Integer(metadata={"description": "Position in the block, from 0."})
    isCompleted = fields.Boolean()
    completedAt = Moment(allow_none=True)
    comment = fields.String(allow_none=True)
    createdAt = Moment()
    updatedAt = Moment()
    version = fields.Integer(metadata={"description": "The block's version."})


class ExerciseItem(_Item):
    """An exercise with its sets."""

    type = Choice("EXERCISE")
    exerciseId = Identifier()
    exercise = fields.Nested(ExerciseName)
    exerciseSets = fields.List(planned_set_answer())
    exerciseInstructions = fields.String(allow_none=True)
    customerSets = fields.List(fields.Dict())
    supersetId = fields.String(allow_none=True)


class TaskFields(Answer):
    """What is to be done."""

    title = fields.String()
    description = fields.String(allow_none=True)


class TaskItem(_Item):
    """Something to do that is no exercise."""

    type = Choice("TASK")
    taskFields = fields.Nested(TaskFields)


_ITEMS: dict[str, type[Schema]] = {"EXERCISE": ExerciseItem, "TASK": TaskItem}


def item_answer() -> Variant:
    """A workout item in an answer."""
    return Variant("WorkoutItem", _ITEMS)


class Block(Answer):
    """A workout block with its items in order."""

    _id = Identifier()
    customerId = Identifier(allow_none=True)
    name = fields.String()
    date = Day(allow_none=True, metadata={"description": "A client's block: its date. A program's: null."})
    day = fields.Integer(allow_none=True, metadata={"description": "The program's day, from 1."})
    order = fields.Integer(metadata={"description": "Position among the blocks of the day, from 0."})
    isRest = fields.Boolean()
    isCompleted = fields.Boolean(metadata={"description": "There are items and all of them are completed."})
    durationMinutes = fields.Float(allow_none=True)
    sessionRpe = fields.Float(allow_none=True)
    comment = fields.String(allow_none=True)
    programId = Identifier(allow_none=True)
    items = fields.List(item_answer())
    createdAt = Moment()
    updatedAt = Moment()
    version = fields.Integer()
