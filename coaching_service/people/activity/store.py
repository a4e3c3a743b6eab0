"""Entries of the activity feed in the database: at most one of a type for one source document."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import cast

from coaching_service.core.database.connection import Index
from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import Documents
from coaching_service.core.database.transactions import gather_reads
from coaching_service.core.ids import ObjectId
from coaching_service.people.activity.models import (
    ActivityType,
    Actor,
    AttributedEvent,
    NewActivityEvent,
    StoredActivityEvent,
)

events = Documents[StoredActivityEvent](
    "activity",
    (Index(("customerId", "-date", "-_id")), Index(("customerId", "sourceId", "type"), unique=True)),
    client_field="customerId",
)
_RETURNED_FIELDS = ("type", "date", "data", "actor")


async def upsert(
    ctx: Context,
    customer_id: ObjectId,
    source_id: ObjectId,
    activity_type: ActivityType,
    date: datetime,
    data: Mapping[str, object],
    actor: Actor,
) -> None:
    """Store an entry, or replace date, data and author of the one of this type and source."""
    where = {"customerId": customer_id, "sourceId": source_id, "type": activity_type}
    await events.upsert(ctx, where, {"date": date, "data": data, "actor": actor})


async def update_data(
    ctx: Context,
    customer_id: ObjectId,
    source_id: ObjectId,
    activity_type: ActivityType,
    data: Mapping[str, object],
) -> None:
    """Replace the data of the entry of this type and source, if there is one."""
    where = {"customerId": customer_id, "sourceId": source_id, "type": activity_type}
    await events.update(ctx, where, {"$set": {"data": data}})


async def delete(
    ctx: Context, customer_id: ObjectId, source_id: ObjectId, activity_types: Sequence[ActivityType]
) -> None:
    """Delete the entries of these types and this source."""
    where = {"customerId": customer_id, "sourceId": source_id, "type": {"$in": list(activity_types)}}
    await events.delete_many(ctx, where)


async def insert_many(ctx: Context, entries: Sequence[NewActivityEvent]) -> None:
    """Store entries of types and sources that have none."""
    await events.insert_many(ctx, entries)


async def set_dates(ctx: Context, customer_id: ObjectId, dates: Mapping[ObjectId, datetime]) -> None:
    """Set the dates of the entries about source documents."""
    changes = [
        ({"customerId": customer_id, "sourceId": source_id}, {"$set": {"date": date}})
        for source_id, date in dates.items()
    ]
    await events.set_derived_each(ctx, changes)


async def find_page(ctx: Context, customer_id: ObjectId, *, skip: int, limit: int) -> tuple[list[AttributedEvent], int]:
    """Return one page of a client's entries, newest first, and how many there are."""
    where = {"customerId": customer_id}
    docs, total = await gather_reads(
        ctx,
        events.find(ctx, where, sort=("-date", "-_id"), skip=skip, limit=limit, fields=_RETURNED_FIELDS),
        events.count(ctx, where),
    )
    return [cast("AttributedEvent", {"actor": None, **doc}) for doc in docs], total
