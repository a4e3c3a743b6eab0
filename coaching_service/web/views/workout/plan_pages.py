"""Editing what an item plans: sets, circuits, tasks and reminders."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from marshmallow import Schema, fields

from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import Document
from coaching_service.core.field_schemas import input_of
from coaching_service.core.ids import ObjectId
from coaching_service.core.validation import TEXT_LENGTH, Input, Integer, ListOf, Text, Version
from coaching_service.training.set_text.planned import parse_planned
from coaching_service.training.set_text.planned_writer import write_planned
from coaching_service.training.set_text.scanner import SetTextError
from coaching_service.training.workout_text.lines import Problem, TextError
from coaching_service.training.workouts.blocks import service as workouts
from coaching_service.training.workouts.blocks.models import Block
from coaching_service.training.workouts.blocks.owners import ScheduleOwner
from coaching_service.training.workouts.items import content as items
from coaching_service.training.workouts.items import service as item_service
from coaching_service.training.workouts.items.descriptions import describe_item, describe_sets
from coaching_service.training.workouts.items.models import PlannedReminder, TaskFields, WorkItem
from coaching_service.training.workouts.items.schemas import ITEM_CHANGE
from coaching_service.training.workouts.sets.models import MAX_SETS, PlannedSet
from coaching_service.web.pages import Redirect
from coaching_service.web.views.far_values import ConfirmedValues
from coaching_service.web.views.workout.circuits import (
    CircuitExercise,
    find_circuit,
    position_of,
    replace_exercises,
    with_replaced,
)
from coaching_service.web.views.workout.owner_pages import ITEM, Handler, WorkoutOwnerPages
from coaching_service.web.views.workout.planned_set_rows import (
    BLANK_ROWS,
    SET_KINDS,
    SET_ROW,
    SET_TYPES,
    planned_sets,
    set_rows,
)
from coaching_service.web.views.workout.unusual_loads import loads_of, loads_of_item, require_confirmed_loads, row_loads

_CIRCUIT_EXERCISE = f"{ITEM}/exercises/{{exerciseId}}"


class _VersionForm(Input):
    version = Version(required=True)


class _SetsForm(_VersionForm, ConfirmedValues):
    sets = ListOf(fields.Nested(SET_ROW), maximum=MAX_SETS + BLANK_ROWS, load_default=list)
    instructions = Text(max_length=TEXT_LENGTH, allow_blank=True, allow_none=True, load_default=None)


class _ExerciseForm(_SetsForm):
    supersetId = Text(allow_blank=True, allow_none=True, load_default=None)


class _SetTextForm(_VersionForm, ConfirmedValues):
    setText = Text(max_length=TEXT_LENGTH, required=True)


class _CircuitForm(_VersionForm):
    circuitName = Text(required=True)
    rounds = Integer(minimum=1, maximum=1_000, required=True)


def declare(owner_pages: WorkoutOwnerPages) -> None:
    """Declare the pages and forms that edit an item."""
    item_page = _declare_item_page(owner_pages)
    _declare_item_forms(owner_pages, item_page)
    _declare_set_text_form(owner_pages, item_page)
    _declare_circuit_exercise_page(owner_pages)
    _declare_circuit_exercise_removal(owner_pages, item_page)


def _declare_item_page(owner_pages: WorkoutOwnerPages) -> Handler:
    @owner_pages.get(ITEM, permission=owner_pages.edit, template="workout/item.html")
    async def item_page(ctx: Context, owner_id: ObjectId, block_id: ObjectId, witem_id: ObjectId) -> dict[str, Any]:
        """The form that edits an item."""
        variables = await owner_pages.load_variables(ctx, owner_id, block_id)
        item, unit = _find_item(variables["block"], witem_id), ctx.caller.company.load_unit
        entries = item["circuitExercises"] if item["type"] == "CIRCUIT" else []
        planned = item["exerciseSets"] if item["type"] == "EXERCISE" else []
        return {
            **variables,
            **_set_variables(ctx, planned),
            "version": variables["block"]["version"],
            "item": item,
            "entries": [{**entry, "lines": describe_sets(entry["sets"], unit)} for entry in entries],
            "title": describe_item(item, unit)["title"],
            "set_text": write_planned(planned, unit),
            "item_path": f"{variables['block_path']}/items/{witem_id}",
        }

    return item_page


def _declare_item_forms(owner_pages: WorkoutOwnerPages, item_page: Handler) -> None:
    def declare_form(path: str, name: str, schema: Schema, change_of: Callable[[Mapping[str, Any]], Document]) -> None:
        async def change_item(
            ctx: Context, owner_id: ObjectId, block_id: ObjectId, witem_id: ObjectId, form: dict[str, Any]
        ) -> Redirect:
            """Change what an item plans."""
            owner = owner_pages.owner_type(owner_id)
            if "sets" in form:
                known = await _load_known(ctx, owner, block_id, witem_id)
                require_confirmed_loads(ctx, row_loads("sets", form["sets"]), known, confirmed=form["confirmed"])
            change = ITEM_CHANGE.load(change_of(form) | {"version": form["version"]})
            await item_service.update_item(ctx, owner, block_id, witem_id, change)
            return Redirect(owner_pages.block_path(owner_id, block_id), "Changes saved.")

        change_item.__name__ = name
        owner_pages.post(f"{ITEM}/{path}", form=schema, on=item_page)(change_item)

    declare_form("sets", "change_sets", _ExerciseForm(), _exercise_change)
    declare_form("circuit", "change_circuit", _CircuitForm(), lambda form: _select(form, "circuitName", "rounds"))
    declare_form(
        "task",
        "change_task",
        input_of(TaskFields, _VersionForm)(),
        lambda form: {"taskFields": _select(form, "title", "description")},
    )
    declare_form(
        "reminder",
        "change_reminder",
        input_of(PlannedReminder, _VersionForm)(),
        lambda form: {"reminderFields": _select(form, "scheduledTime", "message")},
    )


def _declare_set_text_form(owner_pages: WorkoutOwnerPages, item_page: Handler) -> None:
    @owner_pages.post(f"{ITEM}/set-text", form=_SetTextForm(), on=item_page)
    async def change_set_text(
        ctx: Context, owner_id: ObjectId, block_id: ObjectId, witem_id: ObjectId, form: dict[str, Any]
    ) -> Redirect:
        """Replace the planned sets of an exercise by the sets of a text."""
        try:
            sets = parse_planned(form["setText"], ctx.caller.company.load_unit)
        except SetTextError as error:
            raise TextError([Problem("setText", None, str(error), error.problem)]) from None
        owner = owner_pages.owner_type(owner_id)
        highest = {"setText": max((load for load in loads_of(sets) if load), default=None)}
        known = await _load_known(ctx, owner, block_id, witem_id)
        require_confirmed_loads(ctx, highest, known, confirmed=form["confirmed"])
        change = ITEM_CHANGE.load({"exerciseSets": sets, "version": form["version"]})
        await item_service.update_item(ctx, owner, block_id, witem_id, change)
        return Redirect(owner_pages.block_path(owner_id, block_id), "Changes saved.")


async def _load_known(ctx: Context, owner: ScheduleOwner, block_id: ObjectId, item_id: ObjectId) -> list[float | None]:
    """Load the planned and done loads of an item."""
    return loads_of_item(_find_item(await workouts.get(ctx, owner, block_id), item_id))


def _exercise_change(form: Mapping[str, Any]) -> Document:
    return {
        "exerciseSets": planned_sets(form["sets"]),
        "exerciseInstructions": form["instructions"],
        "supersetId": form["supersetId"] or None,
    }


def _select(form: Mapping[str, Any], *names: str) -> Document:
    return {name: form[name] for name in names}


def _declare_circuit_exercise_page(owner_pages: WorkoutOwnerPages) -> None:
    @owner_pages.get(_CIRCUIT_EXERCISE, permission=owner_pages.edit, template="workout/circuit_exercise.html")
    async def circuit_exercise_page(
        ctx: Context, owner_id: ObjectId, block_id: ObjectId, witem_id: ObjectId, exercise_id: ObjectId
    ) -> dict[str, Any]:
        """The form that edits an exercise of a circuit."""
        variables = await owner_pages.load_variables(ctx, owner_id, block_id)
        circuit = find_circuit(variables["block"], witem_id)
        entry = circuit["circuitExercises"][position_of(circuit, exercise_id)]
        return {
            **variables,
            **_set_variables(ctx, entry["sets"]),
            "version": variables["block"]["version"],
            "circuit": circuit,
            "entry": entry,
            "item_path": f"{variables['block_path']}/items/{witem_id}",
        }

    @owner_pages.post(_CIRCUIT_EXERCISE, form=_SetsForm(), on=circuit_exercise_page)
    async def change_circuit_exercise(
        ctx: Context,
        owner_id: ObjectId,
        block_id: ObjectId,
        witem_id: ObjectId,
        exercise_id: ObjectId,
        form: dict[str, Any],
    ) -> Redirect:
        """Change the sets and instructions of an exercise in a circuit."""
        owner = owner_pages.owner_type(owner_id)
        block = await workouts.get(ctx, owner, block_id)
        circuit = find_circuit(block, witem_id)
        known = loads_of(circuit["circuitExercises"][position_of(circuit, exercise_id)]["sets"])
        require_confirmed_loads(ctx, row_loads("sets", form["sets"]), known, confirmed=form["confirmed"])
        entry: CircuitExercise = {
            "exerciseId": str(exercise_id),
            "sets": planned_sets(form["sets"]),
            "instructions": form["instructions"],
        }
        entries = with_replaced(circuit, exercise_id, [entry])
        await replace_exercises(ctx, owner, block_id, circuit, entries, form["version"])
        return Redirect(f"{owner_pages.block_path(owner_id, block_id)}/items/{witem_id}", "Changes saved.")


def _declare_circuit_exercise_removal(owner_pages: WorkoutOwnerPages, item_page: Handler) -> None:
    @owner_pages.post(f"{_CIRCUIT_EXERCISE}/remove", on=item_page)
    async def remove_circuit_exercise(
        ctx: Context, owner_id: ObjectId, block_id: ObjectId, witem_id: ObjectId, exercise_id: ObjectId
    ) -> Redirect:
        """Remove an exercise from a circuit; its logged sets are not deleted."""
        owner = owner_pages.owner_type(owner_id)
        block = await workouts.get(ctx, owner, block_id)
        circuit = find_circuit(block, witem_id)
        entries = with_replaced(circuit, exercise_id, [])
        await replace_exercises(ctx, owner, block_id, circuit, entries, block["version"])
        path = owner_pages.block_path(owner_id, block_id)
        return Redirect(f"{path}/items/{witem_id}", "Exercise removed.", part=path)


def _set_variables(ctx: Context, sets: Sequence[PlannedSet]) -> dict[str, Any]:
    unit = ctx.caller.company.load_unit
    return {"rows": set_rows(sets), "set_types": SET_TYPES, "set_kinds": SET_KINDS, "unit": unit}


def _find_item(block: Block, item_id: ObjectId) -> WorkItem:
    return block["items"][items.find_index(block["items"], item_id)]
