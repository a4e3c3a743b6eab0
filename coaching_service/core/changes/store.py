"""Changes in the database, and what is updated of them; `history` and `feed` read them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from bson import Timestamp

from coaching_service.core.changes.models import StoredChange, StoredPart
from coaching_service.core.database.context import Context
from coaching_service.core.database.declared import Index, NotExported
from coaching_service.core.database.documents import Document, Documents, PipelineStage
from coaching_service.core.events import EventType
from coaching_service.core.ids import ObjectId

_IN_FEED = (("feedCount", {"$gt": 0}),)
_CLIENT_FIELDS = ("customerId", "createdAt", "_id")
_FEED_FIELDS = ("customerId", "-feedAt", "-_id", "feedCount")
_COMPANY_FEED_FIELDS = ("-feedAt", "-_id", "customerId", "feed.type")

_ARCHIVAL_FIELDS = ("createdAt", "customerId")

# The only index with a field that numbering changes. MongoDB stores its logical time in place of NEW_PENDING: what
# depended on a change, and was stored after its commit, has a later one, whatever the clocks of the processes say.
NEW_PENDING = Timestamp(0, 0)
PENDING: Document = {"pending": {"$exists": True}}
_PENDING = Index(("pending", "companyId"), partial_filter=tuple(PENDING.items()))
BY_PENDING = _PENDING.name

changes = Documents[StoredChange](
    "changes",
    (
        Index(("createdAt", "_id")),
        Index(_CLIENT_FIELDS),
        Index(("credentialId", "createdAt", "_id"), partial_filter=(("via", "assistant"),)),
        Index(("batchId",), partial_filter=(("batchId", {"$exists": True}),)),
        Index(_FEED_FIELDS, partial_filter=_IN_FEED),
        Index(("customerId", "feed.sourceId"), partial_filter=_IN_FEED),
        Index(("_id",)),
        Index(_COMPANY_FEED_FIELDS, partial_filter=_IN_FEED),
        Index(_ARCHIVAL_FIELDS, partial_filter=(("events.type", {"$eq": "customer.archived"}),)),
    ),
    # `pending` is a time of the database, until the change has its number.
    private=("companyId", "pending"),
    client_field="customerId",
    global_indexes=(
        _PENDING,
        Index(("patchUntil",), partial_filter=(("patchUntil", {"$exists": True}),)),
    ),
    cross_company_reason="the sequencer numbers the changes of all companies, and a job removes old patches",
    transfer=NotExported("the history of this company: what is imported begins a history of its own"),
)
parts = Documents[StoredPart](
    "changeParts",
    (Index(("changeId", "number")), Index(("customerId",))),
    client_field="customerId",
    secret=True,
    expire=("patchUntil", 0),
    transfer=NotExported("part of the change log"),
)

BY_FEED, BY_COMPANY_FEED = changes.index_name(*_FEED_FIELDS), changes.index_name(*_COMPANY_FEED_FIELDS)
BY_ARCHIVAL = changes.index_name(*_ARCHIVAL_FIELDS)
BY_CLIENT, BY_BATCH = changes.index_name(*_CLIENT_FIELDS), changes.index_name("batchId")


async def hide_feed_entries(
    ctx: Context, customer_id: ObjectId, types_of: Mapping[ObjectId, Sequence[EventType]], hidden_by: ObjectId
) -> None:
    """Mark the shown entries of a client's feed of these types, by source document, as hidden by a change."""
    is_meant = [
        {"$and": [{"$eq": ["$$entry.sourceId", source]}, {"$in": ["$$entry.type", list(types)]}]}
        for source, types in types_of.items()
    ]
    is_hidden = {"$and": [{"$eq": ["$$entry.hiddenBy", None]}, {"$or": is_meant}]}
    where = {"customerId": customer_id, "feedCount": {"$gt": 0}, "feed.sourceId": {"$in": list(types_of)}}
    await changes.set_derived(ctx, where, update_feed(is_hidden, {"hiddenBy": hidden_by}))


async def restore_feeds(ctx: Context, undone: Mapping[ObjectId, ObjectId]) -> None:
    """Hide the feed entries of undone changes, by client, and show those again that they had hidden."""
    ids = list(undone.values())
    is_shown = {"$eq": ["$$entry.hiddenBy", None]}
    await changes.set_derived(ctx, {"_id": {"$in": ids}}, update_feed(is_shown, {"hiddenBy": "$undoneBy"}))
    was_hidden = {"$in": ["$$entry.hiddenBy", ids]}
    where = {"customerId": {"$in": list(undone)}, "feed.hiddenBy": {"$in": ids}}
    await changes.set_derived(ctx, where, update_feed(was_hidden, {"hiddenBy": None}))


def update_feed(condition: PipelineStage, fields: Mapping[str, Any]) -> list[PipelineStage]:
    """Return the update stages that set `fields` of entries by `condition`, and count the shown entries again."""
    updated = {"$cond": [condition, {"$mergeObjects": ["$$entry", dict(fields)]}, "$$entry"]}
    shown = {"$filter": {"input": "$feed", "as": "entry", "cond": {"$eq": ["$$entry.hiddenBy", None]}}}
    return [
        {"$set": {"feed": {"$map": {"input": "$feed", "as": "entry", "in": updated}}}},
        {"$set": {"feedCount": {"$size": shown}}},
    ]
