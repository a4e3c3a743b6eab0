"""What the muscle-group volume answers."""

from __future__ import annotations

from marshmallow import fields

from coaching_service.kernel.validation import Answer, Choice, Day, Identifier


class MuscleVolume(Answer):
    """What a muscle did: completed sets that are not warm-up; as a secondary muscle they count half."""

    _id = Identifier()
    name = fields.String()
    sets = fields.Float()
    reps = fields.Float()
    volumeLoad = fields.Float(metadata={"description": "Sum of reps x load, in `loadUnit`."})


class Volume(Answer):
    """What the muscles did in a time."""

    startDate = Day()
    endDate = Day()
    loadUnit = Choice("kg", "lb")
    muscleGroups = fields.List(fields.Nested(MuscleVolume))
