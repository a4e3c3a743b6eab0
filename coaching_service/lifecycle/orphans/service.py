"""Bytes without a record, left by a process that died between the two."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from coaching_service.kernel.background.jobs import Again, Job
from coaching_service.kernel.storage import files
from coaching_service.kernel.storage.context import Services
from coaching_service.kernel.storage.ids import ObjectId

COLLECT = "collect_orphans"
_OFTEN = timedelta(hours=1)


@dataclass
class Report:
    """What was found: how many files there are, those that no record came to name within an hour, stretches of bytes
    that belong to no file, and the bytes of both."""

    files: int = 0
    orphans: int = 0
    ownerless: int = 0
    bytes: int = 0


async def collect(services: Services, *, remove: bool) -> Report:
    """Find, and (with `remove`) remove, all bytes that no record names. What was begun in the last hour stays."""
    report = Report(files=await files.count(services))
    async for ids in files.abandoned(services):
        report.orphans += len(ids)
        report.bytes += await _looked_at(services, ids, remove=remove)
    async for ids in files.ownerless(services):
        report.ownerless += len(ids)
        report.bytes += await _looked_at(services, ids, remove=remove)
    return report


async def _looked_at(services: Services, ids: list[ObjectId], *, remove: bool) -> int:
    size = await files.bytes_of(services, ids)
    if remove:
        await files.give_up(services, ids)
    return size


async def collect_some(services: Services, job: Job) -> Again:
    """One step of the background: uploads that were begun over an hour ago and that no record names."""
    del job
    async for ids in files.abandoned(services):
        await files.give_up(services, ids)
    return Again(_OFTEN)
