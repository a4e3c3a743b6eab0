"""The pages of one workout, declared for clients' calendars, programs and templates alike."""

from coaching_service.web.views.workout import cards, editing, workout_page
from coaching_service.web.views.workout.owner_pages import WorkoutOwnerPages

__all__ = ["WorkoutOwnerPages", "declare_workout_pages"]


def declare_workout_pages(owner_pages: WorkoutOwnerPages) -> None:
    """Declare the pages of the workouts of one type of owner."""
    for pages in (workout_page.pages, cards.pages, editing.pages):
        pages.declare_for(owner_pages)
    if not owner_pages.is_single:
        workout_page.day_pages.declare_for(owner_pages)
