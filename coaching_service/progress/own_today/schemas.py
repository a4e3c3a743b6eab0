"""The response of a client's day."""

from __future__ import annotations

from marshmallow import fields

from coaching_service.core.validation import Date, Identifier, Output
from coaching_service.training.workouts.blocks.schemas import WorkoutBlock


class NextWorkout(Output):
    """The first workout after today."""

    _id = Identifier()
    name = fields.String()
    date = Date()


class OwnPendingForm(Output):
    """A scheduled form that the client has not answered."""

    formId = Identifier(allow_none=True, metadata={"description": "null if the form was made for the workout item."})
    formName = fields.String(metadata={"description": "The name of the form."})
    date = Date(metadata={"description": "The date it is scheduled for."})
    wblockId = Identifier(metadata={"description": "The workout block it is in."})
    witemId = Identifier(metadata={"description": "The item with the form."})
    isOverdue = fields.Boolean(metadata={"description": "The date is before today."})


class Today(Output):
    """A client's day."""

    date = Date(metadata={"description": "Today, in the client's time zone."})
    blocks = fields.List(fields.Nested(WorkoutBlock), metadata={"description": "The workout blocks of today."})
    nextWorkout = fields.Nested(
        NextWorkout, allow_none=True, metadata={"description": "The first workout after today; null without one."}
    )
    pendingForms = fields.List(
        fields.Nested(OwnPendingForm),
        metadata={"description": "The forms of today and the 30 days before that are not answered, oldest first."},
    )
    unreadMessages = fields.Integer(metadata={"description": "How many messages of coaches the client has not read."})
    streakWeeks = fields.Integer(
        metadata={
            "description": "The number of successive weeks, from Monday, up to this or the last one, that each have a "
            "completed workout."
        }
    )
