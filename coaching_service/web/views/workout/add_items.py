"""Adding items to a workout: exercises, alone or in a circuit, tasks, reminders, forms and metrics to record."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, TypedDict, cast
from urllib.parse import urlencode

from marshmallow import Schema

from coaching_service.core.auth.permissions import EXERCISES, FORMS, METRICS
from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import Document
from coaching_service.core.fields import Default
from coaching_service.core.ids import ObjectId
from coaching_service.core.validation import Identifier, Input, Integer, Number, Text
from coaching_service.library.exercises import listing
from coaching_service.library.exercises import service as exercises
from coaching_service.library.forms import service as forms
from coaching_service.library.forms.models import Form
from coaching_service.library.metric_sets import service as metric_sets
from coaching_service.library.metric_sets.models import MetricSet
from coaching_service.training.workouts.blocks.owners import ScheduleOwner
from coaching_service.training.workouts.items import service as item_service
from coaching_service.training.workouts.items.descriptions import describe_item
from coaching_service.training.workouts.items.models import ItemInput, NewReminderFields, NewTaskFields
from coaching_service.training.workouts.items.schemas import NEW_ITEM
from coaching_service.training.workouts.sets.models import MAX_LOAD, MAX_SECONDS, MAX_SETS
from coaching_service.web.formatting import quantity
from coaching_service.web.pages import Redirect
from coaching_service.web.search_fields import Keywords
from coaching_service.web.views.far_values import ConfirmedValues
from coaching_service.web.views.workout.circuits import NEW_CIRCUIT, CircuitExercise, add_circuit, append_to_circuit
from coaching_service.web.views.workout.item_texts import MAX_TEXT_LENGTH, add_text
from coaching_service.web.views.workout.owner_pages import BLOCK, Handler, WorkoutOwnerPages
from coaching_service.web.views.workout.proposed_sets import PROPOSED_SETS, plan_sets, with_proposed_ranges
from coaching_service.web.views.workout.unusual_loads import require_confirmed_loads

_EXERCISES_PER_PAGE = 12


class _ExerciseForm(ConfirmedValues):
    exerciseId = Identifier(required=True)
    circuit = Text(allow_blank=True, load_default="")
    sets = Integer(minimum=1, maximum=MAX_SETS, allow_none=True, load_default=None)
    low = Number(minimum=0, allow_none=True, load_default=None)
    high = Number(minimum=0, allow_none=True, load_default=None)
    load = Number(minimum=0, maximum=MAX_LOAD, allow_none=True, load_default=None)  # type: ignore[assignment]  # a field
    rest = Number(minimum=0, maximum=MAX_SECONDS, allow_none=True, load_default=None)


class _AddFormForm(Input):
    formId = Identifier(required=True)


class _AddMetricsForm(Input):
    metricsSetId = Identifier(required=True)


class _ItemsTextForm(ConfirmedValues):
    text = Text(max_length=MAX_TEXT_LENGTH, required=True)


class ExerciseSearch(TypedDict):
    """The search for an exercise to add."""

    keywords: Annotated[str, Keywords()]
    page: Annotated[int, Integer(minimum=1), Default(1)]


def search_path(block_path: str, query: Mapping[str, Any]) -> str:
    """Return the path of a workout's page with the results of a search, scrolled to the form that adds an exercise."""
    return f"{block_path}?{urlencode({'keywords': query['keywords'], 'page': query['page']})}#more"


async def load_choices(ctx: Context, query: Mapping[str, Any]) -> dict[str, Any]:
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
        "forms": _options(await forms.list_all(ctx)) if FORMS.VIEW in permissions else [],
        "metric_sets": _options(await metric_sets.list_all(ctx)) if METRICS.VIEW in permissions else [],
    }


def _options(documents: Sequence[Form | MetricSet]) -> list[tuple[str, str]]:
    return [(str(document["_id"]), document["name"]) for document in documents]


def declare(owner_pages: WorkoutOwnerPages, workout_page: Handler) -> None:
    """Declare the forms on `workout_page` that add an item."""
    _declare_exercise_form(owner_pages, workout_page)
    _declare_other_forms(owner_pages, workout_page)
    _declare_text_form(owner_pages, workout_page)


