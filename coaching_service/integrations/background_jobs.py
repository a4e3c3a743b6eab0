"""Background jobs over REST, and how those of imports end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from typing import Annotated, Any, cast

from marshmallow import fields

from coaching_service.core import audit
from coaching_service.core.auth import CUSTOMERS, coach, even_while_converting
from coaching_service.core.database import files
from coaching_service.core.database.context import Context, in_transaction, transactional
from coaching_service.core.errors import Conflict
from coaching_service.core.fields import Description, output_of
from coaching_service.core.http.routes import Routes
from coaching_service.core.ids import ObjectId
from coaching_service.core.jobs import queue
from coaching_service.core.list_selection import CursorPage, cursor_page_of
from coaching_service.core.media import ZIP
from coaching_service.core.validation import Choice, Identifier, Output
from coaching_service.integrations.history_import import models
from coaching_service.lifecycle.customer_bulk.service import ClientChange, SkippedCustomer
from coaching_service.people import jobs
from coaching_service.people.customers import service as customers
from coaching_service.people.customers.models import CustomersDeleted
from coaching_service.progress import personal_records
from coaching_service.progress.attention import renewal

# --- Jobs in responses ------------------------------------------------------------------------------------------------


_OPTIONAL = {"optional": True}
_IDENTIFIER = {"type": "string", "pattern": "^[0-9a-fA-F]{24}$"}
_FAILURE = {
    "type": "object",
    "required": ["code", "message"],
    "properties": {
        "customerId": _IDENTIFIER,
        "documentId": _IDENTIFIER,
        "code": {"type": "string"},
        "message": {"type": "string"},
    },
}


class _JobResult(Output):
    """What an import stored, a conversion of loads converted, or a bulk operation or an undo changed."""

    dryRun = fields.Boolean(metadata={"description": "Whether nothing was stored.", **_OPTIONAL})
    imported = fields.Raw(
        metadata={
            "description": "Of an export or clients: number of records by collection. Of history: number of rows that "
            "were imported.",
            "anyOf": [{"type": "integer"}, {"type": "object", "additionalProperties": {"type": "integer"}}],
            **_OPTIONAL,
        }
    )
    failed = fields.Raw(
        metadata={
            "description": "Of an import: number of records that were left out, each with an error. Of a bulk "
            "operation or an undo: the clients who were not changed, or the documents that were not restored.",
            "anyOf": [{"type": "integer"}, {"type": "array", "items": _FAILURE}],
            **_OPTIONAL,
        }
    )
    requested = fields.Integer(metadata={"description": "Of a bulk operation: number of clients.", **_OPTIONAL})
    ok = fields.Integer(
        metadata={"description": "Number of clients that were changed, or documents that were restored.", **_OPTIONAL}
    )
    results = fields.List(
        fields.Nested(output_of(ClientChange)),
        metadata={"description": "Of an operation on schedules: what changed of each client.", **_OPTIONAL},
    )
    skipped = fields.List(
        fields.Nested(output_of(SkippedCustomer)),
        metadata={"description": "Of reminders: who was not reminded, and why.", **_OPTIONAL},
    )
    batchId = Identifier(metadata={"description": "The batch of the changes, to undo them.", **_OPTIONAL})
    changeId = Identifier(
        allow_none=True,
        metadata={"description": "Of an undo: its own batch; null if nothing was restored.", **_OPTIONAL},
    )
    loadUnit = Choice("kg", "lb", metadata={"description": "The unit of loads after a conversion.", **_OPTIONAL})
    converted = fields.Dict(
        keys=fields.String(),
        values=fields.Integer(),
        metadata={
            "description": "Number of converted `workouts` (programs included), `templates`, `trainingMaxes` and "
            "`personalRecords` with loads, and of `loads`.",
            **_OPTIONAL,
        },
    )


class _ImportJobResult(models.FileResult, models.Removed, models.SessionDates):
    """What a job did; of an import of history also what the file has."""


_RESULT = output_of(_ImportJobResult, _JobResult, name="ImportJobResult")


class BackgroundJob(jobs.StoredJob):
    """Work that continues after the response."""

    result: Annotated[Mapping[str, Any] | None, fields.Nested(_RESULT), Description("null until the job has ended.")]


BACKGROUND_JOB = output_of(BackgroundJob)


# --- How the jobs of imports end --------------------------------------------------------------------------------------


FOLLOW = "follow_history_import"
DISCARD = "discard_checked_file"
_FILE_KEPT = timedelta(days=1)


async def end_without_requester(ctx: Context, job: jobs.StoredJob) -> None:
    """End a job whose coach, API key or assistant has no access any more; what it has stored stays."""
    is_import = job["kind"] == "import"
    message = "could not be completed: the coach, API key or assistant that requested it may no longer do it"
    entry = job["work"]["fileName"] if is_import else "undo"
    problem: jobs.JobError = {"entry": entry, "line": None, "field": None, "code": "REQUESTER_GONE", "message": message}
    store_end = end if is_import else end_undo
    with suppress(jobs.Superseded):
        await in_transaction(ctx, lambda tx: store_end(tx, job, "failed", [problem]))


async def end(ctx: Context, job: jobs.StoredJob, status: jobs.JobStatus, errors: Sequence[jobs.JobError] = ()) -> None:
    """Store the result of an import and delete its file, in the caller's transaction. Raises Superseded as `update`.

    The figures of all clients are renewed: while records were stored, some have been computed from a part of them. So
    are the personal records after an archive: it may be of a version that had other ones.
    """
    stored = cast("models.ImportWork", job["work"])
    keeps_file = status == "done" and stored["isDryRun"] and stored.get("keepsFile", False)
    work: models.ImportWork = {**stored, "fileId": stored["fileId"] if keeps_file else None}
    plan = stored.get("plan")
    if plan is not None:
        work["plan"] = {**plan, "current": None, "customers": await _only_existing(ctx, plan["customers"])}
    if (answers := stored.get("answers")) is not None:
        others = [each for each in answers["customers"] if not isinstance(each["answer"], ObjectId)]
        work["answers"] = {**answers, "customers": others + await _only_existing(ctx, answers["customers"])}
    result: models.ImportResult | models.HistoryResult
    left = 0 if plan is None else models.count_left(plan["result"])
    rows = f"{'1 row is' if left == 1 else f'{left:,} rows are'} not imported"
    if stored["contentType"] == ZIP:
        result = {"dryRun": stored["isDryRun"], "imported": stored["imported"], "failed": stored["failed"]}
    elif plan is None:
        form = stored["answers"]["format"] if "answers" in stored else None
        result = models.empty_result(form, is_dry_run=stored["isDryRun"])
    elif status == "done":
        result = models.complete(plan["result"])
    else:  # rows that are left are reported
        result = {**plan["result"], "reported": plan["result"]["reported"] + left}
    unlisted = (0 if plan is None else plan.get("problems", 0)) - jobs.most_errors(job)
    marks = (
        ("CANCELLED", f"was cancelled: {rows}", left if status == "cancelled" else 0),
        ("MORE_PROBLEMS", f"has {unlisted:,} more problems, which are not listed", max(0, unlisted)),
    )
    listed = [problem_of_file(stored["fileName"], code, message) for code, message, count in marks if count]
    listed += [{**each, "message": f"{each['message']}. {rows}" if left else each["message"]} for each in errors]
    fields = {"status": status, "result": result, "work": work}
    await jobs.update(ctx, job, fields, errors=listed, is_end=True)
    if keeps_file:
        await queue.enqueue(ctx, DISCARD, {"jobId": job["_id"], "fileId": stored["fileId"]}, after=_FILE_KEPT)
    elif stored["fileId"] is not None:
        await files.discard(ctx, [stored["fileId"]])
    if plan is not None and plan["current"] is not None:  # its client's sessions have been stored in part
        await queue.enqueue(ctx, FOLLOW, {"importId": job["_id"], "period": plan["current"]})
    elif not work["isDryRun"]:
        await renewal.queue_renewal_of_all(ctx)
        if stored["contentType"] == ZIP:
            await personal_records.queue_renewal_of_all(ctx)


async def end_undo(
    ctx: Context, job: jobs.StoredJob, status: jobs.JobStatus, errors: Sequence[jobs.JobError] = ()
) -> None:
    """Store the result of an undo that ends early, in the caller's transaction. Raises Superseded as `update`.

    The figures of the clients whose sessions it has removed follow later.
    """
    work = cast("models.UndoWork", job["work"])
    for period in work["clients"]:
        arguments = {"importId": work["importId"], "period": period, "undoId": job["_id"]}
        await queue.enqueue(ctx, FOLLOW, arguments)
    fields = {"status": status, "result": work["result"], "work": {**work, "clients": []}}
    await jobs.update(ctx, job, fields, errors=errors, is_end=True)


async def forget_clients(ctx: Context, event: CustomersDeleted) -> None:
    """Remove erased clients from the jobs of imports, in the caller's transaction.

    An import that was for them alone, or that they requested, is deleted with its file. One that is for others too goes
    on: it does not find the erased ones, and reports their rows. If it has ended, the undo of the others' remains.
    """
    erased = set(event.customer_ids)
    for job in await jobs.find_of_clients(ctx, event.customer_ids):
        work = cast("models.ImportWork", job["work"])
        is_unfinished, result = jobs.is_unfinished(job), models.table_result(job["result"])
        options = {option for question in (result["questions"] if result else ()) for option in question["options"]}
        plan = work["plan"]["customers"] if job["kind"] == "import" and "plan" in work else []
        others = [each for each in plan if isinstance(each["answer"], ObjectId) and each["answer"] not in erased]
        own = {job["customerId"], work["answers"]["customerId"]} if plan else set()
        stays = bool(others) and not own & erased and not options.intersection(map(str, erased))
        if not stays:
            await jobs.delete(ctx, job["_id"])
        else:  # `updatedAt` stays: that is when an import ended
            answers = [each for each in work["answers"]["customers"] if each["answer"] not in erased]
            left: dict[str, Any] = {"work.answers.customers": answers}
            if is_unfinished:  # it goes on: their places stay, with identifiers that no client has
                unknown = {customer_id: ObjectId() for customer_id in erased}
                left["work.plan.customers"] = [
                    {**each, "answer": unknown.get(cast("ObjectId", each["answer"]), each["answer"])} for each in plan
                ]
            else:
                left["work.fileId"] = None
                left["work.plan.customers"] = [each for each in plan if each["answer"] not in erased]
            await jobs.set_unchanged(ctx, job["_id"], left)
        if (file_id := work.get("fileId")) is not None and not (stays and is_unfinished):
            await files.discard(ctx, [file_id])


async def _only_existing(ctx: Context, answers: Sequence[models.StoredAnswer]) -> list[models.StoredAnswer]:
    """Return the answers that are clients who exist: one who does not, or is left out, is not named any longer."""
    ids = [each["answer"] for each in answers if isinstance(each["answer"], ObjectId)]
    known = await customers.find_references(ctx, ids) if ids else {}
    return [each for each in answers if each["answer"] in known]


def problem_of_file(entry: str, code: str, message: str) -> jobs.JobError:
    """Return a problem of a whole file, or of an undo."""
    return {"entry": entry, "line": None, "field": None, "code": code, "message": message}


# --- Over REST --------------------------------------------------------------------------------------------------------


routes = Routes(
    "/coach/jobs", tag="Export", path_descriptions={"jobId": "The job, as the operation that began it returned it."}
)


@routes.get("", access=even_while_converting(coach(CUSTOMERS.VIEW)), returns=cursor_page_of(BackgroundJob))
async def list_jobs(ctx: Context, query: jobs.JobQuery) -> CursorPage[jobs.StoredJob]:
    """List jobs, newest first.

    The owner, by session or unrestricted key, reads all of the company; others those that they have requested, without
    imports of clients whom they do not work with. A part can be shorter than `limit`. Jobs are removed 30 days after
    they began.
    """
    return await jobs.list_jobs(ctx, **query)


@routes.get("/{jobId}", access=even_while_converting(coach()), returns=BACKGROUND_JOB)
async def get_job(ctx: Context, job_id: ObjectId) -> jobs.StoredJob:
    """Read the progress of a job.

    The owner reads all jobs, an employee the bulk operations and the imports of a client's history that they have
    requested. A job about clients needs `customers.view`, and the client of an import has to be in the caller's scope.
    Imports of a company, imports by clients and conversions of loads are for the owner, by session or unrestricted key.
    Jobs are removed 30 days after they began.
    """
    return await jobs.get(ctx, job_id)


@routes.post("/{jobId}/cancel", access=coach(), returns=BACKGROUND_JOB, status=200, idempotent=True, errors=(Conflict,))
@transactional
async def cancel_job(ctx: Context, job_id: ObjectId) -> jobs.StoredJob:
    """Cancel a job.

    It ends before its next step, with `status: cancelled`; what it has stored stays. A job that has ended already is
    returned as it is. Needs what requesting such a job needs: `customers.edit` for the import of a client's history,
    the permission of the operation for a bulk operation.
    """
    job = await jobs.get_complete(ctx, job_id, writes=True, batch=None)
    if jobs.is_batch(job):
        await jobs.end_batch(ctx, job, "cancelled")
    elif jobs.is_unfinished(job):
        if job["kind"] == "import":
            await end(ctx, job, "cancelled")
        elif job["kind"] == "undo":
            await end_undo(ctx, job, "cancelled")
        elif job["work"]["isDryRun"]:
            await jobs.update(ctx, job, {"status": "cancelled"})
        else:
            raise Conflict("A conversion of loads cannot be cancelled: some are in the other unit", code="CONVERTING")
        await audit.record(ctx, "job.cancelled", job_id, job["kind"])
    return await jobs.get(ctx, job_id)
