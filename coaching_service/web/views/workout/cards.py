"""The exercises of a workout as cards, whose planned sets are edited in place."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, TypedDict, cast

from marshmallow import fields

from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import Document
from coaching_service.core.ids import ObjectId
from coaching_service.core.validation import TEXT_LENGTH, ListOf, Text, Version
from coaching_service.training.workouts.blocks import service as workouts
from coaching_service.training.workouts.items import service as item_service
from coaching_service.training.workouts.items.content import find_index
from coaching_service.training.workouts.items.descriptions import describe_item
from coaching_service.training.workouts.items.models import CircuitExercise, ExerciseItem, WorkItem
from coaching_service.training.workouts.items.schemas import ITEM_CHANGE
from coaching_service.training.workouts.sets.models import MAX_SETS, PlannedSet
from coaching_service.web.pages import Redirect
from coaching_service.web.views.far_values import ConfirmedValues
from coaching_service.web.views.workout.card_rows import (
    CARD_ROW,
    COLUMNS,
    card_rows,
    planned_sets_of,
    resulting_load,
    with_last_repeated,
)
from coaching_service.web.views.workout.owner_pages import ITEM, Handler, WorkoutOwnerPages
from coaching_service.web.views.workout.unusual_loads import loads_of_item, require_confirmed_loads, row_loads

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


class RowsForm(ConfirmedValues):
    """The rows of planned sets of an exercise; `add` repeats the last one."""

    version = Version(required=True)
    sets = ListOf(fields.Nested(CARD_ROW), maximum=2 * MAX_SETS, load_default=list)
    instructions = Text(max_length=TEXT_LENGTH, allow_blank=True, allow_none=True, load_default=None)
    add = fields.Boolean(load_default=False)


class _CardForm(RowsForm):
    supersetId = Text(allow_blank=True, allow_none=True, load_default=None)


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


def data_of(item: WorkItem, planned: Sequence[PlannedSet], indexes: Sequence[int], unit: str) -> dict[str, Any]:
    """Return what the script of a card receives: `indexes` and `loads` of the rows that were sent and remain.

    `planned` are the stored sets of the exercise in the item.
    """
    loads = {each["index"]: resulting_load(each) for each in planned}
    return {
        "version": cast("Document", item)["version"],
        "indexes": indexes,
        "loads": [f"= {loads[index]} {unit}" if loads.get(index) else "" for index in indexes],
        "lines": describe_item(item, unit)["lines"],
    }


def declare(owner_pages: WorkoutOwnerPages, workout_page: Handler) -> None:
    """Declare the form on `workout_page` that saves a card."""

    @owner_pages.post(f"{ITEM}/card", form=_CardForm(), on=workout_page)
    async def change_card(
        ctx: Context, owner_id: ObjectId, block_id: ObjectId, witem_id: ObjectId, form: dict[str, Any]
    ) -> Redirect:
        """Change the sets, instructions and superset of an exercise; `add` repeats its last set."""
        owner = owner_pages.owner_type(owner_id)
        block = await workouts.get(ctx, owner, block_id)
        known = loads_of_item(block["items"][find_index(block["items"], witem_id)])
        require_confirmed_loads(ctx, row_loads("sets", form["sets"]), known, confirmed=form["confirmed"])
        sets = planned_sets_of(form["sets"])
        change = {
            "exerciseSets": with_last_repeated(sets) if form["add"] else sets,
            "exerciseInstructions": form["instructions"],
            "supersetId": form["supersetId"] or None,
            "version": form["version"],
        }
        item = await item_service.update_item(ctx, owner, block_id, witem_id, ITEM_CHANGE.load(change))
        path = f"{owner_pages.block_path(owner_id, block_id)}#item-{witem_id}"
        stored = cast("ExerciseItem", item)["exerciseSets"]
        data = data_of(item, stored, [planned["index"] for planned in sets], ctx.caller.company.load_unit)
        return Redirect(path, "Set added." if form["add"] else "Changes saved.", data=data)
