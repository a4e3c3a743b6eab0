"""The background job that schedules recurring check-ins four weeks ahead, once a local day of each client."""

from __future__ import annotations

from datetime import timedelta

import structlog

from coaching_service.core.database.context import Context, Services
from coaching_service.core.database.documents import now
from coaching_service.core.errors import NotFound
from coaching_service.core.ids import ObjectId
from coaching_service.core.jobs.queue import Job, RunAgain
from coaching_service.core.metrics import read_backlog
from coaching_service.people.account.events import CompanyResumed
from coaching_service.people.team import service as team
from coaching_service.progress.check_ins import service, store
from coaching_service.progress.check_ins.models import DueCheckIn

SCHEDULE = "schedule_check_ins"
_BATCH = 50
_MAX_COUNT = 10_000
_PAUSE = timedelta(minutes=1)
# Check-ins that fail are postponed, so that they do not block the others.
_POSTPONEMENT = timedelta(hours=1)
log = structlog.get_logger("coaching_service.check_ins")


async def schedule_batch(services: Services, _: Job) -> RunAgain:
    """Schedule at most 50 check-ins that are due, each in a transaction of its own.

    Those that fail, or whose company is suspended or being erased, are postponed for an hour. Runs again at once while
    check-ins are due, else in a minute.
    """
    due = await store.list_due(services, _BATCH)
    by_company: dict[ObjectId, list[DueCheckIn]] = {}
    for check_in in due:
        by_company.setdefault(check_in["companyId"], []).append(check_in)
    for company_id, check_ins in by_company.items():
        failed = await _schedule_of_company(services, company_id, check_ins)
        if failed:
            await store.postpone(services, company_id, failed, _POSTPONEMENT)
    return RunAgain() if due else RunAgain(_PAUSE)


async def _schedule_of_company(services: Services, company_id: ObjectId, check_ins: list[DueCheckIn]) -> list[ObjectId]:
    """Schedule check-ins of one company; returns the failed ones."""
    try:
        owner = await team.get_owner(services, company_id)
    except NotFound:  # the company is being erased
        owner = None
    if owner is None or owner.company.is_suspended:
        return [check_in["_id"] for check_in in check_ins]
    failed: list[ObjectId] = []
    for check_in in check_ins:
        ctx = Context(services, owner, operation=SCHEDULE, interface="system")
        try:
            await service.schedule(ctx, check_in["customerId"], check_in["_id"])
        except Exception:
            log.exception("check-in not scheduled", company=str(company_id), check_in=str(check_in["_id"]))
            failed.append(check_in["_id"])
    return failed


async def read_metrics(services: Services) -> None:
    """Read the check-ins that are due; they are not a number while the database does not respond."""
    metrics, due = services.metrics, store.count_due(services, _MAX_COUNT)
    await read_backlog(due, metrics.check_ins_due, metrics.oldest_check_in_seconds, "check-ins")


async def continue_postponed(ctx: Context, _: CompanyResumed) -> None:
    """Have the check-ins of the company scheduled that have been postponed."""
    at = now()
    await store.check_ins.set_derived(ctx, {"dueAt": {"$lte": at + _POSTPONEMENT}}, {"$set": {"dueAt": at}})
