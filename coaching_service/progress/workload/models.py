"""Training load as it is returned."""

from __future__ import annotations

from typing import Literal, TypedDict

LoadKind = Literal["sessionLoad", "volumeLoad"]


class Session(TypedDict):
    """What was done in one training session, on its block's date."""

    date: str
    sets: int
    reps: int
    volumeLoad: float
    sessionRpe: float | None
    durationMinutes: int | None


class Period(TypedDict):
    """What was done in one period; `date` is its first day.

    `sessionLoad` is None if no session was rated; `acuteChronicRatio` is of the last day, of the load named by
    `ratioOf`.
    """

    date: str
    sessions: int
    sets: int
    reps: int
    volumeLoad: float
    sessionLoad: float | None
    acuteChronicRatio: float | None
    ratioOf: LoadKind


class Workload(TypedDict):
    """The periods (`day`, `week` or `month`) of a date range; loads are in `loadUnit`."""

    loadUnit: str
    groupBy: str
    periods: list[Period]
