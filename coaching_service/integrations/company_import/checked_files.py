"""Files that were checked first: they are kept for a day, in which the same file is imported with answers."""

from __future__ import annotations

from typing import cast

from coaching_service.core.database import files
from coaching_service.core.database.context import Context, Services, in_transaction, transactional
from coaching_service.core.errors import Conflict, NotFound
from coaching_service.core.ids import ObjectId
from coaching_service.core.jobs.queue import Job, company_of
from coaching_service.integrations.company_import import service as company_import
from coaching_service.integrations.history_import.models import HistoryResult, ImportAnswers, ImportWork
from coaching_service.people import jobs, team
from coaching_service.people.jobs import StoredJob


@transactional
async def begin(ctx: Context, job_id: ObjectId, answers: ImportAnswers) -> StoredJob:
    """Queue the import of the file that a job has checked, and return its job.

    If the columns were not known, the file is checked once more, with the answers. The caller may read the job.
    Raises NotFound, Conflict if its file is no longer there, and as company_import.begin.
    """
    checked = await jobs.get_complete(ctx, job_id)
    work = cast("ImportWork", checked["work"])
    file_id = work.get("fileId")
    stored = None if file_id is None else await files.find(ctx.services, file_id)
    if checked["kind"] != "import" or checked["status"] != "done" or file_id is None or stored is None:
        raise Conflict("The file is no longer here: upload it again", code="FILE_GONE")
    await jobs.forget_file(ctx, job_id, file_id)
    result = cast("HistoryResult", checked["result"])
    is_open = any(each["code"] == "COLUMN" for each in result.get("questions", ()))
    file = files.StoredFile(file_id, work["fileName"], work["contentType"], stored["length"], stored["sha256"])
    on_conflict = work.get("onConflict", "error")
    return await company_import.begin(
        ctx, file, dry_run=is_open, on_conflict=on_conflict, answers=answers, keeps_file=is_open
    )


async def discard_step(services: Services, job: Job) -> None:
    """Delete a file that was checked and not imported."""
    job_id, file_id = job.arguments["jobId"], job.arguments["fileId"]

    async def discard(tx: Context) -> None:
        if await jobs.forget_file(tx, job_id, file_id):
            await files.discard(tx, [file_id])

    try:
        owner = await team.get_owner(services, company_of(job))
    except NotFound:  # the company has been erased, with its files
        return
    await in_transaction(Context(services, operation=company_import.OPERATION).acting_as(owner), discard)
