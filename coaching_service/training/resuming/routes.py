"""Returns from absences over REST."""

from __future__ import annotations

from coaching_service.core.auth.access import coach
from coaching_service.core.auth.permissions import CUSTOMERS
from coaching_service.core.database.context import Context
from coaching_service.core.errors import Conflict
from coaching_service.core.field_schemas import input_of
from coaching_service.core.http.routes import Routes
from coaching_service.core.ids import ObjectId
from coaching_service.core.validation import DryRun
from coaching_service.training.resuming import service
from coaching_service.training.resuming.models import ResumedSchedule, ScheduleResumption

routes = Routes("/coach/customers/{customerId}/schedule/resume", tag="Schedule")


@routes.post(
    "",
    access=coach(CUSTOMERS.EDIT),
    status=200,
    body=input_of(ScheduleResumption, DryRun)(),
    errors=(Conflict,),
    example={"from": "2026-05-06", "mode": "shift"},
)
async def resume_schedule(ctx: Context, customer_id: ObjectId, body: ScheduleResumption) -> ResumedSchedule:
    """Resume training after an absence.

    Ends the latest absence that began before `from` on the day before, unless it has ended, and moves or removes the
    blocks with nothing done. `kept` counts the blocks that stay because work was done. 409 `NO_ABSENCE` without one, if
    it ended more than 14 days before, and if this was done before.
    """
    return await service.resume(ctx, customer_id, body["from"], body["mode"], dry_run=body["dryRun"])
