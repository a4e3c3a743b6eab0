"""The days of a client's calendar, with what became of the blocks on them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import date
from typing import Literal, TypedDict

from coaching_service.core.database.context import Context
from coaching_service.core.ids import ObjectId
from coaching_service.training.workouts import client_queries
from coaching_service.training.workouts.query_models import BlockOutline

Status = Literal["planned", "done", "part", "missed", "rest"]


class CalendarBlock(BlockOutline):
    """A block with what became of it; a block without items is planned."""

    status: Status


class CalendarDay(TypedDict):
    """A day with its blocks in order; `status` is that of its workouts, None without a workout or rest."""

    date: str
    status: Status | None
    blocks: list[CalendarBlock]


async def list_days(
    ctx: Context, customer_id: ObjectId, first: date, last: date, *, today: date, without: Collection[str] = ()
) -> list[CalendarDay]:
    """Return every day of a client from `first` to `last`; `today` is the client's.

    The dates in `without` have no blocks. The caller has checked the access to the client.
    """
    outlines = await client_queries.find_outlines(ctx, customer_id, str(first), str(last), without=without)
    blocks: dict[str, list[CalendarBlock]] = {}
    for outline in outlines:
        blocks.setdefault(outline["date"], []).append({**outline, "status": status_of_block(outline, today)})
    days = (str(date.fromordinal(number)) for number in range(first.toordinal(), last.toordinal() + 1))
    return [{"date": day, "status": status_of_day(blocks.get(day, ())), "blocks": blocks.get(day, [])} for day in days]


def status_of_block(block: BlockOutline, today: date) -> Status:
    """Return what became of a block; `today` is the client's."""
    if block["isRest"]:
        return "rest"
    if block["totalItems"] and block["completedItems"] == block["totalItems"]:
        return "done"
    if block["completedItems"] or block["hasWork"]:
        return "part"
    return "missed" if block["totalItems"] and block["date"] < str(today) else "planned"


def status_of_day(blocks: Sequence[CalendarBlock]) -> Status | None:
    """Return what became of a day's workouts; blocks without items and check-ins are ignored, as in compliance."""
    statuses = {block["status"] for block in blocks if block["totalItems"] and not block["isCheckIn"]} - {"rest"}
    if len(statuses) > 1:
        return "part" if statuses & {"done", "part"} else "planned"
    if statuses:
        return statuses.pop()
    return "rest" if any(block["isRest"] for block in blocks) else None
