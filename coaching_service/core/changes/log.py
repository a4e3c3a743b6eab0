"""Writing the change log: what a transaction has collected becomes one change, or one for each client of a bulk."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import cast

from coaching_service.core.changes import models as change_models
from coaching_service.core.changes import store
from coaching_service.core.database import recording
from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import now, registry
from coaching_service.core.events import DomainEvent, EventType
from coaching_service.core.ids import ObjectId

UNDO_PERIOD = timedelta(days=30)
MAX_PATCH_BYTES = 8_000_000


@dataclass(frozen=True)
class DocumentsWritten(DomainEvent):
    """A transaction ends: these documents were created, changed or deleted, each from its first to its last write."""

    documents: Sequence[recording.DocumentChange]


@dataclass
class _ClientChange:
    """What one change of the log is about."""

    customer_id: ObjectId | None
    documents: list[recording.DocumentChange] = field(default_factory=list)
    events: list[recording.LoggedEvent] = field(default_factory=list)


async def write(ctx: Context) -> list[ObjectId]:
    """Store what `ctx.recorder` has collected, in the transaction of `ctx`.

    Returns what identifies it, and what an undo takes: the change, or the batch.
    """
    recorder = ctx.changes
    if ctx.principal is None and recorder.author is not None:
        ctx = ctx.acting_as(recorder.author)
    if ctx.author is not None:
        ctx = replace(ctx, principal=ctx.author)
    await ctx.publish(DocumentsWritten(list(recorder.documents.values())))
    groups = _group_by_client(recorder)
    is_batch = ctx.batch_id is not None or len(groups) > 1
    changes: list[change_models.NewChangeDocument] = []
    for group in groups:
        undo = recorder.undoes.get(group.customer_id)
        change_id = undo.id if undo else ObjectId() if is_batch else recorder.id
        await _hide_replaced_entries(ctx, group, change_id)
        imported = [event for event in group.events if event.feed and event.feed.date]
        group.events = [event for event in group.events if not (event.feed and event.feed.date)]
        if group.documents or group.events:
            change = _change(ctx, change_id, group)
            if is_batch:
                change["batchId"] = ctx.batch_id or recorder.id
            await _store_large_patch(ctx, change)
            changes.append(change)
        for event in imported:  # a feed entry with a date of its own, and no event
            entry = _change(ctx, ObjectId(), _ClientChange(event.customer_id, [], [event]))
            entry["events"], entry["eventCount"] = [], 0
            if event.feed is not None and event.feed.date is not None:
                entry["feedAt"], entry["actor"] = event.feed.date, event.feed.actor or entry["actor"]
            changes.append(entry)
    await store.changes.insert_many(ctx, changes)
    return [ctx.batch_id or recorder.id] if changes else []


def _group_by_client(recorder: recording.ChangeRecorder) -> list[_ClientChange]:
    """Return one group, or one for each client and one for what concerns no client if there are several clients."""
    groups: dict[ObjectId | None, _ClientChange] = {}
    for client_id in (
        *(document.client_id for document in recorder.documents.values()),
        *(event.customer_id for event in recorder.events),
        *(entries.customer_id for entries in recorder.removed_entries),
    ):
        groups.setdefault(client_id, _ClientChange(client_id))
    common = groups.get(None)
    if common is not None and len(groups) == 2:
        del groups[None]
        common = next(iter(groups.values()))
        groups[None] = common
    for document in recorder.documents.values():
        groups[document.client_id].documents.append(document)
    for event in recorder.events:
        groups[event.customer_id].events.append(event)
    return list({id(group): group for group in groups.values()}.values())


async def _hide_replaced_entries(ctx: Context, group: _ClientChange, change_id: ObjectId) -> None:
    """Hide the feed entries that are replaced by new ones, or are no longer true."""
    types_of: defaultdict[ObjectId, list[EventType]] = defaultdict(list)
    created = {document.id for document in group.documents if document.action == "created"}
    for event in group.events:
        if event.feed is not None and not event.feed.is_first and event.feed.source_id not in created:
            types_of[event.feed.source_id].append(event.type)
    for removed in ctx.changes.removed_entries:
        if removed.customer_id == group.customer_id:
            types_of[removed.source_id].extend(removed.types)
    if not types_of or group.customer_id is None:
        return
    is_meant = [
        {"$and": [{"$eq": ["$$entry.sourceId", source]}, {"$in": ["$$entry.type", types]}]}
        for source, types in types_of.items()
    ]
    is_hidden = {"$and": [{"$eq": ["$$entry.hiddenBy", None]}, {"$or": is_meant}]}
    where = {"customerId": group.customer_id, "feedCount": {"$gt": 0}, "feed.sourceId": {"$in": list(types_of)}}
    await store.changes.set_derived(ctx, where, store.update_feed(is_hidden, {"hiddenBy": change_id}))


def _change(ctx: Context, change_id: ObjectId, group: _ClientChange) -> change_models.NewChangeDocument:
    principal, at = ctx.principal, now()
    documents, undo = group.documents, ctx.changes.undoes.get(group.customer_id)
    events = _events(documents, group.events)
    feed: list[change_models.StoredFeedEntry] = [
        {
            "_id": ObjectId(),
            "type": event.type,
            "sourceId": event.feed.source_id,
            "data": dict(event.feed.data),
            "hiddenBy": None,
        }
        for event in group.events
        if event.feed is not None
    ]
    feed.reverse()  # newest first, with the highest identifier
    is_deleted_client = any(each.collection == "customers" and each.action == "deleted" for each in documents)
    is_of_coach = principal is not None and principal.is_coach and recording.interface_of(ctx) != "system"
    undoable = is_of_coach and ctx.changes.can_be_undone and bool(documents)
    undoable = undoable and all(each.history.can_undo(each.action) for each in documents)
    change: change_models.NewChangeDocument = {
        "_id": change_id,
        "actor": recording.actor_of(ctx),
        "via": recording.interface_of(ctx),
        "credentialId": principal.credential_id if principal else None,
        "operation": ctx.operation,
        "customerId": None if is_deleted_client else group.customer_id,
        "documents": [reference_to(each, ctx.changes) for each in documents],
        "undoable": undoable,
        "events": events,
        "eventCount": len(events),
        "feed": feed,
        "feedCount": len(feed),
        "feedAt": at,
        "pending": store.NEW_PENDING,
        "undoneBy": None,
        "undoOf": undo.of if undo else None,
    }
    if change["via"] == "assistant" and principal is not None and principal.via == "apiKey":
        change["hasKey"] = True
    if ctx.changes.approved_by is not None:
        change["approvedBy"] = ctx.changes.approved_by
    if ctx.changes.decided_in is not None:
        change["decidedIn"] = ctx.changes.decided_in
    if ctx.changes.confirms_itself:
        change["confirmsItself"] = True
    if undoable:
        change["patch"] = [patch_of(each) for each in documents]
        change["patchUntil"] = at + UNDO_PERIOD
    return change


def _events(
    documents: Iterable[recording.DocumentChange], reported: Sequence[recording.LoggedEvent]
) -> list[change_models.StoredEvent]:
    """Return the events that changed documents mean and that services have reported."""
    described = {event.document_id for event in reported}
    reported_types = {(event.document_id, event.type) for event in reported}
    derived: dict[tuple[object, ...], change_models.StoredEvent] = {}
    for document in documents:
        event = None if document.action == "changed" and document.id in described else _derive(document)
        if event is None or (document.id, event["type"]) in reported_types:
            continue
        names = event["data"].pop("fields", None)
        first = derived.setdefault((event["type"], *event["data"].items()), event)
        if names is not None:
            merged = {*cast("list[str]", first["data"].get("fields") or []), *cast("list[str]", names)}
            first["data"]["fields"] = sorted(merged)
    # Workouts of a new or deleted program are part of its creation or deletion, which says more.
    programs = {key[1:] for key in derived if key[0] in ("program.created", "program.deleted")}
    events = [
        event
        for event in derived.values()
        if event["type"] != "program.updated" or (("programId", event["data"]["programId"]),) not in programs
    ]
    for each in reported:
        events.append({"type": each.type, "customerId": each.customer_id, "data": dict(each.data)})
        if each.source is not None:
            events[-1]["source"] = each.source
    return events


def _derive(document: recording.DocumentChange) -> change_models.StoredEvent | None:
    """Return the event of a document's change, if it is one; an `.updated` one with the names of what changed."""
    if document.history.event is None:
        return None
    derived = document.history.event(document.action, {**document.known, "_id": document.id}, document.values.keys())
    if derived is None:
        return None
    event: change_models.StoredEvent = {
        "type": derived["type"],
        "customerId": document.client_id,
        "data": {**derived["data"]},
    }
    if event["type"].endswith(".updated"):
        names = derived.get("fields") or document.changed_names(registry[document.collection].private)
        event["data"]["fields"] = names
    return event


