"""The days of a client's own calendar, and the workouts the client has done."""

from __future__ import annotations

from typing import Literal, TypedDict

from coaching_service.training.workouts.query_models import BlockOutline, DoneWorkout

Status = Literal["planned", "done", "part", "missed", "rest"]


class OwnBlock(BlockOutline):
    """A block with what became of it; a block without items is planned."""

    status: Status


class OwnDay(TypedDict):
    """A day with its blocks in order; `status` is that of its workouts, None without a workout or rest."""

    date: str
    status: Status | None
    blocks: list[OwnBlock]


class DoneMonth(TypedDict):
    """The workouts that a client has done in a month (`YYYY-MM`), newest first.

    `earlier` and `later` are the nearest months with such a workout, None without one.
    """

    month: str
    workouts: list[DoneWorkout]
    earlier: str | None
    later: str | None
