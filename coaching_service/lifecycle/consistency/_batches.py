"""Documents of all companies in batches, and those of a batch that are wrong."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any

from coaching_service.core.database.collections import ReadableCollection
from coaching_service.core.database.context import Services
from coaching_service.core.database.documents import Document, declared_collections
from coaching_service.core.database.transactions import reading_snapshot
from coaching_service.core.ids import ObjectId
from coaching_service.lifecycle.consistency._erasures import find_erasing

BATCH = 500
# Returns those of some documents that seem wrong; the last argument is a session, or None.
FindWrong = Callable[[Services, Sequence[Document], Any], Awaitable[Sequence[Document]]]


async def iterate_batches(
    services: Services, name: str, fields: Document | None = None
) -> AsyncIterator[list[Document]]:
    """Yield the documents of a collection, all fields or only some, in batches."""
    batch: list[Document] = []
    async for document in services.collection(name).find({}, fields, batch_size=BATCH):
        batch.append(document)
        if len(batch) == BATCH:
            yield batch
            batch = []
    if batch:
        yield batch


async def list_wrong(services: Services, name: str, batch: Sequence[Document], find: FindWrong) -> list[ObjectId]:
    """Return the documents in a batch that `find` returns again at one moment, and that are not being erased."""
    if not (suspects := await find(services, batch, None)):
        return []
    async with reading_snapshot(services) as session:
        where = {"_id": {"$in": [document["_id"] for document in suspects]}}
        documents = await services.collection(name).find(where, session=session).to_list(None)
        wrong = await find(services, documents, session)
    erasing, collection = await find_erasing(services) if wrong else set(), declared_collections()[name]
    return [document["_id"] for document in wrong if not _is_being_erased(collection, document, erasing)]


def _is_being_erased(collection: ReadableCollection[Document], document: Document, erasing: set[ObjectId]) -> bool:
    """Return whether a document belongs to one of the clients or companies `erasing`."""
    client = document.get(collection.client_field) if collection.client_field else None
    return client in erasing or document.get("companyId") in erasing