def reference_to(
    document: recording.DocumentChange, recorder: recording.ChangeRecorder
) -> change_models.ChangedDocument:
    """Return a document as the change that changed it names it."""
    reference: change_models.ChangedDocument = {
        "collection": document.collection,
        "kind": document.kind,
        "_id": document.id,
        "action": document.action,
        "fromVersion": document.from_version,
        "toVersion": document.to_version,
    }
    if document.values.get("deletedAt", (None, None))[1] is not None:
        reference["softDeleted"] = True
    if document.id in recorder.restored:
        reference["restoredVersion"] = recorder.restored[document.id]
    return reference


def patch_of(document: recording.DocumentChange) -> change_models.DocumentPatch:
    """Return the values of a changed document before and after."""
    fields = document.field_changes() if document.action == "changed" else []
    return {"_id": document.id, "before": document.before, "after": document.after, "fields": fields}


async def _store_large_patch(ctx: Context, change: change_models.NewChangeDocument) -> None:
    """Move a patch that would make the change too large into documents of its own."""
    if "patch" not in change:
        return
    patches, until = change["patch"], change["patchUntil"]
    sizes = [recording.encoded_size(each) for each in patches]
    if sum(sizes) <= MAX_PATCH_BYTES:
        return
    del change["patch"]
    parts: list[list[change_models.DocumentPatch]] = [[]]
    size = 0
    for patch, patch_size in zip(patches, sizes, strict=True):
        if parts[-1] and size + patch_size > MAX_PATCH_BYTES:
            parts.append([])
            size = 0
        parts[-1].append(patch)
        size += patch_size
    change["parts"] = len(parts)
    own = {"changeId": change["_id"], "customerId": change["customerId"], "patchUntil": until}
    await store.parts.insert_many(ctx, [{**own, "number": number, "patch": part} for number, part in enumerate(parts)])
