"""Undoing a change completely, or with an error that says what prevents it."""

from __future__ import annotations

from collections.abc import Sequence

from coaching_service.core.changes.models import StoredChange
from coaching_service.core.changes.undo import DocumentsMoved
from coaching_service.core.database.context import Context
from coaching_service.core.errors import Conflict
from coaching_service.core.ids import ObjectId
from coaching_service.core.mcp.lists import typed_line
from coaching_service.people.changes import service
from coaching_service.people.changes.models import UndoFailure
from coaching_service.people.changes.undo import undo_change

_LONGEST_NAME = 120


async def undo_completely(
    ctx: Context, change_id: ObjectId, changes: Sequence[StoredChange]
) -> dict[ObjectId, UndoFailure]:
    """Undo a change, or the batch `changes`; returns why some of it stays, such as messages that were read, by change.

    Raises Conflict that names the first document that has been changed since, or says why all stays or that it has been
    undone already, and what undo_change raises.
    """
    with_documents = [change for change in changes if change["documents"]]
    if undone := [change for change in with_documents if change["undoneBy"] is not None]:
        about = "This change" if len(undone) == len(with_documents) else "Part of this change"
        raise Conflict(f"{about} has been undone already", code="VERSION_CONFLICT")
    try:
        result = await undo_change(ctx, change_id)
    except DocumentsMoved as error:
        raise await _name_conflict(ctx, changes, error.details["documents"][0]["_id"]) from None
    failed = {each["documentId"]: each for each in result["failed"]}
    for failure in failed.values():
        if failure["code"] != "NOT_UNDOABLE":
            raise await _name_conflict(ctx, changes, failure["documentId"])
    if failed and not result["ok"]:
        raise Conflict(next(iter(failed.values()))["message"], code="NOT_UNDOABLE")
    documents = [(change["_id"], document["_id"]) for change in changes for document in change["documents"]]
    return {change: failed[document] for change, document in documents if document in failed}


async def _name_conflict(ctx: Context, changes: Sequence[StoredChange], document_id: ObjectId) -> Conflict:
    """Return the error for a document that has been changed since: its kind, and its name and date if known."""
    names = []
    for change in changes:
        if all(document["_id"] != document_id for document in change["documents"]):
            continue
        for document in (await service.get_change(ctx, change["_id"]))["documents"]:
            values = document["after"] or document["before"] or {}
            if document["_id"] == document_id:
                known = [typed_line(str(values[name]), _LONGEST_NAME) for name in ("name", "title") if values.get(name)]
                day = [f"of {values['date']}"] if isinstance(values.get("date"), str) else []
                names.append(" ".join([service.name_kind(document["kind"]), *known, *day, f"[{document_id}]"]))
    about = names[0] if names else f"record [{document_id}]"
    message = f"This cannot be undone any more: the {about} has been changed again since"
    return Conflict(message, code="VERSION_CONFLICT")
