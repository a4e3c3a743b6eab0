"""What a dry run has accepted so far: later records may refer to it, and may not have the same unique fields.

It stays in memory with the import. Another process, which continues the job, goes through the records before its
position once more.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Sequence
from typing import Any

from coaching_service.core.database.connection import Index
from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import Documents
from coaching_service.core.database.portable import Portable
from coaching_service.core.database.transactions import DocumentExists
from coaching_service.core.ids import ObjectId

Key = tuple[Any, ...]


class Accepted:
    """The records that a dry run has accepted, up to `position` in the file.

    `ids` are the identifiers of the current collection, and of those in `lasting`, which others refer to.
    """

    def __init__(self, lasting: Collection[str]) -> None:
        self.position = (0, 0)
        self.ids: dict[str, set[ObjectId]] = {}
        self._lasting, self._keys = lasting, set[bytes]()

    async def find_collisions(
        self, ctx: Context, collection: Documents[dict[str, object]], documents: Sequence[dict[str, Any] | None]
    ) -> dict[int, DocumentExists]:
        """Return the errors that storing documents would raise, by their positions in `documents`."""
        ids, keys = set[ObjectId](), set[bytes]()
        known = self.ids.get(collection.name, set())
        unique = {index.name: index for index in unique_indexes(collection)}
        stored = {name: await _find_stored(ctx, collection, index, documents) for name, index in unique.items()}
        collisions: dict[int, DocumentExists] = {}
        for number, document in enumerate(documents):
            if document is None:
                continue
            own = {name: key for name, index in unique.items() if (key := _key_of(index, document)) is not None}
            digests = {name: _digest(unique[name], key) for name, key in own.items()}
            if document["_id"] in known or document["_id"] in ids:
                collisions[number] = DocumentExists("_id")
            elif taken := [
                name
                for name, digest in digests.items()
                if digest in self._keys or digest in keys or own[name] in stored[name]
            ]:
                collisions[number] = DocumentExists.of_fields(unique[taken[0]].fields)
            else:
                ids.add(document["_id"])
                keys.update(digests.values())
        return collisions

    def add(
        self,
        collection: Documents[dict[str, object]],
        documents: Sequence[dict[str, Any]],
        position: tuple[int, int],
    ) -> None:
        """Remember documents without collisions, and that the dry run is at `position`."""
        self.ids.setdefault(collection.name, set()).update(document["_id"] for document in documents)
        for index in unique_indexes(collection):
            keys = (_key_of(index, document) for document in documents)
            self._keys.update(_digest(index, key) for key in keys if key is not None)
        self.move(position)

    def move(self, position: tuple[int, int]) -> None:
        """Remember the position; after a collection, forget what only matters within it."""
        if position[0] != self.position[0]:
            self._keys.clear()
            self.ids = {name: ids for name, ids in self.ids.items() if name in self._lasting}
        self.position = position


def unique_indexes(collection: Documents[Any]) -> list[Index]:
    """Return the unique indexes of the documents of a company, without the company."""
    return [
        Index(index.fields[1:], partial_filter=index.partial_filter, ignore_case=index.ignore_case)
        for index in collection.indexes
        if index.unique and index.fields[0] == "companyId"
    ]


def referred_to(portables: Collection[Portable]) -> set[str]:
    """Return the collections that records of an export refer to."""
    return {name for each in portables for name in (*each.references.values(), *each.optional_references.values())}


def _key_of(index: Index, document: dict[str, Any]) -> Key | None:
    """Return the values of a document in an index; None if it is not in it: partial ones are of fields with a text."""
    if any(not isinstance(document.get(name), str) or not document[name] for name, _ in index.partial_filter):
        return None
    return tuple(document.get(name.removeprefix("-")) for name in index.fields)


def _digest(index: Index, key: Key) -> bytes:
    return hashlib.blake2b(repr((index.fields, key)).encode(), digest_size=16).digest()


async def _find_stored(
    ctx: Context,
    collection: Documents[dict[str, object]],
    index: Index,
    documents: Sequence[dict[str, Any] | None],
) -> set[Key]:
    """Return the values in an index that documents of the company have already."""
    if collection.client_field in index.fields:  # clients of the import are new
        return set()
    wanted = {key[0] for document in documents if document is not None and (key := _key_of(index, document))}
    if not wanted:
        return set()
    fields = tuple(name.removeprefix("-") for name in index.fields)
    hint = collection.index_name(*index.fields)
    existing = await collection.find(ctx, {fields[0]: {"$in": list(wanted)}}, fields=fields, hint=hint, ownership="own")
    return {tuple(each.get(name) for name in fields) for each in existing}
