"""Bytes without a document, left by a process that died between the two."""

from __future__ import annotations

from dataclasses import dataclass

from coaching_service.kernel.storage import files
from coaching_service.kernel.storage.context import Services
from coaching_service.kernel.storage.documents import Document, declared
from coaching_service.kernel.storage.ids import ObjectId


@dataclass
class Report:
    """What was found: files looked at, those that nothing names and their bytes, and uploads that never ended."""

    files: int = 0
    orphans: int = 0
    orphan_bytes: int = 0
    broken_uploads: int = 0


async def collect(services: Services, *, remove: bool) -> Report:
    """Look at every file stored over an hour ago, and (with `remove`) remove those that no document names."""
    report = Report()
    async for batch in files.old_files(services):
        report.files += len(batch)
        orphans = await _unnamed(services, batch)
        report.orphans += len(orphans)
        report.orphan_bytes += sum(file["length"] for file in orphans)
        if remove:
            await files.discard(services, [file["_id"] for file in orphans])
    async for ids in files.abandoned_chunks(services):
        report.broken_uploads += len(ids)
        if remove:
            await files.discard(services, ids)
    return report


async def _unnamed(services: Services, batch: list[Document]) -> list[Document]:
    by_company: dict[ObjectId, list[ObjectId]] = {}
    for file in batch:
        by_company.setdefault(file["companyId"], []).append(file["_id"])
    named: set[ObjectId] = set()
    for collection in declared().values():
        for field in collection.file_fields:
            for company_id, ids in by_company.items():
                named |= await collection.naming(services, company_id, field, ids)
    return [file for file in batch if file["_id"] not in named]
