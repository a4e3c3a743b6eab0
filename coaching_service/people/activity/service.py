"""The activity feed of a client."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Literal

from coaching_service.core.auth.principal import Principal, Via
from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import now
from coaching_service.core.ids import ObjectId
from coaching_service.core.pagination import Page, page_document, skip_of
from coaching_service.people.activity import store
from coaching_service.people.activity.models import (
    ActivityEvent,
    ActivityType,
    Actor,
    AttributedEvent,
    NewActivityEvent,
)
from coaching_service.people.customers import service as customers

_ACTOR_TYPES: dict[Via, Literal["coach", "key", "assistant"]] = {
    "session": "coach",
    "apiKey": "key",
    "mcp": "assistant",
}


async def record_event(
    ctx: Context, activity_type: ActivityType, customer_id: ObjectId, source_id: ObjectId, **data: object
) -> None:
    """Add an entry by the caller, dated now, to a client's feed, in the caller's transaction.

    It replaces the entry of the same type about the same source document.
    """
    await store.upsert(ctx, customer_id, source_id, activity_type, now(), data, actor_of(ctx.caller))


async def correct_event(
    ctx: Context, activity_type: ActivityType, customer_id: ObjectId, source_id: ObjectId, **data: object
) -> None:
    """Replace the data of an entry, in the caller's transaction; its date stays."""
    await store.update_data(ctx, customer_id, source_id, activity_type, data)


async def remove_events(
    ctx: Context, customer_id: ObjectId, source_id: ObjectId, *activity_types: ActivityType
) -> None:
    """Remove entries about a source document, in the caller's transaction."""
    await store.delete(ctx, customer_id, source_id, activity_types)


async def add_many(ctx: Context, entries: Sequence[NewActivityEvent]) -> None:
    """Add entries with their own dates, about source documents without entries of the same types: for imports."""
    await store.insert_many(ctx, entries)


async def set_dates(ctx: Context, customer_id: ObjectId, dates: Mapping[ObjectId, datetime]) -> None:
    """Set the dates (UTC) of entries by their source documents: for imports."""
    await store.set_dates(ctx, customer_id, dates)


async def list_events(ctx: Context, customer_id: ObjectId, *, page: int, size: int) -> Page[ActivityEvent]:
    """Return one page of a client's feed, newest first.

    Raises NotFound if the company has no such client, Forbidden if the client is outside the caller's scope.
    """
    events = await list_attributed_events(ctx, customer_id, page=page, size=size)
    docs: list[ActivityEvent] = [
        {"_id": event["_id"], "type": event["type"], "date": event["date"], "data": event["data"]}
        for event in events["docs"]
    ]
    return page_document(docs, events["totalDocs"], page, size)


async def list_attributed_events(ctx: Context, customer_id: ObjectId, *, page: int, size: int) -> Page[AttributedEvent]:
    """Return one page of a client's feed with the author of each entry, newest first.

    Raises NotFound if the company has no such client, Forbidden if the client is outside the caller's scope.
    """
    await customers.get_visible(ctx, customer_id)
    entries, total = await store.find_page(ctx, customer_id, skip=skip_of(page, size), limit=size)
    return page_document(entries, total, page, size)


def actor_of(principal: Principal) -> Actor:
    """Return the author of a change that a principal makes."""
    if not principal.is_coach:
        return {"type": "client", "_id": principal.id, "name": principal.name}
    return {"type": _ACTOR_TYPES[principal.via], "_id": principal.id, "name": principal.name}
