"""Queries over the workouts of one client for that client's own calendar and history."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import Filter
from coaching_service.core.database.transactions import gather_reads
from coaching_service.core.ids import ObjectId
from coaching_service.training.workouts.blocks.session_fields import SESSION_FIELDS
from coaching_service.training.workouts.reports._query_parts import IS_SESSION, PROGRESS, between, on_dates
from coaching_service.training.workouts.reports.models import BlockOutline, DoneWorkout
from coaching_service.training.workouts.store import BY_DATE, blocks

_BY_ITEM = blocks.index_name("customerId", "items._id")


async def find_outlines(
    ctx: Context, customer_id: ObjectId, first: str, last: str, *, without: Collection[str] = ()
) -> list[BlockOutline]:
    """Return the blocks of a client from the date `first` to `last`, in order, without their items.

    Those on the dates in `without` are left out.
    """
    return await blocks.aggregate(
        ctx,
        between(customer_id, first, last, without),
        {"$sort": {"date": 1, "position": 1, "_id": 1}},
        {"$project": PROGRESS},
        hint=BY_DATE,
    )


async def find_done_workouts(
    ctx: Context, customer_id: ObjectId, first: str, last: str, *, without: Collection[str] = ()
) -> list[DoneWorkout]:
    """Return the workouts of a client with anything done, from the date `first` to `last`, newest first.

    Those on the dates in `without` are left out, and check-ins.
    """
    fields: dict[str, Any] = {
        **dict.fromkeys(("date", "name", *SESSION_FIELDS), 1),
        "totalItems": PROGRESS["totalItems"],
        "completedItems": PROGRESS["completedItems"],
        "sets": {"$ifNull": ["$done.sets", 0]},
    }
    return await blocks.aggregate(
        ctx,
        between(customer_id, first, last, without) | IS_SESSION,
        {"$sort": {"date": -1, "position": -1, "_id": -1}},
        {"$project": fields},
        hint=BY_DATE,
    )


async def find_done_dates_around(
    ctx: Context, customer_id: ObjectId, first: str, last: str, *, without: Collection[str] = ()
) -> tuple[str | None, str | None]:
    """Return the last date before `first`, and the first one after `last`, on which a client did a workout.

    Those in `without` are left out; None without one.
    """
    before, after = await gather_reads(
        ctx,
        _find_done_date(ctx, customer_id, {"$gt": "", "$lt": first}, without, "-date"),
        _find_done_date(ctx, customer_id, {"$gt": last}, without, "date"),
    )
    return before, after


async def _find_done_date(
    ctx: Context, customer_id: ObjectId, dates: Filter, without: Collection[str], order: str
) -> str | None:
    condition = on_dates(customer_id, dates, without) | IS_SESSION
    nearest = await blocks.find(ctx, condition, sort=(order,), limit=1, fields=("date",), hint=BY_DATE)
    return str(nearest[0]["date"]) if nearest else None


async def find_blocks_of_items(
    ctx: Context, customer_id: ObjectId, item_ids: Sequence[ObjectId]
) -> dict[ObjectId, ObjectId]:
    """Return the block that each of some items of a client is in; items that were removed are left out."""
    ids = list(item_ids)
    condition = {"customerId": customer_id, "items._id": {"$in": ids}}
    stages: list[dict[str, Any]] = [
        {"$project": {"itemId": "$items._id"}},
        {"$unwind": "$itemId"},
        {"$match": {"itemId": {"$in": ids}}},
    ]
    listed = await blocks.aggregate(ctx, condition, *stages, hint=_BY_ITEM)
    return {each["itemId"]: each["_id"] for each in listed}
