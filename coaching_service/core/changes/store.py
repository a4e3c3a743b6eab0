"""Changes in the database."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, cast

from coaching_service.core.changes.models import (
    ChangeCredential,
    CompanyFeedItem,
    DocumentPatch,
    NumberedChange,
    StoredChange,
    StoredPart,
)
from coaching_service.core.changes.numbering.models import NumberedId
from coaching_service.core.database.connection import Index
from coaching_service.core.database.context import Context, Services
from coaching_service.core.database.documents import Documents, Filter, PipelineStage, now
from coaching_service.core.database.portable import NotExported
from coaching_service.core.database.recording import Undo
from coaching_service.core.database.transactions import gather_reads
from coaching_service.core.events import EventType
from coaching_service.core.ids import ObjectId
from coaching_service.core.list_parts import ListPart
from coaching_service.core.list_selection import ListSelection

_IN_FEED = (("feedCount", {"$gt": 0}),)
_CLIENT_FIELDS = ("customerId", "createdAt", "_id")
_FEED_FIELDS = ("customerId", "-feedAt", "-_id", "feedCount")
_COMPANY_FEED_FIELDS = ("-feedAt", "-_id", "customerId", "feed.type")

changes = Documents[StoredChange](
    "changes",
    (
        # None of the fields that numbering changes, which would cost the keys of all indexes.
        Index(("createdAt", "_id")),
        Index(_CLIENT_FIELDS),
        Index(("credentialId", "createdAt", "_id"), partial_filter=(("via", "assistant"),)),
        Index(("batchId",), partial_filter=(("batchId", {"$exists": True}),)),
        Index(_FEED_FIELDS, partial_filter=_IN_FEED),
        Index(("customerId", "feed.sourceId"), partial_filter=_IN_FEED),
        Index(("_id",)),
        Index(_COMPANY_FEED_FIELDS, partial_filter=_IN_FEED),
    ),
    client_field="customerId",
    global_indexes=(
        Index(("createdAt",)),
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

_SUMMARY = tuple(name for name in StoredChange.__annotations__ if name not in ("patch", "feed", "companyId"))
_NUMBERED = tuple(name for name in NumberedChange.__annotations__ if name != "_id")
_OLD_BATCH = 500
_BY_FEED, _BY_COMPANY_FEED = changes.index_name(*_FEED_FIELDS), changes.index_name(*_COMPANY_FEED_FIELDS)
_BY_CLIENT = changes.index_name(*_CLIENT_FIELDS)
_BY_BATCH = changes.index_name("batchId")
_WRITTEN_PERIOD = timedelta(days=30)
NEWEST_FIRST = ("-createdAt", "-_id")
COMPANY_FEED_ORDER = ("-feedAt", "-_id", "-feed._id")


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
    await changes.set_derived(ctx, where, _update_feed(is_hidden, {"hiddenBy": hidden_by}))


async def correct_feed_entry(
    ctx: Context, customer_id: ObjectId, source_id: ObjectId, event_type: EventType, data: Mapping[str, object]
) -> None:
    """Replace the data of the shown entry of a type about a source document; its time stays."""
    is_meant = {
        "$and": [
            {"$eq": ["$$entry.hiddenBy", None]},
            {"$eq": ["$$entry.sourceId", source_id]},
            {"$eq": ["$$entry.type", event_type]},
        ]
    }
    where = {"customerId": customer_id, "feedCount": {"$gt": 0}, "feed.sourceId": source_id}
    await changes.set_derived(ctx, where, _update_feed(is_meant, {"data": {"$literal": dict(data)}}))


async def restore_feeds(ctx: Context, undone: Mapping[ObjectId, ObjectId]) -> None:
    """Hide the feed entries of undone changes, by client, and show those again that they had hidden."""
    ids = list(undone.values())
    is_shown = {"$eq": ["$$entry.hiddenBy", None]}
    await changes.set_derived(ctx, {"_id": {"$in": ids}}, _update_feed(is_shown, {"hiddenBy": "$undoneBy"}))
    was_hidden = {"$in": ["$$entry.hiddenBy", ids]}
    where = {"customerId": {"$in": list(undone)}, "feed.hiddenBy": {"$in": ids}}
    await changes.set_derived(ctx, where, _update_feed(was_hidden, {"hiddenBy": None}))


def _update_feed(condition: PipelineStage, fields: Mapping[str, Any]) -> list[PipelineStage]:
    """Return the update stages that set `fields` of entries by `condition`, and count the shown entries again."""
    updated = {"$cond": [condition, {"$mergeObjects": ["$$entry", dict(fields)]}, "$$entry"]}
    shown = {"$filter": {"input": "$feed", "as": "entry", "cond": {"$eq": ["$$entry.hiddenBy", None]}}}
    return [
        {"$set": {"feed": {"$map": {"input": "$feed", "as": "entry", "in": updated}}}},
        {"$set": {"feedCount": {"$size": shown}}},
    ]


async def find_one(ctx: Context, change_id: ObjectId) -> StoredChange | None:
    """Return a change without its patch, or None."""
    return await changes.find_one(ctx, {"_id": change_id}, _SUMMARY)


async def find_by_ids(ctx: Context, change_ids: Sequence[ObjectId]) -> list[StoredChange]:
    """Return changes without their patches, in any order."""
    return await changes.find(ctx, {"_id": {"$in": list(change_ids)}}, fields=_SUMMARY, hint="_id_")


async def find_credentials(ctx: Context, change_ids: Sequence[ObjectId]) -> list[ChangeCredential]:
    """Return the credentials of changes, without their other fields."""
    return await changes.find(ctx, {"_id": {"$in": list(change_ids)}}, fields=("credentialId",))


async def list_batch(ctx: Context, batch_id: ObjectId) -> list[StoredChange]:
    """Return the changes of a batch without their patches."""
    return await changes.find(ctx, {"batchId": batch_id}, sort=("_id",), fields=_SUMMARY)


async def list_clients_updated_by_batch(ctx: Context, batch_id: ObjectId) -> list[ObjectId]:
    """Return the clients that the changes of a batch have changed or added notes to, but not created."""
    changed = await _list_clients_of_batch(ctx, batch_id, {"kind": {"$in": ["customer", "note"]}})
    created = set(await list_clients_created_by_batch(ctx, batch_id))
    return [customer_id for customer_id in changed if customer_id not in created]


async def list_clients_created_by_batch(ctx: Context, batch_id: ObjectId) -> list[ObjectId]:
    """Return the clients that the changes of a batch have created, in the order of their identifiers."""
    return await _list_clients_of_batch(ctx, batch_id, {"kind": "customer", "action": "created"})


async def _list_clients_of_batch(ctx: Context, batch_id: ObjectId, document: Filter) -> list[ObjectId]:
    """Return the clients of whom a change of a batch has such a document, in the order of their identifiers."""
    where: Filter = {
        "batchId": batch_id,
        "customerId": {"$type": "objectId"},
        "documents": {"$elemMatch": document},
    }
    groups = await changes.aggregate(
        ctx, where, {"$group": {"_id": "$customerId"}}, {"$sort": {"_id": 1}}, hint=_BY_BATCH
    )
    return [group["_id"] for group in groups]


async def list_created_by_batch(ctx: Context, batch_id: ObjectId, kind: str) -> list[ObjectId]:
    """Return the documents of a kind that the changes of a batch have created."""
    created = {"kind": kind, "action": "created"}
    stages: list[PipelineStage] = [
        {"$project": {"documents": 1}},
        {"$unwind": "$documents"},
        {"$match": {f"documents.{name}": value for name, value in created.items()}},
        {"$group": {"_id": "$documents._id"}},
        {"$sort": {"_id": 1}},
    ]
    where: Filter = {"batchId": batch_id, "documents": {"$elemMatch": created}}
    return [group["_id"] for group in await changes.aggregate(ctx, where, *stages, hint=_BY_BATCH)]


async def list_newest(ctx: Context, where: Filter, limit: int) -> list[StoredChange]:
    """Return at most `limit` numbered changes that match `where`, newest first, without their patches."""
    numbered = {"$and": [{"lastSeq": {"$gt": 0}}, where]}
    return await changes.find(ctx, numbered, sort=NEWEST_FIRST, limit=limit, fields=_SUMMARY)


async def is_written_with(ctx: Context, credential_id: ObjectId, document_id: ObjectId, version: int) -> bool:
    """Return whether a version of a document was written by an assistant with this key or grant, in the last 30 days.

    The change needs no number yet.
    """
    where: Filter = {
        "credentialId": credential_id,
        "via": "assistant",
        "createdAt": {"$gt": now() - _WRITTEN_PERIOD},
        "documents": {"$elemMatch": {"_id": document_id, "toVersion": version}},
    }
    return await changes.find_one(ctx, where, ("_id",)) is not None


async def find_numbered(ctx: Context, change_ids: Sequence[ObjectId]) -> list[NumberedChange]:
    """Return changes with their events, in the order of their numbers; erased ones are left out."""
    read: Sequence[Any] = await changes.find(ctx, {"_id": {"$in": list(change_ids)}}, fields=_NUMBERED, hint="_id_")
    numbered: Sequence[NumberedChange] = read
    return sorted(numbered, key=lambda change: change["lastSeq"])


async def find_client_numbers(
    ctx: Context, customer_id: ObjectId, since: datetime, after: int, until: int, limit: int
) -> list[NumberedId]:
    """Return at most `limit` changes of a client, made at `since` or later, by their numbers, in order.

    Those whose last number is greater than `after`, not than `until`.
    """
    where = {"customerId": customer_id, "createdAt": {"$gte": since}, "lastSeq": {"$gt": after, "$lte": until}}
    stages: list[PipelineStage] = [{"$project": {"lastSeq": 1}}, {"$sort": {"lastSeq": 1}}, {"$limit": limit}]
    numbered: list[NumberedId] = await changes.aggregate(ctx, where, *stages, hint=_BY_CLIENT)
    return numbered


async def find_patches(ctx: Context, change_ids: Sequence[ObjectId]) -> dict[ObjectId, list[DocumentPatch]]:
    """Return the patches that are stored with changes, by change; empty ones where there is none."""
    stored = await changes.find(ctx, {"_id": {"$in": list(change_ids)}}, fields=("patch",), hint="_id_")
    return {change["_id"]: change.get("patch", []) for change in stored}


async def find_parts(ctx: Context, change_id: ObjectId) -> list[DocumentPatch]:
    """Return the patch that is stored in parts."""
    stored_parts = await parts.find(ctx, {"changeId": change_id}, sort=("number",))
    return [patch for part in stored_parts for patch in part["patch"]]


async def find_removed(
    ctx: Context, customer_id: ObjectId, document_id: ObjectId, list_name: str, element_id: ObjectId
) -> DocumentPatch | None:
    """Return the patch of a client's document with which it lost an element of a list, or was deleted with it.

    None if no change did in the time that patches are stored for.
    """
    removals: list[Filter] = [
        {f"before.{list_name}._id": element_id},
        {"fields": {"$elemMatch": {"path": list_name, "before._id": element_id}}},
    ]
    where: Filter = {
        "customerId": customer_id,
        "documents._id": document_id,
        "patch": {"$elemMatch": {"_id": document_id, "$or": removals}},
    }
    for change in await changes.find(ctx, where, fields=("patch",)):
        for patch in change.get("patch", []):
            if patch["_id"] == document_id and not _has_element(patch, list_name, element_id):
                return patch
    return None


def _has_element(patch: DocumentPatch, list_name: str, element_id: ObjectId) -> bool:
    """Return whether the document has the element after a patch that mentions it."""
    for field in patch["fields"]:
        if field["path"] == list_name:
            return any(element["_id"] == element_id for element in cast("list[Any]", field.get("after") or []))
    return False


async def find_restored_version(
    ctx: Context, customer_id: ObjectId | None, document_id: ObjectId, version: int
) -> int | None:
    """Return the earlier version whose state the undo that made `version` has restored; None if no undo made it."""
    element = {"_id": document_id, "toVersion": version, "restoredVersion": {"$exists": True}}
    where = {"customerId": customer_id, "documents": {"$elemMatch": element}}
    undo_changes = await changes.find(ctx, where, sort=NEWEST_FIRST, limit=1, fields=("documents",))
    for document in undo_changes[0]["documents"] if undo_changes else ():
        if document["_id"] == document_id:
            return document.get("restoredVersion")
    return None


async def set_undone(ctx: Context, undoes: Collection[Undo]) -> bool:
    """Mark changes as undone; returns False if one has been undone before."""
    marks = [({"_id": undo.of, "undoneBy": None}, {"$set": {"undoneBy": undo.id}}) for undo in undoes]
    return await changes.set_derived_each(ctx, marks) == len(marks)


async def set_effective(ctx: Context, change_ids: Sequence[ObjectId]) -> None:
    """Mark changes as effective again: their undo has been undone."""
    await changes.set_derived(ctx, {"_id": {"$in": list(change_ids)}}, {"$set": {"undoneBy": None}})


async def remove_old_patches(services: Services) -> int:
    """Remove the expired patches, and hidden feed entries, of a batch of changes; returns how many."""
    collection = changes.across_companies(services)
    where = {"patchUntil": {"$lte": now()}}
    old = [change["_id"] async for change in collection.find(where, {"_id": 1}, limit=_OLD_BATCH)]
    if old:
        change = {
            "$unset": {"patch": "", "parts": "", "patchUntil": ""},
            "$set": {"undoable": False},
            "$pull": {"feed": {"hiddenBy": {"$ne": None}}},
        }
        await collection.update_many({"_id": {"$in": old}}, change)
    return len(old)


async def find_feed_page(
    ctx: Context, customer_id: ObjectId, list_part: ListPart, selection: ListSelection, without: Sequence[EventType]
) -> tuple[list[CompanyFeedItem], int]:
    """Return the entries of a selection for one part of a client's feed, newest first, and how many there are.

    Entries of the types `without` are left out.
    """
    where: Filter = {"customerId": customer_id, "feedCount": {"$gt": 0}}
    shown: Filter = {"feed.hiddenBy": None}
    changes_at_most = (
        list_part.skip + list_part.limit + 1
    )  # all entries of the cursor's change may be before the cursor
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
            hint=_BY_FEED,
        ),
        changes.aggregate(ctx, where, *counting, count, hint=_BY_FEED),
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
        {"$project": {"feed": 1, "feedAt": 1, "actor": 1, "customerId": 1}},
        {"$unwind": "$feed"},
        {"$match": {**entry, **condition}},
        {"$limit": limit},
        hint=_BY_COMPANY_FEED,
    )
