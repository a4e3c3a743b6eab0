"""What identifiers of an export become in the company, and whether what records refer to is there."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import declared_collections
from coaching_service.core.database.portable import FILE_FIELDS, Portable, clear_values, values_at
from coaching_service.core.ids import ObjectId
from coaching_service.integrations.company_import._dry_run import Accepted

_MAX_KNOWN = 50_000


class ReferenceCheck:
    """Looks up the documents that records refer to; `accepted` has those that a dry run does not store."""

    def __init__(self, ctx: Context, accepted: Accepted | None) -> None:
        self._ctx, self._accepted = ctx, accepted
        self._known: dict[str, set[ObjectId]] = {}

    async def load(self, portable: Portable, documents: list[dict[str, Any]]) -> None:
        """Look up what documents refer to, in one query for each collection."""
        wanted: dict[str, set[ObjectId]] = {}
        for path, collection in {**portable.references, **portable.optional_references}.items():
            for document in documents:
                values = values_at(document, path.split("."))
                wanted.setdefault(collection, set()).update(value for value in values if value is not None)
        for collection, ids in wanted.items():
            known = self._known.setdefault(collection, set())
            if len(known) > _MAX_KNOWN:
                known.clear()
            if self._accepted is not None:
                known |= ids & self._accepted.ids.get(collection, set())
            if missing := ids - known:
                where = {"_id": {"$in": list(missing)}}
                existing = await declared_collections()[collection].find(self._ctx, where, fields=("_id",))
                known |= {document["_id"] for document in existing}

    def find_missing(self, portable: Portable, document: dict[str, Any]) -> str | None:
        """Return the path of a reference to something that does not exist; None if there is none.

        Optional references to something that does not exist become null. Call `load` first.
        """
        for path, collection in portable.references.items():
            known = self._known.get(collection, set())
            values = values_at(document, path.split("."))
            if any(value is not None and value not in known for value in values):
                return path
        for path, collection in portable.optional_references.items():
            names = path.split(".")
            absent = [value for value in values_at(document, names) if value not in self._known.get(collection, set())]
            clear_values(document, names, [value for value in absent if value is not None])
        return None


# The parts of an identifier: the time in seconds, a random value of the process that made it, and a counter.
_PROCESS, _COUNTER = slice(4, 9), slice(9, 12)
_AUTHOR = "author._id"  # of notes and messages


class IdMap:
    """Maps identifiers of an export to identifiers that the import stores.

    The new ones are the same for the same import, so that it can continue anywhere: they are derived from the old ones
    with the secret `seed` of the import, which is stored with its job. They keep the time of creation, and those made
    by one process their order, so that records ordered by identifier stay in order. `fixed` are known already: the
    company, its coaches, and what all companies share. `authors` are the coaches who are the same person as one of the
    company: others are not in the company.
    """

    def __init__(self, seed: str, fixed: Mapping[ObjectId, ObjectId], authors: Mapping[ObjectId, ObjectId]) -> None:
        self._seed, self._fixed, self._authors = seed.encode(), fixed, authors

    def __call__(self, identifier: ObjectId, path: str) -> ObjectId:
        """Return the identifier to store in place of one that was read at a path."""
        if path == "_id":
            return self.derive(identifier)
        if path.rpartition(".")[2] in FILE_FIELDS:  # replaced when the file is stored
            return identifier
        fixed = (self._authors if path == _AUTHOR else self._fixed).get(identifier)
        return self.derive(identifier) if fixed is None else fixed

    def derive(self, identifier: ObjectId) -> ObjectId:
        """Return the new identifier of a record."""
        old = identifier.binary
        process, counter = self._digest(old[_PROCESS])[:5], int.from_bytes(old[_COUNTER])
        moved = (counter + int.from_bytes(self._digest(b"counter")[:3])) % 2**24
        return ObjectId(old[: _PROCESS.start] + process + moved.to_bytes(3))

    def _digest(self, value: bytes) -> bytes:
        return hashlib.sha256(self._seed + value).digest()
