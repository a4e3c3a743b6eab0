"""Circuits as cards: their name and rounds, and the sets of each exercise, are edited in place."""

from __future__ import annotations

from typing import Annotated, Any, TypedDict, cast

from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import Document
from coaching_service.core.ids import ObjectId
from coaching_service.core.validation import Integer, Version
from coaching_service.training.workouts.blocks import service as workouts
from coaching_service.training.workouts.items import service as item_service
from coaching_service.training.workouts.items.descriptions import describe_item
from coaching_service.training.workouts.items.schemas import ITEM_CHANGE
from coaching_service.web.pages import Redirect
from coaching_service.web.views.workout.card_rows import planned_sets_of, with_last_repeated
from coaching_service.web.views.workout.cards import RowsForm, data_of
from coaching_service.web.views.workout.circuits import (
    CircuitExercise,
    exercises_of,
    find_circuit,
    position_of,
    replace_exercises,
    with_replaced,
)
from coaching_service.web.views.workout.owner_pages import ITEM, Handler, WorkoutOwnerPages
from coaching_service.web.views.workout.unusual_loads import loads_of, require_confirmed_loads, row_loads

_EXERCISE = f"{ITEM}/exercises/{{exerciseId}}"


class _RoundsForm(TypedDict):
    version: Annotated[int, Version()]
    circuitName: str
    rounds: Annotated[int, Integer(minimum=1, maximum=1000)]


class _PlaceForm(TypedDict):
    place: Annotated[int, Integer(minimum=1, maximum=1000)]


def declare(owner_pages: WorkoutOwnerPages, workout_page: Handler) -> None:
    """Declare the forms on `workout_page` that save the parts of a circuit's card."""
    _declare_rounds(owner_pages, workout_page)
    _declare_sets(owner_pages, workout_page)
    _declare_order(owner_pages, workout_page)


def _declare_rounds(owner_pages: WorkoutOwnerPages, workout_page: Handler) -> None:
    @owner_pages.post(f"{ITEM}/rounds", form=_RoundsForm, on=workout_page)
    async def change_rounds(
        ctx: Context, owner_id: ObjectId, block_id: ObjectId, witem_id: ObjectId, form: _RoundsForm
    ) -> Redirect:
        """Change the name and the number of rounds of a circuit."""
        owner = owner_pages.owner_type(owner_id)
        item = await item_service.update_item(ctx, owner, block_id, witem_id, ITEM_CHANGE.load(form))
        title = describe_item(item, ctx.caller.company.load_unit)["title"]
        data = {"version": cast("Document", item)["version"], "indexes": [], "loads": [], "lines": [], "title": title}
        return Redirect(f"{owner_pages.block_path(owner_id, block_id)}#item-{witem_id}", "Changes saved.", data=data)


def _declare_sets(owner_pages: WorkoutOwnerPages, workout_page: Handler) -> None:
    @owner_pages.post(f"{_EXERCISE}/card", form=RowsForm(), on=workout_page)
    async def change_circuit_card(
        ctx: Context,
        owner_id: ObjectId,
        block_id: ObjectId,
        witem_id: ObjectId,
        exercise_id: ObjectId,
        form: dict[str, Any],
    ) -> Redirect:
        """Change the sets and instructions of an exercise in a circuit; `add` repeats its last set."""
        owner = owner_pages.owner_type(owner_id)
        circuit = find_circuit(await workouts.get(ctx, owner, block_id), witem_id)
        known = loads_of(circuit["circuitExercises"][position_of(circuit, exercise_id)]["sets"])
        require_confirmed_loads(ctx, row_loads("sets", form["sets"]), known, confirmed=form["confirmed"])
        sets = planned_sets_of(form["sets"])
        entry: CircuitExercise = {
            "exerciseId": str(exercise_id),
            "sets": with_last_repeated(sets) if form["add"] else sets,
            "instructions": form["instructions"],
        }
        entries = with_replaced(circuit, exercise_id, [entry])
        changed = await replace_exercises(ctx, owner, block_id, circuit, entries, form["version"])
        stored = changed["circuitExercises"][position_of(changed, exercise_id)]["sets"]
        data = data_of(changed, stored, [planned["index"] for planned in sets], ctx.caller.company.load_unit)
        path = f"{owner_pages.block_path(owner_id, block_id)}#item-{witem_id}"
        return Redirect(path, "Set added." if form["add"] else "Changes saved.", data=data)


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
