"""The exercises and circuits of a workout as cards, whose planned sets are edited in place."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Annotated, Any, TypedDict, cast

from marshmallow import fields

from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import Document
from coaching_service.core.field_schemas import input_of
from coaching_service.core.fields import Default
from coaching_service.core.ids import ObjectId
from coaching_service.core.validation import Input, Integer, ListOf
from coaching_service.training.workouts.items import service as item_service
from coaching_service.training.workouts.items.descriptions import describe_item
from coaching_service.training.workouts.items.models import CircuitExercise, ExerciseItem, WorkItem
from coaching_service.training.workouts.items.schemas import ITEM_CHANGE
from coaching_service.training.workouts.sets.models import MAX_SETS, PlannedSet
from coaching_service.web.pages import Redirect
from coaching_service.web.views.workout.card_rows import (
    CARD_ROW,
    COLUMNS,
    card_rows,
    planned_sets_of,
    resulting_load,
    with_last_repeated,
)
from coaching_service.web.views.workout.item_changes import (
    CircuitForm,
    ExerciseForm,
    SetsForm,
    exercises_of,
    find_circuit,
    position_of,
    replace_exercises,
    save_circuit_exercise,
    save_exercise,
    with_replaced,
)
from coaching_service.web.views.workout.owner_pages import CIRCUIT_EXERCISE, ITEM, OpenedWorkout, WorkoutPages

pages = WorkoutPages()
# More sets are edited on the page of the item: each set has fourteen fields.
_MAX_ROWS_OF_CARD, _MAX_ROWS_OF_PAGE = 30, 240


class Card(TypedDict):
    """The rows of planned sets that a card edits."""

    rows: list[Document]
    instructions: str | None
    supersetId: str | None


class CircuitCard(TypedDict):
    """The rows of planned sets of one exercise in each round of a circuit."""

    exerciseId: ObjectId
    name: str
    rows: list[Document]
    instructions: str | None


class CardForm(SetsForm):
    """The card of an exercise; `add` repeats its last set."""

    add: Annotated[bool, Default(False)]


class _ExerciseCardForm(CardForm, ExerciseForm):
    """The card of an exercise that is not in a circuit."""


class CardRows(Input):
    """The rows of planned sets on a card."""

    sets = ListOf(fields.Nested(CARD_ROW), maximum=2 * MAX_SETS, load_default=list)


def card_variables(items: Sequence[WorkItem]) -> dict[str, Any]:
    """Return the cards of a workout by item (a list for a circuit), and the columns of cards."""
    cards: dict[ObjectId, Card] = {}
    circuit_cards: dict[ObjectId, list[CircuitCard]] = {}
    remaining = _MAX_ROWS_OF_PAGE
    for item in items:
        count = _count_sets(item)
        if not 0 < count <= min(_MAX_ROWS_OF_CARD, remaining):
            continue
        remaining -= count
        if item["type"] == "EXERCISE":
            cards[item["_id"]] = _card(item)
        elif item["type"] == "CIRCUIT":
            circuit_cards[item["_id"]] = [_circuit_card(entry) for entry in item["circuitExercises"]]
    ids = [f"i{item_id}" for item_id in cards]
    ids += [f"i{item_id}x{card['exerciseId']}" for item_id, entries in circuit_cards.items() for card in entries]
    return {"cards": cards, "circuit_cards": circuit_cards, "card_ids": ids, "columns": COLUMNS}


def _count_sets(item: WorkItem) -> int:
    if item["type"] == "EXERCISE":
        return len(item["exerciseSets"])
    return sum(len(entry["sets"]) for entry in item["circuitExercises"]) if item["type"] == "CIRCUIT" else 0


def superset_labels(items: Sequence[WorkItem]) -> dict[ObjectId, tuple[str, int] | None]:
    """Return the superset of each item and the item's number in it, such as A and 1; None outside of supersets."""
    counts: Counter[str] = Counter()
    labels: dict[ObjectId, tuple[str, int] | None] = {}
    for item in items:
        superset = item["supersetId"] if item["type"] == "EXERCISE" else None
        if superset:
            counts[superset] += 1
        labels[item["_id"]] = (superset, counts[superset]) if superset else None
    return labels


