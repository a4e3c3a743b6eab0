"""The days of a client's calendar, with what became of the blocks on them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import date
from typing import Literal, TypedDict

from coaching_service.core.database.context import Context
from coaching_service.core.ids import ObjectId
from coaching_service.training.workouts.reports import own_calendar as client_queries
from coaching_service.training.workouts.reports.models import BlockOutline, BlockProgress

Status = Literal["planned", "done", "part", "missed", "rest"]


class CalendarBlock(BlockOutline):
    """A block with what became of it; a block without items is planned."""

    status: Status


class CalendarDay(TypedDict):
    """A day with its blocks in order; `status` is the status of its workouts, None without a workout or rest."""

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
    return [
        {"date": day, "status": status_of_day(blocks.get(day, ()), today), "blocks": blocks.get(day, [])}
        for day in days
    ]


def status_of_block(block: BlockProgress, today: date) -> Status:
    """Return what became of a block; `today` is the client's."""
    return "rest" if block["isRest"] else _status_of([block], today)


def status_of_day(blocks: Sequence[BlockProgress], today: date) -> Status | None:
    """Return what became of the workouts among the blocks of a day; `today` is the client's.

    Days have this status everywhere: calendars, the last seven days of a client, charts, and, as it is completed or
    not, compliance.
    """
    if workouts := [block for block in blocks if block["isWorkout"]]:
        return _status_of(workouts, today)
    return "rest" if any(block["isRest"] for block in blocks) else None


def _status_of(blocks: Sequence[BlockProgress], today: date) -> Status:
    total = sum(block["totalItems"] for block in blocks)
    completed = sum(block["completedItems"] for block in blocks)
    if total and completed == total:
        return "done"
    if completed or any(block["hasWork"] for block in blocks):
        return "part"
    return "missed" if total and blocks[0]["date"] < str(today) else "planned"
