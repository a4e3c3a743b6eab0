"""The pages of one workout, declared once for a client's calendar and for a program: what is in it, and changing it."""

from coaching_service.web.views.workout import additions, item, page, plan
from coaching_service.web.views.workout.kind import Kind

__all__ = ["Kind", "declare"]


def declare(kind: Kind) -> None:
    """Declare the pages of the workouts of a kind of owner."""
    workout_page = page.declare(kind)
    additions.declare(kind, workout_page)
    item.declare(kind, workout_page)
    plan.declare(kind)
