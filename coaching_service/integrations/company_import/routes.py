"""Imports over REST."""

from __future__ import annotations

from coaching_service.core.auth import coach
from coaching_service.core.database.context import Context
from coaching_service.core.database.files import StoredFile
from coaching_service.core.errors import Conflict
from coaching_service.core.http.routes import MultipartBody, Routes
from coaching_service.core.media import CSV, XLSX, ZIP
from coaching_service.integrations import background_jobs
from coaching_service.integrations.company_import import service
from coaching_service.integrations.company_import.schemas import IMPORT_FIELDS, ImportOptions
from coaching_service.people.jobs import StoredJob

routes = Routes("/coach/import", tag="Export")


@routes.post(
    "",
    access=coach(),
    locks="customer",
    multipart=MultipartBody("file", (ZIP, CSV, XLSX), IMPORT_FIELDS(), size_limit="import", file_required=True),
    returns=background_jobs.BACKGROUND_JOB,
    status=202,
    errors=(Conflict,),
    request_class="bulk",
    example={"dryRun": "true"},
)
async def import_company(ctx: Context, body: ImportOptions, file: StoredFile | None) -> StoredJob:
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
