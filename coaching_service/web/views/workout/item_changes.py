"""Adding items and circuits, and changing what their exercises plan while the others of a circuit stay unchanged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, TypedDict, cast

from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import Document
from coaching_service.core.errors import BadRequest, NotFound, require_by_id
from coaching_service.core.fields import Default
from coaching_service.core.ids import ObjectId
from coaching_service.core.validation import TEXT_LENGTH, Integer, Text, Version
from coaching_service.training.workouts.blocks.models import Block
from coaching_service.training.workouts.items import service as item_service
from coaching_service.training.workouts.items.models import ITEM_CHANGE, NEW_ITEM, CircuitItem, ItemInput, WorkItem
from coaching_service.web.views.unusual_values import Confirmation
from coaching_service.web.views.workout.owner_pages import OpenedWorkout

NEW_CIRCUIT = "new"  # in forms, in place of the identifier of a circuit
_NEW_CIRCUIT_ROUNDS = 3


class ExerciseChoice(TypedDict):
    """The exercise to add, and the circuit that it becomes a part of: by identifier, NEW_CIRCUIT, or empty for none."""

    exerciseId: ObjectId
    circuit: Annotated[str, Text(allow_blank=True), Default("")]


class Versioned(TypedDict):
    """The version of the workout that a change is based on."""

    version: Annotated[int, Version()]


class CircuitForm(Versioned):
    """The name and the number of rounds of a circuit."""

    circuitName: str
    rounds: Annotated[int, Integer(minimum=1, maximum=1000)]


class CircuitExercise(TypedDict):
    """An exercise of a circuit as sent in a request; `sets` are the sets of one round."""

    exerciseId: str
    sets: Sequence[Mapping[str, Any]]
    instructions: str | None


def circuits_of(block: Block) -> list[CircuitItem]:
    """Return the circuits in a workout."""
    return [item for item in block["items"] if item["type"] == "CIRCUIT"]


def exercises_of(circuit: CircuitItem) -> list[CircuitExercise]:
    """Return the exercises of a stored circuit in the form of a request."""
    return [
        {"exerciseId": str(entry["exerciseId"]), "sets": entry["sets"], "instructions": entry["instructions"]}
        for entry in circuit["circuitExercises"]
    ]


def find_circuit(block: Block, item_id: ObjectId) -> CircuitItem:
    """Return the circuit with this identifier. Raises NotFound."""
    return require_by_id(circuits_of(block), item_id, "circuit")


def position_of(circuit: CircuitItem, exercise_id: ObjectId) -> int:
    """Return the position of an exercise in a circuit. Raises NotFound."""
    for position, entry in enumerate(circuit["circuitExercises"]):
        if entry["exerciseId"] == exercise_id:
            return position
    raise NotFound("exercise in the circuit")


def with_replaced(
    circuit: CircuitItem, exercise_id: ObjectId, replacement: Sequence[CircuitExercise]
) -> list[CircuitExercise]:
    """Return the exercises of a circuit with one of them replaced. Raises NotFound."""
    position, entries = position_of(circuit, exercise_id), exercises_of(circuit)
    return [*entries[:position], *replacement, *entries[position + 1 :]]


async def replace_exercises(
    ctx: Context, workout: OpenedWorkout, circuit: CircuitItem, exercises: Sequence[CircuitExercise], version: int
) -> CircuitItem:
    """Replace the exercises of a circuit; returns it as it is then.

    Raises BadRequest if there is no exercise or the same one twice (logged sets refer to their exercise), NotFound, and
    Conflict if the workout no longer has this version.
    """
    if not exercises:
        raise BadRequest(["A circuit needs at least one exercise. Remove the circuit instead."])
    if len({entry["exerciseId"] for entry in exercises}) < len(exercises):
        raise BadRequest([f"{circuit['circuitName']} already contains this exercise. Edit its sets there."])
    change = ITEM_CHANGE.load({"circuitExercises": list(exercises), "version": version})
    return cast(
        "CircuitItem", await item_service.update_item(ctx, workout.owner, workout.block_id, circuit["_id"], change)
    )


async def add_item(ctx: Context, workout: OpenedWorkout, item: Document) -> WorkItem:
    """Add an item, in the form of a request, at the end of a workout."""
    new_item = cast("ItemInput", NEW_ITEM.load(item))
    return await item_service.create_item(ctx, workout.owner, workout.block_id, new_item)


async def add_exercise(
    ctx: Context, workout: OpenedWorkout, choice: ExerciseChoice, sets: Sequence[Mapping[str, Any]]
) -> WorkItem:
    """Add an exercise with its sets at the end of a workout, of one of its circuits, or of a new circuit.

    Returns the item that is added, or else the circuit as it was. Raises as replace_exercises.
    """
    exercise_id, circuit_id = str(choice["exerciseId"]), choice["circuit"]
    if not circuit_id:
        item = {"type": "EXERCISE", "exerciseId": exercise_id, "exerciseSets": sets}
        return await add_item(ctx, workout, item)
    entry: CircuitExercise = {"exerciseId": exercise_id, "sets": sets, "instructions": None}
    if circuit_id == NEW_CIRCUIT:
        details: Document = {"circuitName": "Circuit", "rounds": _NEW_CIRCUIT_ROUNDS, "circuitExercises": [entry]}
        return await add_item(ctx, workout, {"type": "CIRCUIT", **details})
    block = await workout.read(ctx)
    circuit = next((item for item in circuits_of(block) if str(item["_id"]) == circuit_id), None)
    if circuit is None:
        raise NotFound("circuit")
    await replace_exercises(ctx, workout, circuit, [*exercises_of(circuit), entry], block["version"])
    return circuit


class SetsForm(Versioned, Confirmation):
    """The planned sets and instructions of an exercise; the schemas of the forms declare the rows of their `sets`."""

    sets: list[Document]
    instructions: Annotated[str | None, Text(max_length=TEXT_LENGTH, allow_blank=True)]


class ExerciseForm(SetsForm):
    """What is planned of an exercise that is not in a circuit."""

    supersetId: Annotated[str | None, Text()]


async def save_exercise(
    ctx: Context, workout: OpenedWorkout, item_id: ObjectId, form: ExerciseForm, sets: list[Document]
) -> WorkItem:
    """Change what an exercise plans, to `sets`."""
    change = {
        "exerciseSets": sets,
        "exerciseInstructions": form["instructions"],
        "supersetId": form["supersetId"],
        "version": form["version"],
    }
    return await item_service.update_item(ctx, workout.owner, workout.block_id, item_id, ITEM_CHANGE.load(change))


async def save_circuit_exercise(
    ctx: Context,
    workout: OpenedWorkout,
    item_id: ObjectId,
    exercise_id: ObjectId,
    form: SetsForm,
    sets: list[Document],
) -> CircuitItem:
    """Change what an exercise of a circuit plans, to `sets`; returns the circuit. Raises as save_exercise."""
    circuit = find_circuit(await workout.read(ctx), item_id)
    entry: CircuitExercise = {"exerciseId": str(exercise_id), "sets": sets, "instructions": form["instructions"]}
    entries = with_replaced(circuit, exercise_id, [entry])
    return await replace_exercises(ctx, workout, circuit, entries, form["version"])
