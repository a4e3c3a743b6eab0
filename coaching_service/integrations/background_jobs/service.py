"""Background jobs of a company: their progress is stored with what each of their steps writes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from typing import Any, cast

from coaching_service.core import audit
from coaching_service.core.auth.access import CUSTOMERS, check_access
from coaching_service.core.database import files
from coaching_service.core.database.context import Context, Services
from coaching_service.core.database.documents import Filter
from coaching_service.core.database.transactions import in_transaction, transactional
from coaching_service.core.errors import Conflict, Forbidden, NotFound
from coaching_service.core.ids import ObjectId
from coaching_service.core.jobs import queue
from coaching_service.core.jobs.queue import Job
from coaching_service.core.media import ZIP
from coaching_service.integrations.background_jobs import store
from coaching_service.integrations.background_jobs.models import (
    AnyJob,
    ConversionWork,
    ImportResult,
    ImportWork,
    JobError,
    JobKind,
    JobReaders,
    JobStatus,
    JobWork,
    NewJob,
    StoredCompanyJob,
)
from coaching_service.integrations.history_import import models
from coaching_service.integrations.history_import.models import HistoryResult, StoredAnswer, UndoWork
from coaching_service.people.bulk_jobs import service
from coaching_service.people.bulk_jobs import service as bulk_jobs
from coaching_service.people.bulk_jobs.service import OF_OWNER, JobAccess, of_clients
from coaching_service.people.customers import service as customers
from coaching_service.people.customers import service as first_access
from coaching_service.people.customers.models import CustomersDeleted
from coaching_service.people.team import service as team
from coaching_service.progress.attention import renewal
from coaching_service.progress.personal_records import renewal as training_load_renewal

# --- What reading and controlling the jobs of a company needs, by their kind ------------------------------------------


_OF_CLIENT = of_clients(CUSTOMERS.EDIT)


def access_to_import(customer_id: ObjectId | None) -> JobAccess:
    """Return the access to an import that a coach requests: of the history of one client, or None: of the company."""
    return OF_OWNER if customer_id is None else _OF_CLIENT


async def require_access(ctx: Context, job_id: ObjectId, *, writes: bool) -> None:
    """Raise what `require` raises for a job of the company; NotFound without it."""
    if (job := await store.find_readers(ctx, job_id)) is None:
        raise NotFound("job")
    await require(ctx, job, writes=writes)


async def require(ctx: Context, job: JobReaders | JobWork, *, writes: bool) -> None:
    """Raise an error unless the caller may read a job, or with `writes` cancel it and undo it.

    Raises NotFound for another client's; Forbidden without the permission, for a coach who has not requested it unless
    the caller is the owner, and if its client is not in the caller's scope.
    """
    if not ctx.caller.is_coach:
        if ctx.caller.id != job.get("customerId"):
            raise NotFound("job")
        return
    is_own = ctx.caller.id == job.get("requestedBy")  # of an import of one client, or its undo
    needed = _OF_CLIENT if is_own else OF_OWNER
    check_access(needed.control if writes else needed.reading, ctx.caller, writes=writes)
    if is_own and (customer_id := await _find_client(ctx, job)) is not None:
        await customers.get_visible(ctx, customer_id)


async def may_continue(ctx: Context, job: JobReaders | JobWork) -> bool:
    """Return whether the coach who acts in a job may still do what it does."""
    try:
        await require(ctx, job, writes=True)
    except (Forbidden, NotFound):
        return False
    return True


async def _find_client(ctx: Context, job: JobReaders | JobWork) -> ObjectId | None:
    """Return the client whose history a job imports, or removes again; None if that import has been removed."""
    if job["kind"] == "undo":
        undone = await store.find_readers(ctx, cast("UndoWork", job["work"])["importId"])
        return None if undone is None else await _find_client(ctx, undone)
    return cast("ImportWork", job["work"])["answers"]["customerId"]


FOLLOW = "follow_history_import"
DISCARD = "discard_checked_file"
_FILE_KEPT = timedelta(days=1)
_NAMES: Mapping[JobKind, str] = {"import": "import", "load_unit": "conversion of loads", "undo": "undo of an import"}


class Superseded(Exception):
    """Another process has continued the job, or it has ended."""


async def create(ctx: Context, job: NewJob, *, job_id: ObjectId | None = None) -> StoredCompanyJob:
    """Store a job, in the transaction that queues its first step; with the identifier `job_id` if given.

    Raises Conflict while another one of its kind is not finished, of the company or of the same client.
    """
    await _require_none(ctx, job["kind"], {"customerId": job.get("customerId")})
    is_of_coach = ctx.caller.is_coach and job["kind"] != "load_unit"  # which has to reach its end
    caller = service.to_stored(ctx) if is_of_coach else None
    return await store.create(ctx, {**job, "caller": caller}, job_id or ObjectId())


async def record_import(
    ctx: Context,
    job_id: ObjectId,
    work: ImportWork,
    result: HistoryResult,
    errors: Sequence[JobError],
    *,
    requested_by: ObjectId,
) -> None:
    """Store an import that has been done at once, in the caller's transaction, so that it can be undone."""
    job: NewJob = {"kind": "import", "work": work, "requestedBy": requested_by, "customerId": None}
    ended = {"_id": job_id, "status": "done", "done": result["rows"], "total": result["rows"], "result": result}
    await store.jobs.insert(ctx, {**job, **ended, "errors": list(errors[: store.MAX_ROW_ERRORS])})


