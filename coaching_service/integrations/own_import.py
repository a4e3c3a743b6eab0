"""Imports that clients make of their own training history: no one else's, and only if the company lets them."""

from __future__ import annotations

from coaching_service.core.auth import customer
from coaching_service.core.database.context import Context
from coaching_service.core.database.files import StoredFile
from coaching_service.core.errors import Conflict, Forbidden
from coaching_service.core.http.routes import MultipartBody, Routes
from coaching_service.core.ids import ObjectId
from coaching_service.core.media import CSV, XLSX
from coaching_service.integrations.background_jobs import BACKGROUND_JOB
from coaching_service.integrations.company_import import checked_files
from coaching_service.integrations.company_import import service as company_import
from coaching_service.integrations.company_import.schemas import OWN_IMPORT_FIELDS, OwnImportOptions
from coaching_service.integrations.history_import import undoing
from coaching_service.integrations.history_import.models import ImportAnswers
from coaching_service.people import account, jobs
from coaching_service.people.jobs import StoredJob


async def begin(
    ctx: Context, file: StoredFile | None, answers: ImportAnswers, *, dry_run: bool, keeps_file: bool = False
) -> StoredJob:
    """Queue the import of a file with the history of the client who calls, and return its job.

    Raises Forbidden if the company does not let its clients import, and as company_import.begin.
    """
    await _require_allowed(ctx)
    return await company_import.begin(
        ctx, file, dry_run=dry_run, answers={**answers, "customerId": ctx.caller.id}, keeps_file=keeps_file
    )


async def begin_checked(ctx: Context, job_id: ObjectId, answers: ImportAnswers) -> StoredJob:
    """Queue the import of a file that the client has checked. Raises as `begin` and checked_files.begin."""
    await jobs.get(ctx, job_id)
    await _require_allowed(ctx)
    return await checked_files.begin(ctx, job_id, {**answers, "customerId": ctx.caller.id})


async def _require_allowed(ctx: Context) -> None:
    if not (await account.get(ctx))["clientsMayImport"]:
        raise Forbidden("Your coach has turned off imports by clients", code="CLIENT_IMPORTS_OFF")


# --- Imports of the own history over REST -----------------------------------------------------------------------------


routes = Routes(
    "/customer",
    tag="The client's own",
    path_descriptions={"importId": "The job of the import, or of its undo."},
)


@routes.post(
    "/import",
    access=customer(),
    multipart=MultipartBody("file", (CSV, XLSX), OWN_IMPORT_FIELDS(), size_limit="plan", file_required=True),
    returns=BACKGROUND_JOB,
    status=202,
    errors=(Conflict,),
    request_class="bulk",
    example={"dryRun": "true"},
)
async def import_own_history(ctx: Context, body: OwnImportOptions, file: StoredFile | None) -> StoredJob:
    """Import my training history.

    A table (CSV or XLSX) of Hevy, Strong, FitNotes, StrongLifts, Gravl, Fitbod, Liftosaur or JEFIT, or any with a date,
    an exercise and amounts.
    It begins after the response: GET /customer/jobs/{importId} returns its progress. With `dryRun` nothing is stored:
    the result has what the file contains, what names of exercises mean, and `questions` that the file does not decide;
    the other fields of the form are the answers. Exercises that are not here yet are created, with the tag `imported`.
    Sessions that are there already are not added again, and rows that name anyone else are reported. Refused if the
    coach has turned it off.
    """
    return await begin(ctx, file, body["answers"], dry_run=body["dryRun"])


@routes.get("/jobs/{importId}", access=customer(), returns=BACKGROUND_JOB)
async def get_own_job(ctx: Context, import_id: ObjectId) -> StoredJob:
    """Read the progress of my import."""
    return await jobs.get(ctx, import_id)


@routes.post("/jobs/{importId}/undo", access=customer(), returns=BACKGROUND_JOB, status=202, errors=(Conflict,))
async def undo_own_import(ctx: Context, import_id: ObjectId) -> StoredJob:
    """Undo my import.

    It begins after the response, as a job: what the import created is removed, unless it has been changed or used
    since.
    """
    return await undoing.begin(ctx, import_id)
