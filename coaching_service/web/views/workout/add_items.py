"""Adding items to a workout: exercises, alone or in a circuit, tasks, reminders, forms and metrics to record."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, TypedDict, TypeVar
from urllib.parse import urlencode

from coaching_service.core.auth.permissions import EXERCISES, FORMS, METRICS
from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import Document
from coaching_service.core.ids import ObjectId
from coaching_service.core.validation import Text
from coaching_service.library.exercises import listing
from coaching_service.library.exercises import service as exercises
from coaching_service.library.forms import service as forms
from coaching_service.library.metric_sets import service as metric_sets
from coaching_service.training.workouts.items.descriptions import describe_item
from coaching_service.training.workouts.items.models import PlannedMetrics, PlannedReminder, TaskFields
from coaching_service.web.formatting import document_options, quantity
from coaching_service.web.page_queries import Search
from coaching_service.web.pages import Redirect
from coaching_service.web.views.far_values import Confirmation
from coaching_service.web.views.workout import circuits
from coaching_service.web.views.workout.item_texts import MAX_TEXT_LENGTH, add_text
from coaching_service.web.views.workout.owner_pages import BLOCK, OpenedWorkout, WorkoutPages
from coaching_service.web.views.workout.planned_set_rows import (
    PROPOSED_SETS,
    SetChoice,
    plan_sets,
    with_proposed_ranges,
)
from coaching_service.web.views.workout.unusual_loads import require_confirmed_loads

pages = WorkoutPages()
T = TypeVar("T")
_EXERCISES_PER_PAGE = 12


class _ExerciseForm(circuits.ExerciseChoice, SetChoice, Confirmation):
    """An exercise to add, and its sets."""


class _FormChoice(TypedDict):
    formId: ObjectId


class _NewItems(Confirmation):
    text: Annotated[str, Text(max_length=MAX_TEXT_LENGTH)]


def search_path(block_path: str, query: Search) -> str:
    """Return the path of a workout's page with the results of a search, scrolled to the form that adds an exercise."""
    return f"{block_path}?{urlencode({'keywords': query['keywords'], 'page': query['page']})}#more"


async def load_choices(ctx: Context, query: Search) -> dict[str, Any]:
    """Load the library items that can be added; `exercises` is one page of them, or None without permission."""
    permissions = ctx.caller.permissions
    exercise_page: dict[str, Any] | None = None
    if EXERCISES.VIEW in permissions:
        page = await listing.list_exercises(
            ctx, page=query["page"], size=_EXERCISES_PER_PAGE, keywords=query["keywords"]
        )
        exercise_page = {**page, "docs": with_proposed_ranges(page["docs"])}
    return {
        "exercises": exercise_page,
        "proposed_sets": PROPOSED_SETS,
        "forms": document_options(await forms.list_all(ctx)) if FORMS.VIEW in permissions else [],
        "metric_sets": document_options(await metric_sets.list_all(ctx)) if METRICS.VIEW in permissions else [],
    }


@pages.post(f"{BLOCK}/items", query=Search, form=_ExerciseForm)
async def add_exercise(ctx: Context, workout: OpenedWorkout, query: Search, form: _ExerciseForm) -> Redirect:
    """Add an exercise at the end of a workout, of one of its circuits, or of a new circuit."""
    require_confirmed_loads(ctx, {"load": form["load"]}, confirmed=form["confirmed"])
    exercise = await exercises.get(ctx, form["exerciseId"])
    sets = plan_sets(exercise, form, in_circuit=bool(form["circuit"]))
    added = await circuits.add_exercise(ctx, workout, form, sets)
    if form["circuit"] == circuits.NEW_CIRCUIT:
        return Redirect(f"{workout.path}/items/{added['_id']}", "Circuit added. Set its name and rounds.")
    notice = f"Added to {added['circuitName']}." if added["type"] == "CIRCUIT" else f"{exercise['name']} added."
    return Redirect(search_path(workout.path, query), notice)


def _declare_form(path: str, name: str, model: type[T], item_of: Callable[[T], Document]) -> None:
    async def add(ctx: Context, workout: OpenedWorkout, form: T) -> Redirect:
        """Add an item at the end of a workout."""
        added = await circuits.add_item(ctx, workout, item_of(form))
        title = describe_item(added, ctx.caller.company.load_unit)["title"]
        return Redirect(f"{workout.path}#more", f"{title} added.")

    add.__name__ = name
    pages.post(f"{BLOCK}/{path}", form=model)(add)


_declare_form("tasks", "add_task", TaskFields, lambda form: {"type": "TASK", "taskFields": form})
_declare_form("reminders", "add_reminder", PlannedReminder, lambda form: {"type": "REMINDER", "reminderFields": form})
_declare_form("forms", "add_form", _FormChoice, lambda form: {"type": "FORM", "form": {"formId": str(form["formId"])}})
_declare_form(
    "metrics",
    "add_metrics",
    PlannedMetrics,
    lambda form: {"type": "METRICS", "metricsFields": {"metricsSetId": str(form["metricsSetId"])}},
)


@pages.post(f"{BLOCK}/text", form=_NewItems)
async def add_items_as_text(ctx: Context, workout: OpenedWorkout, form: _NewItems) -> Redirect:
    """Add the items that the lines of a text describe at the end of a workout."""
    added, remarks = await add_text(ctx, workout.owner, workout.block_id, form["text"], confirmed=form["confirmed"])
    return Redirect(f"{workout.path}#more", f"{quantity(added, 'item')} added.{remarks}")
