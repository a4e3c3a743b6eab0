"""Converting the loads to which percentages refer to another unit."""

from __future__ import annotations

from collections.abc import Mapping

from coaching_service.core.database.context import Context
from coaching_service.core.ids import ObjectId
from coaching_service.training.training_maxes import store
from coaching_service.training.workouts.load_conversion import Conversion, LoadCount


async def convert_client(
    ctx: Context, customer_id: ObjectId, conversion: Conversion, estimates: Mapping[ObjectId, float]
) -> LoadCount:
    """Convert the training maximums of a client, who is locked, in the caller's transaction.

    `estimates` are those that follow from the converted records, by exercise; others are converted too.
    """
    values: dict[ObjectId, float] = {}
    for stored in await store.list_all(ctx, customer_id):
        value = stored["value"]
        if value is None:
            continue
        converted = conversion.convert(value)
        is_estimate = stored["source"] == "records"
        values[stored["_id"]] = estimates.get(stored["exerciseId"], converted) if is_estimate else converted
    if conversion.is_stored:
        await store.set_converted(ctx, values)
    return LoadCount(len(values), len(values))


async def has_loads(ctx: Context) -> bool:
    """Return whether a load is stored as a training maximum of any client."""
    return await store.has_loads(ctx)
