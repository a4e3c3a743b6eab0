"""Bytes without a record, left by a process that died between the two."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from coaching_service.core.database import files
from coaching_service.core.database.context import Services
from coaching_service.core.ids import ObjectId
from coaching_service.core.jobs.queue import Job, RunAgain

COLLECT = "collect_orphans"
_OFTEN = timedelta(hours=1)


@dataclass
class OrphanReport:
    """What was found: how many files there are, those that no record came to name within an hour, stretches of bytes
    that belong to no file, and the bytes of both."""

    files: int = 0
    orphans: int = 0
    ownerless: int = 0
    bytes: int = 0


async def collect(services: Services, *, remove: bool) -> OrphanReport:
    """Find, and (with `remove`) remove, all bytes that no record names. What was begun in the last hour stays."""
    report = OrphanReport(files=await files.count(services))
    async for ids in files.iterate_abandoned(services):
        report.orphans += len(ids)
        report.bytes += await _looked_at(services, ids, remove=remove)
    async for ids in files.iterate_chunks_without_file(services):
        report.ownerless += len(ids)
        report.bytes += await _looked_at(services, ids, remove=remove)
    return report


async def _looked_at(services: Services, ids: list[ObjectId], *, remove: bool) -> int:
    size = await files.count_bytes(services, ids)
    if remove:
        await files.release(services, ids)
    return size


async def collect_step(services: Services, job: Job) -> RunAgain:
    """One step of the background: uploads that were begun over an hour ago and that no record names."""
    del job
    async for ids in files.iterate_abandoned(services):
        await files.release(services, ids)
    return RunAgain(_OFTEN)
