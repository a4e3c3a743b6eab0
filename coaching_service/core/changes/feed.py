"""The activity feed: the entries that changes have for a client's feed, and for the feed of all clients."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from coaching_service.core.changes.models import CompanyFeedItem
from coaching_service.core.changes.store import BY_COMPANY_FEED, BY_FEED, changes, update_feed
from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import Filter, PipelineStage
from coaching_service.core.database.transactions import gather_reads
from coaching_service.core.events import EventType
from coaching_service.core.ids import ObjectId
from coaching_service.core.list_parts import ListPart
from coaching_service.core.list_selection import ListSelection

COMPANY_FEED_ORDER = ("-feedAt", "-_id", "-feed._id")


async def correct_feed_entries(
    ctx: Context,
    customer_id: ObjectId,
    source_ids: Sequence[ObjectId],
    event_types: Sequence[EventType],
    data: Mapping[str, object],
) -> None:
    """Set fields of the data of the shown entries of these types about source documents; their times stay."""
    is_meant = {
        "$and": [
            {"$eq": ["$$entry.hiddenBy", None]},
            {"$in": ["$$entry.sourceId", source_ids]},
            {"$in": ["$$entry.type", event_types]},
        ]
    }
    corrected = {"data": {"$mergeObjects": ["$$entry.data", {"$literal": dict(data)}]}}
    where = {"customerId": customer_id, "feedCount": {"$gt": 0}, "feed.sourceId": {"$in": source_ids}}
    await changes.set_derived(ctx, where, update_feed(is_meant, corrected))


async def find_feed_page(
    ctx: Context, customer_id: ObjectId, list_part: ListPart, selection: ListSelection, without: Sequence[EventType]
) -> tuple[list[CompanyFeedItem], int]:
    """Return the entries of a selection for one part of a client's feed, newest first, and how many there are.

    Entries of the types `without` are left out.
    """
    where: Filter = {"customerId": customer_id, "feedCount": {"$gt": 0}}
    shown: Filter = {"feed.hiddenBy": None}
    # One more: all entries of the cursor's change may be before the cursor.
    changes_at_most = list_part.skip + list_part.limit + 1
    counting: list[PipelineStage] = [{"$project": {"_id": 0, "feedCount": 1}}]
    count: PipelineStage = {"$group": {"_id": None, "total": {"$sum": "$feedCount"}}}
    if selection.ids is not None:
        selected = {"feed._id": {"$in": list(selection.ids)}}
        where, shown = where | selected, shown | selected
        changes_at_most = len(selection.ids)
    if without:
        types = {"$nin": list(without)}
        where, shown = where | {"feed": {"$elemMatch": {"hiddenBy": None, "type": types}}}, shown | {"feed.type": types}
    if selection.ids is not None or without:
        counting = [{"$project": {"_id": 0, "feed": 1}}, {"$unwind": "$feed"}, {"$match": shown}]
        count = {"$count": "total"}
    entries, counted = await gather_reads(
        ctx,
        changes.aggregate(
            ctx,
            where | list_part.condition_on_first(2),
            {"$sort": {"feedAt": -1, "_id": -1}},
            {"$limit": changes_at_most},
            {"$project": {"feed": 1, "feedAt": 1, "actor": 1, "customerId": 1}},
            {"$unwind": "$feed"},
            {"$match": list_part.within(shown)},
            {"$skip": list_part.skip},
            {"$limit": list_part.limit},
            hint=BY_FEED,
        ),
        changes.aggregate(ctx, where, *counting, count, hint=BY_FEED),
    )
    return entries, counted[0]["total"] if counted else 0


async def find_company_feed(
    ctx: Context,
    condition: Filter,
    *,
    since: datetime | None,
    types: Sequence[EventType],
    customer_ids: Sequence[ObjectId] | None,
    credential_id: ObjectId | None = None,
    limit: int,
) -> list[CompanyFeedItem]:
    """Return at most `limit` entries of the feeds of all clients that meet a cursor's `condition`, newest first.

    Of the clients `customer_ids` (None: all), of `types` (empty: all), recorded at `since` or later (UTC), with the
    credential (None: any).
    """
    times = {"$gte": since} if since is not None else {}
    if "feedAt" in condition:
        times |= condition["feedAt"]
    entry: Filter = {"feed.hiddenBy": None} | ({"feed.type": {"$in": list(types)}} if types else {})
    where: Filter = {
        "feedCount": {"$gt": 0},
        "customerId": {"$ne": None} if customer_ids is None else {"$in": list(customer_ids)},
        **({"feedAt": times} if times else {}),
        **({"credentialId": credential_id} if credential_id is not None else {}),
        **({"feed.type": {"$in": list(types)}} if types else {}),
    }
    return await changes.aggregate(
        ctx,
        where,
        {"$sort": {"feedAt": -1, "_id": -1}},
        {"$project": {"feed": 1, "feedAt": 1, "actor": 1, "customerId": 1, "batchId": 1}},
        {"$unwind": "$feed"},
        {"$match": {**entry, **condition}},
        {"$limit": limit},
        hint=BY_COMPANY_FEED,
    )
