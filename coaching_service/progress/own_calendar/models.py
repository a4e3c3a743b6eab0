"""The workouts that a client has done."""

from __future__ import annotations

from typing import TypedDict

from coaching_service.training.workouts.reports.models import DoneWorkout


class DoneMonth(TypedDict):
    """The workouts that a client has done in a month (`YYYY-MM`), newest first.

    `earlier` and `later` are the nearest months with such a workout, None without one.
    """

    month: str
    workouts: list[DoneWorkout]
    earlier: str | None
    later: str | None
