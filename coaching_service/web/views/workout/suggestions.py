"""Suggesting exercises for a workout, and adding one of them with the sets that are proposed for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, TypedDict, cast

from coaching_service.core.auth.permissions import EXERCISES
from coaching_service.core.database.context import Context
from coaching_service.core.fields import Default
from coaching_service.core.ids import ObjectId
from coaching_service.core.validation import Text
from coaching_service.library.exercises import service as exercises
from coaching_service.library.exercises.models import Exercise
from coaching_service.library.exercises.suggestions import suggest_exercises
from coaching_service.training.workouts.blocks import service as workouts
from coaching_service.training.workouts.blocks.owners import ScheduleOwner
from coaching_service.training.workouts.items import service as item_service
from coaching_service.training.workouts.items.models import ItemInput
from coaching_service.training.workouts.items.schemas import NEW_ITEM
from coaching_service.training.workouts.reports import exercises as exercise_queries
from coaching_service.web.pages import Redirect
from coaching_service.web.search_fields import Keywords
from coaching_service.web.views.workout.circuits import NEW_CIRCUIT, CircuitExercise, add_circuit, append_to_circuit
from coaching_service.web.views.workout.owner_pages import BLOCK, WorkoutOwnerPages
from coaching_service.web.views.workout.proposed_sets import plan_sets, with_proposed_ranges

_SUGGESTIONS = 12
_NOTHING_ENTERED = dict.fromkeys(("sets", "low", "high", "load", "rest"))


class _Search(TypedDict):
    keywords: Annotated[str, Keywords()]


class _SuggestionForm(TypedDict):
    exerciseId: ObjectId
    circuit: Annotated[str, Text(allow_blank=True), Default("")]


def declare(owner_pages: WorkoutOwnerPages) -> None:
    """Declare the page of suggested exercises, and its form that adds one."""

    @owner_pages.get(
        f"{BLOCK}/exercises", permission=owner_pages.edit, query=_Search, template="workout/exercises.html"
    )
    async def suggestions_page(ctx: Context, owner_id: ObjectId, block_id: ObjectId, query: _Search) -> dict[str, Any]:
        """The exercises suggested for a workout, those that the company uses most first."""
        variables = await owner_pages.load_variables(ctx, owner_id, block_id)
        suggested: Sequence[Exercise] = []
        if EXERCISES.VIEW in ctx.caller.permissions:
            suggested = await suggest_exercises(ctx, query["keywords"], _SUGGESTIONS)
        return {**variables, "query": query, "exercises": with_proposed_ranges(suggested)}

    @owner_pages.post(f"{BLOCK}/exercises", form=_SuggestionForm, on=suggestions_page)
    async def add_suggested_exercise(
        ctx: Context, owner_id: ObjectId, block_id: ObjectId, form: _SuggestionForm
    ) -> Redirect:
        """Add an exercise at the end of a workout, planned as in the client's last workout with it, or of a circuit."""
        owner, path = owner_pages.owner_type(owner_id), owner_pages.block_path(owner_id, block_id)
        exercise = await exercises.get(ctx, form["exerciseId"])
        exercise_id, circuit_id = str(exercise["_id"]), form["circuit"]
        sets: Sequence[Mapping[str, Any]] = plan_sets(exercise, _NOTHING_ENTERED, in_circuit=bool(circuit_id))
        if not circuit_id:
            sets = await _read_last_plan(ctx, owner, block_id, exercise["_id"]) or sets
            item = NEW_ITEM.load({"type": "EXERCISE", "exerciseId": exercise_id, "exerciseSets": sets})
            added = await item_service.create_item(ctx, owner, block_id, cast("ItemInput", item))
            return Redirect(f"{path}#item-{added['_id']}", f"{exercise['name']} added.")
        entry: CircuitExercise = {"exerciseId": exercise_id, "sets": sets, "instructions": None}
        if circuit_id == NEW_CIRCUIT:
            circuit = await add_circuit(ctx, owner, block_id, entry)
            return Redirect(f"{path}#item-{circuit['_id']}", "Circuit added.")
        changed = await append_to_circuit(ctx, owner, block_id, circuit_id, entry)
        return Redirect(f"{path}#item-{circuit_id}", f"{exercise['name']} added to {changed['circuitName']}.")


async def _read_last_plan(
    ctx: Context, owner: ScheduleOwner, block_id: ObjectId, exercise_id: ObjectId
) -> Sequence[Mapping[str, Any]]:
    """Return the sets that the client's last workout with an exercise plans of it; none in programs."""
    block = await workouts.get(ctx, owner, block_id)
    if block["customerId"] is None or block["date"] is None:
        return []
    return await exercise_queries.find_last_plan(ctx, block["customerId"], exercise_id, block["date"])
