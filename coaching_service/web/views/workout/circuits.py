"""Replacing one exercise of a circuit while the others stay unchanged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypedDict

from coaching_service.core.database.context import Context
from coaching_service.core.errors import BadRequest
from coaching_service.core.ids import ObjectId
from coaching_service.training.workouts import item_service
from coaching_service.training.workouts.item_models import CircuitItem
from coaching_service.training.workouts.item_schemas import ITEM_CHANGE
from coaching_service.training.workouts.models import Block
from coaching_service.training.workouts.schedule_owners import ScheduleOwner


class CircuitExercise(TypedDict):
    """An exercise of a circuit as sent in a request; `sets` are those of one round."""

    exerciseId: str
    sets: Sequence[Mapping[str, Any]]
    instructions: str | None


def circuits_of(block: Block) -> list[CircuitItem]:
    """The circuits in a workout."""
    return [item for item in block["items"] if item["type"] == "CIRCUIT"]


def exercises_of(circuit: CircuitItem) -> list[CircuitExercise]:
    """The exercises of a stored circuit in the form of a request."""
    return [
        {"exerciseId": str(entry["exerciseId"]), "sets": entry["sets"], "instructions": entry["instructions"]}
        for entry in circuit["circuitExercises"]
    ]


async def replace_exercises(
    ctx: Context,
    owner: ScheduleOwner,
    block_id: ObjectId,
    circuit: CircuitItem,
    exercises: Sequence[CircuitExercise],
    version: int,
) -> None:
    """Replace the exercises of a circuit.

    Raises BadRequest if there is no exercise or the same one twice (logged sets refer to their exercise), NotFound, and
    Conflict if the workout no longer has this version.
    """
    if not exercises:
        raise BadRequest(["A circuit needs at least one exercise. Remove the circuit instead."])
    if len({entry["exerciseId"] for entry in exercises}) < len(exercises):
        raise BadRequest([f"{circuit['circuitName']} already contains this exercise. Edit its sets there."])
    change = ITEM_CHANGE.load({"circuitExercises": list(exercises), "version": version})
    await item_service.change_item(ctx, owner, block_id, circuit["_id"], change)
