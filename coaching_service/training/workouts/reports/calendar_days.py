"""The days of a client's calendar, with what became of the blocks on them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import date
from typing import Literal, TypedDict

from coaching_service.core.database.context import Context
from coaching_service.core.database.transactions import gather_reads
from coaching_service.core.ids import ObjectId
from coaching_service.people.availability import service as availability
from coaching_service.people.availability.models import AvailabilityKind
from coaching_service.training.workouts.reports._query_parts import PROGRESS, between
from coaching_service.training.workouts.reports.models import BlockOutline, BlockProgress
from coaching_service.training.workouts.store import BY_DATE
from coaching_service.training.workouts.store import blocks as workout_blocks

Status = Literal["planned", "done", "part", "missed", "rest", "away"]


class CalendarBlock(BlockOutline):
    """A block with what became of it; a block without items is planned. `away`: the client does not train that day."""

    status: Status


class CalendarDay(TypedDict):
    """A day with its blocks in order; `status` is the status of its workouts, None without a workout or rest.

    `absence`: why the client does not train on it, else None; its status is then `away` unless something was done.
    """

    date: str
    absence: AvailabilityKind | None
    status: Status | None
    blocks: list[CalendarBlock]


async def find_outlines(
    ctx: Context, customer_id: ObjectId, first: str, last: str, *, without: Collection[str] = ()
) -> list[BlockOutline]:
    """Return the blocks of a client from the date `first` to `last`, in order, without their items.

    Those on the dates in `without` are left out.
    """
    return await workout_blocks.aggregate(
        ctx,
        between(customer_id, first, last, without),
        {"$sort": {"date": 1, "position": 1, "_id": 1}},
        {"$project": PROGRESS},
        hint=BY_DATE,
    )


async def list_days(
    ctx: Context, customer_id: ObjectId, first: date, last: date, *, today: date, without: Collection[str] = ()
) -> list[CalendarDay]:
    """Return every day of a client from `first` to `last`; `today` is the client's.

    The dates in `without` have no blocks. The caller has checked the access to the client.
    """
    outlines, absences_of = await gather_reads(
        ctx,
        find_outlines(ctx, customer_id, str(first), str(last), without=without),
        availability.get_absences(ctx, [customer_id], str(first), str(last)),
    )
    listed: list[BlockOutline] = outlines
    absences = absences_of[customer_id]
    blocks: dict[str, list[CalendarBlock]] = {}
    for outline in listed:
        status = status_of_block(outline, today, is_away=outline["date"] in absences)
        blocks.setdefault(outline["date"], []).append({**outline, "status": status})
    days = (str(date.fromordinal(number)) for number in range(first.toordinal(), last.toordinal() + 1))
    return [
        {
            "date": day,
            "absence": absences.kind_on(day),
            "status": status_of_day(blocks.get(day, ()), today, is_away=day in absences),
            "blocks": blocks.get(day, []),
        }
        for day in days
    ]


def status_of_block(block: BlockProgress, today: date, *, is_away: bool = False) -> Status:
    """Return what became of a block; `today` is the client's. What the client added is never missed.

    `is_away`: the client does not train on its day.
    """
    if block["isRest"]:
        return "rest"
    status = _status_of([block], today, is_away=is_away)
    return "planned" if status == "missed" and block.get("createdBy") is not None else status


def status_of_day(blocks: Sequence[BlockProgress], today: date, *, is_away: bool = False) -> Status | None:
    """Return what became of the workouts among the blocks of a day; `today` is the client's.

    Days have this status everywhere: calendars, the last seven days of a client, charts, and, as it is completed or
    not, compliance. `is_away`: the client does not train on it, so nothing can be missed.
    """
    if workouts := [block for block in blocks if block["isWorkout"]]:
        return _status_of(workouts, today, is_away=is_away)
    if is_away:
        return "away"
    return "rest" if any(block["isRest"] for block in blocks) else None


def _status_of(blocks: Sequence[BlockProgress], today: date, *, is_away: bool) -> Status:
    total = sum(block["totalItems"] for block in blocks)
    completed = sum(block["completedItems"] for block in blocks)
    if total and completed == total:
        return "done"
    if completed or any(block["hasWork"] for block in blocks):
        return "part"
    if is_away:
        return "away"
    return "missed" if total and blocks[0]["date"] < str(today) else "planned"
