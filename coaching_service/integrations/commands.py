"""Export and import of a company from the command line, without a running service."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path
from typing import IO

from coaching_service.core.database import files
from coaching_service.core.database.context import Context
from coaching_service.core.database.file_storage import storing
from coaching_service.core.database.transactions import in_transaction
from coaching_service.core.errors import BadRequest
from coaching_service.core.jobs import worker
from coaching_service.core.media import CSV, ZIP, InvalidFile
from coaching_service.integrations.background_jobs import service as background_jobs
from coaching_service.integrations.background_jobs.models import StoredCompanyJob
from coaching_service.integrations.company_export import service as company_export
from coaching_service.integrations.company_import import service as company_import
from coaching_service.people.customers.models import OnConflict

_POLL_SECONDS = 0.5


async def export_company(ctx: Context, target: Path, on_bytes: Callable[[int], None]) -> int:
    """Write the export of the caller's company to a file that its owner alone can read; returns its size in bytes.

    The file is complete or not there. `on_bytes` is called with the bytes written so far.
    """
    download = await company_export.export_archive(ctx)
    draft = target.with_name(f"{target.name}.part")
    size = 0
    try:
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as output:
            async for chunk in download.read(0, 0):
                size += await asyncio.to_thread(output.write, chunk)
                on_bytes(size)
        draft.replace(target)
    finally:
        draft.unlink(missing_ok=True)
    return size


async def import_file(
    ctx: Context,
    source: IO[bytes],
    name: str,
    *,
    dry_run: bool,
    on_conflict: OnConflict,
    on_progress: Callable[[int, int], None],
) -> StoredCompanyJob:
    """Import a file into the caller's company and return the job once it has ended.

    `on_progress` is called with the records done and their number. Raises BadRequest if the file is neither an
    export nor a CSV file, and like company_import.begin.
    """
    try:
        async with storing(ctx, source, name=name, content_types=(ZIP, CSV), customer_id=None, max_pixels=1) as file:

            async def begin(tx: Context) -> StoredCompanyJob:
                job = await company_import.begin(tx, file, dry_run=dry_run, on_conflict=on_conflict)
                await files.attach(tx, file)
                return job

            job = await in_transaction(ctx, begin)
    except InvalidFile as error:
        raise BadRequest("The file is neither an export of a company nor a CSV file", code=error.code) from None
    while job["status"] in ("queued", "running"):
        ran = await worker.run_due(ctx.services, {company_import.IMPORT: company_import.run_step}, limit=1)
        if not ran:  # a running service has it
            await asyncio.sleep(_POLL_SECONDS)
        job = await background_jobs.get(ctx, job["_id"])
        on_progress(job["done"], job["total"])
    return job
