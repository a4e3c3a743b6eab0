"""The check of the stored totals of workout blocks."""

from __future__ import annotations

from collections.abc import AsyncIterator

from coaching_service.core.database.checks import check_of
from coaching_service.core.database.context import Context, Services
from coaching_service.core.database.transactions import in_transaction
from coaching_service.core.ids import ObjectId
from coaching_service.training.workouts.items.totals import summarize_block
from coaching_service.training.workouts.store import blocks

_SETS = ("customerSets", "exerciseSets", "circuitExercises.sets")
_TOTALS = ("sets", "reps", "volumeLoad")
_TOLERANCE = 0.01  # of sums in another order


async def iterate_wrong(services: Services) -> AsyncIterator[ObjectId]:
    """Iterate over the blocks whose totals of sets, repetitions and volume are not the sums of their items."""
    differences = [
        {"$abs": {"$subtract": [{"$sum": f"$items.tally.{name}"}, {"$ifNull": [f"$done.{name}", 0]}]}}
        for name in _TOTALS
    ]
    condition = {"$expr": {"$gt": [{"$max": differences}, _TOLERANCE]}}
    async for block in blocks.across_companies(services).find(condition, {"_id": 1}):
        yield block["_id"]


async def correct(services: Services, block_id: ObjectId) -> None:
    """Compute the totals of a block again."""

    async def compute(tx: Context) -> None:
        collection = blocks.across_companies(services)
        block = await collection.find_one({"_id": block_id}, {"items": 1}, session=tx.session)
        if block is not None:
            done = summarize_block(block["items"])
            await collection.update_one({"_id": block_id}, {"$set": {"done": done}}, session=tx.session)

    await in_transaction(Context(services), compute)


async def correct_totals(services: Services) -> None:
    """Compute the totals of these blocks again."""
    async for block_id in iterate_wrong(services):
        await correct(services, block_id)


async def iterate_negative(services: Services) -> AsyncIterator[ObjectId]:
    """Iterate over the blocks with a set whose planned or done load is below zero."""
    condition = {"$or": [{f"items.{path}.load": {"$lt": 0}} for path in _SETS]}
    async for block in blocks.across_companies(services).find(condition, {"_id": 1}):
        yield block["_id"]


CHECKS = (
    check_of(
        "workout-loads",
        "No load is negative",
        iterate_negative,
        "Workouts with a load below zero",
        "Correct the sets by hand: reports and records are wrong",
        counts=True,
    ),
    check_of(
        "workout-totals",
        "The totals of workouts are right",
        iterate_wrong,
        "Workouts with wrong totals",
        "Run doctor --repair; until then reports are wrong",
        correct_totals,
        counts=True,
    ),
)
