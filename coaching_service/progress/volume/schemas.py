"""What the muscle-group volume answers."""

from __future__ import annotations

from marshmallow import fields

from coaching_service.core.validation import Choice, Date, Identifier, Output


class MuscleVolume(Output):
    """What a muscle did: completed sets that are not warm-up; as a secondary muscle they count half."""

    _id = Identifier()
    name = fields.String()
    sets = fields.Float()
    reps = fields.Float()
    volumeLoad = fields.Float(metadata={"description": "Sum of reps x load, in `loadUnit`."})


class MuscleGroupVolume(Output):
    """What the muscles did in a time."""

    startDate = Date()
    endDate = Date()
    loadUnit = Choice("kg", "lb")
    muscleGroups = fields.List(fields.Nested(MuscleVolume))
