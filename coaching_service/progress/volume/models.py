"""Muscle-group volume as it is returned."""

from __future__ import annotations

from typing import TypedDict

from coaching_service.core.ids import ObjectId


class MuscleVolume(TypedDict):
    """Completed working sets of a muscle, their repetitions, and their volume load in the company's unit."""

    _id: ObjectId
    name: str
    sets: float
    reps: float
    volumeLoad: float


class Volume(TypedDict):
    """The volume of each muscle trained from `startDate` to `endDate`, most sets first; `loadUnit` is `kg` or `lb`."""

    startDate: str
    endDate: str
    loadUnit: str
    muscleGroups: list[MuscleVolume]
