"""Bulk operations as jobs: each step claims what it changes, so a step that was interrupted is repeated safely."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from coaching_service.core.accepted import Accepted
from coaching_service.core.auth.access import (
    CUSTOMERS,
    Access,
    check_access,
    coach,
    even_while_converting,
    find_denial,
    owner,
)
from coaching_service.core.auth.principal import Principal, Via
from coaching_service.core.database.context import Context, Services
from coaching_service.core.database.transactions import AlreadyClaimed, transactional
from coaching_service.core.errors import Conflict, NotFound, ServiceError, Unavailable
from coaching_service.core.idempotency import Claim, IdempotencyKeyReused
from coaching_service.core.ids import ObjectId, stable_id
from coaching_service.core.jobs import queue
from coaching_service.core.jobs.queue import Job, RunAgain, Step
from coaching_service.people.api_keys import service as api_keys
from coaching_service.people.assistants import service as assistants
from coaching_service.people.bulk_jobs import store
from coaching_service.people.bulk_jobs.models import (
    UNFINISHED,
    BulkJobKind,
    BulkJobStatus,
    Outcome,
    StoredBulkJob,
    StoredCaller,
)
from coaching_service.people.team import service as team

# --- What reading a job needs, and what controlling it needs: cancelling it, and undoing what it has changed ----------


@dataclass(frozen=True)
class JobAccess:
    """The access rules of a kind of job; `control` is also what requesting such a job needs."""

    reading: Access
    control: Access


def of_clients(*permissions: str) -> JobAccess:
    """Return the access to a job about clients, which needs these permissions to change them."""
    return JobAccess(even_while_converting(coach(CUSTOMERS.VIEW)), coach(*permissions))


OF_OWNER = JobAccess(even_while_converting(owner()), owner())


# --- Who requested work that goes on after the response: stored with a job, and loaded again for each of its steps ----


# What the jobs of a credential end with; the work that a session has begun continues when its user signs out.
_CREDENTIALS: Mapping[Via, Callable[[Context, ObjectId], Awaitable[bool]]] = {
    "apiKey": api_keys.is_usable,
    "mcp": assistants.is_connected,
}


def to_stored(ctx: Context) -> StoredCaller:
    """Return the coach who calls, and through which interface, as a job keeps them."""
    caller = ctx.caller
    return {
        "coachId": caller.id,
        "via": caller.via,
        "interface": ctx.interface,
        "credentialId": caller.credential_id,
        "permissions": sorted(caller.permissions),
        "isAssigned": caller.customers_scope == "assigned",
        "restricted": caller.restricted,
        "application": caller.application,
    }


async def load(ctx: Context, caller: StoredCaller) -> Principal | None:
    """Return the coach who requested a job of the company, with the rights of then that still exist.

    None if the coach is gone, or the API key or the assistant has no access any more. Raises CompanySuspended.
    """
    principal = await team.get_principal(ctx.services, caller["coachId"])
    if principal is None or principal.company.id != ctx.company_id:
        return None
    usable = _CREDENTIALS.get(caller["via"])
    if usable is not None and not await usable(ctx, caller["credentialId"]):
        return None
    return replace(
        principal,
        via=caller["via"],
        credential_id=caller["credentialId"],
        permissions=principal.permissions & frozenset(caller["permissions"]),
        customers_scope="assigned" if caller["isAssigned"] else principal.customers_scope,
        restricted=caller["restricted"],
        application=caller["application"],
    )


MAX_AT_ONCE = 500  # of clients or changes that a request processes before its response
_STEP_SECONDS = queue.STEP_SECONDS
_WAIT = timedelta(seconds=5)
_ID_BYTES = 12

_ENDED = "The API key, the assistant or the coach that began this has no access any more"

# Processes some of the identifiers of a job with its claim; what was done under the claim before counts as done.
Work = Callable[[Context, StoredBulkJob, list[ObjectId], Claim], Awaitable[Outcome]]


def is_job(ctx: Context, count: int) -> bool:
    """Return whether so many clients or changes are processed by a job: many, or the caller prefers it."""
    return count > MAX_AT_ONCE or ctx.prefers_job


async def begin(
    ctx: Context,
    kind: BulkJobKind,
    ids: Sequence[ObjectId],
    arguments: Mapping[str, Any],
    claim: Claim | None,
    *,
    permissions: Collection[str],
    change_id: ObjectId | None = None,
) -> Accepted:
    """Queue a job for `ids`, once for a claim, and return it; the changes it makes have the batch `ctx.change_ids`.

    `permissions` are what the request needs, `change_id` is the batch that it undoes. Raises IdempotencyKeyReused if
    the claim is of another request.
    """
    job_id = ObjectId() if claim is None else stable_id(str(claim.id), "job")
    claim = claim or Claim(job_id, "job")
    try:
        await _store(ctx, job_id, kind, ids, arguments, claim, permissions, change_id)
    except AlreadyClaimed:  # the same request, whose response has been lost
        stored = await store.find_with_work(ctx, job_id)
        if stored is None or stored["work"]["fingerprint"] != claim.fingerprint:
            raise IdempotencyKeyReused("This Idempotency-Key was used with another body") from None
    ctx.change_ids.append(batch_of(claim))
    return Accepted(job_id)


def batch_of(claim: Claim) -> ObjectId:
    """Return the batch of the changes that are made under a claim."""
    return stable_id(str(claim.id), "batch")


@transactional
async def _store(
    ctx: Context,
    job_id: ObjectId,
    kind: BulkJobKind,
    ids: Sequence[ObjectId],
    arguments: Mapping[str, Any],
    claim: Claim,
    permissions: Collection[str],
    change_id: ObjectId | None,
) -> None:
    work = {
        "operation": ctx.operation,
        "arguments": dict(arguments),
        "ids": b"".join(each.binary for each in ids),
        "claimId": claim.id,
        "fingerprint": claim.fingerprint,
        "caller": to_stored(ctx),
        "permissions": sorted(permissions),
        "ok": 0,
        "failed": [],
    }
    job = {"_id": job_id, "kind": kind, "total": len(ids), "coachId": ctx.caller.id, "batchId": batch_of(claim)}
    undoes = {} if change_id is None else {"changeId": change_id}
    new = {"status": "queued", "done": 0, "result": None, "errors": []}
    await store.jobs.claim(ctx, {**job, **undoes, **new, "work": work})
    await queue.enqueue(ctx, kind_of_step(kind), {"jobId": job_id})


def kind_of_step(kind: BulkJobKind) -> str:
    """Return the kind of the queued job that runs the steps."""
    return f"{kind}_job"


async def get(ctx: Context, job_id: ObjectId) -> StoredBulkJob:
    """Return a job that the caller, or as the owner another coach, has requested. Raises NotFound and Forbidden."""
    own = {} if ctx.caller.role == "OWNER" else {"coachId": ctx.caller.id}
    if (job := await store.jobs.find_one(ctx, {"_id": job_id, **own})) is None:
        raise NotFound("job")
    require_readable(ctx)
    return job


def require_readable(ctx: Context) -> None:
    """Raise Forbidden if the caller may not read what jobs do with clients."""
    check_access(of_clients().reading, ctx.caller, writes=False)


def _control(job: StoredBulkJob) -> Access:
    """Return what controlling a job needs, read with `work`; one of an older version does not name it."""
    return of_clients(*job["work"].get("permissions", [CUSTOMERS.EDIT])).control


list_own = store.find_latest


async def get_operation(ctx: Context, job_id: ObjectId) -> tuple[str, bool]:
    """Return the operationId, or the name of the page or tool, of a job, and whether the caller may control it.

    Raises as `get`.
    """
    job = await _get_with_work(ctx, job_id)
    return job["work"]["operation"], find_denial(_control(job), ctx.caller, writes=True) is None


async def _get_with_work(ctx: Context, job_id: ObjectId) -> StoredBulkJob:
    await get(ctx, job_id)
    if (job := await store.find_with_work(ctx, job_id)) is None:
        raise NotFound("job")
    return job


find_last_undo = store.find_last_undo


def join(ctx: Context, job: StoredBulkJob) -> Accepted:
    """Return a job that does already what the caller requests. Raises Conflict if the caller may not see it."""
    require_visible(ctx, job)
    ctx.change_ids.append(job["batchId"])
    return Accepted(job["_id"])


def require_visible(ctx: Context, job: StoredBulkJob) -> None:
    """Raise Conflict (JOB_RUNNING) if another coach has begun a job, unless the caller is the owner; Forbidden."""
    require_readable(ctx)
    if ctx.caller.role != "OWNER" and job["coachId"] != ctx.caller.id:
        raise Conflict("Another coach has begun this already", code="JOB_RUNNING")


def is_unfinished(job: StoredBulkJob) -> bool:
    """Return whether a job has not ended."""
    return job["status"] in UNFINISHED


@transactional
async def cancel(ctx: Context, job_id: ObjectId) -> StoredBulkJob:
    """End a job before its next step and return it; what it has changed stays. Raises as `get`."""
    job = await _get_with_work(ctx, job_id)
    check_access(_control(job), ctx.caller, writes=True)
    await _end(ctx, job, "cancelled")
    return await get(ctx, job_id)


def step_of(work: Work, at_once: int, slow: Mapping[str, int] | None = None) -> Step:
    """Return the step of a job that processes at most `at_once` identifiers at a time, for a moment.

    `slow` has the operations that process fewer, and how many.
    """

    async def run(services: Services, job: Job) -> RunAgain | None:
        return await _run_step(services, job, work, at_once, slow or {})

    return run


async def _run_step(services: Services, job: Job, work: Work, at_once: int, slow: Mapping[str, int]) -> RunAgain | None:
    try:
        owner = await team.get_owner(services, job.company_id or ObjectId())
    except NotFound:  # the company has been deleted
        return None
    ctx = Context(services, owner)
    stored = await store.find_with_work(ctx, job.arguments["jobId"])
    if stored is None or not is_unfinished(stored):
        return None
    caller = await _load_caller(ctx, stored)
    if caller is None:
        error = {"entry": "", "field": None, "code": "FORBIDDEN", "message": _ENDED}
        await _end(ctx, stored, "failed", [error])
        return None
    return await _continue(caller, stored, work, slow.get(caller.operation, at_once))


async def _load_caller(ctx: Context, job: StoredBulkJob) -> Context | None:
    """Return the context of the coach who requested a job, with the rights of then that still exist; None if gone."""
    caller = job["work"]["caller"]
    principal = await load(ctx, caller)
    if principal is None:
        return None
    operation, interface = job["work"]["operation"], caller.get("interface")
    return Context(ctx.services, principal, operation=operation, interface=interface)


async def _continue(ctx: Context, job: StoredBulkJob, work: Work, at_once: int) -> RunAgain | None:
    claim = Claim(job["work"]["claimId"], job["work"]["fingerprint"])
    until = time.monotonic() + _STEP_SECONDS
    while job["done"] < job["total"]:
        ids = _ids_from(job, at_once)
        try:
            outcome = await work(ctx, job, ids, claim)
        except Unavailable:
            raise
        except ServiceError as error:
            known = {"entry": "", "field": None, "code": error.code or error.reason, "message": str(error)}
            await _end(ctx, job, "failed", [known])
            return None
        advanced = await store.advance(ctx, job, len(ids), outcome)
        if advanced is None:  # it was cancelled, or a step whose lease had ended has continued it
            return RunAgain(_WAIT)
        job = advanced
        if time.monotonic() > until:
            return RunAgain()
    await _end(ctx, job, "done")
    return None


def _ids_from(job: StoredBulkJob, count: int) -> list[ObjectId]:
    packed, first = job["work"]["ids"], job["done"]
    last = min(first + count, job["total"])
    return [ObjectId(packed[_ID_BYTES * number : _ID_BYTES * (number + 1)]) for number in range(first, last)]


async def _end(
    ctx: Context, job: StoredBulkJob, status: BulkJobStatus, errors: Sequence[Mapping[str, Any]] = ()
) -> None:
    work = job["work"]
    result: dict[str, Any] = {"ok": work["ok"], "failed": work["failed"], "batchId": job["batchId"]}
    if job["kind"] == "bulk":
        reported = {"results": work["results"]} if "results" in work else {}
        result = {"requested": job["total"], **result, **reported}
    else:
        result = {"changeId": job["batchId"] if work["ok"] else None, **result}
    last = {"status": status, "result": result, "errors": list(errors), "work.ids": b""}
    await store.jobs.update(ctx, store.unchanged(job), {"$set": last}, fields=("_id",))
