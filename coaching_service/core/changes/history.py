"""Reading changes: by their identifiers, numbers, batches and clients, and their values before and after."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from coaching_service.core.changes import numbering, store
from coaching_service.core.changes.models import CompanyFeedItem, DocumentPatch, NumberedChange, StoredChange
from coaching_service.core.database.context import Context, gather_reads
from coaching_service.core.database.documents import Filter, PipelineStage, now
from coaching_service.core.database.recording import CountedByDay, by_day
from coaching_service.core.database.worker_thread import on_worker_thread
from coaching_service.core.events import EventType
from coaching_service.core.ids import ObjectId
from coaching_service.core.list_selection import ListPart, ListSelection

NEWEST_FIRST = ("-createdAt", "-_id")
_SUMMARY = tuple(name for name in StoredChange.__annotations__ if name not in ("patch", "feed", "companyId"))
_NUMBERED = tuple(name for name in NumberedChange.__annotations__ if name != "_id")
_WRITTEN_PERIOD = timedelta(days=30)
_NUMBERING_DELAY = timedelta(days=1)  # a change has its number by then


@dataclass(frozen=True)
class NumberedPage:
    """Changes in the order of their numbers, the number to continue from, and whether there may be more.

    Erased changes are left out, so there may be more after a page without any.
    """

    changes: Sequence[NumberedChange]
    until: int
    has_more: bool


async def find_one(ctx: Context, change_id: ObjectId) -> StoredChange | None:
    """Return a change without its patch, or None."""
    return await store.changes.find_one(ctx, {"_id": change_id}, _SUMMARY)


async def list_by_ids(ctx: Context, change_ids: Sequence[ObjectId]) -> list[StoredChange]:
    """Return those changes that exist, numbered or not, in the order of `change_ids`, without their patches."""
    found = await store.changes.find(ctx, {"_id": {"$in": list(change_ids)}}, fields=_SUMMARY, hint="_id_")
    stored = {change["_id"]: change for change in found}
    return [stored[change_id] for change_id in change_ids if change_id in stored]


async def list_batch(ctx: Context, batch_id: ObjectId) -> list[StoredChange]:
    """Return the changes of a batch without their patches."""
    return await store.changes.find(ctx, {"batchId": batch_id}, sort=("_id",), fields=_SUMMARY)


async def list_clients_updated_by_batch(ctx: Context, batch_id: ObjectId) -> list[ObjectId]:
    """Return the clients that the changes of a batch have changed or added notes to, but not created."""
    changed: Filter = {"documents": {"$elemMatch": {"kind": {"$in": ["customer", "note"]}}}}
    where: Filter = {"batchId": batch_id, "customerId": {"$type": "objectId"}, **changed}
    stages: list[PipelineStage] = [{"$group": {"_id": "$customerId"}}, {"$sort": {"_id": 1}}]
    groups = await store.changes.aggregate(ctx, where, *stages, hint=store.BY_BATCH)
    created = set(await list_created(ctx, batch_id, "customer"))
    return [group["_id"] for group in groups if group["_id"] not in created]


async def count_clients(
    ctx: Context, batch_ids: Sequence[ObjectId], customer_ids: Sequence[ObjectId] | None
) -> dict[ObjectId, int]:
    """Return how many of the clients (None: all) the changes of batches are about, by batch."""
    about: Filter = {"$type": "objectId"} if customer_ids is None else {"$in": list(customer_ids)}
    where: Filter = {"batchId": {"$in": list(batch_ids)}, "customerId": about}
    stages: list[PipelineStage] = [
        {"$group": {"_id": {"batchId": "$batchId", "customerId": "$customerId"}}},
        {"$group": {"_id": "$_id.batchId", "clients": {"$sum": 1}}},
    ]
    counted = await store.changes.aggregate(ctx, where, *stages, hint=store.BY_BATCH) if batch_ids else []
    return {each["_id"]: each["clients"] for each in counted}


async def list_created(ctx: Context, change_id: ObjectId, kind: str) -> list[ObjectId]:
    """Return the documents of a kind that a change, or the changes of a batch, have created."""
    created = {"kind": kind, "action": "created"}
    if (change := await find_one(ctx, change_id)) is not None:
        return sorted(each["_id"] for each in change["documents"] if created.items() <= each.items())
    stages: list[PipelineStage] = [
        {"$project": {"documents": 1}},
        {"$unwind": "$documents"},
        {"$match": {f"documents.{name}": value for name, value in created.items()}},
        {"$group": {"_id": "$documents._id"}},
        {"$sort": {"_id": 1}},
    ]
    where: Filter = {"batchId": change_id, "documents": {"$elemMatch": created}}
    return [group["_id"] for group in await store.changes.aggregate(ctx, where, *stages, hint=store.BY_BATCH)]


async def list_newest(ctx: Context, where: Filter, limit: int) -> list[StoredChange]:
    """Return at most `limit` numbered changes that match `where`, newest first, without their patches."""
    numbered = {"$and": [{"lastSeq": {"$gt": 0}}, where]}
    return await store.changes.find(ctx, numbered, sort=NEWEST_FIRST, limit=limit, fields=_SUMMARY)


async def count_by_day(ctx: Context, customer_id: ObjectId, since: datetime, timezone: str) -> list[CountedByDay]:
    """Return how often each coach, assistant or application has changed the data of a client on each day."""
    where: Filter = {
        "customerId": customer_id,
        "createdAt": {"$gte": since},
        "actor.type": {"$in": ["coach", "key", "assistant", "application"]},
    }
    return await store.changes.aggregate(ctx, where, *by_day(timezone, {"$sum": 1}), hint=store.BY_CLIENT)


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
    return await store.changes.find_one(ctx, where, ("_id",)) is not None


async def list_unapproved(
    ctx: Context, customer_id: ObjectId, document_ids: Sequence[ObjectId], period: timedelta
) -> list[StoredChange]:
    """Return what assistants have changed of documents of a client without a person's approval, oldest first."""
    where: Filter = {
        "customerId": customer_id,
        "createdAt": {"$gt": now() - period},
        "via": "assistant",
        "$or": [{"approvedBy": {"$exists": False}}, {"confirmsItself": True}],
        "documents._id": {"$in": list(document_ids)},
    }
    fields = ("documents", "patch")
    return await store.changes.find(ctx, where, sort=("createdAt", "_id"), fields=fields, hint=store.BY_CLIENT)


