"""What the compliance answers."""

from __future__ import annotations

from marshmallow import fields

from coaching_service.core.validation import Date, Identifier, Output


class BlockCompliance(Output):
    """A workout block of a day."""

    id = Identifier()
    name = fields.String()
    isCompleted = fields.Boolean()


class DayCompliance(Output):
    """What was scheduled and done on a day."""

    date = Date()
    isWorkoutDay = fields.Boolean(metadata={"description": "There is a block that is not rest and holds an item."})
    isRestDay = fields.Boolean(metadata={"description": "A rest is scheduled, and no workout."})
    isCompleted = fields.Boolean(metadata={"description": "A workout day all of whose items are completed."})
    totalItems = fields.Integer()
    completedItems = fields.Integer()
    workoutBlocks = fields.List(fields.Nested(BlockCompliance))


class Compliance(Output):
    """What a client did of what was scheduled."""

    customerId = Identifier()
    totalWorkoutDays = fields.Integer()
    completedWorkoutDays = fields.Integer()
    workoutCompletionPercentage = fields.Float(
        allow_none=True,
        metadata={"description": "completedWorkoutDays of totalWorkoutDays, in percent; null without a workout day."},
    )
    dailyCompliance = fields.List(fields.Nested(DayCompliance))
