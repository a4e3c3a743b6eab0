"""Suspending companies: no access for their users and their programs, no background work, and all data stays.

`account.service.to_company` refuses the requests of suspended companies.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from datetime import timedelta
from functools import wraps

from coaching_service.core.auth.principal import Company
from coaching_service.core.database.context import Context, Services
from coaching_service.core.database.documents import now
from coaching_service.core.database.transactions import transactional
from coaching_service.core.errors import CompanySuspended, NotFound
from coaching_service.core.ids import ObjectId
from coaching_service.core.jobs import queue
from coaching_service.core.jobs.queue import Job, RunAgain, Step, Steps
from coaching_service.people.account import store
from coaching_service.people.account.events import CompanyResumed

_PAUSE = timedelta(minutes=5)
_HELD_PAUSE = timedelta(minutes=15)


@transactional
async def suspend(ctx: Context, reason: str) -> None:
    """Suspend the caller's company and its sandbox, from the next request. Raises NotFound if it has been deleted."""
    for each in await _with_sandbox(ctx):
        if not await store.set_suspension(each, {"at": now(), "reason": reason}):
            raise NotFound("company")


@transactional
async def resume(ctx: Context) -> None:
    """End the suspension of the caller's company and its sandbox; its jobs continue at once. Raises NotFound."""
    for each in await _with_sandbox(ctx):
        if not await store.set_suspension(each, None):
            raise NotFound("company")
        await queue.continue_paused(each)
        await each.publish(CompanyResumed())


async def _with_sandbox(ctx: Context) -> list[Context]:
    """Return `ctx`, and the same in the sandbox of the company, if it has one."""
    sandbox_id = await store.find_sandbox_id(ctx)
    if sandbox_id is None:
        return [ctx]
    company = Company(sandbox_id, "Sandbox", "UTC", "kg", sandbox_of=ctx.company_id)
    in_sandbox = replace(ctx, principal=replace(ctx.caller, company=company))
    return [ctx, in_sandbox] if await store.find_own(in_sandbox) else [ctx]


list_suspended = store.list_suspended


async def require_active(services: Services, company_id: ObjectId) -> None:
    """Raise CompanySuspended if the company is suspended, where there is no principal to refuse."""
    if await store.is_suspended(services, company_id):
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
        if can_wait and job.company_id is not None and await store.holds_mail(services, job.company_id):
            return RunAgain(_HELD_PAUSE, is_pause=True)
        return await step(services, job)

    return run


def _pausing(step: Step, *, while_converting: bool) -> Step:
    @wraps(step)
    async def run(services: Services, job: Job) -> RunAgain | None:
        if job.company_id is not None:
            is_suspended, is_converting = await store.find_paused_work(services, job.company_id)
            if is_suspended or (is_converting and not while_converting):
                return RunAgain(_PAUSE, is_pause=True)
        return await step(services, job)

    return run