def _card(item: ExerciseItem) -> Card:
    return {
        "rows": card_rows(item["exerciseSets"]),
        "instructions": item["exerciseInstructions"],
        "supersetId": item["supersetId"],
    }


def _circuit_card(entry: CircuitExercise) -> CircuitCard:
    return {
        "exerciseId": entry["exerciseId"],
        "name": entry["exercise"]["name"],
        "rows": card_rows(entry["sets"]),
        "instructions": entry["instructions"],
    }


def planned_on_card(form: CardForm) -> list[Document]:
    """Return the sets that a card plans."""
    sets = planned_sets_of(form["sets"])
    return with_last_repeated(sets) if form["add"] else sets


def redirect_to_card(ctx: Context, path: str, form: CardForm, item: WorkItem, stored: Sequence[PlannedSet]) -> Redirect:
    """Redirect after saving; a script receives the `indexes` and `loads` of the rows that were sent and remain.

    `stored` are the sets of the exercise in the item.
    """
    loads, unit = {each["index"]: resulting_load(each) for each in stored}, ctx.caller.company.load_unit
    indexes = [planned["index"] for planned in planned_sets_of(form["sets"])]
    data = {
        "version": cast("Document", item)["version"],
        "indexes": indexes,
        "loads": [f"= {loads[index]} {unit}" if loads.get(index) else "" for index in indexes],
        "lines": describe_item(item, unit)["lines"],
    }
    return Redirect(f"{path}#item-{item['_id']}", "Set added." if form["add"] else "Changes saved.", data=data)


@pages.post(f"{ITEM}/card", form=input_of(_ExerciseCardForm, CardRows)())
async def change_card(ctx: Context, workout: OpenedWorkout, witem_id: ObjectId, form: _ExerciseCardForm) -> Redirect:
    """Change the sets, instructions and superset of an exercise; `add` repeats its last set."""
    item = await save_exercise(ctx, workout, witem_id, form, planned_on_card(form))
    return redirect_to_card(ctx, workout.path, form, item, cast("ExerciseItem", item)["exerciseSets"])


class _PlaceForm(TypedDict):
    place: Annotated[int, Integer(minimum=1, maximum=1000)]


@pages.post(f"{ITEM}/rounds", form=CircuitForm)
async def change_rounds(ctx: Context, workout: OpenedWorkout, witem_id: ObjectId, form: CircuitForm) -> Redirect:
    """Change the name and the number of rounds of a circuit."""
    item = await item_service.update_item(ctx, workout.owner, workout.block_id, witem_id, ITEM_CHANGE.load(form))
    title = describe_item(item, ctx.caller.company.load_unit)["title"]
    data = {"version": cast("Document", item)["version"], "indexes": [], "loads": [], "lines": [], "title": title}
    return Redirect(f"{workout.path}#item-{witem_id}", "Changes saved.", data=data)


@pages.post(f"{CIRCUIT_EXERCISE}/card", form=input_of(CardForm, CardRows)())
async def change_circuit_card(
    ctx: Context, workout: OpenedWorkout, witem_id: ObjectId, exercise_id: ObjectId, form: CardForm
) -> Redirect:
    """Change the sets and instructions of an exercise in a circuit; `add` repeats its last set."""
    changed = await save_circuit_exercise(ctx, workout, witem_id, exercise_id, form, planned_on_card(form))
    stored = changed["circuitExercises"][position_of(changed, exercise_id)]["sets"]
    return redirect_to_card(ctx, workout.path, form, changed, stored)


@pages.post(f"{CIRCUIT_EXERCISE}/move", form=_PlaceForm)
async def place_circuit_exercise(
    ctx: Context, workout: OpenedWorkout, witem_id: ObjectId, exercise_id: ObjectId, form: _PlaceForm
) -> Redirect:
    """Move an exercise to another position in its circuit."""
    block = await workout.read(ctx)
    circuit = find_circuit(block, witem_id)
    moved = exercises_of(circuit)[position_of(circuit, exercise_id)]
    others, at = with_replaced(circuit, exercise_id, []), form["place"] - 1
    await replace_exercises(ctx, workout, circuit, [*others[:at], moved, *others[at:]], block["version"])
    return Redirect(f"{workout.path}#item-{witem_id}", "Moved.")
