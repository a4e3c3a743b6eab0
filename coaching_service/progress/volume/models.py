"""Muscle-group volume as it is returned."""

from __future__ import annotations

from typing import Annotated, TypedDict

from coaching_service.core.fields import Description
from coaching_service.core.ids import ObjectId
from coaching_service.core.query import Period
from coaching_service.core.validation import Choice


class MuscleVolume(TypedDict):
    """The completed sets of a muscle without warm-up sets; as a secondary muscle they count half."""

    _id: ObjectId
    name: str
    sets: float
    reps: float
    volumeLoad: Annotated[float, Description("Sum of reps x load, in `loadUnit`.")]


class MuscleGroupVolume(Period):
    """How much each muscle was trained in a date range."""

    loadUnit: Annotated[str, Choice("kg", "lb")]
    muscleGroups: list[MuscleVolume]
