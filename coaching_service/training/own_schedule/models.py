"""Changes of clients to their calendar as they are sent."""

from __future__ import annotations

from typing import Annotated, NotRequired, TypeAlias, TypedDict

from coaching_service.core.fields import Change, Default, Description
from coaching_service.core.validation import CalendarDate, ListOf, Version
from coaching_service.training.workouts.blocks.models import BlockName
from coaching_service.training.workouts.items.content import MAX_ITEMS
from coaching_service.training.workouts.items.input_models import ItemInput
from coaching_service.training.workouts.items.schemas import NEW_WORKOUT_ITEM


class WorkoutDate(TypedDict):
    """The day of a workout."""

    date: Annotated[str, CalendarDate()]


class WorkoutMove(WorkoutDate):
    """The day to move a workout to."""

    version: NotRequired[Annotated[int, Version()]]


class NewOwnWorkout(BlockName, WorkoutDate):
    """A workout that a client adds to the own calendar."""

    items: Annotated[
        list[ItemInput],
        ListOf(NEW_WORKOUT_ITEM, maximum=MAX_ITEMS),
        Default(list),
        Description("Exercises, circuits and tasks, in order. Default: none."),
    ]


OwnWorkoutChange: TypeAlias = Change[NewOwnWorkout]
