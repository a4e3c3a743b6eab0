"""Adding items to a workout: exercises, also suggested ones, tasks, reminders, forms and metrics to record."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, TypedDict, TypeVar
from urllib.parse import urlencode

from coaching_service.core.auth.access import EXERCISES, FORMS, METRICS
from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import Document
from coaching_service.core.ids import ObjectId
from coaching_service.core.validation import Text
from coaching_service.library.exercises import listing
from coaching_service.library.exercises import service as exercises
from coaching_service.library.exercises.listing import suggest_exercises
from coaching_service.library.exercises.models import Exercise
from coaching_service.library.forms import service as forms
from coaching_service.library.metric_sets import service as metric_sets
from coaching_service.training.workouts.items.descriptions import describe_item
from coaching_service.training.workouts.items.models import PlannedMetrics, PlannedReminder, TaskFields
from coaching_service.training.workouts.reports import exercises as exercise_queries
from coaching_service.web.formatting import document_options, quantity
from coaching_service.web.page_queries import KeywordQuery, Search
from coaching_service.web.pages import Redirect
from coaching_service.web.views.unusual_values import Confirmation
from coaching_service.web.views.workout import item_changes
from coaching_service.web.views.workout.cards import MAX_TEXT_LENGTH, add_text
from coaching_service.web.views.workout.owner_pages import BLOCK, OpenedWorkout, WorkoutPages
from coaching_service.web.views.workout.planned_set_rows import (
    PROPOSED_SETS,
    SetChoice,
    plan_sets,
    with_proposed_ranges,
)

pages = WorkoutPages()
T = TypeVar("T")
_EXERCISES_PER_PAGE, _SUGGESTIONS = 12, 12


class _ExerciseForm(item_changes.ExerciseChoice, SetChoice, Confirmation):
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
    exercise = await exercises.get(ctx, form["exerciseId"])
    sets = plan_sets(exercise, form, in_circuit=bool(form["circuit"]))
    added = await item_changes.add_exercise(ctx, workout, form, sets)
    if form["circuit"] == item_changes.NEW_CIRCUIT:
        return Redirect(f"{workout.path}/items/{added['_id']}", "Circuit added. Set its name and rounds.")
    notice = f"Added to {added['circuitName']}." if added["type"] == "CIRCUIT" else f"{exercise['name']} added."
    return Redirect(search_path(workout.path, query), notice)


def _declare_form(path: str, name: str, model: type[T], item_of: Callable[[T], Document]) -> None:
    async def add(ctx: Context, workout: OpenedWorkout, form: T) -> Redirect:
        """Add an item at the end of a workout."""
        added = await item_changes.add_item(ctx, workout, item_of(form))
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
    added, remarks = await add_text(ctx, workout.owner, workout.block_id, form["text"])
    return Redirect(f"{workout.path}#more", f"{quantity(added, 'item')} added.{remarks}")


_NOTHING_ENTERED: SetChoice = {"sets": None, "low": None, "high": None, "load": None, "rest": None}


@pages.get(f"{BLOCK}/exercises", query=KeywordQuery, template="workout/exercises.html")
async def suggestions_page(ctx: Context, workout: OpenedWorkout, query: KeywordQuery) -> dict[str, Any]:
    """The exercises suggested for a workout, those that the company uses most first."""
    variables = await workout.load_variables(ctx)
    suggested: Sequence[Exercise] = []
    if EXERCISES.VIEW in ctx.caller.permissions:
        suggested = await suggest_exercises(ctx, query["keywords"], _SUGGESTIONS)
    return {**variables, "query": query, "exercises": with_proposed_ranges(suggested)}


@pages.post(f"{BLOCK}/exercises", form=item_changes.ExerciseChoice, on=suggestions_page)
async def add_suggested_exercise(ctx: Context, workout: OpenedWorkout, form: item_changes.ExerciseChoice) -> Redirect:
    """Add an exercise at the end of a workout, planned as in the client's last workout with it, or of a circuit."""
    exercise = await exercises.get(ctx, form["exerciseId"])
    last = [] if form["circuit"] else await _read_last_plan(ctx, workout, exercise["_id"])
    sets = last or plan_sets(exercise, _NOTHING_ENTERED, in_circuit=bool(form["circuit"]))
    added = await item_changes.add_exercise(ctx, workout, form, sets)
    place = f" to {added['circuitName']}" if added["type"] == "CIRCUIT" else ""
    notice = "Circuit added." if form["circuit"] == item_changes.NEW_CIRCUIT else f"{exercise['name']} added{place}."
    return Redirect(f"{workout.path}#item-{added['_id']}", notice)


async def _read_last_plan(ctx: Context, workout: OpenedWorkout, exercise_id: ObjectId) -> Sequence[Mapping[str, Any]]:
    """Return the sets that the client's last workout with an exercise plans of it; none in programs."""
    block = await workout.read(ctx)
    if block["customerId"] is None or block["date"] is None:
        return []
    return await exercise_queries.find_last_plan(ctx, block["customerId"], exercise_id, block["date"])
