"""Suspending companies: no access for their users and their programs, no background work, and all data stays.

`account.service.to_company` refuses the requests of suspended companies.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import timedelta
from functools import wraps

from coaching_service.core.database.context import Context, Services
from coaching_service.core.database.documents import now
from coaching_service.core.database.transactions import transactional
from coaching_service.core.errors import CompanySuspended, NotFound
from coaching_service.core.ids import ObjectId
from coaching_service.core.jobs import queue
from coaching_service.core.jobs.queue import Job, RunAgain, Step, Steps
from coaching_service.people.account import service as account
from coaching_service.people.account import store
from coaching_service.people.account.events import CompanyResumed
from coaching_service.people.account.models import Suspension
from coaching_service.people.account.store import companies

_PAUSE = timedelta(minutes=5)
_HELD_PAUSE = timedelta(minutes=15)


@transactional
async def suspend(ctx: Context, reason: str) -> None:
    """Suspend the caller's company and its sandbox, from the next request. Raises NotFound if it has been deleted."""
    suspension: Suspension = {"at": now(), "reason": reason}
    for each in await _with_sandbox(ctx):
        if not await companies.set_derived(each, {}, {"$set": {"suspension": suspension}}):
            raise NotFound("company")


@transactional
async def resume(ctx: Context) -> None:
    """End the suspension of the caller's company and its sandbox; its jobs continue at once. Raises NotFound."""
    for each in await _with_sandbox(ctx):
        if not await companies.set_derived(each, {}, {"$unset": {"suspension": ""}}):
            raise NotFound("company")
        await queue.continue_paused(each)
        await each.publish(CompanyResumed())


async def _with_sandbox(ctx: Context) -> list[Context]:
    """Return `ctx`, and the same in the sandbox of the company, if it has one."""
    in_sandbox = await account.enter_sandbox(ctx)
    return [ctx] if in_sandbox is None or not await store.find_own(in_sandbox) else [ctx, in_sandbox]


async def list_suspended(services: Services) -> set[ObjectId]:
    """Return the companies that are suspended."""
    where = {"suspension.at": {"$exists": True}}
    cursor = companies.across_companies(services).find(where, {"_id": 1}, hint="suspension_at")
    return {company["_id"] async for company in cursor}


async def require_active(services: Services, company_id: ObjectId) -> None:
    """Raise CompanySuspended if the company is suspended, where there is no principal to refuse."""
    company = await companies.across_companies(services).find_one({"_id": company_id}, {"suspension": 1})
    if company is not None and "suspension" in company:
        raise CompanySuspended()


def pausing(steps: Steps, unpaused: Collection[str], while_converting: Collection[str] = ()) -> Steps:
    """Return `steps` that pause the jobs of companies that are suspended or convert loads.

    But jobs of the kinds `unpaused`; jobs of the kinds `while_converting` pause only for a suspension. A job of no
    company is never paused.
    """
    return {
        kind: step if kind in unpaused else _pausing(step, while_converting=kind in while_converting)
        for kind, step in steps.items()
    }


def holding(step: Step) -> Step:
    """Return a step that sends mail, which pauses while the company's mail is held, unless the mail is urgent."""

    @wraps(step)
    async def run(services: Services, job: Job) -> RunAgain | None:
        can_wait = not job.arguments.get("isUrgent", False)
        held = {"companyId": job.company_id, "_id": job.company_id, "holdsMail": True}
        if can_wait and job.company_id and await companies.across_companies(services).find_one(held, {"_id": 1}):
            return RunAgain(_HELD_PAUSE, is_pause=True)
        return await step(services, job)

    return run


def _pausing(step: Step, *, while_converting: bool) -> Step:
    @wraps(step)
    async def run(services: Services, job: Job) -> RunAgain | None:
        if job.company_id is not None:
            fields = {"suspension": 1, "loadConversion": 1}
            company = await companies.across_companies(services).find_one({"_id": job.company_id}, fields) or {}
            if "suspension" in company or ("loadConversion" in company and not while_converting):
                return RunAgain(_PAUSE, is_pause=True)
        return await step(services, job)

    return run
