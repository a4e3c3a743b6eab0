"""Responses of the compliance."""

from __future__ import annotations

from marshmallow import fields

from coaching_service.core.validation import Date, Identifier, Output


class BlockCompliance(Output):
    """A workout block of a day."""

    id = Identifier()
    name = fields.String()
    isCompleted = fields.Boolean()


class DayCompliance(Output):
    """What was scheduled and completed on a day."""

    date = Date()
    isWorkoutDay = fields.Boolean(metadata={"description": "A block that is not rest has at least one item."})
    isRestDay = fields.Boolean(metadata={"description": "Rest is scheduled, and no workout."})
    isCompleted = fields.Boolean(
        metadata={"description": "All items of the day's blocks that are not rest are completed."}
    )
    totalItems = fields.Integer(metadata={"description": "Items of the day's blocks that are not rest."})
    completedItems = fields.Integer(metadata={"description": "Those of them that are completed."})
    workoutBlocks = fields.List(fields.Nested(BlockCompliance))


class Compliance(Output):
    """What a client did of what was scheduled."""

    class Meta:
        include = {
            "from": Date(metadata={"description": "The first date of the range."}),
            "to": Date(metadata={"description": "The last date of the range, included."}),
        }

    customerId = Identifier()
    totalWorkoutDays = fields.Integer(
        metadata={"description": "Workout days up to yesterday, and today once it is completed; not those after today."}
    )
    completedWorkoutDays = fields.Integer(metadata={"description": "Those of them that are completed."})
    workoutCompletionPercentage = fields.Float(
        allow_none=True,
        metadata={"description": "completedWorkoutDays of totalWorkoutDays, in percent; null without a workout day."},
    )
    dailyCompliance = fields.List(fields.Nested(DayCompliance))