def _declare_exercise_form(owner_pages: WorkoutOwnerPages, workout_page: Handler) -> None:
    @owner_pages.post(f"{BLOCK}/items", query=ExerciseSearch, form=_ExerciseForm(), on=workout_page)
    async def add_exercise(
        ctx: Context, owner_id: ObjectId, block_id: ObjectId, query: ExerciseSearch, form: dict[str, Any]
    ) -> Redirect:
        """Add an exercise at the end of a workout, of one of its circuits, or of a new circuit."""
        owner, path = owner_pages.owner_type(owner_id), owner_pages.block_path(owner_id, block_id)
        require_confirmed_loads(ctx, {"load": form["load"]}, confirmed=form["confirmed"])
        exercise = await exercises.get(ctx, form["exerciseId"])
        exercise_id, circuit_id = str(exercise["_id"]), form["circuit"]
        sets = plan_sets(exercise, form, in_circuit=bool(circuit_id))
        if not circuit_id:
            item = {"type": "EXERCISE", "exerciseId": exercise_id, "exerciseSets": sets}
            return await _add_item(ctx, owner, block_id, item, search_path(path, query))
        entry: CircuitExercise = {"exerciseId": exercise_id, "sets": sets, "instructions": None}
        if circuit_id == NEW_CIRCUIT:
            new_circuit = await add_circuit(ctx, owner, block_id, entry)
            return Redirect(f"{path}/items/{new_circuit['_id']}", "Circuit added. Set its name and rounds.")
        circuit = await append_to_circuit(ctx, owner, block_id, circuit_id, entry)
        return Redirect(search_path(path, query), f"Added to {circuit['circuitName']}.")


def _declare_other_forms(owner_pages: WorkoutOwnerPages, workout_page: Handler) -> None:
    def declare_form(path: str, name: str, schema: Schema, item_of: Callable[[Document], Document]) -> None:
        async def add(ctx: Context, owner_id: ObjectId, block_id: ObjectId, form: dict[str, Any]) -> Redirect:
            """Add an item at the end of a workout."""
            target = f"{owner_pages.block_path(owner_id, block_id)}#more"
            return await _add_item(ctx, owner_pages.owner_type(owner_id), block_id, item_of(form), target)

        add.__name__ = name
        owner_pages.post(f"{BLOCK}/{path}", form=schema, on=workout_page)(add)

    declare_form("tasks", "add_task", NewTaskFields(), lambda form: {"type": "TASK", "taskFields": form})
    declare_form(
        "reminders", "add_reminder", NewReminderFields(), lambda form: {"type": "REMINDER", "reminderFields": form}
    )
    declare_form(
        "forms", "add_form", _AddFormForm(), lambda form: {"type": "FORM", "form": {"formId": str(form["formId"])}}
    )
    declare_form(
        "metrics",
        "add_metrics",
        _AddMetricsForm(),
        lambda form: {"type": "METRICS", "metricsFields": {"metricsSetId": str(form["metricsSetId"])}},
    )


def _declare_text_form(owner_pages: WorkoutOwnerPages, workout_page: Handler) -> None:
    @owner_pages.post(f"{BLOCK}/text", form=_ItemsTextForm(), on=workout_page)
    async def add_items_as_text(ctx: Context, owner_id: ObjectId, block_id: ObjectId, form: dict[str, Any]) -> Redirect:
        """Add the items that the lines of a text describe at the end of a workout."""
        owner = owner_pages.owner_type(owner_id)
        added, remarks = await add_text(ctx, owner, block_id, form["text"], confirmed=form["confirmed"])
        target = f"{owner_pages.block_path(owner_id, block_id)}#more"
        return Redirect(target, f"{quantity(added, 'item')} added.{remarks}")


async def _add_item(ctx: Context, owner: ScheduleOwner, block_id: ObjectId, item: Document, target: str) -> Redirect:
    """Add an item, in the form of a request, at the end of a workout, and redirect to `target`."""
    stored = await item_service.create_item(ctx, owner, block_id, cast("ItemInput", NEW_ITEM.load(item)))
    return Redirect(target, f"{describe_item(stored, ctx.caller.company.load_unit)['title']} added.")
