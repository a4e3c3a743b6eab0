"""Planned and logged sets as they are sent, stored and read."""

from __future__ import annotations

from datetime import datetime
from typing import Literal, NotRequired, TypedDict

from coaching_service.core.ids import ObjectId

SetType = Literal["reps_load", "reps", "time", "time_load", "distance", "distance_load"]
SetKind = Literal["normal", "drop", "failure"]


class VariableValue(TypedDict):
    """The value of a variable: `exact` has `value`, `range` has `min` and `max`, which is null without an upper end."""

    type: Literal["exact", "range"]
    value: NotRequired[float]
    min: NotRequired[float]
    max: NotRequired[float | None]


class SetVariable(TypedDict):
    """One planned quantity of a set with its unit."""

    key: str
    unit: str
    value: VariableValue


class PlannedSet(TypedDict):
    """A planned set; its `type` decides which of the optional quantities it has. `variables` is added on read.

    Times are in seconds, distances in meters, loads in the company's unit. With `loadPercent` (of the client's training
    maximum) `load` is stored as null and computed on read. Sets stored before they had `isAmrap`, `perSide`, `setKind`
    and `loadPercent` get them on read.
    """

    index: int
    type: SetType
    rest: float | None
    rpe: float | None
    rir: float | None
    tempo: str | None
    isWarmup: bool
    isAmrap: NotRequired[bool]
    perSide: NotRequired[bool]
    setKind: NotRequired[SetKind]
    minPlannedReps: NotRequired[int | None]
    maxPlannedReps: NotRequired[int | None]
    load: NotRequired[float | None]
    loadPercent: NotRequired[float | None]
    minPlannedSeconds: NotRequired[float | None]
    maxPlannedSeconds: NotRequired[float | None]
    plannedMeters: NotRequired[float | None]
    variables: NotRequired[tuple[SetVariable, ...]]


class CustomerSet(TypedDict):
    """A set as the client did it; `round` is null outside circuits.

    `exerciseId` is null where it is the exercise of the item: set in circuits, and in items with `swappedFor`.
    `loggedAt` is the time (UTC) at which the client did it, of sets that are logged one by one. Sets stored before they
    had `isWarmup` and `setKind` get them on read.
    """

    index: int
    exerciseId: ObjectId | None
    round: int | None
    reps: int | None
    load: float | None
    seconds: float | None
    meters: float | None
    rpe: float | None
    rir: float | None
    isWarmup: NotRequired[bool]
    setKind: NotRequired[SetKind]
    isCompleted: bool
    loggedAt: NotRequired[datetime]
