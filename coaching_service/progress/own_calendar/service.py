"""A client's own calendar and history, without what is on days that are hidden from the client."""

from __future__ import annotations

from calendar import monthrange
from collections.abc import Collection, Sequence
from datetime import date

from coaching_service.core.database.context import Context
from coaching_service.core.database.transactions import gather_reads
from coaching_service.progress.own_calendar.models import DoneMonth, OwnBlock, OwnDay, Status
from coaching_service.training.visibility import service as visibility
from coaching_service.training.workouts import client_queries
from coaching_service.training.workouts.query_models import BlockOutline


async def list_own_days(
    ctx: Context, first: date, last: date, *, today: date, hidden: Collection[str] | None = None
) -> list[OwnDay]:
    """Return every day of the caller, a client, from `first` to `last`, with its blocks and what became of them.

    `today` is the client's. `hidden`: the days hidden from the client, if they are known already. A hidden day has no
    blocks.
    """
    if hidden is None:
        hidden = await visibility.find_hidden_days(ctx, ctx.caller.id, str(first), str(last))
    outlines = await client_queries.find_outlines(ctx, ctx.caller.id, str(first), str(last), without=hidden)
    blocks: dict[str, list[OwnBlock]] = {}
    for outline in outlines:
        blocks.setdefault(outline["date"], []).append({**outline, "status": _status_of_block(outline, today)})
    days = (str(date.fromordinal(number)) for number in range(first.toordinal(), last.toordinal() + 1))
    return [{"date": day, "status": _status_of_day(blocks.get(day, ())), "blocks": blocks.get(day, [])} for day in days]


def _status_of_block(block: BlockOutline, today: date) -> Status:
    if block["isRest"]:
        return "rest"
    if block["totalItems"] and block["completedItems"] == block["totalItems"]:
        return "done"
    if block["completedItems"] or block["hasWork"]:
        return "part"
    return "missed" if block["totalItems"] and block["date"] < str(today) else "planned"


def _status_of_day(blocks: Sequence[OwnBlock]) -> Status | None:
    """What became of a day's workouts; blocks without items and those of check-ins are ignored, as in compliance."""
    statuses = {block["status"] for block in blocks if block["totalItems"] and not block["isCheckIn"]} - {"rest"}
    if len(statuses) > 1:
        return "part" if statuses & {"done", "part"} else "planned"
    if statuses:
        return statuses.pop()
    return "rest" if any(block["isRest"] for block in blocks) else None


async def read_done_month(ctx: Context, month: str | None) -> DoneMonth:
    """Return the workouts that the caller, a client, has done in a month (`YYYY-MM`); None: the latest that has any."""
    hidden = await visibility.find_days_hidden_from_caller(ctx, ctx.caller.id)
    if month is None:
        end = str(date.max)
        latest, _ = await client_queries.find_done_dates_around(ctx, ctx.caller.id, end, end, without=hidden)
        month = (latest or str(ctx.caller.today()))[:7]
    year, number = int(month[:4]), int(month[5:])
    first, last = f"{month}-01", f"{month}-{monthrange(year, number)[1]:02}"
    workouts, (before, after) = await gather_reads(
        ctx,
        client_queries.find_done_workouts(ctx, ctx.caller.id, first, last, without=hidden),
        client_queries.find_done_dates_around(ctx, ctx.caller.id, first, last, without=hidden),
    )
    return {
        "month": month,
        "workouts": workouts,
        "earlier": before[:7] if before else None,
        "later": after[:7] if after else None,
    }
