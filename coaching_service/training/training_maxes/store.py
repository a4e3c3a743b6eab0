"""Database access for training maximums and the estimates that stand in for them: at most one of each an exercise.

Both are in one collection, so that a plan is resolved with one query, also inside a transaction.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from coaching_service.core.database.connection import Index
from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import Documents, Filter
from coaching_service.core.database.portable import RECORDS, Portable
from coaching_service.core.database.recording import History
from coaching_service.core.ids import ObjectId
from coaching_service.training.training_maxes.models import MaxSource, ReferenceLoads, StoredTrainingMax

SET: MaxSource = "coach"
_ESTIMATED: MaxSource = "records"


def _kind_of(known: Mapping[str, Any]) -> str:
    """Return the kind of a stored load in the history: what a coach has set, or what follows from the records."""
    return "estimated_max" if known.get("source") == _ESTIMATED else "training_max"


training_maxes = Documents[StoredTrainingMax](
    "trainingMaxes",
    (Index(("customerId", "exerciseId", "source"), unique=True),),
    client_field="customerId",
    history=History("training_max", undo="derived", event_fields=("source",), kind_of=_kind_of),
    transfer=Portable(StoredTrainingMax, RECORDS, references={"customerId": "customers", "exerciseId": "exercises"}),
)


async def get_reference_loads(
    ctx: Context, customer_id: ObjectId, exercise_ids: Iterable[ObjectId]
) -> dict[ObjectId, ReferenceLoads]:
    """Return the training maximum and the estimated one-repetition maximum of exercises, in the company's unit.

    For a client whose access has been checked; exercises with neither are left out.
    """
    where: Filter = {"customerId": customer_id, "exerciseId": {"$in": list(exercise_ids)}, "value": {"$ne": None}}
    loads: dict[ObjectId, ReferenceLoads] = {}
    for stored in await training_maxes.find(ctx, where, fields=("exerciseId", "source", "value")):
        of_exercise = loads.setdefault(stored["exerciseId"], {"trainingMax": None, "estimatedOneRepMax": None})
        of_exercise["trainingMax" if stored["source"] == SET else "estimatedOneRepMax"] = stored["value"]
    return loads


async def set_estimates(ctx: Context, customer_id: ObjectId, estimates: Mapping[ObjectId, float | None]) -> None:
    """Store a client's estimated one-repetition maximums, by exercise, derived from the records; None deletes one."""
    removed = [exercise_id for exercise_id, value in estimates.items() if value is None]
    if removed:
        where: Filter = {"customerId": customer_id, "exerciseId": {"$in": removed}, "source": _ESTIMATED}
        await training_maxes.delete_many(ctx, where)
    stored = [
        {**key(customer_id, exercise_id, _ESTIMATED), "value": value}
        for exercise_id, value in estimates.items()
        if value is not None
    ]
    await training_maxes.upsert_many(ctx, ("customerId", "exerciseId", "source"), stored)


def key(customer_id: ObjectId, exercise_id: ObjectId, source: MaxSource) -> Filter:
    """Return the condition of the load of an exercise of a client from a source."""
    return {"customerId": customer_id, "exerciseId": exercise_id, "source": source}
