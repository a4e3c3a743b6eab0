"""The activity feed of a client: the entries that the change log has for it.

The feed has names of its own for the types of the log's events. An entry may hold names and texts; the event that is
recorded with it has only identifiers, dates and figures.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import cast

from coaching_service.core.changes import feed
from coaching_service.core.changes.models import CompanyFeedItem
from coaching_service.core.database.context import Context
from coaching_service.core.database.recording import FeedEntry, LoggedEvent, RemovedFeedEntries
from coaching_service.core.events import EventValue
from coaching_service.core.fields import names_of, take
from coaching_service.core.ids import ObjectId
from coaching_service.core.list_parts import ListPart
from coaching_service.core.list_selection import ALL_ENTRIES, ListSelection, PartOfList
from coaching_service.core.pagination import CursorPage, Page
from coaching_service.people.activity.models import (
    ACTIVITY_TYPE_OF,
    EVENT_TYPE_OF,
    ActivityEvent,
    ActivityType,
    AttributedEvent,
    ChangedEvent,
    CompanyEvent,
    ImportedEvent,
)
from coaching_service.people.changes.event_data import data_of
from coaching_service.people.changes.visibility import list_hidden_types
from coaching_service.people.customers import service as customers

# The identifier in an event that the entry has only as its source.
_SOURCE_FIELDS: dict[ActivityType, str] = {"personal_record": "recordId", "program_assigned": "assignmentId"}


async def record_event(
    ctx: Context, activity_type: ActivityType, customer_id: ObjectId, source_id: ObjectId, **data: object
) -> None:
    """Report an event by the caller with its entry in a client's feed, in the caller's transaction.

    The entry replaces an entry of the same type about the same source document.
    """
    _record(ctx, activity_type, customer_id, FeedEntry(source_id, data))


async def record_update(
    ctx: Context,
    activity_type: ActivityType,
    customer_id: ObjectId,
    source_id: ObjectId,
    fields: Sequence[str],
    **data: object,
) -> None:
    """Report an `.updated` event as `record_event` does, with the names of the fields that changed."""
    _record(ctx, activity_type, customer_id, FeedEntry(source_id, data), fields=list(fields))


async def record_first_event(
    ctx: Context, activity_type: ActivityType, customer_id: ObjectId, source_id: ObjectId, **data: object
) -> None:
    """Report an event as `record_event` does, if the feed has no entry of its type about the source document."""
    _record(ctx, activity_type, customer_id, FeedEntry(source_id, data, is_first=True))


async def record_restored_event(
    ctx: Context, activity_type: ActivityType, customer_id: ObjectId, source_id: ObjectId, **data: object
) -> None:
    """Report an event whose entry an undo shows again, in the caller's transaction."""
    _record(ctx, activity_type, customer_id, FeedEntry(source_id, data), in_feed=False)


def _record(
    ctx: Context,
    activity_type: ActivityType,
    customer_id: ObjectId,
    entry: FeedEntry,
    *,
    in_feed: bool = True,
    **more: EventValue,
) -> None:
    event_type, data = EVENT_TYPE_OF[activity_type], entry.data
    names = names_of(data_of(event_type))
    renamed = {"date" if name == "day" else name: cast("EventValue", value) for name, value in data.items()}
    event_data = {name: value for name, value in renamed.items() if name in names} | more
    if activity_type in _SOURCE_FIELDS:
        event_data[_SOURCE_FIELDS[activity_type]] = entry.source_id
    document_id = cast("ObjectId", data.get("wblockId", entry.source_id))
    if activity_type in ("form_submitted", "metric_recorded") and "witemId" in data:
        item_data = {name: value for name, value in event_data.items() if name != "responseId"}
        ctx.changes.events.append(LoggedEvent("item.logged", customer_id, item_data, document_id))
    feed = entry if in_feed else None
    ctx.changes.events.append(LoggedEvent(event_type, customer_id, event_data, document_id, feed))


async def correct_event(
    ctx: Context, activity_type: ActivityType, customer_id: ObjectId, source_id: ObjectId, **data: object
) -> None:
    """Set fields of the data of an entry, in the caller's transaction; its date stays."""
    await correct_events(ctx, [activity_type], customer_id, [source_id], **data)


async def correct_events(
    ctx: Context,
    activity_types: Collection[ActivityType],
    customer_id: ObjectId,
    source_ids: Collection[ObjectId],
    **data: object,
) -> None:
    """Set fields of the data of entries about source documents, in the caller's transaction; their dates stay."""
    types = [EVENT_TYPE_OF[each] for each in activity_types]
    await feed.correct_feed_entries(ctx, customer_id, [*source_ids], types, data)


async def delete_events(
    ctx: Context, customer_id: ObjectId, source_id: ObjectId, *activity_types: ActivityType
) -> None:
    """Remove entries about a source document, in the caller's transaction."""
    types = tuple(EVENT_TYPE_OF[each] for each in activity_types)
    ctx.changes.removed_entries.append(RemovedFeedEntries(customer_id, source_id, types))


