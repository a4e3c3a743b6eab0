"""Imports of the own history over REST."""

from __future__ import annotations

from coaching_service.core.auth.access import customer
from coaching_service.core.database.context import Context
from coaching_service.core.database.files import StoredFile
from coaching_service.core.errors import Conflict
from coaching_service.core.http.routes import MultipartBody, Routes
from coaching_service.core.ids import ObjectId
from coaching_service.core.media import CSV, XLSX
from coaching_service.integrations.background_jobs import models
from coaching_service.integrations.company_import.schemas import OWN_IMPORT_FIELDS, OwnImportOptions
from coaching_service.integrations.own_import import service

routes = Routes(
    "/customer",
    tag="The client's own",
    path_descriptions={"importId": "The job of the import, or of its undo."},
)


@routes.post(
    "/import",
    access=customer(),
    multipart=MultipartBody("file", (CSV, XLSX), OWN_IMPORT_FIELDS(), size_limit="plan", file_required=True),
    returns=models.BACKGROUND_JOB,
    status=202,
    errors=(Conflict,),
    request_class="bulk",
    example={"dryRun": "true"},
)
async def import_own_history(ctx: Context, body: OwnImportOptions, file: StoredFile | None) -> models.StoredCompanyJob:
    """Import my training history.

    A table (CSV or XLSX) of Hevy, Strong, FitNotes, StrongLifts, Gravl, Fitbod, Liftosaur or JEFIT, or any with a date,
    an exercise and amounts.
    It begins after the response: GET /customer/jobs/{importId} returns its progress. With `dryRun` nothing is stored:
    the result has what the file contains, what names of exercises mean, and `questions` that the file does not decide;
    the other fields of the form are the answers. Exercises that are not here yet are created, with the tag `imported`.
    Sessions that are there already are not added again, and rows that name anyone else are reported. Refused if the
    coach has turned it off.
    """
    return await service.begin(ctx, file, body["answers"], dry_run=body["dryRun"])


@routes.get("/jobs/{importId}", access=customer(), returns=models.BACKGROUND_JOB)
async def get_own_job(ctx: Context, import_id: ObjectId) -> models.StoredCompanyJob:
    """Read the progress of my import."""
    return await service.get(ctx, import_id)


@routes.post("/jobs/{importId}/undo", access=customer(), returns=models.BACKGROUND_JOB, status=202, errors=(Conflict,))
async def undo_own_import(ctx: Context, import_id: ObjectId) -> models.StoredCompanyJob:
    """Undo my import.

    It begins after the response, as a job: what the import created is removed, unless it has been changed or used
    since.
    """
    return await service.undo(ctx, import_id)
