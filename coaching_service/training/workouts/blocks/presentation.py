"""Stored blocks as they are read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from coaching_service.core.database.context import Context
from coaching_service.core.external_identity import present_identity
from coaching_service.core.fields import labels_of, names_of, nulls_of
from coaching_service.core.ids import ObjectId
from coaching_service.library.exercises.models import ASSISTANCE, ExerciseName
from coaching_service.training.workouts import store
from coaching_service.training.workouts.blocks.models import Block, BlockSettings, StoredBlock, WorkoutBlock
from coaching_service.training.workouts.blocks.owners import ScheduleOwner, block_not_found
from coaching_service.training.workouts.items import service as items
from coaching_service.training.workouts.items.models import WorkItem
from coaching_service.training.workouts.items.service import load_references
from coaching_service.training.workouts.items.totals import round_total, volume_load, working_sets

_NULLS = nulls_of(WorkoutBlock)  # of fields that older blocks do not have
_LABELS = labels_of(BlockSettings)


def is_completed(block_items: Sequence[WorkItem]) -> bool:
    """Return whether a block has items and all of them are completed."""
    return bool(block_items) and all(item["isCompleted"] for item in block_items)


def describe_settings(block: Mapping[str, Any], write: Callable[[str], str] = str) -> list[str]:
    """Return what is set for a block or template in words, such as `rest day`; `write` writes text of a person."""
    words = []
    for name in names_of(BlockSettings):
        label, value = _LABELS.get(name, name).lower(), block.get(name)
        if value not in (None, False):
            words.append(label if value is True else f"{label} {write(value) if isinstance(value, str) else value}")
    return words


def presented_volume(items: Iterable[WorkItem]) -> float:
    """Return the volume load of items as they are read, without loads that are assistance."""
    total = 0.0
    for item in items:
        assisted = {exercise["_id"] for exercise in _exercises_of(item) if exercise.get("loadType") == ASSISTANCE}
        total += sum(volume_load(done) for exercise_id, done in working_sets(item) if exercise_id not in assisted)
    return round_total(total)


def _exercises_of(item: WorkItem) -> list[ExerciseName]:
    swap = item.get("swappedFor")
    others = [swap["exercise"]] if swap else []
    if item["type"] == "CIRCUIT":
        return [*others, *(entry["exercise"] for entry in item["circuitExercises"])]
    return [*others, item["exercise"]] if item["type"] == "EXERCISE" else others


async def present_block(ctx: Context, owner: ScheduleOwner, block: StoredBlock | None) -> Block:
    """Return a stored block as it is read. Raises NotFound if it is None."""
    if block is None:
        raise block_not_found()
    siblings: list[ObjectId] = []
    if (day := block[owner.day_field]) is not None:
        where = owner.block_filter | {owner.day_field: day}
        of_day = await store.blocks.find(ctx, where, sort=("position", "_id"), fields=("_id",))
        siblings = [each["_id"] for each in of_day]
    order = siblings.index(block["_id"]) if block["_id"] in siblings else len(siblings)
    return (await present_blocks(ctx, [block], [order]))[0]


async def present_blocks(ctx: Context, blocks: Sequence[StoredBlock], orders: Sequence[int]) -> list[Block]:
    """Return stored blocks of one schedule as they are read, each with its position among the blocks of its day."""
    customer_id = blocks[0]["customerId"] if blocks else None  # they are all on one schedule
    all_items = [item for block in blocks for item in block["items"]]
    references = await load_references(ctx, all_items, customer_id, dates=[block["date"] for block in blocks])
    return [
        {
            **_NULLS,
            **block,
            **present_identity(block),
            "order": order,
            "isCompleted": is_completed(block["items"]),
            "items": items.present_items(block["items"], block["version"], references, ctx.caller, block["date"]),
        }
        for block, order in zip(blocks, orders, strict=True)
    ]
