"""Database access for training maximums and the estimates that stand in for them: at most one of each an exercise.

Both are in one collection, so that a plan is resolved with one query, also inside a transaction.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from coaching_service.core.database.connection import Index
from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import Documents, Filter, now
from coaching_service.core.database.portable import RECORDS, Portable
from coaching_service.core.database.recording import History
from coaching_service.core.ids import ObjectId
from coaching_service.training.training_maxes.models import (
    MaxSource,
    ReferenceLoads,
    StoredTrainingMax,
    TrainingMaxOwner,
)

_SET: MaxSource = "coach"
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


async def list_set(ctx: Context, customer_id: ObjectId) -> list[StoredTrainingMax]:
    """Return the training maximums of a client that are not removed, by exercise."""
    where = {"customerId": customer_id, "source": _SET, "value": {"$ne": None}}
    return await training_maxes.find(ctx, where, sort=("exerciseId",))


async def set_value(
    ctx: Context, customer_id: ObjectId, exercise_id: ObjectId, value: float | None
) -> StoredTrainingMax:
    """Store the training maximum of an exercise and return it."""
    return await training_maxes.upsert(ctx, _key(customer_id, exercise_id, _SET), {"value": value})


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
        of_exercise["trainingMax" if stored["source"] == _SET else "estimatedOneRepMax"] = stored["value"]
    return loads


async def list_all(ctx: Context, customer_id: ObjectId) -> list[StoredTrainingMax]:
    """Return the training maximums and estimates of a client that have a value."""
    return await training_maxes.find(ctx, {"customerId": customer_id, "value": {"$ne": None}})


async def set_converted(ctx: Context, values: Mapping[ObjectId, float]) -> None:
    """Store values that have been converted, by identifier: a change, but not one of the history."""
    time_of_change = now()
    await training_maxes.set_derived_each(
        ctx,
        [
            ({"_id": each}, {"$set": {"value": value, "updatedAt": time_of_change}, "$inc": {"version": 1}})
            for each, value in values.items()
        ],
    )


async def find_with_load(ctx: Context, without: Sequence[ObjectId]) -> TrainingMaxOwner | None:
    """Return the `customerId` of a training maximum or estimate, but not of the clients `without`; else None."""
    where: Filter = {"value": {"$type": "number"}, "customerId": {"$nin": list(without)}}
    return await training_maxes.find_one(ctx, where, ("customerId",))


async def set_estimates(ctx: Context, customer_id: ObjectId, estimates: Mapping[ObjectId, float | None]) -> None:
    """Store a client's estimated one-repetition maximums, by exercise, derived from the records; None deletes one."""
    removed = [exercise_id for exercise_id, value in estimates.items() if value is None]
    if removed:
        where: Filter = {"customerId": customer_id, "exerciseId": {"$in": removed}, "source": _ESTIMATED}
        await training_maxes.delete_many(ctx, where)
    stored = [
        {**_key(customer_id, exercise_id, _ESTIMATED), "value": value}
        for exercise_id, value in estimates.items()
        if value is not None
    ]
    await training_maxes.upsert_many(ctx, ("customerId", "exerciseId", "source"), stored)


def _key(customer_id: ObjectId, exercise_id: ObjectId, source: MaxSource) -> Filter:
    return {"customerId": customer_id, "exerciseId": exercise_id, "source": source}
