"""Responses of the compliance."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import Any

from marshmallow import fields, validates_schema
from marshmallow import validate as validators

from coaching_service.core.pagination import CursorQuery
from coaching_service.core.query import QueryInteger
from coaching_service.core.validation import Choice, Date, Identifier, Output
from coaching_service.core.validation_messages import Message, invalid

MAX_LIST_DAYS = 92
_NOT_A_PERIOD = Message("must be one of: 7, 30, 90", "INVALID_CHOICE")


class ComplianceListQuery(CursorQuery):
    """Either `period`, on request with `below` and `sort`; or `from` and `to`."""

    class Meta(CursorQuery.Meta):
        include = {
            "from": Date(metadata={"description": "The first date, with `to` and without `period`."}),
            "to": Date(
                metadata={"description": f"The last date, included; at most {MAX_LIST_DAYS} days with the first one."}
            ),
        }

    period = QueryInteger(
        validate=validators.OneOf((7, 30, 90), error=_NOT_A_PERIOD),
        metadata={
            "description": "The stored rates of the last 7, 30 or 90 days up to each client's today; required without "
            "`from` and `to`.",
            "enum": [7, 30, 90],
        },
    )
    below = QueryInteger(
        minimum=0,
        maximum=100,
        metadata={"description": "Only clients whose percentage is below this one; with `period` only."},
    )
    sort = Choice(
        "percentage",
        "name",
        metadata={
            "description": "The order: `percentage`, lowest first and null last, the default with `period`; or `name`, "
            "the only one with `from` and `to`."
        },
    )

    @validates_schema(skip_on_field_errors=True)
    def validate_period(self, data: Mapping[str, Any], **_: Any) -> None:
        """Raise ValidationError unless there is either a period, or a range of at most 92 days without its filters."""
        if "period" in data:
            for name in {"from", "to"} & data.keys():
                raise invalid("must not be combined with period", "NOT_ALLOWED", name)
            return
        for name in ("from", "to"):
            if name not in data:
                both_missing = "from" not in data and "to" not in data
                raise (
                    invalid("is required, or from and to", "REQUIRED", "period")
                    if both_missing
                    else invalid("is required", "REQUIRED", name)
                )
        if "below" in data:
            raise invalid("needs a period", "NOT_ALLOWED", "below")
        if data.get("sort") == "percentage":
            raise invalid("must be name with from and to", "NOT_ALLOWED", "sort")
        days = (date.fromisoformat(data["to"]) - date.fromisoformat(data["from"])).days + 1
        if days < 1:
            raise invalid("must not be before from", "BEFORE_START", "to")
        if days > MAX_LIST_DAYS:
            raise invalid(f"must be at most {MAX_LIST_DAYS} days with from", "RANGE_TOO_LONG", "to")


class BlockCompliance(Output):
    """A workout block of a day."""

    id = Identifier()
    name = fields.String()
    isCompleted = fields.Boolean()


class DayCompliance(Output):
    """What was scheduled and completed on a day."""

    date = Date()
    isWorkoutDay = fields.Boolean(
        metadata={"description": "A block that is not rest has an exercise, a circuit or a task."}
    )
    isRestDay = fields.Boolean(metadata={"description": "Rest is scheduled, and no workout."})
    isCompleted = fields.Boolean(metadata={"description": "All items of the day's workouts are completed."})
    totalItems = fields.Integer(metadata={"description": "Items of the day's workouts."})
    completedItems = fields.Integer(metadata={"description": "How many of them are completed."})
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
    completedWorkoutDays = fields.Integer(metadata={"description": "How many of them are completed."})
    workoutCompletionPercentage = fields.Float(
        allow_none=True,
        metadata={"description": "completedWorkoutDays of totalWorkoutDays, in percent; null without a workout day."},
    )
    dailyCompliance = fields.List(fields.Nested(DayCompliance))


class ClientCompliance(Output):
    """What a client did of what was scheduled, in a list of clients."""

    customerId = Identifier()
    name = fields.String(metadata={"description": "The name and surname of the client."})
    totalWorkoutDays = fields.Integer(
        allow_none=True,
        metadata={"description": "Workout days up to yesterday, and today once it is completed; null with `period`."},
    )
    completedWorkoutDays = fields.Integer(
        allow_none=True, metadata={"description": "How many of them are completed; null with `period`."}
    )
    workoutCompletionPercentage = fields.Float(
        allow_none=True, metadata={"description": "In percent, 0 to 100; null without a workout day."}
    )
