"""What a call changes, in words for a coach: each record before and afterwards."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Literal

from coaching_service.core.auth.visibility import areas_of
from coaching_service.core.changes.log import patch_of, reference_to
from coaching_service.core.changes.undo import public_values
from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import declared_collections
from coaching_service.core.database.recording import Action, DocumentChange
from coaching_service.core.ids import ObjectId
from coaching_service.core.mcp.lists import format_time
from coaching_service.integrations.change_descriptions import (
    DocumentDescription,
    Line,
    Values,
    describe_documents,
)
from coaching_service.integrations.proposals.models import ProposedChange
from coaching_service.people.changes.models import DocumentValues
from coaching_service.people.changes.visibility import limit_values
from coaching_service.people.customers import service as customers
from coaching_service.people.customers.models import NamedCustomer

MOST_CHANGES, _MOST_CHARACTERS = 300, 20_000
# What only follows from other records that are listed.
_IMPLIED = frozenset({"conversation"})
# Labels of fields that the name of a whole record has.
_IN_NAME = ("Name", "Surname", "Title", "Date")
_NAMING = ("name", "surname", "title", "date", "exerciseId")


async def describe_changes(tx: Context, unlogged: Sequence[DocumentChange] = ()) -> list[ProposedChange]:
    """Return what a transaction has changed until now, without what follows from it; loads are in the company's unit.

    `unlogged`: documents that it has not recorded, which come first. More than 300 records are only counted.
    """
    changes = [each for each in (*unlogged, *tx.changes.documents.values()) if is_shown(each)]
    shown = changes[:MOST_CHANGES]
    documents = [_values(tx, each) for each in shown]
    present = await _load_present(tx, shown)
    described = await describe_documents(tx, documents, present)
    client_ids = dict.fromkeys(each.client_id for each in shown if each.client_id is not None)
    names = await customers.find_references(tx, list(client_ids))
    listed = [
        _describe(change, values, words, present.get(change.id, {}), names)
        for change, values, words in zip(shown, documents, described, strict=True)
    ]
    if (more := len(changes) - len(shown)) > 0:
        text = f"and {more} more"
        listed.append({"kind": shown[-1].history.kind, "customer": None, "date": None, "before": None, "after": text})
    return listed


def is_shown(change: DocumentChange) -> bool:
    """Return whether a changed record does not only follow from others."""
    return change.history.undo != "derived" and change.history.kind not in _IMPLIED


def _values(tx: Context, change: DocumentChange) -> DocumentValues:
    reference = reference_to(change, tx.changes)
    visible, kind = areas_of(tx.caller), change.history.kind
    before, after = (limit_values(visible, kind, each) for each in public_values(reference, patch_of(change)))
    action = "deleted" if reference.get("softDeleted") else change.action
    return {"kind": kind, "_id": change.id, "action": action, "before": before, "after": after}


async def _load_present(tx: Context, changes: Sequence[DocumentChange]) -> dict[ObjectId, Values]:
    """Return the fields that name changed documents, as they are afterwards."""
    ids: dict[str, list[ObjectId]] = {}
    for change in changes:
        if change.action == "changed":
            ids.setdefault(change.collection, []).append(change.id)
    collections = declared_collections()
    present: dict[ObjectId, Values] = {}
    for name, some in ids.items():
        for document in await collections[name].find_whole(tx, some):
            present[document["_id"]] = {field: document[field] for field in _NAMING if field in document}
    return present


def _describe(
    change: DocumentChange,
    values: DocumentValues,
    words: DocumentDescription,
    present: Values,
    names: Mapping[ObjectId, NamedCustomer],
) -> ProposedChange:
    date = {**present, **(values["before"] or {}), **(values["after"] or {})}.get("date")
    return {
        "kind": values["kind"],
        "customer": names.get(change.client_id) if change.client_id is not None else None,
        "date": date if isinstance(date, str) else None,
        "before": None if values["action"] == "created" else _text(words, values["action"], "before"),
        "after": None if values["action"] == "deleted" else _text(words, values["action"], "after"),
    }


def _text(words: DocumentDescription, action: Action, side: Literal["before", "after"]) -> str:
    """Return a record in words: its name, and a line for each field."""
    lines = [
        _line(each["label"], each[side])
        for each in words["fields"]
        if action == "changed" or each["label"] not in _IN_NAME
    ]
    text = "\n".join(filter(None, [words["name"], *lines]))
    return text if len(text) <= _MOST_CHARACTERS else f"{text[: _MOST_CHARACTERS - 1]}…"


def _line(label: str, values: Sequence[Line]) -> str:
    texts = [format_time(value) if isinstance(value, datetime) else value for value in values]
    if label == "Items" and texts:  # an item with its sets
        label, texts = texts[0], texts[1:]
        return f"{label}: {'; '.join(texts)}" if texts else label
    return f"{label}: {'; '.join(texts) or '–'}"
