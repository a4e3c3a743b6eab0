"""The background job that schedules recurring check-ins four weeks ahead, once a local day of each client."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from coaching_service.core.database.context import Context, Services
from coaching_service.core.database.documents import now
from coaching_service.core.errors import NotFound
from coaching_service.core.ids import ObjectId
from coaching_service.core.jobs.queue import Job, RunAgain
from coaching_service.core.jobs.worker import for_each_alone
from coaching_service.core.metrics import read_backlog
from coaching_service.people import team
from coaching_service.people.account import CompanyResumed
from coaching_service.progress.check_ins import service
from coaching_service.progress.check_ins.service import DueCheckIn

SCHEDULE = "schedule_check_ins"
_BATCH = 50
_MAX_COUNT = 10_000
_PAUSE = timedelta(minutes=1)
# Of the check-ins of a company that is suspended.
_POSTPONEMENT = timedelta(hours=1)


async def schedule_batch(services: Services, _: Job) -> RunAgain:
    """Schedule at most 50 check-ins that are due, each in a transaction of its own.

    Those that fail wait, as `for_each_alone` says, and those of a company that is suspended or being erased for an
    hour. Runs again at once while check-ins are due, else in a minute.
    """
    due = await service.list_due(services, _BATCH)
    by_company: dict[ObjectId, list[DueCheckIn]] = {}
    for check_in in due:
        by_company.setdefault(check_in["companyId"], []).append(check_in)
    for company_id, check_ins in by_company.items():
        for check_in_id, wait in (await _schedule_of_company(services, company_id, check_ins)).items():
            await service.postpone(services, company_id, [check_in_id], wait)
    return RunAgain() if due else RunAgain(_PAUSE)


async def _schedule_of_company(
    services: Services, company_id: ObjectId, check_ins: list[DueCheckIn]
) -> dict[ObjectId, timedelta]:
    """Schedule check-ins of one company, and return how long those that are not scheduled have to wait."""
    inactive, clients = list[ObjectId](), {each["_id"]: each["customerId"] for each in check_ins}

    async def schedule(ids: Sequence[ObjectId]) -> None:
        try:
            owner = await team.get_owner(services, company_id)
        except NotFound:  # the company is being erased
            owner = None
        if owner is None or owner.company.is_suspended:
            inactive.extend(ids)
            return
        for each in ids:
            ctx = Context(services, owner, operation=SCHEDULE, interface="system")
            await service.schedule(ctx, clients[each], each)

    failed = await for_each_alone(services, "check-ins", company_id, clients, schedule)
    return failed | dict.fromkeys(inactive, _POSTPONEMENT)


async def read_metrics(services: Services) -> None:
    """Read the check-ins that are due; they are not a number while the database does not respond."""
    metrics, due = services.metrics, service.count_due(services, _MAX_COUNT)
    await read_backlog(due, metrics.check_ins_due, metrics.oldest_check_in_seconds, "check-ins")


async def continue_postponed(ctx: Context, _: CompanyResumed) -> None:
    """Have the check-ins of the company scheduled that have been postponed."""
    at = now()
    await service.check_ins.set_derived(ctx, {"dueAt": {"$lte": at + _POSTPONEMENT}}, {"$set": {"dueAt": at}})
