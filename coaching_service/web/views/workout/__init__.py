"""The pages of one workout, declared for clients' calendars, programs and templates alike."""

from coaching_service.web.views.workout import (
    add_items,
    cards,
    day_pages,
    item_actions,
    plan_pages,
    workout_page,
)
from coaching_service.web.views.workout.owner_pages import WorkoutOwnerPages

__all__ = ["WorkoutOwnerPages", "declare_workout_pages"]

_MODULES = (workout_page, add_items, cards, item_actions, plan_pages)


def declare_workout_pages(owner_pages: WorkoutOwnerPages) -> None:
    """Declare the pages of the workouts of one type of owner."""
    for module in _MODULES if owner_pages.is_single else (*_MODULES, day_pages):
        module.pages.declare_for(owner_pages)
