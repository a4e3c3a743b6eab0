"""What follows for clients when a coach leaves."""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta

from coaching_service.core.database.context import Context, Services
from coaching_service.core.errors import NotFound
from coaching_service.core.jobs import queue
from coaching_service.core.jobs.queue import Job
from coaching_service.people.customers import service
from coaching_service.people.team import service as team
from coaching_service.people.team.events import CoachRemoved

UNASSIGN = "unassign_clients"
# A request that had seen the coach just before may still assign clients to them: one more pass finds those.
_SECOND_LOOK = timedelta(minutes=2)


async def unassign_customers_of_coach(ctx: Context, event: CoachRemoved) -> None:
    """Leave the clients of a removed coach without a trainer, and queue a second pass."""
    await service.unassign_from_coach(ctx, event.coach_id)
    arguments = {"companyId": ctx.company_id, "coachId": event.coach_id}
    await queue.enqueue(ctx, UNASSIGN, arguments, after=_SECOND_LOOK)


async def look_again(services: Services, job: Job) -> None:
    """The step that assigns to nobody whoever was assigned to the coach `coachId` of `companyId` while they left."""
    with suppress(NotFound):  # a company that is being erased: its clients go
        operator = await team.load_owner(services, job.arguments["companyId"])
        await service.unassign_from_coach(Context(services, operator), job.arguments["coachId"])
