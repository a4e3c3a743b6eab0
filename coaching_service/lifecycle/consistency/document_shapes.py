"""Checks that stored documents are what the service stores: each field has the type that its collection declares."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import is_typeddict

from coaching_service.core.database.checks import Check, CountRead, Finding, Occurrences
from coaching_service.core.database.context import Services
from coaching_service.core.database.documents import Document, Documents, declared_collections
from coaching_service.core.database.portable import Portable
from coaching_service.core.document_comparison import comparison_with
from coaching_service.lifecycle.consistency._batches import iterate_batches

_ADVICE = "Restore the documents from a backup, or correct them by hand: the service stores no such documents"


async def find_wrong(services: Services, count_read: CountRead) -> AsyncIterator[Finding]:
    """Find documents that lack a declared field, or have one with a value of another type or that is not valid."""
    for name, collection in declared_collections().items():
        if not is_typeddict(collection.model):
            continue
        occurrences: dict[str, Occurrences] = {}
        async for batch in iterate_batches(services, name):
            for document in batch:
                for problem in set(_problems(collection, document)):
                    occurrences.setdefault(problem, Occurrences()).add(document["_id"])
            count_read(len(batch))
        for problem, occurrence in sorted(occurrences.items()):
            yield occurrence.finding(f"Documents of {name} whose {problem}", _ADVICE)


def _problems(collection: Documents[Document], document: Document) -> Iterator[str]:
    """Yield what is wrong with a document; the declared checks are of values of the right type."""
    wrong = list(comparison_with(collection.model)(document, ""))
    yield from wrong
    if not wrong and isinstance(collection.transfer, Portable):
        for errors in collection.transfer.find_invalid(document):
            yield from (f"{each['field']} {each['message']}" for each in errors)


CHECKS = (Check("documents", "The fields of documents are as declared", find_wrong),)
