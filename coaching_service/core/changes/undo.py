"""Restoring the documents of a change as they were before it, unless they have been changed since."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from coaching_service.core.changes import store
from coaching_service.core.changes.history import NEWEST_FIRST
from coaching_service.core.changes.models import ChangedDocument, DocumentPatch, NamedDocument, StoredChange
from coaching_service.core.changes.store import changes
from coaching_service.core.database import recording
from coaching_service.core.database.context import Context, Services, taken_place
from coaching_service.core.database.declared import DocumentFields
from coaching_service.core.database.documents import Document, Documents, now, registry
from coaching_service.core.database.recording import Undo
from coaching_service.core.errors import Conflict, ErrorBody, MovedDocument
from coaching_service.core.events import DomainEvent
from coaching_service.core.ids import ObjectId
from coaching_service.core.jobs.queue import Job, RunAgain

_MAX_UNDONE = 1_000  # undone changes between the change to undo and the present


@dataclass(frozen=True)
class RestoredDocument:
    """A document before and after it was restored; None where it does not exist."""

    kind: str
    before: Mapping[str, Any] | None
    after: Mapping[str, Any] | None


@dataclass(frozen=True)
class DocumentsRestored(DomainEvent):
    """An undo has restored documents: what is derived from them has to follow."""

    documents: Sequence[RestoredDocument]

    def of_kind(self, kind: str) -> list[RestoredDocument]:
        """Return the restored documents of one kind."""
        return [document for document in self.documents if document.kind == kind]


@dataclass(frozen=True)
class RestorationPlanned(DomainEvent):
    """An undo is about to restore documents, and has written nothing: subscribers may refuse it by raising."""

    documents: Sequence[RestoredDocument]


class DocumentsMoved(Conflict):
    """Documents have been changed since the change to undo, or have taken the place of one to restore."""

    default_code = "VERSION_CONFLICT"

    def __init__(self, documents: Sequence[NamedDocument]) -> None:
        names = ", ".join(f"{document['kind']} {document['_id']}" for document in documents)
        super().__init__(f"Changed since, so that this cannot be undone: {names}", documents=documents)

    def body(self) -> ErrorBody:
        """Return the common shape with the documents."""
        named: list[MovedDocument] = [
            {"kind": document["kind"], "_id": str(document["_id"])} for document in self.details["documents"]
        ]
        return {**super().body(), "documents": named}


@dataclass(frozen=True)
class _Restoration(RestoredDocument):
    """A document to restore: `operators` change it, if it exists before and after."""

    collection: Documents[Any]
    operators: Document


async def restore(ctx: Context, changes: Sequence[StoredChange], patches: Mapping[ObjectId, DocumentPatch]) -> None:
    """Restore every document of changes, mark these as undone, and publish DocumentsRestored, in this transaction.

    Each change is about another client and other documents. A document that is derived from the others of its change is
    left to the features if it has been changed since. Raises DocumentsMoved for all others, and what subscribers of
    RestorationPlanned raise: before anything is written, so that a transaction may go on with other changes.
    """
    restored, moved = await _plan(ctx, changes, patches)
    if moved:
        raise DocumentsMoved(moved)
    await ctx.publish(RestorationPlanned(restored))
    recorder = ctx.changes
    is_single = len(changes) == 1 and ctx.batch_id is None
    undoes = {change["customerId"]: Undo(recorder.id if is_single else ObjectId(), change["_id"]) for change in changes}
    recorder.undoes |= undoes
    marks = [({"_id": undo.of, "undoneBy": None}, {"$set": {"undoneBy": undo.id}}) for undo in undoes.values()]
    if await store.changes.set_derived_each(ctx, marks) < len(marks):  # one has been undone before
        raise DocumentsMoved([document for change in changes for document in change["documents"]])
    await _write(ctx, restored)
    if effective := [change["undoOf"] for change in changes if change["undoOf"] is not None]:
        await store.changes.set_derived(ctx, {"_id": {"$in": effective}}, {"$set": {"undoneBy": None}})
    if of_clients := {client: undo.of for client, undo in undoes.items() if client is not None}:
        # Hide the feed entries of undone changes, and show those again that they had hidden.
        ids, is_shown = list(of_clients.values()), {"$eq": ["$$entry.hiddenBy", None]}
        hiding = store.update_feed(is_shown, {"hiddenBy": "$undoneBy"})
        await store.changes.set_derived(ctx, {"_id": {"$in": ids}}, hiding)
        where = {"customerId": {"$in": list(of_clients)}, "feed.hiddenBy": {"$in": ids}}
        showing = store.update_feed({"$in": ["$$entry.hiddenBy", ids]}, {"hiddenBy": None})
        await store.changes.set_derived(ctx, where, showing)
    await ctx.publish(DocumentsRestored(restored))


async def _plan(
    ctx: Context, changes: Sequence[StoredChange], patches: Mapping[ObjectId, DocumentPatch]
) -> tuple[list[_Restoration], list[ChangedDocument]]:
    """Return how to restore the documents of changes, and the documents that have been changed since, without
    derived ones."""
    ids: defaultdict[str, list[ObjectId]] = defaultdict(list)
    for change in changes:
        for document in change["documents"]:
            ids[document["collection"]].append(document["_id"])
    stored = {each["_id"]: each for name, some in ids.items() for each in await registry[name].find_whole(ctx, some)}
    restored: list[_Restoration] = []
    moved: list[ChangedDocument] = []
    for change in changes:
        histories = [registry[document["collection"]].history for document in change["documents"]]
        is_derived = [history is not None and history.undo == "derived" for history in histories]
        moved_of_change: list[ChangedDocument] = []
        for document, derived in reversed(list(zip(change["documents"], is_derived, strict=True))):
            current, patch = stored.get(document["_id"]), patches[document["_id"]]
            restoration = await _find_restoration(
                ctx, registry[document["collection"]], change, document, current, patch
            )
            if restoration is not None:
                restored.append(restoration)
            elif not derived or all(is_derived):
                moved_of_change.insert(0, document)
        moved += moved_of_change
    return restored, moved


async def _find_restoration(
    ctx: Context,
    collection: Documents[Any],
    change: StoredChange,
    document: ChangedDocument,
    current: Document | None,
    patch: DocumentPatch,
) -> _Restoration | None:
    """Return how to restore a document; None if it has been changed since."""
    kind = document["kind"]
    if document["action"] == "deleted":
        if current is not None or patch["before"] is None:
            return None
        ctx.changes.restored[document["_id"]] = document["fromVersion"]
        return _Restoration(kind, None, patch["before"], collection, {})
    if current is None or not await _is_at(ctx, change, document, current["version"]):
        return None
    if document["action"] == "created":
        return _Restoration(kind, current, None, collection, {})
    ctx.changes.restored[document["_id"]] = document["fromVersion"]
    after = dict(current)
    operators: defaultdict[str, Document] = defaultdict(dict)
    for field_change in patch["fields"]:
        path, value = field_change["path"], field_change.get("before", recording.MISSING)
        if field_change.get("elements"):
            elements = recording.values_at(current, [path])[path]
            value = recording.restored_elements([] if elements is recording.MISSING else elements, field_change)
        if value is recording.MISSING:
            operators["$unset"][path] = ""
        else:
            operators["$set"][path] = value
        recording.set_path(after, path, value)
    return _Restoration(kind, current, after, collection, operators)


async def _write(ctx: Context, restored: Sequence[_Restoration]) -> None:
    """Write restored documents: what is deleted first, so that its unique values are free for the others.

    Raises Conflict if another document has these values since.
    """
    of_collections: defaultdict[str, list[_Restoration]] = defaultdict(list)
    for each in restored:
        of_collections[each.collection.name].append(each)
    for documents in of_collections.values():
        collection = documents[0].collection
        if removed := [each.before["_id"] for each in documents if each.before is not None and each.after is None]:
            await collection.delete_many(ctx, {"_id": {"$in": removed}})
        changed = [
            (dict(each.before), each.operators, dict(each.after))
            for each in documents
            if each.before is not None and each.after is not None
        ]
        with taken_place(documents[0].kind.replace("_", " ")):
            await collection.restore_each(ctx, changed)
            if inserted := [each.after for each in documents if each.before is None and each.after is not None]:
                await collection.reinsert(ctx, inserted)


async def _is_at(ctx: Context, change: StoredChange, document: ChangedDocument, version: int) -> bool:
    """Return whether a document at `version` is as the change left it: later changes have been undone."""
    for _ in range(_MAX_UNDONE):
        if version == document["toVersion"]:
            return True
        element = {"_id": document["_id"], "toVersion": version, "restoredVersion": {"$exists": True}}
        where = {"customerId": change["customerId"], "documents": {"$elemMatch": element}}
        undos = await store.changes.find(ctx, where, sort=NEWEST_FIRST, limit=1, fields=("documents",))
        documents = undos[0]["documents"] if undos else ()
        restored = next((each.get("restoredVersion") for each in documents if each["_id"] == document["_id"]), None)
        if restored is None:  # no undo made this version
            return False
        version = restored
    return False


def public_values(
    document: ChangedDocument, patch: DocumentPatch | None
) -> tuple[DocumentFields | None, DocumentFields | None]:
    """Return the public fields of a document that a change touched, before and after it; None where there are none."""
    if patch is None:
        return None, None
    private = {*registry[document["collection"]].private, "companyId"}

    def public(values: DocumentFields | None) -> DocumentFields | None:
        return None if values is None else {name: value for name, value in values.items() if name not in private}

    before, after = patch["before"], patch["after"]
    if document["action"] == "changed":
        before, after = {}, {}
        for field_change in patch["fields"]:
            if "before" in field_change:
                recording.set_path(before, field_change["path"], field_change["before"])
            if "after" in field_change:
                recording.set_path(after, field_change["path"], field_change["after"])
    return public(before), public(after)


# --- The job that removes the values before and after once a change can no longer be undone ---------------------------


REMOVE_OLD_PATCHES = "remove_old_patches"
_INTERVAL = timedelta(hours=1)
_BATCH = 500


async def remove_old_patches(services: Services, _: Job) -> RunAgain:
    """Remove the expired patches, and hidden feed entries, of a batch of changes.

    Runs again at once while there are more, else in an hour.
    """
    collection, where = changes.across_companies(services), {"patchUntil": {"$lte": now()}}
    old = [change["_id"] async for change in collection.find(where, {"_id": 1}, limit=_BATCH)]
    if not old:
        return RunAgain(_INTERVAL)
    change = {
        "$unset": {"patch": "", "parts": "", "patchUntil": ""},
        "$set": {"undoable": False},
        "$pull": {"feed": {"hiddenBy": {"$ne": None}}},
    }
    await collection.update_many({"_id": {"$in": old}}, change)
    return RunAgain()
