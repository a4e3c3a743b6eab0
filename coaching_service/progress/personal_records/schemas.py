"""Requests and responses of the personal-record operations."""

from __future__ import annotations

from marshmallow import fields

from coaching_service.core.validation import Choice, Date, DateTime, Identifier, Input, Integer, Number, Output
from coaching_service.training.workouts.training_load import RECORD_TYPES


class RecordDetails(Input):
    """The fields of a record that can be changed."""

    value = Number(minimum=0, maximum=1_000_000, required=True)
    reps = Integer(minimum=0, maximum=100_000, allow_none=True, load_default=None)
    date = Date(required=True)


class NewPersonalRecord(RecordDetails):
    """A record to enter."""

    exerciseId = Identifier(required=True)
    type = Choice(*RECORD_TYPES, required=True)


class PersonalRecord(Output):
    """A personal record of a client."""

    _id = Identifier()
    exerciseId = Identifier()
    exerciseName = fields.String()
    type = Choice(
        *RECORD_TYPES, metadata={"description": "estimated_1rm: Epley for 2 to 12 reps, the load itself for 1."}
    )
    value = fields.Float()
    unit = Choice("kg", "lb", "count")
    reps = fields.Integer(allow_none=True)
    date = Date()
    source = Choice("manual", "log")
    witemId = Identifier(allow_none=True, metadata={"description": "The item whose log it is derived from."})
    createdAt = DateTime()
    updatedAt = DateTime()
    version = fields.Integer()