async def require_none_unfinished(ctx: Context, kind: JobKind) -> None:
    """Raise Conflict while a job of a kind, of the company or of any client, is not finished."""
    await _require_none(ctx, kind, {})


async def _require_none(ctx: Context, kind: JobKind, owner: Filter) -> None:
    if await store.has_unfinished(ctx, kind, owner):
        raise Conflict(f"Another {_NAMES[kind]} of this company is not finished yet", code="JOB_RUNNING")


async def get(ctx: Context, job_id: ObjectId) -> StoredCompanyJob:
    """Return a job of the company. Raises NotFound."""
    if (job := await store.jobs.find_one(ctx, {"_id": job_id})) is None:
        raise NotFound("job")
    return job


async def get_any(ctx: Context, job_id: ObjectId) -> AnyJob:
    """Return a job of the company, or of a bulk operation. Raises what access.require and bulk_jobs.get raise."""
    if (job := await store.find_readers(ctx, job_id)) is None:
        return await bulk_jobs.get(ctx, job_id)
    await require(ctx, job, writes=False)
    return await get(ctx, job_id)


async def get_own(ctx: Context, job_id: ObjectId) -> StoredCompanyJob:
    """Return a job of the client who calls. Raises NotFound."""
    readers = await store.find_readers(ctx, job_id)
    if readers is None or readers.get("customerId") != ctx.caller.id:
        raise NotFound("job")
    return await get(ctx, job_id)


async def cancel_any(ctx: Context, job_id: ObjectId) -> AnyJob:
    """End a job before its next step. Raises what `cancel`, access.require and bulk_jobs.cancel raise."""
    if (job := await store.find_readers(ctx, job_id)) is None:
        return await bulk_jobs.cancel(ctx, job_id)
    await require(ctx, job, writes=True)
    return await cancel(ctx, job_id)


async def get_with_work(ctx: Context, job_id: ObjectId) -> JobWork:
    """Return a job of the company with what its steps need. Raises NotFound."""
    if (job := await store.find_with_work(ctx, job_id)) is None:
        raise NotFound("job")
    return job


find_readers = store.find_readers
list_latest = store.find_latest
list_unfinished = store.list_unfinished
forget_file = store.forget_file


async def find_unfinished(ctx: Context, job_id: ObjectId) -> JobWork | None:
    """Return a job with what its next step needs; None if it has ended or been removed."""
    job = await store.find_with_work(ctx, job_id)
    return job if job is not None and job["status"] in ("queued", "running") else None


async def get_step(
    services: Services, job: Job, operation: str, *, is_batch: bool = False
) -> tuple[Context, JobWork] | None:
    """Return what the next step of the queued `job` needs, with a context of the coach who requested it.

    `is_batch`: the changes of the job share its identifier. A conversion of loads is of the owner; a client is the
    author of the changes of the own import. None if the company has been deleted, or the job has ended, as one does
    whose coach, API key or assistant may no longer do it.
    """
    job_id: ObjectId = job.arguments["jobId"]
    try:
        owner_of_company = await team.get_owner(services, job.company_id or ObjectId())
    except NotFound:
        return None
    ctx = Context(services, operation=operation, batch_id=job_id if is_batch else None).acting_as(owner_of_company)
    stored = await find_unfinished(ctx, job_id)
    if stored is None:
        return None
    if (acting := await as_requested(ctx, stored)) is None:
        await _end_without_requester(ctx, stored)
        return None
    return acting, stored


async def as_requested(ctx: Context, job: JobReaders | JobWork | None) -> Context | None:
    """Return a copy of the owner's context in which the coach who requested a job acts as then.

    A client who requested it is the author of its changes. None if that coach may no longer do it.
    """
    if job is not None and (caller := job.get("caller")) is not None:
        if (coach := await service.load(ctx, caller)) is None:
            return None
        acting = replace(ctx, principal=coach, interface=caller.get("interface"))
        return acting if await may_continue(acting, job) else None
    if job is None or (customer_id := job.get("customerId")) is None:
        return ctx
    return replace(ctx, author=await first_access.load_author(ctx.services, ctx.company_id, customer_id))


