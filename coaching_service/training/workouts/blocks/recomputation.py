"""Computing again what is stored of logs, after a change of what the figures mean."""

from __future__ import annotations

from collections.abc import Sequence

from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import Filter
from coaching_service.core.ids import ObjectId
from coaching_service.training import body_weights
from coaching_service.training.workouts import store
from coaching_service.training.workouts.blocks.models import StoredBlock
from coaching_service.training.workouts.items.service import (
    derive_again,
    has_added_loads,
    load_exercises,
    with_body_weight,
)
from coaching_service.training.workouts.store import BY_DATE, blocks

_BATCH = 100
_BY_ITEM = blocks.index_name("customerId", "items._id")


async def recompute_logs(ctx: Context, customer_id: ObjectId, exercise_id: ObjectId | None = None) -> bool:
    """Compute the figures of a client's sessions (with an exercise) again; returns whether there are any.

    A block that is changed at the same time is read again: nothing is written that is older than its items.
    """
    condition: Filter = {"customerId": customer_id, "date": {"$gt": ""}} | store.IS_SESSION
    if exercise_id is not None:
        condition |= {"items.doneExerciseIds": exercise_id}
    return await _recompute_all(ctx, customer_id, condition, BY_DATE)


async def recompute_added_loads(ctx: Context, customer_id: ObjectId, first: str, last: str) -> bool:
    """Compute the figures of sessions with loads that are added to the body's again, in the caller's transaction.

    Those from the date `first` to `last`; returns whether there are any.
    """
    condition = store.between(customer_id, first, last) | {"items.addedExerciseIds.0": {"$exists": True}}
    return await _recompute_all(ctx, customer_id, condition, BY_DATE)


async def recompute_items(ctx: Context, customer_id: ObjectId, item_ids: Sequence[ObjectId]) -> None:
    """Compute the figures of a client's blocks that have some items again, in the caller's transaction."""
    await _recompute_all(ctx, customer_id, {"customerId": customer_id, "items._id": {"$in": [*item_ids]}}, _BY_ITEM)


async def _recompute_all(ctx: Context, customer_id: ObjectId, condition: Filter, hint: str) -> bool:
    """Compute the figures of the blocks that meet a condition again; returns whether there are any."""
    sessions = await blocks.find(ctx, condition, fields=("_id",), hint=hint)
    ids = [block["_id"] for block in sessions]
    for start in range(0, len(ids), _BATCH):
        remaining: Sequence[ObjectId] = ids[start : start + _BATCH]
        while remaining:
            remaining = await _recompute(ctx, customer_id, remaining)
    return bool(ids)


async def _recompute(ctx: Context, customer_id: ObjectId, ids: Sequence[ObjectId]) -> list[ObjectId]:
    """Compute the figures of some blocks again; returns blocks that have changed in the meantime."""
    condition: Filter = {"customerId": customer_id, "_id": {"$in": list(ids)}}
    stored = await blocks.find(ctx, condition, including=("done",), hint="_id_")
    known = await load_exercises(ctx, [item for block in stored for item in block["items"]])
    derived = {block["_id"]: [derive_again(item, known) for item in block["items"]] for block in stored}
    weighed = {str(each["date"]) for each in stored if any(map(has_added_loads, derived[each["_id"]]))}
    weights = await body_weights.find_on_dates(ctx, customer_id, weighed, ctx.caller.company.load_unit)
    changed: list[ObjectId] = []
    for block in stored:
        weight = weights.get(str(block["date"]))
        fields = store.item_fields([with_body_weight(item, weight) for item in derived[block["_id"]]])
        if not _is_stored(block, fields["items"], fields["done"]):
            where = {"customerId": customer_id, "_id": block["_id"], "version": block["version"]}
            if not await blocks.set_derived(ctx, where, {"$set": dict(fields)}):
                changed.append(block["_id"])
    return changed


def _is_stored(block: StoredBlock, items: object, done: object) -> bool:
    stored: dict[str, object] = {**block}
    return (stored["items"], stored.get("done")) == (items, done)
