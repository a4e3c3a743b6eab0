"""What a call changes, in words for a coach: each record before and afterwards."""

from __future__ import annotations

from coaching_service.core.database.context import Context
from coaching_service.core.database.field_changes import set_path
from coaching_service.core.database.models import DocumentFields
from coaching_service.core.database.recording import DocumentChange
from coaching_service.integrations.proposals.models import ProposedChange
from coaching_service.people.customers import service as customers


async def describe_changes(tx: Context) -> list[ProposedChange]:
    """Return what a transaction has changed until now, without what follows from it."""
    changes = [each for each in tx.changes.documents.values() if each.history.undo != "derived"]
    client_ids = [each.client_id for each in changes if each.client_id is not None]
    names = await customers.find_references(tx, list(dict.fromkeys(client_ids)))
    described: list[ProposedChange] = []
    for change in changes:
        before, after = _values(change)
        text_before, text_after = _describe(before), _describe(after)
        described.append(
            {
                "kind": change.history.kind,
                "customer": names.get(change.client_id) if change.client_id else None,
                "date": (after or before or {}).get("date"),
                "before": text_before,
                "after": text_after,
            }
        )
    return described


def _values(change: DocumentChange) -> tuple[DocumentFields | None, DocumentFields | None]:
    """Return the recorded fields of a document before and after."""
    if change.action != "changed":
        return change.before, change.after
    before: DocumentFields = {}
    after: DocumentFields = {}
    for path, (earlier, later) in change.values.items():
        set_path(before, path, earlier)
        set_path(after, path, later)
    return before, after


def _describe(values: DocumentFields | None) -> str | None:
    if values is None:
        return None
    return ", ".join(str(values[name]) for name in ("name", "title", "text", "content") if values.get(name)) or ""
