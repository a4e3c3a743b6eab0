"""A client's workout with what they did the last time, and the personal records they set in it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from coaching_service.core.database.context import Context
from coaching_service.core.database.transactions import gather_reads
from coaching_service.core.ids import ObjectId
from coaching_service.progress.logs import service
from coaching_service.progress.personal_records import service as personal_records
from coaching_service.progress.personal_records.models import PersonalRecord
from coaching_service.training.visibility import service as visibility
from coaching_service.training.workouts.blocks import service as workouts
from coaching_service.training.workouts.blocks.models import Block
from coaching_service.training.workouts.blocks.owners import ClientCalendar, block_not_found
from coaching_service.training.workouts.reports.exercises import add_last_times
from coaching_service.training.workouts.sets.models import CustomerSet
from coaching_service.training.workouts.sets.records import is_better

_Key = tuple[ObjectId, str, float | None]


async def read_own_workout(ctx: Context, block_id: ObjectId) -> Block:
    """Return a workout of the caller, a client, with `lastTime` of each exercise; days hidden from them are left out.

    Raises NotFound if there is no such workout, or its day is hidden.
    """
    client_id = ctx.caller.id
    visible, block = await gather_reads(
        ctx,
        visibility.get_visibility(ctx, client_id),
        workouts.get(ctx, ClientCalendar(client_id), block_id),
    )
    if not visible.allows(day=block["date"]):
        raise block_not_found()
    [with_last_times] = await add_last_times(ctx, client_id, [block], without=visible.hidden_days)
    return with_last_times


async def log_set(
    ctx: Context, block_id: ObjectId, item_id: ObjectId, done: CustomerSet
) -> tuple[Block, list[PersonalRecord]]:
    """Log one set of the caller as `log_own_set` does; return the workout, and the records that the set improved.

    A first record of an exercise that was never done before the day of the workout improves nothing.
    """
    before = await personal_records.list_records(ctx, ctx.caller.id)
    await service.log_own_set(ctx, block_id, item_id, done)
    block, after = await gather_reads(
        ctx, read_own_workout(ctx, block_id), personal_records.list_records(ctx, ctx.caller.id)
    )
    bests = _best_values(before)
    improved = [
        record
        for record in _records_of(block, after)
        if record["witemId"] == item_id
        and is_better(record["type"], record["value"], bests.get(_key(record), record["value"]))
    ]
    return block, improved


async def list_records_of(ctx: Context, customer_id: ObjectId, block: Block) -> list[PersonalRecord]:
    """Return the personal records that a client set in a workout whose items have `lastTime`.

    Without records of exercises that were never done before, and those that are not as good as a record entered by a
    coach. Raises what `personal_records.list_records` raises.
    """
    return _records_of(block, await personal_records.list_records(ctx, customer_id))


def _records_of(block: Block, records: Sequence[PersonalRecord]) -> list[PersonalRecord]:
    bests = _best_values(records)
    known = _exercises_done_before(block)
    item_ids = {item["_id"] for item in block["items"]}
    return [
        record
        for record in records
        if record["witemId"] in item_ids and record["exerciseId"] in known and record["value"] == bests[_key(record)]
    ]


def _exercises_done_before(block: Block) -> Collection[ObjectId]:
    return {item["exerciseId"] for item in block["items"] if item["type"] == "EXERCISE" and item.get("lastTime")}


def _best_values(records: Sequence[PersonalRecord]) -> Mapping[_Key, float]:
    bests: dict[_Key, float] = {}
    for record in records:
        known = bests.get(_key(record))
        if known is None or is_better(record["type"], record["value"], known):
            bests[_key(record)] = record["value"]
    return bests


def _key(record: PersonalRecord) -> _Key:
    return record["exerciseId"], record["type"], record.get("meters")
