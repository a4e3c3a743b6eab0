"""What a call has changed: each document before and afterwards, and what of them reaches people."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Sequence
from typing import Any, NamedTuple

from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import declared_collections
from coaching_service.core.database.field_changes import set_path
from coaching_service.core.database.models import DocumentFields
from coaching_service.core.database.recording import DocumentChange
from coaching_service.core.ids import ObjectId
from coaching_service.training.workouts import usual_loads

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
        each["_id"]: each
        for name, ids in changed.items()
        for each in await declared_collections()[name].find_whole(tx, ids)
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

    What only moves to another date counts if it may have reached them before.
    """
    contacts: Counter[tuple[ObjectId | None, Hashable]] = Counter()
    today = str(tx.caller.today())
    for change, before, after in versions:
        if (contact := change.history.contact) is None:
            continue
        date = (before or {}).get("date")
        if before is not None and (date is None or date > today or (after or {}).get("date") == date):
            contacts.subtract((change.client_id, each) for each in contact(before))
        if after is not None:
            contacts.update((change.client_id, each) for each in contact(after))
    return tx.changes.sends or any(count > 0 for count in contacts.values())


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
            found = await usual_loads.find_unusual(tx, client_id, workouts, values)
        else:
            found = usual_loads.list_excesses(workouts, tx.caller.company.load_unit)
        sentences += [f"{each}." for each in found]
    return list(dict.fromkeys(sentences))
