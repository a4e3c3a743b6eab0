"""The conversion of a company's loads over REST."""

from __future__ import annotations

from coaching_service.core.auth.access import owner
from coaching_service.core.database.context import Context
from coaching_service.core.errors import Conflict
from coaching_service.core.http.routes import Routes
from coaching_service.integrations.background_jobs.models import BACKGROUND_JOB, StoredCompanyJob
from coaching_service.integrations.load_unit import service
from coaching_service.integrations.load_unit.models import LoadUnitConversion

routes = Routes("/coach/account/load-unit", tag="Account")


@routes.post(
    "",
    access=owner(),
    returns=BACKGROUND_JOB,
    status=202,
    errors=(Conflict,),
    example={"loadUnit": "lb", "dryRun": True},
)
async def convert_load_unit(ctx: Context, body: LoadUnitConversion) -> StoredCompanyJob:
    """Convert all loads to another unit.

    A job converts planned and done sets, records, training maximums, programs and templates, and rounds to 0.1;
    GET /coach/jobs/{jobId} returns its progress. Until it is done, all other operations of the company are 503 with
    `Retry-After`. Changes from before cannot be undone afterwards if they have loads. A dry run counts what would be
    converted, and refuses nothing. 409 while an import is not finished.
    """
    return await service.begin(ctx, body["loadUnit"], dry_run=body["dryRun"])
