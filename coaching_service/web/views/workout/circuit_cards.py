"""Circuits as cards: their name and rounds, and the sets of each exercise, are edited in place."""

from __future__ import annotations

from typing import Annotated, TypedDict, cast

from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import Document
from coaching_service.core.field_schemas import input_of
from coaching_service.core.ids import ObjectId
from coaching_service.core.validation import Integer
from coaching_service.training.workouts.blocks import service as workouts
from coaching_service.training.workouts.items import service as item_service
from coaching_service.training.workouts.items.descriptions import describe_item
from coaching_service.training.workouts.items.schemas import ITEM_CHANGE
from coaching_service.web.pages import Redirect
from coaching_service.web.views.workout.cards import CardForm, CardRows, planned_on_card, redirect_to_card
from coaching_service.web.views.workout.circuits import (
    CircuitForm,
    exercises_of,
    find_circuit,
    position_of,
    replace_exercises,
    with_replaced,
)
from coaching_service.web.views.workout.owner_pages import ITEM, Handler, WorkoutOwnerPages
from coaching_service.web.views.workout.set_forms import save_circuit_exercise

_EXERCISE = f"{ITEM}/exercises/{{exerciseId}}"


class _PlaceForm(TypedDict):
    place: Annotated[int, Integer(minimum=1, maximum=1000)]


def declare(owner_pages: WorkoutOwnerPages, workout_page: Handler) -> None:
    """Declare the forms on `workout_page` that save the parts of a circuit's card."""
    _declare_rounds(owner_pages, workout_page)
    _declare_sets(owner_pages, workout_page)
    _declare_order(owner_pages, workout_page)


def _declare_rounds(owner_pages: WorkoutOwnerPages, workout_page: Handler) -> None:
    @owner_pages.post(f"{ITEM}/rounds", form=CircuitForm, on=workout_page)
    async def change_rounds(
        ctx: Context, owner_id: ObjectId, block_id: ObjectId, witem_id: ObjectId, form: CircuitForm
    ) -> Redirect:
        """Change the name and the number of rounds of a circuit."""
        owner = owner_pages.owner_type(owner_id)
        item = await item_service.update_item(ctx, owner, block_id, witem_id, ITEM_CHANGE.load(form))
        title = describe_item(item, ctx.caller.company.load_unit)["title"]
        data = {"version": cast("Document", item)["version"], "indexes": [], "loads": [], "lines": [], "title": title}
        return Redirect(f"{owner_pages.block_path(owner_id, block_id)}#item-{witem_id}", "Changes saved.", data=data)


def _declare_sets(owner_pages: WorkoutOwnerPages, workout_page: Handler) -> None:
    @owner_pages.post(f"{_EXERCISE}/card", form=input_of(CardForm, CardRows)(), on=workout_page)
    async def change_circuit_card(
        ctx: Context,
        owner_id: ObjectId,
        block_id: ObjectId,
        witem_id: ObjectId,
        exercise_id: ObjectId,
        form: CardForm,
    ) -> Redirect:
        """Change the sets and instructions of an exercise in a circuit; `add` repeats its last set."""
        owner, path = owner_pages.owner_type(owner_id), owner_pages.block_path(owner_id, block_id)
        planned = planned_on_card(form)
        changed = await save_circuit_exercise(ctx, owner, block_id, witem_id, exercise_id, form, planned)
        stored = changed["circuitExercises"][position_of(changed, exercise_id)]["sets"]
        return redirect_to_card(ctx, path, form, changed, stored)


def _declare_order(owner_pages: WorkoutOwnerPages, workout_page: Handler) -> None:
    @owner_pages.post(f"{_EXERCISE}/move", form=_PlaceForm, on=workout_page)
    async def place_circuit_exercise(
        ctx: Context,
        owner_id: ObjectId,
        block_id: ObjectId,
        witem_id: ObjectId,
        exercise_id: ObjectId,
        form: _PlaceForm,
    ) -> Redirect:
        """Move an exercise to another position in its circuit."""
        owner = owner_pages.owner_type(owner_id)
        block = await workouts.get(ctx, owner, block_id)
        circuit = find_circuit(block, witem_id)
        moved = exercises_of(circuit)[position_of(circuit, exercise_id)]
        others, at = with_replaced(circuit, exercise_id, []), form["place"] - 1
        await replace_exercises(ctx, owner, block_id, circuit, [*others[:at], moved, *others[at:]], block["version"])
        return Redirect(f"{owner_pages.block_path(owner_id, block_id)}#item-{witem_id}", "Moved.")
