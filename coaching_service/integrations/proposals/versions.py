"""What a call has changed: each document before and afterwards, and what of them reaches people."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Hashable, Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, NamedTuple, cast

from coaching_service.core.auth import areas_of
from coaching_service.core.changes.log import patch_of, reference_to
from coaching_service.core.changes.undo import public_values
from coaching_service.core.database.context import Context
from coaching_service.core.database.declared import Action, DocumentFields
from coaching_service.core.database.documents import registry
from coaching_service.core.database.recording import DocumentChange, set_path
from coaching_service.core.ids import ObjectId
from coaching_service.core.mcp.arguments import format_time
from coaching_service.core.mcp.results import without_inner_marks
from coaching_service.integrations.change_descriptions import (
    DocumentDescription,
    Line,
    Values,
    describe_documents,
)
from coaching_service.integrations.proposals.models import ProposedChange
from coaching_service.people.changes.models import DocumentValues, limit_values
from coaching_service.people.customers import service as customers
from coaching_service.people.customers.models import NamedCustomer
from coaching_service.training.workout_text import writing
from coaching_service.training.workouts import plan_changes
from coaching_service.training.workouts.items.models import WorkItem
from coaching_service.training.workouts.items.service import load_references, present_items

# The kinds of documents with loads, sets, repetitions and times.
AMOUNTS = frozenset({"workout", "template", "training_max"})


class Version(NamedTuple):
    """A changed document before and afterwards; None where it does not exist."""

    change: DocumentChange
    before: DocumentFields | None
    after: DocumentFields | None


async def read_versions(tx: Context, kinds: Collection[str]) -> list[Version]:
    """Return the changed documents that reach people, or are of these kinds, completely."""
    changes = [each for each in tx.changes.documents.values() if each.history.contact or each.history.kind in kinds]
    return await complete(tx, changes)


async def complete(tx: Context, changes: Sequence[DocumentChange]) -> list[Version]:
    """Return changed documents completely, in the same order."""
    changed: dict[str, list[ObjectId]] = {}
    for change in changes:
        if change.action == "changed":
            changed.setdefault(change.collection, []).append(change.id)
    stored: dict[ObjectId, Any] = {
        each["_id"]: each for name, ids in changed.items() for each in await registry[name].find_whole(tx, ids)
    }
    versions = []
    for change in changes:
        before, after = change.before, change.after
        if change.action == "changed":
            after = stored[change.id]
            before = dict(after)
            for path, (value, _) in change.values.items():
                set_path(before, path, value)
            for path, (order, _) in change.added.items():
                set_path(before, path, [each for each in after[path] if each["_id"] in order])
        versions.append(Version(change, before, after))
    return versions


def reaches_people(tx: Context, versions: Sequence[Version]) -> bool:
    """Return whether the transaction sends something to people, or stores what will reach them.

    So does what moves to an earlier date than its author chose, with its workout or alone, or may have reached them
    before. What recurring check-ins schedule is a contact of the check-in, until it is changed or moved.
    """
    removed: defaultdict[tuple[ObjectId | None, Hashable], Counter[str]] = defaultdict(Counter)
    added: defaultdict[tuple[ObjectId | None, Hashable], Counter[str]] = defaultdict(Counter)
    for change, *sides in versions:
        is_scheduled = change.action == "created" and (sides[1] or {}).get("checkInId") is not None
        if (contact := change.history.contact) is None or is_scheduled:
            continue
        for dates, document in zip((removed, added), sides, strict=True):
            if document is not None:
                for each in contact(document):
                    dates[change.client_id, each][document.get("date") or ""] += 1
    today = str(tx.caller.today())
    return tx.changes.sends or any(
        not _only_moves_ahead(removed[about] - dates, dates - removed[about], today) for about, dates in added.items()
    )


def _only_moves_ahead(removed: Counter[str], added: Counter[str], today: str) -> bool:
    """Return whether each date of something that reaches people follows one, after today, on which it is no more."""
    left = sorted((date for date in removed.elements() if date > today), reverse=True)
    for date in sorted(added.elements()):
        earlier = next((each for each in left if each <= date), None)
        if earlier is None:
            return False
        left.remove(earlier)
    return True


async def find_unusual(tx: Context, versions: Sequence[Version]) -> list[str]:
    """Return a sentence for each load and amount that is unusual for its client, of whatever has been written.

    What has no client, such as programs, is compared when it is assigned.
    """
    sentences: list[str] = []
    by_client: dict[ObjectId | None, list[Version]] = {}
    for version in versions:
        by_client.setdefault(version.change.client_id, []).append(version)
    for client_id, some in by_client.items():
        workouts = [(each.before, each.after) for each in some if each.change.kind in ("workout", "template")]
        maxes = [each.after for each in some if each.change.kind == "training_max" and each.after is not None]
        values = {each["exerciseId"]: each["value"] for each in maxes if each["value"] is not None}
        if client_id is not None:
            found = await plan_changes.find_unusual(tx, client_id, workouts, values)
        else:
            found = plan_changes.list_excesses(workouts, tx.caller.company.load_unit)
        sentences += [f"{each}." for each in found]
    return list(dict.fromkeys(sentences))


# --- What a call changes, in words for a coach: each record before and afterwards -------------------------------------


MOST_CHANGES, _MOST_CHARACTERS = 300, 1_000_000  # of all changes together, but the first one
# What only follows from other records that are listed.
_IMPLIED = frozenset({"conversation"})
# Labels of fields that the name of a whole record has.
_IN_NAME = ("Name", "Surname", "Title", "Date")
_NAMING = ("name", "surname", "title", "date", "exerciseId")


async def describe_changes(tx: Context, unlogged: Sequence[DocumentChange] = ()) -> list[ProposedChange]:
    """Return what a transaction has changed until now, without what follows from it; loads are in the company's unit.

    `unlogged`: documents that it has not recorded, which come first. None is cut off, but more than 300 records, or a
    million characters, are only counted.
    """
    changes = [each for each in (*unlogged, *tx.changes.documents.values()) if is_shown(each)]
    shown = changes[:MOST_CHANGES]
    versions = await complete(tx, shown)
    items = await _write_items(tx, versions)
    documents = [_values(tx, each, items[each.id]) for each in shown]
    present = {
        each.change.id: {name: each.after[name] for name in _NAMING if name in each.after}
        for each in versions
        if each.change.action == "changed" and each.after is not None
    }
    described = await describe_documents(tx, documents, present)
    client_ids = dict.fromkeys(each.client_id for each in shown if each.client_id is not None)
    names = await customers.find_references(tx, list(client_ids))
    listed: list[ProposedChange] = []
    length = 0
    for change, values, words in zip(shown, documents, described, strict=True):
        record = _describe(change, values, words, items[change.id], present.get(change.id, {}), names)
        length += len(record["before"] or "") + len(record["after"] or "")
        if listed and length > _MOST_CHARACTERS:
            break
        listed.append(record)
    if (more := len(changes) - len(listed)) > 0:
        text = f"and {more} more"
        listed.append({"kind": shown[-1].history.kind, "customer": None, "date": None, "before": None, "after": text})
    return listed


def is_shown(change: DocumentChange) -> bool:
    """Return whether a changed record does not only follow from others."""
    return change.history.undo != "derived" and change.history.kind not in _IMPLIED


class _Items(NamedTuple):
    """The items of a workout that differ, as text, before and afterwards, and their identifiers."""

    before: list[str]
    after: list[str]
    ids: Collection[ObjectId]


async def _write_items(tx: Context, versions: Sequence[Version]) -> dict[ObjectId, _Items]:
    """Return the items of workouts that differ, by document; none of other documents."""
    by_client: dict[ObjectId | None, list[Version]] = {}
    for version in versions:
        by_client.setdefault(version.change.client_id, []).append(version)
    written: dict[ObjectId, _Items] = {}
    for client_id, some in by_client.items():
        stored = [item for each in some for document in (each.before, each.after) for item in _items_of(each, document)]
        references = await load_references(tx, stored, client_id)
        for each in some:
            before, after = (
                _write_each(present_items(_items_of(each, document), 0, references, tx.caller), tx)
                for document in (each.before, each.after)
            )
            common = [identifier for identifier in before if before[identifier] == after.get(identifier)]
            if common == [identifier for identifier in after if after[identifier] == before.get(identifier)]:
                before, after = ({key: side[key] for key in side if key not in common} for side in (before, after))
            written[each.change.id] = _Items([*before.values()], [*after.values()], before.keys() | after.keys())
    return written


def _items_of(version: Version, document: DocumentFields | None) -> list[WorkItem]:
    """Return the stored items of a workout; none if the document is another one, or is not there."""
    kept = document is not None and document.get("deletedAt") is None and version.change.kind in ("workout", "template")
    return cast("list[WorkItem]", document["items"]) if document is not None and kept else []


def _write_each(items: Sequence[WorkItem], tx: Context) -> dict[ObjectId, str]:
    """Return each item as lines of text: what is planned, and what was done."""
    unit, labels = tx.caller.company.load_unit, writing.label_supersets(items)
    texts = {}
    for item in items:
        lines = "\n".join(line.rstrip() for line in (*writing.write_item(item, unit), *writing.write_log(item, unit)))
        texts[item["_id"]] = without_inner_marks(" ".join(filter(None, [labels.get(item["_id"]), lines])))
    return texts


def _values(tx: Context, change: DocumentChange, items: _Items) -> DocumentValues:
    """Return what differs of a document, but the items that are written as text."""
    reference = reference_to(change, tx.changes)
    visible, kind = areas_of(tx.caller), change.history.kind
    before, after = (limit_values(visible, kind, each) for each in public_values(reference, patch_of(change)))
    for side in (before, after):
        if side is not None and items.ids and isinstance(side.get("items"), list):
            side["items"] = [each for each in side["items"] if each["_id"] not in items.ids]
            if not side["items"]:
                del side["items"]
    action = "deleted" if reference.get("softDeleted") else change.action
    return {"kind": kind, "_id": change.id, "action": action, "before": before, "after": after}


def _describe(
    change: DocumentChange,
    values: DocumentValues,
    words: DocumentDescription,
    items: _Items,
    present: Values,
    names: Mapping[ObjectId, NamedCustomer],
) -> ProposedChange:
    date = {**present, **(values["before"] or {}), **(values["after"] or {})}.get("date")
    return {
        "kind": values["kind"],
        "customer": names.get(change.client_id) if change.client_id is not None else None,
        "date": date if isinstance(date, str) else None,
        "before": None if values["action"] == "created" else _text(words, values["action"], "before", items.before),
        "after": None if values["action"] == "deleted" else _text(words, values["action"], "after", items.after),
    }


def _text(words: DocumentDescription, action: Action, side: Literal["before", "after"], items: Sequence[str]) -> str:
    """Return a record in words: its name, a line for each field, and its items."""
    lines = [
        _line(each["label"], each[side])
        for each in words["fields"]
        if action == "changed" or each["label"] not in _IN_NAME
    ]
    return "\n".join(filter(None, [words["name"], *lines, *items]))


def _line(label: str, values: Sequence[Line]) -> str:
    texts = [format_time(value) if isinstance(value, datetime) else value for value in values]
    return f"{label}: {'; '.join(texts) or '–'}"
