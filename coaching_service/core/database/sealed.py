"""Encrypted fields of documents, and their encryption under another master key."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Any

from coaching_service.core.auth import SecretUnreadable, Vault
from coaching_service.core.database.context import Services
from coaching_service.core.database.documents import Document, Documents
from coaching_service.core.ids import ObjectId


@dataclass(frozen=True)
class Sealed:
    """The encrypted field `sealed` of documents of all companies, bound to its document by the word `kind`."""

    documents: Documents[Any]
    kind: str

    def seal(self, vault: Vault, identifier: ObjectId, plain: bytes) -> bytes:
        """Return the encrypted value for a document."""
        return vault.seal(plain, f"{self.kind}:{identifier}")

    def open(self, vault: Vault, document: Any) -> bytes:
        """Return the value of a document that has `_id` and `sealed`. Raises SecretUnreadable."""
        return vault.open(document["sealed"], f"{self.kind}:{document['_id']}")

    async def iterate(self, services: Services) -> AsyncIterator[Document]:
        """Iterate over the documents of all companies, each with `_id` and `sealed`."""
        async for document in self.documents.across_companies(services).find({}, {"sealed": 1}, batch_size=200):
            yield document

    async def iterate_unreadable(self, services: Services) -> AsyncIterator[ObjectId]:
        """Iterate over the documents that no master key opens."""
        async for document in self.iterate(services):
            try:
                self.open(services.vault, document)
            except SecretUnreadable:
                yield document["_id"]

    async def rotate_master_key(
        self, services: Services, derive: Callable[[bytes], Document] = lambda _: {}
    ) -> AsyncIterator[bool]:
        """Encrypt every value with the newest master key; yields for each whether it changed.

        `derive` returns other fields to set. It can be interrupted and run again: values are read with every master key
        meanwhile.
        """
        async for document in self.iterate(services):
            is_outdated = not services.vault.is_current(document["sealed"])
            if is_outdated:
                plain = self.open(services.vault, document)
                sealed = self.seal(services.vault, document["_id"], plain)
                change = {"$set": {"sealed": sealed, **derive(plain)}}
                await self.documents.across_companies(services).update_one(document, change)
            yield is_outdated