async def create_many(ctx: Context, entries: Sequence[ImportedEvent]) -> None:
    """Add entries with their own dates, about source documents without entries of the same types: for imports."""
    for entry in entries:
        imported = FeedEntry(entry["sourceId"], entry["data"], entry["date"], entry["actor"])
        ctx.changes.events.append(LoggedEvent(EVENT_TYPE_OF[entry["type"]], entry["customerId"], {}, None, imported))


def set_dates(ctx: Context, dates: Mapping[ObjectId, datetime]) -> None:
    """Set the dates (UTC) of entries that this transaction adds, by their source documents: for imports."""
    ctx.changes.set_feed_dates(dates)


async def list_events(ctx: Context, customer_id: ObjectId, part: PartOfList) -> Page[ActivityEvent]:
    """Return part of a client's feed, as `list_attributed_events` does, without authors."""
    events = await list_attributed_events(ctx, customer_id, **part)
    docs = [take(ActivityEvent, event) for event in events["docs"]]
    return cast("Page[ActivityEvent]", {**events, "docs": docs})


async def list_attributed_events(
    ctx: Context,
    customer_id: ObjectId,
    *,
    page: int,
    size: int,
    selection: ListSelection = ALL_ENTRIES,
    after: str | None = None,
) -> Page[AttributedEvent]:
    """Return one page of a client's feed with the author of each entry, newest first, or those after a cursor.

    Raises NotFound if the company has no such client, Forbidden if the client is outside the caller's scope.
    """
    await customers.get_visible(ctx, customer_id)
    filters = {"customerId": customer_id, **selection.for_cursor()}
    list_part = ListPart(ctx, "client-feed", filters, feed.COMPANY_FEED_ORDER, page=page, size=size, after=after)
    stored, total = await feed.find_feed_page(ctx, customer_id, list_part, selection, list_hidden_types(ctx))
    return list_part.present(stored, total, _attributed_event)


def _attributed_event(stored: CompanyFeedItem) -> AttributedEvent:
    entry = stored["feed"]
    return {
        "_id": entry["_id"],
        "type": ACTIVITY_TYPE_OF[entry["type"]],
        "date": stored["feedAt"],
        "data": entry["data"],
        "actor": stored["actor"],
    }


async def list_company_events(
    ctx: Context,
    *,
    limit: int,
    after: str | None = None,
    since: datetime | None = None,
    types: Sequence[ActivityType] = (),
    customer_id: ObjectId | None = None,
    mine: bool = False,
) -> CursorPage[CompanyEvent]:
    """Return part of the feed of all clients in the coach's scope, newest first.

    Only of `types` (empty: all), recorded at `since` or later (UTC), of one client, or `mine`: made with the key, grant
    or session of this request. A client that does not exist or is out of scope has no entries. Raises InvalidFields if
    `after` is not a cursor of this list with the same filters.
    """
    part = await list_changed_events(
        ctx, limit=limit, after=after, since=since, types=types, customer_id=customer_id, mine=mine
    )
    docs = [take(CompanyEvent, event) for event in part["docs"]]
    return {"docs": docs, "nextCursor": part["nextCursor"], "hasMore": part["hasMore"]}


async def list_changed_events(
    ctx: Context,
    *,
    limit: int,
    after: str | None = None,
    since: datetime | None = None,
    types: Sequence[ActivityType] = (),
    customer_id: ObjectId | None = None,
    mine: bool = False,
) -> CursorPage[ChangedEvent]:
    """Return what `list_company_events` returns, with the change that each entry is from."""
    credential_id = ctx.caller.credential_id if mine else None
    filters = {"since": since, "types": sorted(set(types)), "customerId": customer_id, "credentialId": credential_id}
    list_part = ListPart(ctx, "activity-feed", filters, feed.COMPANY_FEED_ORDER, size=limit, after=after)
    hidden = list_hidden_types(ctx)
    wanted = [EVENT_TYPE_OF[each] for each in types or (EVENT_TYPE_OF if hidden else ())]
    shown = [each for each in wanted if each not in hidden]
    if wanted and not shown:
        return {"docs": [], "nextCursor": None, "hasMore": False}
    stored = await feed.find_company_feed(
        ctx,
        list_part.condition(),
        since=since,
        types=shown,
        customer_ids=await customers.select_ids_in_scope(ctx, customer_id),
        credential_id=credential_id,
        limit=limit + 1,
    )
    part = list_part.by_cursor(stored, lambda entry: entry)
    references = await customers.find_references(ctx, list({entry["customerId"] for entry in part["docs"]}))
    docs: list[ChangedEvent] = [
        {
            **_attributed_event(entry),
            "changeId": entry["_id"],
            "batchId": entry.get("batchId"),
            "customer": references[entry["customerId"]],
        }
        for entry in part["docs"]
        if entry["customerId"] in references  # the client may be being erased
    ]
    return {"docs": docs, "nextCursor": part["nextCursor"], "hasMore": part["hasMore"]}
