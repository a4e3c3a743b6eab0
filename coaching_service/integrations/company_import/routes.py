"""Imports over REST: of the company, and of the client's own history."""

from __future__ import annotations

from coaching_service.core.auth import coach, customer
from coaching_service.core.database.context import Context
from coaching_service.core.database.files import StoredFile
from coaching_service.core.errors import Conflict
from coaching_service.core.http.routes import MultipartBody, Routes
from coaching_service.core.ids import ObjectId
from coaching_service.core.media import CSV, XLSX, ZIP
from coaching_service.integrations.background_jobs import BACKGROUND_JOB
from coaching_service.integrations.company_import import service
from coaching_service.integrations.history_import import models, undoing
from coaching_service.people import jobs

routes = Routes("/coach/import", tag="Export")


@routes.post(
    "",
    access=coach(),
    locks="customer",
    multipart=MultipartBody("file", (ZIP, CSV, XLSX), models.IMPORT_FIELDS(), size_limit="import", file_required=True),
    returns=BACKGROUND_JOB,
    status=202,
    errors=(Conflict,),
    request_class="bulk",
    example={"dryRun": "true"},
)
async def import_company(ctx: Context, body: models.ImportOptions, file: StoredFile | None) -> jobs.StoredJob:
    """Import an export of a company, a table of training history, or a table of clients.

    It begins after the response: GET /coach/jobs/{jobId} returns its progress, and its problems with the line of each.
    Records get new identifiers and belong to the caller's company. Texts are validated and files are checked as they
    are when they are sent one by one; records that are not valid are left out. Nothing is mailed. With `dryRun`
    everything is checked and nothing is stored: the job has the problems that the import would have, also records that
    collide with each other or with the company's, and those that refer to what is left out. An export with other bytes
    than its manifest states is refused as a whole.

    A table of sets (CSV or XLSX) is recognised by its headings: Hevy, Strong, FitNotes, StrongLifts, Gravl,
    TrainHeroic, the service's own CSV, or any with a date, an exercise and amounts. Each row is imported or reported;
    sessions that are there already are not added again. What the file does not decide is in `questions` of the result,
    and an import ends with an error while one is open; the other fields of the form are the answers. Each client has
    one event, `history.imported`. A table of body measurements becomes values of metrics.

    POST /coach/jobs/{jobId}/undo removes what the import of a table has created.
    """
    return await service.begin(
        ctx, file, dry_run=body["dryRun"], on_conflict=body["onConflict"], answers=body["answers"]
    )


# --- Imports of the own history ---------------------------------------------------------------------------------------


own_routes = Routes(
    "/customer",
    tag="The client's own",
    path_descriptions={"importId": "The job of the import, or of its undo."},
)


@own_routes.post(
    "/import",
    access=customer(),
    multipart=MultipartBody("file", (CSV, XLSX), models.OWN_IMPORT_FIELDS(), size_limit="plan", file_required=True),
    returns=BACKGROUND_JOB,
    status=202,
    errors=(Conflict,),
    request_class="bulk",
    example={"dryRun": "true"},
)
async def import_own_history(ctx: Context, body: models.OwnImportOptions, file: StoredFile | None) -> jobs.StoredJob:
    """Import my training history.

    A table (CSV or XLSX) of Hevy, Strong, FitNotes, StrongLifts, Gravl, Fitbod, Liftosaur or JEFIT, or any with a date,
    an exercise and amounts.
    It begins after the response: GET /customer/jobs/{importId} returns its progress. With `dryRun` nothing is stored:
    the result has what the file contains, what names of exercises mean, and `questions` that the file does not decide;
    the other fields of the form are the answers. Exercises that are not here yet are created, with the tag `imported`.
    Sessions that are there already are not added again, and rows that name anyone else are reported. Refused if the
    coach has turned it off.
    """
    return await service.begin_own(ctx, file, body["answers"], dry_run=body["dryRun"])


@own_routes.get("/jobs/{importId}", access=customer(), returns=BACKGROUND_JOB)
async def get_own_job(ctx: Context, import_id: ObjectId) -> jobs.StoredJob:
    """Read the progress of my import."""
    return await jobs.get(ctx, import_id)


@own_routes.post("/jobs/{importId}/undo", access=customer(), returns=BACKGROUND_JOB, status=202, errors=(Conflict,))
async def undo_own_import(ctx: Context, import_id: ObjectId) -> jobs.StoredJob:
    """Undo my import.

    It begins after the response, as a job: what the import created is removed, unless it has been changed or used
    since.
    """
    return await undoing.begin(ctx, import_id)
