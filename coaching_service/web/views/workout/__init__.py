"""The pages of one workout, declared for clients' calendars and for programs alike."""

from coaching_service.web.views.workout import (
    add_items,
    cards,
    circuit_cards,
    item_actions,
    plan_pages,
    suggestions,
    workout_page,
)
from coaching_service.web.views.workout.owner_pages import Handler, WorkoutOwnerPages

__all__ = ["WorkoutOwnerPages", "declare_workout_pages"]


def declare_workout_pages(owner_pages: WorkoutOwnerPages) -> Handler:
    """Declare the pages of the workouts of one type of owner; returns the handler of the page of a workout."""
    page = workout_page.declare(owner_pages)
    add_items.declare(owner_pages, page)
    suggestions.declare(owner_pages)
    cards.declare(owner_pages, page)
    circuit_cards.declare(owner_pages, page)
    item_actions.declare(owner_pages, page)
    plan_pages.declare(owner_pages)
    return page
