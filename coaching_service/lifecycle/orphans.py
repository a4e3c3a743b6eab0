"""Files without a record, left by a process that ended between storing the two."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from coaching_service.core.database import files
from coaching_service.core.database.context import Services
from coaching_service.core.ids import ObjectId
from coaching_service.core.jobs.queue import Job, RunAgain

COLLECT = "collect_orphans"
_INTERVAL = timedelta(hours=1)


@dataclass
class OrphanReport:
    """The number of stored files, of those that no record names an hour after the upload (`orphans`), of groups of
    chunks without a file (`chunks_only`), and the bytes of both."""

    files: int = 0
    orphans: int = 0
    chunks_only: int = 0
    bytes: int = 0


async def collect(services: Services, *, remove: bool) -> OrphanReport:
    """Report, and with `remove` delete, all files and chunks without a record; uploads of the last hour stay."""
    report = OrphanReport(files=await files.files.across_companies(services).estimated_document_count())
    async for ids in files.iterate_abandoned(services):
        report.orphans += len(ids)
        report.bytes += await _release(services, ids, remove=remove)
    async for ids in files.iterate_chunks_without_file(services):
        report.chunks_only += len(ids)
        report.bytes += await _release(services, ids, remove=remove)
    return report


async def _release(services: Services, ids: list[ObjectId], *, remove: bool) -> int:
    size = await files.count_bytes(services, ids)
    if remove:
        await files.release(services, ids)
    return size


async def collect_step(services: Services, job: Job) -> RunAgain:
    """Delete the files of uploads that began over an hour ago and that no record names, every hour."""
    del job
    async for ids in files.iterate_abandoned(services):
        await files.release(services, ids)
    return RunAgain(_INTERVAL)
