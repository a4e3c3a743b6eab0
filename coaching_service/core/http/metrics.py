"""The endpoint of the Prometheus metrics, and what is read from the database for each response."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Sequence
from functools import partial
from math import nan

from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST

from coaching_service.core.changes.numbering.sequencer import count_pending
from coaching_service.core.database import files
from coaching_service.core.database.context import Services
from coaching_service.core.jobs import inspection
from coaching_service.core.metrics import Reading, read_backlog, reading_in_time

_MAX_COUNT = 10_000


def metrics_handler(
    services: Services, readings: Sequence[Reading]
) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
    """Return the aiohttp handler that exposes the metrics of this process, or of all workers, and of the database."""

    async def handle(_: web.Request) -> web.Response:
        await asyncio.gather(*(read(services) for read in readings))
        metrics = services.metrics
        text = metrics.report() if metrics.add_others is None else await metrics.add_others(metrics.report())
        return web.Response(body=text.encode(), headers={"Content-Type": CONTENT_TYPE_LATEST})

    return handle


def core_readings(job_kinds: Collection[str]) -> tuple[Reading, ...]:
    """Return what is read of the change log, of files, and of jobs of these kinds."""
    return _read_change_log, _read_files, partial(_read_jobs, kinds=job_kinds)


async def _read_change_log(services: Services) -> None:
    metrics, pending = services.metrics, count_pending(services, _MAX_COUNT)
    await read_backlog(pending, metrics.changes_pending, metrics.oldest_change_seconds, "pending changes")


async def _read_files(services: Services) -> None:
    stored = await reading_in_time(files.count_stored_bytes(services), nan, "stored files")
    services.metrics.stored_bytes.set(stored)


async def _read_jobs(services: Services, kinds: Collection[str]) -> None:
    due = await reading_in_time(inspection.count_due(services, kinds), None, "jobs")
    for kind in kinds:
        count, seconds = (nan, nan) if due is None else due.get(kind, (0, 0.0))
        services.metrics.jobs_pending.labels(kind).set(count)
        services.metrics.oldest_job_seconds.labels(kind).set(seconds)
