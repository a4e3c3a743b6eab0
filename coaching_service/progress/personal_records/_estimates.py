"""The estimated one-repetition maximums that follow from a client's records.

Loads planned in percent refer to them where there is no training maximum.
"""

from __future__ import annotations

from collections.abc import Sequence

from coaching_service.core.database.context import Context, transactional
from coaching_service.core.database.documents import Filter
from coaching_service.core.ids import ObjectId
from coaching_service.library.exercises import service as exercises
from coaching_service.library.exercises.models import ADDED, ASSISTANCE
from coaching_service.people.activity.models import ESTIMATED_ONE_REP_MAX, HEAVIEST_LOAD
from coaching_service.people.customers import service as customers
from coaching_service.progress.personal_records.models import StoredRecord
from coaching_service.progress.personal_records.store import records
from coaching_service.training import body_weights, training_maxes
from coaching_service.training.workouts.sets import estimate_one_rep_max


async def update(ctx: Context, customer_id: ObjectId, exercise_ids: Sequence[ObjectId]) -> None:
    """Store what follows from a client's records of each of these exercises. The client must be locked."""
    where = {"customerId": customer_id, "exerciseId": {"$in": list(exercise_ids)}}
    stored = await records.find(ctx, where)
    highest = await find_highest(ctx, customer_id, stored, ctx.caller.company.load_unit)
    await training_maxes.set_estimates(ctx, customer_id, {each: highest.get(each) for each in exercise_ids})


@transactional
async def renew(ctx: Context, customer_id: ObjectId, exercise_id: ObjectId) -> None:
    """Store what follows from the records of an exercise that a coach entered, after its loads mean another thing."""
    where = {"customerId": customer_id, "exerciseId": exercise_id}
    if any(record["source"] == "manual" for record in await records.find(ctx, where)):
        await customers.lock_and_mark_figures(ctx, customer_id)
        await update(ctx, customer_id, [exercise_id])


async def update_added_loads(ctx: Context, customer_id: ObjectId, first: str, last: str) -> None:
    """Store what follows from added loads that a coach entered, from the date `first` to `last`."""
    where: Filter = {"customerId": customer_id, "date": {"$gte": first, "$lte": last}, "source": "manual"}
    entered = {each["exerciseId"] for each in await records.find(ctx, where) if each["type"] == HEAVIEST_LOAD}
    names = await exercises.get_names(ctx, entered)
    if added := [each for each, name in names.items() if name.get("loadType") == ADDED]:
        await update(ctx, customer_id, added)


async def find_highest(
    ctx: Context, customer_id: ObjectId, stored: Sequence[StoredRecord], load_unit: str
) -> dict[ObjectId, float]:
    """Return the highest estimate that follows from a client's records (in `load_unit`), of each exercise with any.

    Nothing follows from a load that a coach entered for an exercise whose loads are assistance, or are added to the
    body's weight, if that is not known.
    """
    entered = {record["exerciseId"] for record in stored if record["source"] == "manual"}
    types = {each: name.get("loadType") for each, name in (await exercises.get_names(ctx, entered)).items()}
    weighed = {record["date"] for record in stored if types.get(record["exerciseId"]) == ADDED}
    weights = await body_weights.find_on_dates(ctx, customer_id, weighed, load_unit)
    highest: dict[ObjectId, float] = {}
    for record in stored:
        load_type = types.get(record["exerciseId"])
        body_weight = weights.get(record["date"]) if load_type == ADDED else 0
        if load_type != ASSISTANCE and (estimate := _estimate_of(record, body_weight)) is not None:
            highest[record["exerciseId"]] = max(estimate, highest.get(record["exerciseId"], estimate))
    return highest


def _estimate_of(record: StoredRecord, body_weight: float | None) -> float | None:
    """Return the estimate that follows from a record, in its unit; None if none does.

    A heaviest load that a coach entered was lifted for its `reps`, for one repetition if they are not known, with the
    body weight to which it was added (0: to none). From the
    set of one that was logged follows an estimate of its own.
    """
    if record["type"] == ESTIMATED_ONE_REP_MAX:
        return record["value"]
    if record["type"] != HEAVIEST_LOAD or record["source"] == "log" or body_weight is None:
        return None
    estimate = estimate_one_rep_max(1 if record["reps"] is None else record["reps"], record["value"] + body_weight)
    return None if estimate is None else round(estimate.value, 2)
