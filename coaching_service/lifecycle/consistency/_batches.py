"""Documents of all companies in batches, and those of a batch that are wrong and not being erased."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any

from coaching_service.core.database.collections import ReadableCollection
from coaching_service.core.database.context import Services
from coaching_service.core.database.documents import Document, declared_collections
from coaching_service.core.database.transactions import reading_snapshot
from coaching_service.core.ids import ObjectId
from coaching_service.core.jobs import inspection
from coaching_service.lifecycle.erasure import ERASE_CUSTOMER
from coaching_service.people.account.service import ERASE

BATCH = 500
# Returns those of some documents that seem wrong; the last argument is a session, or None.
FindWrong = Callable[[Services, Sequence[Document], Any], Awaitable[Sequence[Document]]]


async def iterate_batches(
    services: Services, name: str, fields: Document | None = None
) -> AsyncIterator[list[Document]]:
    """Yield the documents of a collection, all fields or only some, in batches."""
    cursor = services.collection(name).find({}, fields, batch_size=BATCH)
    while batch := await cursor.to_list(BATCH):
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


async def find_erasing(services: Services) -> set[ObjectId]:
    """Return the clients and companies whose erasure is queued: some of their documents are gone until it is done."""
    erasing = set()
    async for arguments in inspection.iterate_arguments(services, (ERASE_CUSTOMER, ERASE)):
        erasing.add(arguments.get("customerId") or arguments["companyId"])
    return erasing
