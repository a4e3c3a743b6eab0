"""Compliance as it is computed and returned."""

from __future__ import annotations

from typing import TypedDict

from coaching_service.core.ids import ObjectId


class BlockCompliance(TypedDict):
    """A workout block of a day."""

    id: ObjectId
    name: str
    isCompleted: bool


class DayCompliance(TypedDict):
    """What was scheduled and completed on one date; rest blocks count in neither number of items."""

    date: str
    isWorkoutDay: bool
    isRestDay: bool
    isCompleted: bool
    totalItems: int
    completedItems: int
    workoutBlocks: list[BlockCompliance]


# `from` is a keyword of Python, so this type has the functional form.
Compliance = TypedDict(
    "Compliance",
    {
        "customerId": ObjectId,
        "from": str,
        "to": str,
        "totalWorkoutDays": int,
        "completedWorkoutDays": int,
        "workoutCompletionPercentage": float | None,
        "dailyCompliance": list[DayCompliance],
    },
)


class ClientCompliance(TypedDict):
    """What a client did of what was scheduled, in a list of clients; the counts are None in a list of stored rates."""

    customerId: ObjectId
    name: str
    totalWorkoutDays: int | None
    completedWorkoutDays: int | None
    workoutCompletionPercentage: float | None


class ClientTimezone(TypedDict):
    """A client and their time zone (None: the company's)."""

    _id: ObjectId
    timezone: str | None


class ComplianceRates(TypedDict):
    """Completed workout days in percent, up to `complianceDate`; None without a workout day."""

    complianceRate7d: float | None
    complianceRate30d: float | None
    complianceRate90d: float | None
    complianceDate: str | None


class ClientFigures(ComplianceRates):
    """The figures stored with a client; `lastTrainedDate` is the date of the latest session with completed work."""

    lastTrainedDate: str | None
