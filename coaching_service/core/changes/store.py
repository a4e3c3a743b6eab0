"""Changes in the database, and what is updated of them; `history` and `feed` read them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bson import Timestamp

from coaching_service.core.changes.models import StoredChange, StoredPart
from coaching_service.core.database.declared import Index, NotExported
from coaching_service.core.database.documents import Document, Documents, PipelineStage

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


def update_feed(condition: PipelineStage, fields: Mapping[str, Any]) -> list[PipelineStage]:
    """Return the update stages that set `fields` of entries by `condition`, and count the shown entries again."""
    updated = {"$cond": [condition, {"$mergeObjects": ["$$entry", dict(fields)]}, "$$entry"]}
    shown = {"$filter": {"input": "$feed", "as": "entry", "cond": {"$eq": ["$$entry.hiddenBy", None]}}}
    return [
        {"$set": {"feed": {"$map": {"input": "$feed", "as": "entry", "in": updated}}}},
        {"$set": {"feedCount": {"$size": shown}}},
    ]
