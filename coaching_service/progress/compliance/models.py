"""Compliance as it is computed and returned."""

from __future__ import annotations

from typing import Annotated, TypedDict

from coaching_service.core.fields import Description
from coaching_service.core.ids import ObjectId
from coaching_service.core.validation import Date


class BlockCompliance(TypedDict):
    """A workout block of a day."""

    id: ObjectId
    name: str
    isCompleted: bool


class DayCompliance(TypedDict):
    """What was scheduled and completed on a day."""

    date: Annotated[str, Date()]
    isWorkoutDay: Annotated[
        bool,
        Description("A block that is not rest has an exercise, a circuit or a task, and the client is not absent."),
    ]
    isRestDay: Annotated[bool, Description("Rest is scheduled, and no workout.")]
    isCompleted: Annotated[bool, Description("All items of the day's workouts are completed.")]
    totalItems: Annotated[int, Description("Items of the day's workouts.")]
    completedItems: Annotated[int, Description("How many of them are completed.")]
    workoutBlocks: list[BlockCompliance]


# `from` is a keyword of Python, so this type has the functional form.
_Compliance = TypedDict(
    "_Compliance",
    {
        "customerId": ObjectId,
        "totalWorkoutDays": Annotated[
            int,
            Description("Workout days up to yesterday, and today once it is completed; not those after today."),
        ],
        "completedWorkoutDays": Annotated[int, Description("How many of them are completed.")],
        "workoutCompletionPercentage": Annotated[
            float | None,
            Description("completedWorkoutDays of totalWorkoutDays, in percent; null without a workout day."),
        ],
        "dailyCompliance": list[DayCompliance],
        "from": Annotated[str, Date(), Description("The first date of the range.")],
        "to": Annotated[str, Date(), Description("The last date of the range, included.")],
    },
)


class Compliance(_Compliance):
    """What a client did of what was scheduled."""


class ClientCompliance(TypedDict):
    """What a client did of what was scheduled, in a list of clients."""

    customerId: ObjectId
    name: Annotated[str, Description("The name and surname of the client.")]
    totalWorkoutDays: Annotated[
        int | None,
        Description("Workout days up to yesterday, and today once it is completed; null with `period`."),
    ]
    completedWorkoutDays: Annotated[int | None, Description("How many of them are completed; null with `period`.")]
    workoutCompletionPercentage: Annotated[
        float | None, Description("In percent, 0 to 100; null without a workout day.")
    ]


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
