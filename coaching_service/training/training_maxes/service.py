"""The loads to which a client's planned percentages refer: training maximums, else estimates."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import cast

from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import Document, Filter, now
from coaching_service.core.database.transactions import gather_reads, transactional
from coaching_service.core.ids import ObjectId
from coaching_service.library.exercises import service as exercises
from coaching_service.people.account import service as account
from coaching_service.people.account.service import Conversion, LoadCount
from coaching_service.people.customers import service as customers
from coaching_service.training.training_maxes import store
from coaching_service.training.training_maxes.models import MAX_VALUE, ReferenceLoads, StoredTrainingMax, TrainingMax


async def list_training_maxes(ctx: Context, customer_id: ObjectId) -> list[TrainingMax]:
    """Return the training maximums of a client, by exercise.

    Raises NotFound if the company has no such client, Forbidden if the client is outside the caller's scope.
    """
    where = {"customerId": customer_id, "source": store.SET, "value": {"$ne": None}}
    find_maxes = store.training_maxes.find(ctx, where, sort=("exerciseId",))
    _, maxes = await gather_reads(ctx, customers.get_visible(ctx, customer_id), find_maxes)
    return [_present(stored) for stored in maxes]


@transactional
async def set_training_max(
    ctx: Context, customer_id: ObjectId, exercise_id: ObjectId, value: float | None
) -> TrainingMax:
    """Set a client's training maximum of an exercise, in the company's unit of load; None removes it.

    Raises NotFound if the company has no such client or exercise, Forbidden if the client is outside the caller's
    scope.
    """
    await customers.get_visible(ctx, customer_id)
    await exercises.require_known(ctx, exercise_id)
    if value is not None:
        await account.lock_load_unit(ctx)
        await customers.lock_and_mark_figures(ctx, customer_id)
    where = store.key(customer_id, exercise_id, store.SET)
    return _present(await store.training_maxes.upsert(ctx, where, {"value": value}))


async def find_set_maxes(
    ctx: Context, customer_id: ObjectId, exercise_ids: Sequence[ObjectId]
) -> list[StoredTrainingMax]:
    """Return the training maximums of exercises as they are stored, for a client whose access has been checked."""
    where: Filter = {"customerId": customer_id, "exerciseId": {"$in": list(exercise_ids)}, "source": store.SET}
    return await store.training_maxes.find(ctx, where | {"value": {"$ne": None}})


async def load_reference_loads(
    ctx: Context, customer_id: ObjectId, exercise_ids: Iterable[ObjectId]
) -> dict[ObjectId, ReferenceLoads]:
    """Return the training maximum and the estimated one-repetition maximum of exercises, in the company's unit.

    For a client whose access has been checked; exercises with neither are left out.
    """
    where: Filter = {"customerId": customer_id, "exerciseId": {"$in": list(exercise_ids)}, "value": {"$ne": None}}
    loads: dict[ObjectId, ReferenceLoads] = {}
    for stored in await store.training_maxes.find(ctx, where, fields=("exerciseId", "source", "value")):
        of_exercise = loads.setdefault(stored["exerciseId"], {"trainingMax": None, "estimatedOneRepMax": None})
        of_exercise["trainingMax" if stored["source"] == store.SET else "estimatedOneRepMax"] = stored["value"]
    return loads


async def set_estimates(ctx: Context, customer_id: ObjectId, estimates: Mapping[ObjectId, float | None]) -> None:
    """Store a client's estimated one-repetition maximums, by exercise, derived from the records; None deletes one."""
    removed = [exercise_id for exercise_id, value in estimates.items() if value is None]
    if removed:
        where: Filter = {"customerId": customer_id, "exerciseId": {"$in": removed}, "source": store.ESTIMATED}
        await store.training_maxes.delete_many(ctx, where)
    stored = [
        {**store.key(customer_id, exercise_id, store.ESTIMATED), "value": value}
        for exercise_id, value in estimates.items()
        if value is not None
    ]
    await store.training_maxes.upsert_many(ctx, ("customerId", "exerciseId", "source"), stored)


def _present(stored: StoredTrainingMax) -> TrainingMax:
    return {"exerciseId": stored["exerciseId"], "value": stored["value"], "updatedAt": stored["updatedAt"]}


async def convert_client(
    ctx: Context, customer_id: ObjectId, conversion: Conversion, estimates: Mapping[ObjectId, float]
) -> LoadCount:
    """Convert the training maximums of a client, who is locked, to another unit, in the caller's transaction.

    `estimates` are those that follow from the converted records, by exercise; others are converted too.
    """
    writes: list[tuple[Filter, Document | list[Document]]] = []
    at = now()
    for stored in await store.training_maxes.find(ctx, {"customerId": customer_id, "value": {"$ne": None}}):
        value = min(conversion.convert(cast("float", stored["value"])), float(MAX_VALUE))
        if stored["source"] == store.ESTIMATED:
            value = estimates.get(stored["exerciseId"], value)
        change = {"$set": {"value": value, "updatedAt": at}, "$inc": {"version": 1}}  # not one of the history
        writes.append(({"_id": stored["_id"]}, change))
    if conversion.is_stored:
        await store.training_maxes.set_derived_each(ctx, writes)
    return LoadCount(len(writes), len(writes))


async def find_with_load(ctx: Context, without: Sequence[ObjectId]) -> tuple[ObjectId | None] | None:
    """Return the client of a training maximum with a load, but none of the clients `without`; None if there is none."""
    where: Filter = {"value": {"$type": "number"}, "customerId": {"$nin": list(without)}}
    found = await store.training_maxes.find_one(ctx, where, ("customerId",))
    return None if found is None else (found["customerId"],)
