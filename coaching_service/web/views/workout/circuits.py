"""The exercises of a circuit, of which a form changes one and leaves the others as they are."""

from __future__ import annotations

from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import Document
from coaching_service.core.errors import BadRequest
from coaching_service.training.workouts import item_service
from coaching_service.training.workouts.item_schemas import ITEM_CHANGE
from coaching_service.training.workouts.owners import Owner


def of(block: Document) -> list[Document]:
    """The circuits in a workout, as they are read."""
    return [item for item in block["items"] if item["type"] == "CIRCUIT"]


def as_sent(circuit: Document) -> list[Document]:
    """The exercises of a circuit that was read, as they are sent."""
    return [
        {"exerciseId": str(entry["exerciseId"]), "sets": entry["sets"], "instructions": entry["instructions"]}
        for entry in circuit["circuitExercises"]
    ]


async def rewrite(ctx: Context, owner: Owner, block: Document, circuit: Document, entries: list[Document]) -> None:
    """Give the circuit of a workout that was read these exercises, as they are sent.

    Raises BadRequest when there is none, or one of them twice (a client's log names sets by their exercise), NotFound,
    and Conflict when the workout has moved on since it was read.
    """
    if not entries:
        raise BadRequest(["A circuit needs an exercise: remove the circuit instead"])
    if len({entry["exerciseId"] for entry in entries}) < len(entries):
        raise BadRequest([f"It is in {circuit['circuitName']} already: change its sets there"])
    change = ITEM_CHANGE.load({"circuitExercises": entries, "version": block["version"]})
    await item_service.change_item(ctx, owner, block["_id"], circuit["_id"], change)