async def _end_without_requester(ctx: Context, job: JobWork) -> None:
    """End a job whose coach, API key or assistant has no access any more; what it has stored stays."""
    is_import = job["kind"] == "import"
    problem: JobError = {
        "entry": cast("ImportWork", job["work"])["fileName"] if is_import else "undo",
        "line": None,
        "field": None,
        "code": "REQUESTER_GONE",
        "message": "could not be completed: the coach, API key or assistant that requested it may no longer do it",
    }

    async def store_end(tx: Context) -> None:
        await (end if is_import else end_undo)(tx, job, "failed", [problem])

    with suppress(Superseded):
        await in_transaction(ctx, store_end)


async def update(
    ctx: Context,
    job: JobWork,
    fields: Mapping[str, Any],
    *,
    done: int = 0,
    errors: Sequence[JobError] = (),
    is_end: bool = False,
) -> None:
    """Store the progress of a job that is at the position in `job`, which is changed after the commit by the caller.

    `done` records more were processed. At its end a job takes all errors. Raises Superseded if the job is at another
    position.
    """
    position = (job["work"]["entry"], job["work"]["record"])
    limit = _most_errors(job) + (len(errors) if is_end else 0)
    if not await store.update(ctx, job["_id"], position, fields, done=done, errors=errors, max_errors=limit):
        raise Superseded


async def end(ctx: Context, job: JobWork, status: JobStatus, errors: Sequence[JobError] = ()) -> None:
    """Store the result of an import and delete its file, in the caller's transaction. Raises Superseded as `update`.

    The figures of all clients are renewed: while records were stored, some have been computed from a part of them. So
    are the personal records after an archive: it may be of a version that had other ones.
    """
    stored = cast("ImportWork", job["work"])
    keeps_file = status == "done" and stored["isDryRun"] and stored.get("keepsFile", False)
    work: ImportWork = {**stored, "fileId": stored["fileId"] if keeps_file else None}
    plan = stored.get("plan")
    if plan is not None:
        work["plan"] = {**plan, "current": None, "customers": await _only_existing(ctx, plan["customers"])}
    if (answers := stored.get("answers")) is not None:
        others = [each for each in answers["customers"] if not isinstance(each["answer"], ObjectId)]
        work["answers"] = {**answers, "customers": others + await _only_existing(ctx, answers["customers"])}
    result, marks = _end_result(stored, status)
    unlisted = (0 if plan is None else plan.get("problems", 0)) - _most_errors(job)
    if unlisted > 0:
        marks.append(_mark(stored, "MORE_PROBLEMS", f"has {unlisted:,} more problems, which are not listed"))
    fields = {"status": status, "result": result, "work": work}
    await update(ctx, job, fields, errors=[*marks, *_with_rows_left(stored, errors)], is_end=True)
    if keeps_file:
        await queue.enqueue(ctx, DISCARD, {"jobId": job["_id"], "fileId": stored["fileId"]}, after=_FILE_KEPT)
    elif stored["fileId"] is not None:
        await files.discard(ctx, [stored["fileId"]])
    if plan is not None and plan["current"] is not None:  # its client's sessions have been stored in part
        await queue.enqueue(ctx, FOLLOW, {"importId": job["_id"], "period": plan["current"]})
    elif not work["isDryRun"]:
        await renewal.queue_renewal_of_all(ctx)
        if stored["contentType"] == ZIP:
            await training_load_renewal.queue_renewal_of_all(ctx)


async def end_undo(ctx: Context, job: JobWork, status: JobStatus, errors: Sequence[JobError] = ()) -> None:
    """Store the result of an undo that ends early, in the caller's transaction. Raises Superseded as `update`.

    The figures of the clients whose sessions it has removed follow later.
    """
    work = cast("UndoWork", job["work"])
    for period in work["clients"]:
        arguments = {"importId": work["importId"], "period": period, "undoId": job["_id"]}
        await queue.enqueue(ctx, FOLLOW, arguments)
    fields = {"status": status, "result": work["result"], "work": {**work, "clients": []}}
    await update(ctx, job, fields, errors=errors, is_end=True)


async def forget_clients(ctx: Context, event: CustomersDeleted) -> None:
    """Remove erased clients from the jobs of imports, in the caller's transaction.

    An import that was for them alone, or that they requested, is deleted with its file. One that is for others too goes
    on: it does not find the erased ones, and reports their rows. If it has ended, the undo of the others' remains.
    """
    erased = set(event.customer_ids)
    for job in await store.find_of_clients(ctx, event.customer_ids):
        work = cast("ImportWork", job["work"])
        is_unfinished = job["status"] in ("queued", "running")
        stays = not _is_of(job, erased)
        if not stays:
            await store.jobs.delete(ctx, {"_id": job["_id"]})
        else:  # `updatedAt` stays: that is when an import ended
            left = _without(work, erased, is_unfinished=is_unfinished)
            await store.jobs.set_derived(ctx, {"_id": job["_id"]}, {"$set": left})
        if (file_id := work.get("fileId")) is not None and not (stays and is_unfinished):
            await files.discard(ctx, [file_id])


