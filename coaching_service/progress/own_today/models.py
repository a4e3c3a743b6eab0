"""A client's day as it is returned."""

from __future__ import annotations

from typing import TypedDict

from coaching_service.core.ids import ObjectId
from coaching_service.training.workouts.blocks.models import Block
from coaching_service.training.workouts.reports.calendar_days import CalendarDay


class NextWorkout(TypedDict):
    """The first workout after today."""

    _id: ObjectId
    name: str
    date: str


class PendingForm(TypedDict):
    """A scheduled form that the client has not answered; `isOverdue`: its date is before today."""

    formId: ObjectId | None
    formName: str
    date: str
    wblockId: ObjectId
    witemId: ObjectId
    isOverdue: bool


class Today(TypedDict):
    """A client's day; `streakWeeks` counts the weeks up to this or the last one that each have a completed workout."""

    date: str
    blocks: list[Block]
    nextWorkout: NextWorkout | None
    pendingForms: list[PendingForm]
    unreadMessages: int
    streakWeeks: int


class Overview(TypedDict):
    """A client's day, and the days of its week from Monday on."""

    today: Today
    week: list[CalendarDay]
