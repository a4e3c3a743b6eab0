"""Converting the loads to which percentages refer to another unit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from coaching_service.core.database.context import Context
from coaching_service.core.ids import ObjectId
from coaching_service.people.account.load_units import Conversion, LoadCount
from coaching_service.training.training_maxes import store


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


async def find_with_load(ctx: Context, without: Sequence[ObjectId]) -> tuple[ObjectId | None] | None:
    """Return the client of a training maximum with a load, but none of the clients `without`; None if there is none."""
    stored = await store.find_with_load(ctx, without)
    return None if stored is None else (stored["customerId"],)
