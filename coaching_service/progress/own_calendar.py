"""A client's own calendar and history, without what is on days that are hidden from the client."""

from __future__ import annotations

from calendar import monthrange
from collections.abc import Collection
from datetime import date
from typing import TypedDict

from coaching_service.core.database.context import Context, gather_reads
from coaching_service.training import visibility
from coaching_service.training.workouts.blocks.models import Block
from coaching_service.training.workouts.reports import blocks
from coaching_service.training.workouts.reports.blocks import CalendarDay
from coaching_service.training.workouts.reports.models import DoneWorkout

# --- The workouts that a client has done ------------------------------------------------------------------------------


class DoneMonth(TypedDict):
    """The workouts that a client has done in a month (`YYYY-MM`), newest first.

    `earlier` and `later` are the nearest months with such a workout, None without one.
    """

    month: str
    workouts: list[DoneWorkout]
    earlier: str | None
    later: str | None


async def list_own_days(
    ctx: Context, first: date, last: date, *, today: date, hidden: Collection[str] | None = None
) -> list[CalendarDay]:
    """Return every day of the caller, a client, from `first` to `last`, with its blocks and what became of them.

    `today` is the client's. `hidden`: the days hidden from the client, if they are known already. A hidden day has no
    blocks.
    """
    if hidden is None:
        hidden = await visibility.find_hidden_days(ctx, ctx.caller.id, str(first), str(last))
    return await blocks.list_days(ctx, ctx.caller.id, first, last, today=today, without=hidden)


async def list_latest_done(ctx: Context, count: int) -> list[Block]:
    """Return the latest workouts that the caller, a client, has done something of, at most `count`."""
    hidden = await visibility.find_days_hidden_from_caller(ctx, ctx.caller.id)
    return await blocks.find_latest_done(ctx, ctx.caller.id, count, without=hidden)


async def get_done_month(ctx: Context, month: str | None) -> DoneMonth:
    """Return the workouts that the caller, a client, has done in a month (`YYYY-MM`); None: the latest that has any."""
    hidden = await visibility.find_days_hidden_from_caller(ctx, ctx.caller.id)
    if month is None:
        end = str(date.max)
        latest, _ = await blocks.find_done_dates_around(ctx, ctx.caller.id, end, end, without=hidden)
        month = (latest or str(ctx.caller.today()))[:7]
    year, number = int(month[:4]), int(month[5:])
    first, last = f"{month}-01", f"{month}-{monthrange(year, number)[1]:02}"
    workouts, (before, after) = await gather_reads(
        ctx,
        blocks.find_done_workouts(ctx, ctx.caller.id, first, last, without=hidden),
        blocks.find_done_dates_around(ctx, ctx.caller.id, first, last, without=hidden),
    )
    return {
        "month": month,
        "workouts": workouts,
        "earlier": before[:7] if before else None,
        "later": after[:7] if after else None,
    }
