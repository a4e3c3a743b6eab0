"""The background job that computes figures of logs and personal records again when their meaning has changed."""

from __future__ import annotations

from collections.abc import Sequence

from coaching_service.core.database.context import Context, Services
from coaching_service.core.errors import NotFound
from coaching_service.core.ids import ObjectId
from coaching_service.core.jobs import queue
from coaching_service.core.jobs.queue import Job, RunAgain
from coaching_service.core.jobs.worker import for_each_alone
from coaching_service.library.exercises import service as exercises
from coaching_service.library.exercises.models import LoadTypeChanged
from coaching_service.people import team
from coaching_service.people.customers import service as customers
from coaching_service.progress.metrics import service as body_weights
from coaching_service.progress.personal_records import _estimates, service
from coaching_service.training.body_weights import BodyWeightsChanged
from coaching_service.training.workouts.blocks.service import recompute_added_loads, recompute_logs

RENEW = "renew_training_load"
_BATCH = 10


async def queue_renewal(ctx: Context, event: LoadTypeChanged) -> None:
    """Have the figures of all clients who did an exercise computed again."""
    await queue.enqueue(ctx, RENEW, {"last": None, "exerciseId": event.exercise_id})


async def queue_renewal_of_all(ctx: Context) -> None:
    """Have the figures of all clients of the company computed again."""
    await queue.enqueue(ctx, RENEW, {"last": None, "exerciseId": None})


async def renew_added_loads(ctx: Context, event: BodyWeightsChanged) -> None:
    """Compute again what follows from the loads that were added to a client's body weight; no record is reported."""
    if await recompute_added_loads(ctx, event.customer_id, event.first, event.last):
        await service.rebuild_records(ctx, event.customer_id)
    await _estimates.update_added_loads(ctx, event.customer_id, event.first, event.last)


async def renew_batch(services: Services, job: Job) -> RunAgain | None:
    """Compute again the figures and records of the next 10 clients of the job's company.

    Of one exercise (`exerciseId`), or of all: then first with the shared library of this version. A client of whom it
    fails gets a job of its own.
    """
    company_id = queue.company_of(job)
    last, exercise_id = job.arguments["last"], job.arguments["exerciseId"]
    if last is None and exercise_id is None:
        await exercises.publish_shared(services)
    try:
        owner = await team.get_owner(services, company_id)
    except NotFound:  # the company is being erased
        return None
    ctx = Context(services, owner, operation=RENEW, interface="system")
    only: ObjectId | None = job.arguments.get("only")
    ids = [only] if only else await customers.list_ids_after(ctx, last, _BATCH)

    async def renew(clients: Sequence[ObjectId]) -> None:
        for customer_id in clients:
            if exercise_id is None:
                await body_weights.copy_all(ctx, customer_id)
            if await recompute_logs(ctx, customer_id, exercise_id):
                await service.rebuild_records(ctx, customer_id)
            elif exercise_id is not None:
                await _estimates.renew(ctx, customer_id, exercise_id)

    for customer_id, wait in (await for_each_alone(services, "training-load", company_id, ids, renew)).items():
        again = {"last": customer_id, "exerciseId": exercise_id, "only": customer_id}
        await queue.enqueue(ctx, RENEW, again, after=wait, about=customer_id)
    return RunAgain(progress={"last": ids[-1]}) if ids and not only else None
