"""Imports that clients make of their own training history: no one else's, and only if the company lets them."""

from __future__ import annotations

from coaching_service.core.database.context import Context
from coaching_service.core.database.files import StoredFile
from coaching_service.core.errors import Forbidden
from coaching_service.core.ids import ObjectId
from coaching_service.integrations.background_jobs import service as background_jobs
from coaching_service.integrations.background_jobs.models import JobWork, StoredCompanyJob
from coaching_service.integrations.company_import import checked_files
from coaching_service.integrations.company_import import service as company_import
from coaching_service.integrations.history_import import undoing
from coaching_service.integrations.history_import.models import ImportAnswers
from coaching_service.people.account import service as account

get = background_jobs.get_own


async def get_with_work(ctx: Context, job_id: ObjectId) -> JobWork:
    """Return a job of the client who calls with what its steps need. Raises NotFound."""
    await get(ctx, job_id)
    return await background_jobs.get_with_work(ctx, job_id)


async def begin(
    ctx: Context, file: StoredFile | None, answers: ImportAnswers, *, dry_run: bool, keeps_file: bool = False
) -> StoredCompanyJob:
    """Queue the import of a file with the history of the client who calls, and return its job.

    Raises Forbidden if the company does not let its clients import, and as company_import.begin.
    """
    await _require_allowed(ctx)
    return await company_import.begin(
        ctx, file, dry_run=dry_run, answers={**answers, "customerId": ctx.caller.id}, keeps_file=keeps_file
    )


async def begin_checked(ctx: Context, job_id: ObjectId, answers: ImportAnswers) -> StoredCompanyJob:
    """Queue the import of a file that the client has checked. Raises as `begin` and checked_files.begin."""
    await get(ctx, job_id)
    await _require_allowed(ctx)
    return await checked_files.begin(ctx, job_id, {**answers, "customerId": ctx.caller.id})


async def cancel(ctx: Context, job_id: ObjectId) -> StoredCompanyJob:
    """End a job of the client before its next step. Raises NotFound."""
    await get(ctx, job_id)
    return await background_jobs.cancel(ctx, job_id)


async def undo(ctx: Context, job_id: ObjectId) -> StoredCompanyJob:
    """Queue the undo of an import of the client, and return its job. Raises as undoing.begin."""
    await get(ctx, job_id)
    return await undoing.begin(ctx, job_id)


async def _require_allowed(ctx: Context) -> None:
    if not (await account.get(ctx))["clientsMayImport"]:
        raise Forbidden("Your coach has turned off imports by clients", code="CLIENT_IMPORTS_OFF")
