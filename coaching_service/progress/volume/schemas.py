"""Responses of the muscle-group volume."""

from __future__ import annotations

from marshmallow import fields

from coaching_service.core.validation import Choice, Date, Identifier, Output


class MuscleVolume(Output):
    """The completed sets of a muscle without warm-up sets; as a secondary muscle they count half."""

    _id = Identifier()
    name = fields.String()
    sets = fields.Float()
    reps = fields.Float()
    volumeLoad = fields.Float(metadata={"description": "Sum of reps x load, in `loadUnit`."})


class MuscleGroupVolume(Output):
    """How much each muscle was trained in a date range."""

    startDate = Date()
    endDate = Date()
    loadUnit = Choice("kg", "lb")
    muscleGroups = fields.List(fields.Nested(MuscleVolume))
