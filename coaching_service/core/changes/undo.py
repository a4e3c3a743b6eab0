"""Restoring the documents of a change as they were before it, unless they have been changed since."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from coaching_service.core.changes import store
from coaching_service.core.changes.models import ChangedDocument, DocumentPatch, StoredChange
from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import Document, Documents, declared_collections
from coaching_service.core.database.field_changes import MISSING, FieldChange, restored_elements, set_path, values_at
from coaching_service.core.database.models import DocumentFields, FieldValue
from coaching_service.core.database.recording import History
from coaching_service.core.errors import Conflict, ErrorBody, MovedDocument
from coaching_service.core.events import DomainEvent
from coaching_service.core.ids import ObjectId

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
        """The restored documents of one kind."""
        return [document for document in self.documents if document.kind == kind]


class DocumentsMoved(Conflict):
    """Documents have been changed since the change to undo."""

    default_code = "VERSION_CONFLICT"

    def __init__(self, documents: Sequence[ChangedDocument]) -> None:
        names = ", ".join(f"{document['kind']} {document['_id']}" for document in documents)
        super().__init__(f"Changed since, so that this cannot be undone: {names}", documents=documents)

    def body(self) -> ErrorBody:
        """The common shape with the documents."""
        named: list[MovedDocument] = [
            {"kind": document["kind"], "_id": str(document["_id"])} for document in self.details["documents"]
        ]
        return {**super().body(), "documents": named}


class _Moved(Exception):
    """A document has been changed since the change to undo."""


async def restore(ctx: Context, change: StoredChange, patches: Mapping[ObjectId, DocumentPatch]) -> None:
    """Restore every document of a change, mark it as undone, and publish DocumentsRestored, in this transaction.

    A document that is derived from the others is left to the features if it has been changed since. Raises
    DocumentsMoved for all others.
    """
    recorder = ctx.changes
    recorder.undo_of = change["_id"]
    collections = declared_collections()
    restored: list[RestoredDocument] = []
    moved: list[ChangedDocument] = []
    is_derived = [_history(collections, document).undo == "derived" for document in change["documents"]]
    for document, derived in reversed(list(zip(change["documents"], is_derived, strict=True))):
        try:
            restored.append(await _restore(ctx, collections[document["collection"]], change, document, patches))
        except _Moved:
            if not derived or all(is_derived):
                moved.insert(0, document)
    if moved or not await store.set_undone(ctx, change["_id"], recorder.id):
        raise DocumentsMoved(moved or change["documents"])
    if change["undoOf"] is not None:
        await store.set_effective(ctx, change["undoOf"])
    if change["customerId"] is not None:
        await store.restore_feed(ctx, change["customerId"], change["_id"], recorder.id)
    await ctx.publish(DocumentsRestored(restored))


def _history(collections: Mapping[str, Documents[Any]], document: ChangedDocument) -> History:
    if (history := collections[document["collection"]].history) is None:
        raise RuntimeError(f"{document['collection']} is not recorded")
    return history


async def _restore(
    ctx: Context,
    collection: Documents[Any],
    change: StoredChange,
    document: ChangedDocument,
    patches: Mapping[ObjectId, DocumentPatch],
) -> RestoredDocument:
    identifier, kind = document["_id"], document["kind"]
    patch = patches[identifier]
    current = await collection.find_whole(ctx, identifier)
    if document["action"] == "deleted":
        if current is not None or patch["before"] is None:
            raise _Moved
        ctx.changes.restored[identifier] = document["fromVersion"]
        await collection.reinsert(ctx, patch["before"])
        return RestoredDocument(kind, None, patch["before"])
    if current is None or not await _is_at(ctx, change, document, current["version"]):
        raise _Moved
    if document["action"] == "created":
        await collection.delete(ctx, {"_id": identifier})
        return RestoredDocument(kind, current, None)
    after = dict(current)
    operators: dict[str, Document] = {"$set": {}, "$unset": {}}
    for field_change in patch["fields"]:
        path = field_change["path"]
        value = _previous_value(current, field_change)
        operators["$unset" if value is MISSING else "$set"][path] = "" if value is MISSING else value
        set_path(after, path, value)
    ctx.changes.restored[identifier] = document["fromVersion"]
    await collection.update(
        ctx, {"_id": identifier}, {name: fields for name, fields in operators.items() if fields}, previous=current
    )
    return RestoredDocument(kind, current, after)


def _previous_value(current: Mapping[str, Any], change: FieldChange) -> FieldValue:
    if change.get("elements"):
        elements = values_at(current, [change["path"]])[change["path"]]
        return restored_elements([] if elements is MISSING else elements, change)
    return change.get("before", MISSING)


async def _is_at(ctx: Context, change: StoredChange, document: ChangedDocument, version: int) -> bool:
    """Whether a document at `version` has the state in which the change left it: later changes have been undone."""
    for _ in range(_MAX_UNDONE):
        if version == document["toVersion"]:
            return True
        restored = await store.find_restored_version(ctx, change["customerId"], document["_id"], version)
        if restored is None:
            return False
        version = restored
    return False


def is_soft_deletion(document: ChangedDocument) -> bool:
    """Whether a change marked a document as deleted."""
    return document.get("softDeleted", False)


def public_values(
    document: ChangedDocument, patch: DocumentPatch | None
) -> tuple[DocumentFields | None, DocumentFields | None]:
    """The touched fields of a document before and after a change, without private ones; None where there are none."""
    if patch is None:
        return None, None
    private = {*declared_collections()[document["collection"]].private, "companyId"}
    before, after = patch["before"], patch["after"]
    if document["action"] == "changed":
        before, after = {}, {}
        for field_change in patch["fields"]:
            if "before" in field_change:
                set_path(before, field_change["path"], field_change["before"])
            if "after" in field_change:
                set_path(after, field_change["path"], field_change["after"])
    return _without(before, private), _without(after, private)


def _without(values: DocumentFields | None, names: set[str]) -> DocumentFields | None:
    return None if values is None else {name: value for name, value in values.items() if name not in names}
