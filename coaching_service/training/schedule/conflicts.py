"""Target days that have blocks: what an operation does on them, and which blocks are there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from coaching_service.core.dates import name_days
from coaching_service.core.mcp.results import typed
from coaching_service.training.schedule.models import OnConflict, ScheduleConflict
from coaching_service.training.workouts.blocks.batches import Batch
from coaching_service.training.workouts.blocks.done_work import has_nothing_done, regular_blocks
from coaching_service.training.workouts.blocks.models import BlockPlan, DayBlock
from coaching_service.training.workouts.blocks.owners import ScheduleOwner

_NAMED_DAYS, _NAMED_BLOCKS = 7, 3
OUTCOMES = {"add": "the new ones follow them", "skip": "left as they are", "replace": "replaced where nothing is done"}


def resolve_conflicts(
    owner: ScheduleOwner, plans: Sequence[BlockPlan], days: Sequence[DayBlock], on_conflict: OnConflict
) -> Batch:
    """Return what to create and remove when the target range has the blocks `days`."""
    regular = regular_blocks(days)
    if on_conflict == "skip":
        taken = {block[owner.day_field] for block in regular}
        return Batch(created=[plan for plan in plans if plan[owner.day_field] not in taken])
    if on_conflict == "replace":
        return Batch(created=plans, removed=[block["_id"] for block in regular if has_nothing_done(block)])
    return Batch(created=plans)


def find_conflicts(
    owner: ScheduleOwner, plans: Sequence[BlockPlan], days: Sequence[DayBlock], on_conflict: OnConflict
) -> list[ScheduleConflict]:
    """Return the blocks among `days` that are on days of the plans; with `replace`, on every day of the range."""
    targets = {plan[owner.day_field] for plan in plans}
    return [
        cast(
            "ScheduleConflict",
            {owner.day_field: block[owner.day_field], "wblockId": block["_id"], "name": block["name"]},
        )
        for block in regular_blocks(days)
        if on_conflict == "replace" or block[owner.day_field] in targets
    ]


def describe_conflicts(conflicts: Sequence[ScheduleConflict], on_conflict: OnConflict, today: str) -> str:
    """Return the blocks that target days of a calendar had, for the sentence of a tool; empty without any."""
    if not conflicts:
        return ""
    by_day: dict[str, list[str]] = {}
    for conflict in conflicts:
        by_day.setdefault(day_name(conflict), []).append(typed(conflict["name"]))
    days = [f"{name_days([day], today)} {join_some(names, _NAMED_BLOCKS)}" for day, names in by_day.items()]
    return f"; these days had workouts, {OUTCOMES[on_conflict]}: {join_some(days, _NAMED_DAYS)}"


def day_name(conflict: ScheduleConflict) -> str:
    """Return the date of a conflict, or the day of the program."""
    return conflict["date"] if "date" in conflict else f"day {conflict['day']}"


def join_some(texts: Sequence[str], limit: int) -> str:
    """Return the first of some texts, and how many more there are."""
    more = f" and {len(texts) - limit} more" if len(texts) > limit else ""
    return f"{', '.join(texts[:limit])}{more}"
