"""The undo of an import over REST."""

from __future__ import annotations

from coaching_service.core.auth.access import coach
from coaching_service.core.database.context import Context
from coaching_service.core.errors import Conflict
from coaching_service.core.http.routes import Routes
from coaching_service.core.ids import ObjectId
from coaching_service.integrations.background_jobs.models import BACKGROUND_JOB, StoredCompanyJob
from coaching_service.integrations.history_import import undoing

routes = Routes("/coach/jobs", tag="Export", path_descriptions={"jobId": "The job of the import."})


@routes.post("/{jobId}/undo", access=coach(), returns=BACKGROUND_JOB, status=202, errors=(Conflict,))
async def undo_import(ctx: Context, job_id: ObjectId) -> StoredCompanyJob:
    """Undo the import of a table of training history or clients.

    It begins after the response, as a job: what the import created is removed, unless it has been changed or used
    since; `failed` of the result has what stays. Records and figures of the clients follow. An import of an export of
    a company, one that has not ended, and one that has stored nothing cannot be undone. Needs what requesting the
    import needs: `customers.edit` for the history of one client, else the owner.
    """
    return await undoing.begin(ctx, job_id)
