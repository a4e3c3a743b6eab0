"""Training load as it is asked for and returned."""

from __future__ import annotations

from typing import Annotated, Literal, TypedDict

from coaching_service.core.fields import Default, Description
from coaching_service.core.query import Period
from coaching_service.core.validation import Choice, Date

LoadKind = Literal["sessionLoad", "volumeLoad"]
GroupBy = Literal["day", "week", "month"]


class WorkloadQuery(Period):
    """The date range, and how its days are grouped."""

    groupBy: Annotated[GroupBy, Default("day")]


class Session(TypedDict):
    """What was done in one training session, on its block's date."""

    date: str
    sets: int
    reps: int
    volumeLoad: float
    sessionRpe: float | None
    durationMinutes: int | None


class WorkloadPeriod(TypedDict):
    """What was done in a day, a week (from Monday) or a month."""

    date: Annotated[str, Date(), Description("The period's first day.")]
    sessions: Annotated[
        int,
        Description("Workouts with a completed set that is not warm-up, or a completed item of a type without sets."),
    ]
    sets: Annotated[int, Description("Completed sets that are not warm-up.")]
    reps: int
    volumeLoad: Annotated[float, Description("Sum of reps x load, in `loadUnit`.")]
    sessionLoad: Annotated[
        float | None, Description("Sum of sessionRpe x durationMinutes; null when no session was rated.")
    ]
    acuteChronicRatio: Annotated[
        float | None,
        Description(
            "On the period's last day: mean daily load of 7 days over the mean of 28; null in the first 28 days and "
            "when the mean of 28 is 0."
        ),
    ]
    ratioOf: Annotated[LoadKind, Description("sessionLoad if every session of the 28 days was rated, else volumeLoad.")]


class Workload(TypedDict):
    """How much a client trained, period by period."""

    loadUnit: Annotated[str, Choice("kg", "lb")]
    groupBy: GroupBy
    periods: list[WorkloadPeriod]