async def load_credentials(ctx: Context, change_ids: Sequence[ObjectId]) -> dict[ObjectId, ObjectId]:
    """Return the key, grant or session with which changes were made, by change."""
    where: Filter = {"_id": {"$in": list(change_ids)}}
    loaded = await store.changes.find(ctx, where, fields=("credentialId",)) if change_ids else []
    return {change["_id"]: change["credentialId"] for change in loaded if change["credentialId"] is not None}


@on_worker_thread
async def list_numbered(
    ctx: Context, after: int, limit: int, *, since: datetime, customer_id: ObjectId | None = None
) -> NumberedPage:
    """Return at most `limit` changes whose last number is greater than `after`: of the company, or of a client.

    Raises CursorExpired if numbers after it were assigned before `since`.
    """
    if customer_id is None:
        numbered = await numbering.find_after(ctx, after, limit, since)
        until = after
    else:
        await numbering.require_available(ctx, after, since)
        until = max(after, await numbering.find_last_number(ctx))
        where: Filter = {"customerId": customer_id, "createdAt": {"$gte": since - _NUMBERING_DELAY}}
        where["lastSeq"] = {"$gt": after, "$lte": until}
        stages: list[PipelineStage] = [{"$project": {"lastSeq": 1}}, {"$sort": {"lastSeq": 1}}, {"$limit": limit}]
        numbered = await store.changes.aggregate(ctx, where, *stages, hint=store.BY_CLIENT)
    has_more = len(numbered) == limit
    if numbered and (has_more or customer_id is None):
        until = numbered[-1]["lastSeq"]
    read: list[Any] = []  # NumberedChange
    if numbered:
        ids = [each["_id"] for each in numbered]
        read = await store.changes.find(ctx, {"_id": {"$in": ids}}, fields=_NUMBERED, hint="_id_")
    return NumberedPage(sorted(read, key=lambda change: change["lastSeq"]), until, has_more)


async def load_patches(ctx: Context, read: Sequence[StoredChange]) -> dict[ObjectId, DocumentPatch]:
    """Return the values of the documents of changes before and after, by document; without those not stored.

    No two of the changes are about the same document.
    """
    where: Filter = {"_id": {"$in": [change["_id"] for change in read]}}
    stored = await store.changes.find(ctx, where, fields=("patch",), hint="_id_")
    of_changes = {change["_id"]: change.get("patch", []) for change in stored}
    for change in read:
        if "parts" in change:
            stored_parts = await store.parts.find(ctx, {"changeId": change["_id"]}, sort=("number",))
            of_changes[change["_id"]] = [patch for part in stored_parts for patch in part["patch"]]
    return {patch["_id"]: patch for patches in of_changes.values() for patch in patches}


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
    for change in await store.changes.find(ctx, where, fields=("patch",)):
        for patch in change.get("patch", []):
            lists = (field.get("after") or [] for field in patch["fields"] if field["path"] == list_name)
            if patch["_id"] == document_id and element_id not in (element["_id"] for element in next(lists, [])):
                return patch
    return None


# --- The activity feed: the entries that changes have for a client's feed, and for the feed of all clients ------------


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
    await store.changes.set_derived(ctx, where, store.update_feed(is_meant, corrected))


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
        store.changes.aggregate(
            ctx,
            where | list_part.condition_on_first(2),
            {"$sort": {"feedAt": -1, "_id": -1}},
            {"$limit": changes_at_most},
            {"$project": {"feed": 1, "feedAt": 1, "actor": 1, "customerId": 1}},
            {"$unwind": "$feed"},
            {"$match": list_part.within(shown)},
            {"$skip": list_part.skip},
            {"$limit": list_part.limit},
            hint=store.BY_FEED,
        ),
        store.changes.aggregate(ctx, where, *counting, count, hint=store.BY_FEED),
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
    return await store.changes.aggregate(
        ctx,
        where,
        {"$sort": {"feedAt": -1, "_id": -1}},
        {"$project": {"feed": 1, "feedAt": 1, "actor": 1, "customerId": 1, "batchId": 1}},
        {"$unwind": "$feed"},
        {"$match": {**entry, **condition}},
        {"$limit": limit},
        hint=store.BY_COMPANY_FEED,
    )


async def list_archivals(ctx: Context, since: datetime, until: datetime) -> list[tuple[ObjectId, datetime]]:
    """Return which clients were archived from one time up to another, and when; without what was undone."""
    where: Filter = {"createdAt": {"$gte": since, "$lt": until}, "events.type": "customer.archived", "undoneBy": None}
    found = await store.changes.find(ctx, where, fields=("customerId", "createdAt"), hint=store.BY_ARCHIVAL)
    return [(each["customerId"], each["createdAt"]) for each in found if each["customerId"] is not None]
