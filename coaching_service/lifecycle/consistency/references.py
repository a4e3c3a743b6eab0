"""Checks that the documents exist to which documents refer, in the same company."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from coaching_service.core.database.checks import Check, CountRead, Finding, Occurrences
from coaching_service.core.database.context import Services
from coaching_service.core.database.documents import Document, declared_collections
from coaching_service.core.database.portable import Portable, values_at
from coaching_service.core.database.transactions import reading_snapshot
from coaching_service.core.ids import ObjectId
from coaching_service.lifecycle.consistency._batches import find_erasing, iterate_batches, list_wrong

_COMPANIES = "companies"


@dataclass(frozen=True)
class Reference:
    """The documents of `collection` have identifiers of documents of `target` at `path`."""

    collection: str
    path: str
    target: str

    def values(self, document: Document) -> set[ObjectId]:
        """Return the identifiers that a document refers to."""
        return {value for value in values_at(document, self.path.split(".")) if value is not None}


def declared_references() -> Iterator[Reference]:
    """Yield the references that the collections declare for their export."""
    for name, collection in declared_collections().items():
        if isinstance(collection.transfer, Portable):
            for path, target in {**collection.transfer.references, **collection.transfer.optional_references}.items():
                yield Reference(name, path, target)


async def find_broken(services: Services, count_read: CountRead) -> AsyncIterator[Finding]:
    """Find documents that refer to a document that does not exist, or is of another company."""
    by_collection = defaultdict(list)
    for reference in declared_references():
        by_collection[reference.collection].append(reference)
    for name, references in by_collection.items():
        occurrences = {reference: Occurrences() for reference in references}
        fields: Document = {"companyId": 1, **{reference.path: 1 for reference in references}}
        if client_field := declared_collections()[name].client_field:
            fields[client_field] = 1
        async for batch in iterate_batches(services, name, fields):
            for reference in references:
                for identifier in await list_wrong(services, name, batch, partial(_broken, reference)):
                    occurrences[reference].add(identifier)
            count_read(len(batch))
        for reference, broken in occurrences.items():
            problem = f"Documents of {name} whose {reference.path} is not in {reference.target}"
            advice = f"Restore the documents of {reference.target} from a backup, or delete or correct {name}"
            yield broken.finding(problem, advice)


async def _broken(
    reference: Reference, services: Services, documents: Sequence[Document], session: Any
) -> list[Document]:
    values = {document["_id"]: reference.values(document) for document in documents}
    wanted = list(set[ObjectId]().union(*values.values()))
    cursor = services.collection(reference.target).find({"_id": {"$in": wanted}}, {"companyId": 1}, session=session)
    # Documents of a shared library have no company.
    companies = {each["_id"]: each["companyId"] async for each in cursor}

    def is_broken(document: Document) -> bool:
        own = (None, document["companyId"])
        return any(value not in companies or companies[value] not in own for value in values[document["_id"]])

    return [document for document in documents if is_broken(document)]


async def find_without_company(services: Services, count_read: CountRead) -> AsyncIterator[Finding]:
    """Find documents of companies that do not exist."""
    for name, collection in declared_collections().items():
        if collection.by_company is None or name == _COMPANIES:
            continue
        stages: list[Document] = [
            {"$match": {"companyId": {"$ne": None}}},
            {"$group": {"_id": "$companyId", "count": {"$sum": 1}}},
            {"$lookup": {"from": _COMPANIES, "localField": "_id", "foreignField": "_id", "as": "company"}},
            {"$match": {"company": []}},
        ]
        occurrences = Occurrences()
        cursor = services.collection(name).aggregate(stages, hint=collection.by_company, allowDiskUse=True)
        suspects = {each["_id"]: each["count"] async for each in cursor}
        if suspects:
            async with reading_snapshot(services) as session:
                where = {"_id": {"$in": list(suspects)}}
                existing = services.collection(_COMPANIES).find(where, {"_id": 1}, session=session)
                gone = suspects.keys() - {company["_id"] async for company in existing}
            for company_id in gone - await find_erasing(services):
                occurrences.add(company_id, suspects[company_id])
        count_read(1)
        advice = "Restore the company from a backup, or delete its documents. The example is the company's identifier"
        yield occurrences.finding(f"Documents of {name} whose company does not exist", advice)


CHECKS = (
    Check("references", "The documents that documents refer to exist", find_broken),
    Check("companies", "The companies of documents exist", find_without_company),
)
