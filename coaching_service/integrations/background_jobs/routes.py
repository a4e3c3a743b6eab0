"""Background jobs over REST."""

from __future__ import annotations

from coaching_service.core.auth.access import coach, even_while_converting
from coaching_service.core.database.context import Context
from coaching_service.core.errors import Conflict
from coaching_service.core.http.routes import Routes
from coaching_service.core.ids import ObjectId
from coaching_service.integrations.background_jobs import models, service

routes = Routes(
    "/coach/jobs", tag="Export", path_descriptions={"jobId": "The job, as the operation that began it returned it."}
)


@routes.get("/{jobId}", access=even_while_converting(coach()), returns=models.BACKGROUND_JOB)
async def get_job(ctx: Context, job_id: ObjectId) -> models.AnyJob:
    """Read the progress of a job.

    The owner reads all jobs, an employee the bulk operations and the imports of a client's history that they have
    requested. A job about clients needs `customers.view`, and the client of an import has to be in the caller's scope.
    Imports of a company, imports by clients and conversions of loads are for the owner, by session or unrestricted key.
    Jobs are removed 30 days after they began.
    """
    return await service.get_any(ctx, job_id)


@routes.post(
    "/{jobId}/cancel", access=coach(), returns=models.BACKGROUND_JOB, status=200, idempotent=True, errors=(Conflict,)
)
async def cancel_job(ctx: Context, job_id: ObjectId) -> models.AnyJob:
    """Cancel a job.

    It ends before its next step, with `status: cancelled`; what it has stored stays. A job that has ended already is
    returned as it is. Needs what requesting such a job needs: `customers.edit` for the import of a client's history,
    the permission of the operation for a bulk operation.
    """
    return await service.cancel_any(ctx, job_id)