def _is_of(job: StoredCompanyJob, clients: set[ObjectId]) -> bool:
    """Return whether a job is only for some clients, requested by one of them, or has stored nothing but questions."""
    work = cast("ImportWork", job["work"])
    if job["kind"] != "import" or "plan" not in work or {job["customerId"], work["answers"]["customerId"]} & clients:
        return True
    result = models.table_result(job["result"])
    options = {option for question in (result["questions"] if result else ()) for option in question["options"]}
    if options.intersection(map(str, clients)):
        return True
    return not any(
        isinstance(each["answer"], ObjectId) and each["answer"] not in clients for each in work["plan"]["customers"]
    )


def _without(work: ImportWork, erased: set[ObjectId], *, is_unfinished: bool) -> dict[str, Any]:
    """Return the fields of the job that differ without erased clients.

    The plan of an import that goes on keeps their places, with identifiers that no client has.
    """
    plan, answers = work["plan"]["customers"], work["answers"]["customers"]
    left = {"work.answers.customers": [each for each in answers if each["answer"] not in erased]}
    if not is_unfinished:
        others = [each for each in plan if each["answer"] not in erased]
        return left | {"work.fileId": None, "work.plan.customers": others}
    unknown = {customer_id: ObjectId() for customer_id in erased}
    places = [
        {**each, "answer": unknown.get(answer, answer) if isinstance(answer := each["answer"], ObjectId) else answer}
        for each in plan
    ]
    return left | {"work.plan.customers": places}


async def _only_existing(ctx: Context, answers: Sequence[StoredAnswer]) -> list[StoredAnswer]:
    """Return the answers that are clients who exist: one who does not, or is left out, is not named any longer."""
    ids = [each["answer"] for each in answers if isinstance(each["answer"], ObjectId)]
    known = await customers.find_references(ctx, ids) if ids else {}
    return [each for each in answers if each["answer"] in known]


def _most_errors(job: JobWork) -> int:
    return store.MAX_ROW_ERRORS if "answers" in job["work"] else store.MAX_ERRORS


def _end_result(work: ImportWork, status: JobStatus) -> tuple[ImportResult | HistoryResult, list[JobError]]:
    """Return the result of an import that ends, and a problem of the rows that it has not reached."""
    if work["contentType"] == ZIP:
        return {"dryRun": work["isDryRun"], "imported": work["imported"], "failed": work["failed"]}, []
    if "plan" not in work:
        answers = work.get("answers")
        return models.empty_result(answers["format"] if answers else None, is_dry_run=work["isDryRun"]), []
    result = work["plan"]["result"]
    if status == "done":
        return models.complete(result), []
    left = models.count_left(result)
    message = f"was cancelled: {_describe_left(left)} not imported"
    marks = [_mark(work, "CANCELLED", message)] if status == "cancelled" and left else []
    return models.break_off(result), marks


def _with_rows_left(work: ImportWork, errors: Sequence[JobError]) -> list[JobError]:
    """Return the errors with which an import ends, with the number of rows that are not imported for that reason."""
    left = models.count_left(work["plan"]["result"]) if "plan" in work else 0
    if not left:
        return [*errors]
    return [{**each, "message": f"{each['message']}. {_describe_left(left)} not imported"} for each in errors]


def _describe_left(rows: int) -> str:
    """Return the number of rows that an import has not reached, with its verb."""
    return "1 row is" if rows == 1 else f"{rows:,} rows are"


def _mark(work: ImportWork, code: str, message: str) -> JobError:
    return {"entry": work["fileName"], "line": None, "field": None, "code": code, "message": message}


@transactional
async def cancel(ctx: Context, job_id: ObjectId) -> StoredCompanyJob:
    """End a job of the company before its next step and return it; what it has stored stays.

    A job that has ended stays as it is. Raises NotFound, and Conflict for a conversion of loads that is no dry run.
    """
    job = await get_with_work(ctx, job_id)
    if job["status"] in ("queued", "running"):
        if job["kind"] == "import":
            await end(ctx, job, "cancelled")
        elif job["kind"] == "undo":
            await end_undo(ctx, job, "cancelled")
        elif cast("ConversionWork", job["work"])["isDryRun"]:
            await update(ctx, job, {"status": "cancelled"})
        else:
            raise Conflict("A conversion of loads cannot be cancelled: some are in the other unit", code="CONVERTING")
        await audit.record(ctx, "company.jobCancelled", jobId=job_id, kind=job["kind"])
    return await get(ctx, job_id)
