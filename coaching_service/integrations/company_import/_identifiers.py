"""New identifiers for the records of an import: the same for the same import, so that it can continue anywhere."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from types import MappingProxyType

from coaching_service.core.database.portable import FILE_FIELDS
from coaching_service.core.ids import ObjectId

# The parts of an identifier: the time in seconds, a random value of the process that made it, and a counter.
_PROCESS, _COUNTER = slice(4, 9), slice(9, 12)
_AUTHOR = "author._id"  # of notes and messages
_NO_AUTHORS: Mapping[ObjectId, ObjectId] = MappingProxyType({})


class IdMap:
    """Maps identifiers of an export to identifiers that the import stores.

    The new ones are derived from the old ones with the secret `seed` of the import, which is stored with its job. They
    keep the time of creation, and those made by one process their order, so that records ordered by identifier
    stay in order. `fixed` are known already: the company, its coaches, and what all companies share.
    `authors` are the coaches who are the same person as one of the company: others are not in the company.
    """

    def __init__(
        self, seed: str, fixed: Mapping[ObjectId, ObjectId], authors: Mapping[ObjectId, ObjectId] = _NO_AUTHORS
    ) -> None:
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
