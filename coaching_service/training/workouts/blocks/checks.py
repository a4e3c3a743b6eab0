"""The check of the stored totals of workout blocks."""

from __future__ import annotations

from coaching_service.core.database.checks import check_of
from coaching_service.core.database.context import Services
from coaching_service.training.workouts.blocks._stale_totals import correct, iterate_wrong


async def correct_totals(services: Services) -> None:
    """Compute the totals of these blocks again."""
    async for block_id in iterate_wrong(services):
        await correct(services, block_id)


CHECKS = (
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
