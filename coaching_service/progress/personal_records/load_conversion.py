"""Converting the loads of personal records to another unit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import now
from coaching_service.core.ids import ObjectId
from coaching_service.people.account.load_units import Conversion, LoadCount
from coaching_service.progress.personal_records import _estimates
from coaching_service.progress.personal_records.models import MAX_VALUE, StoredRecord
from coaching_service.progress.personal_records.store import IS_LOAD, records
from coaching_service.training.workouts.reports import exercises as exercise_queries
from coaching_service.training.workouts.sets.records import RecordKey


async def convert_client(
    ctx: Context, customer_id: ObjectId, conversion: Conversion
) -> tuple[LoadCount, Mapping[ObjectId, float]]:
    """Convert the records of a client, who is locked and whose workouts have been converted, in a transaction.

    Those derived from logs follow from the converted sets. Also returns the estimated one-repetition maximums that
    follow from the records, by exercise.
    """
    loads = await records.find(ctx, {"customerId": customer_id, **IS_LOAD})
    count = LoadCount(len(loads), len(loads))
    if not conversion.is_stored:
        return count, {}
    values = await _find_values(ctx, customer_id, loads, conversion)
    fields = {"unit": conversion.load_unit, "updatedAt": now()}
    writes = [
        ({"_id": each}, {"$set": {**fields, "value": value}, "$inc": {"version": 1}}) for each, value in values.items()
    ]
    await records.set_derived_each(ctx, writes)  # a change, but not one of the history
    converted: list[StoredRecord] = [{**record, "value": values[record["_id"]]} for record in loads]
    return count, await _estimates.find_highest(ctx, customer_id, converted, conversion.load_unit)


async def _find_values(
    ctx: Context, customer_id: ObjectId, loads: Sequence[StoredRecord], conversion: Conversion
) -> dict[ObjectId, float]:
    values = {record["_id"]: min(conversion.convert(record["value"]), MAX_VALUE) for record in loads}
    logged = [record for record in loads if record["source"] == "log"]
    for exercise_id in {record["exerciseId"] for record in logged}:
        bests = await exercise_queries.find_best_sets(ctx, customer_id, exercise_id)
        for record in logged:
            if record["exerciseId"] == exercise_id and (best := bests.get(RecordKey(record["type"]))):
                values[record["_id"]] = best["value"]
    return values


async def find_with_load(ctx: Context, without: Sequence[ObjectId]) -> tuple[ObjectId | None] | None:
    """Return the client of a personal record with a load, but none of the clients `without`; None if there is none."""
    stored = await records.find_one(ctx, {**IS_LOAD, "customerId": {"$nin": list(without)}}, ("customerId",))
    return None if stored is None else (stored["customerId"],)
