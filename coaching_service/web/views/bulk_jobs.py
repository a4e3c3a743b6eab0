"""The bulk operations, and their undo, that continue in the background: their progress and their results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from coaching_service.core.accepted import Accepted
from coaching_service.core.auth.access import CUSTOMERS, coach
from coaching_service.core.database.context import Context
from coaching_service.core.idempotency import Claim
from coaching_service.core.ids import ObjectId
from coaching_service.lifecycle.customer_bulk import jobs as customer_bulk_jobs
from coaching_service.lifecycle.customer_bulk.models import BulkResult, Selection
from coaching_service.lifecycle.customer_bulk.service import OnProgress, Run
from coaching_service.people.bulk_jobs import service as bulk_jobs
from coaching_service.people.bulk_jobs.models import BulkJobKind, StoredBulkJob
from coaching_service.people.changes import undo
from coaching_service.people.changes.models import UndoResult
from coaching_service.people.customers import bulk as customers_by_id
from coaching_service.web.browser_sessions import local_path
from coaching_service.web.formatting import quantity
from coaching_service.web.page_queries import ReturnTo
from coaching_service.web.pages import Pages, QueuedTask, Redirect, StreamedTask
from coaching_service.web.views.operation_names import describe_operation

_PATH = "/app/jobs"
_SHOWN = 100
_ENDS = {"done": "Done", "failed": "Not completed", "cancelled": "Cancelled"}
_NOT_UNDOABLE = ("bulkDeleteCustomers", "bulkSendMessage")

pages = Pages(_PATH)


def redirect_after_undo(result: UndoResult | Accepted, location: str) -> Redirect:
    """Return the response to a form that undoes a batch: the page of its job, or `location` with what was restored."""
    if isinstance(result, Accepted):
        return Redirect(job_path(result))
    if not result["failed"]:
        return Redirect(location, "Undone. Undo again to redo.")
    failed = quantity(len(result["failed"]), "record")
    restored = quantity(result["ok"], "record")
    return Redirect(location, f"{restored} restored; {failed} could not be, because of later changes.")


def job_path(accepted: Accepted) -> str:
    """Return the path of the page of a job."""
    return f"{_PATH}/{accepted.job_id}"


# A client who was not changed (None if it is not one), the name, which is empty for one who is gone, and the reason.
_Failure = tuple[ObjectId | None, str, str]


class _Changed(BulkResult):
    """The result of an operation, whom it could not change, and the batch to undo; None if there is nothing to undo."""

    failures: list[_Failure]
    batchId: ObjectId | None


def start_operation(
    ctx: Context, operation: str, ids: list[ObjectId], arguments: Mapping[str, Any], *, title: str, return_url: str
) -> StreamedTask | QueuedTask:
    """Return the response to a form that changes clients: its progress, or if they are many the page of a job."""
    ctx = replace(ctx, operation=operation)
    if bulk_jobs.is_job(ctx, len(ids)):

        async def begin(claim: Claim | None) -> str:
            return job_path(await customer_bulk_jobs.begin(ctx, ids, arguments, claim))

        return QueuedTask(begin)

    async def run(on_progress: OnProgress) -> _Changed:
        selection: Selection = {"ids": ids, "dryRun": False}
        run = Run(on_progress=on_progress)
        result = await customer_bulk_jobs.run_operation(ctx, operation, selection, arguments, run)
        batch_id = None if operation in _NOT_UNDOABLE else next(iter(ctx.change_ids), None)
        return {**result, "failures": await _name_failures(ctx, result["failed"]), "batchId": batch_id}

    return StreamedTask("customers/bulk_progress.html", {"title": title}, len(ids), run, return_url)


@pages.get("", access=coach(CUSTOMERS.VIEW), template="customers/bulk_jobs.html")
async def bulk_jobs_page(ctx: Context) -> dict[str, Any]:
    """The latest jobs of the coach."""
    jobs = await bulk_jobs.list_own(ctx, _SHOWN)
    return {"jobs": [(job, _name(job["kind"], job["work"]["operation"]), _describe_state(job)) for job in jobs]}


@pages.get("/{bulkJobId}", access=coach(CUSTOMERS.VIEW), template="customers/bulk_job.html")
async def bulk_job_page(ctx: Context, bulk_job_id: ObjectId) -> dict[str, Any]:
    """The progress of a job, and its result."""
    job = await bulk_jobs.get(ctx, bulk_job_id)
    result = job["result"] or {}
    failed = result.get("failed", [])
    operation, may_control = await bulk_jobs.get_operation(ctx, bulk_job_id)
    return {
        "job": job,
        "title": _name(job["kind"], operation),
        "may_control": may_control,
        "is_undoable": operation not in _NOT_UNDOABLE,
        "is_unfinished": job["status"] in ("queued", "running"),
        "failures": await _name_failures(ctx, failed),
        "failed_count": len(failed),
    }


async def _name_failures(ctx: Context, failed: Sequence[Mapping[str, Any]]) -> list[_Failure]:
    """Return the first of what could not be changed, with the names of clients."""
    shown = failed[:_SHOWN]
    ids = [each["customerId"] for each in shown if "customerId" in each]
    names: Mapping[Any, str] = await customers_by_id.load_names(ctx, ids)
    return [(each.get("customerId"), names.get(each.get("customerId"), ""), each["message"]) for each in shown]


def _name(kind: BulkJobKind, operation: str) -> str:
    return "Undo of changes" if kind == "undo" else describe_operation(operation)


def _describe_state(job: StoredBulkJob) -> str:
    """Return how far a job is, in words."""
    of_what = quantity(job["total"], "change" if job["kind"] == "undo" else "client")
    if job["status"] == "queued":
        return f"Waiting to begin, {of_what}"
    if job["status"] == "running":
        return f"{job['done']:,} of {of_what}"
    return f"{_ENDS[job['status']]}, {of_what}"


@pages.post("/{bulkJobId}/cancel", access=coach(CUSTOMERS.VIEW), on=bulk_job_page, idempotent=True)
async def cancel_bulk_job(ctx: Context, bulk_job_id: ObjectId) -> Redirect:
    """End a job before its next step."""
    job = await bulk_jobs.cancel(ctx, bulk_job_id)
    return Redirect(f"{_PATH}/{bulk_job_id}", "Cancelled." if job["status"] == "cancelled" else "It had ended already.")


@pages.post("/{bulkJobId}/undo", access=coach(CUSTOMERS.VIEW), on=bulk_job_page, request_class="bulk", idempotent=True)
async def undo_bulk_job(ctx: Context, bulk_job_id: ObjectId) -> Redirect:
    """Undo what a job has changed."""
    job = await bulk_jobs.get(ctx, bulk_job_id)
    result = await undo.undo_or_begin_job(ctx, (job["result"] or {}).get("batchId", bulk_job_id))
    return redirect_after_undo(result, f"{_PATH}/{bulk_job_id}")


@pages.post(
    "/batches/{changeId}/undo", access=coach(CUSTOMERS.VIEW), on=bulk_jobs_page, request_class="bulk", idempotent=True
)
async def undo_batch(ctx: Context, change_id: ObjectId, form: ReturnTo) -> Redirect:
    """Undo what an operation has changed of many clients."""
    result = await undo.undo_or_begin_job(ctx, change_id)
    return redirect_after_undo(result, local_path(form["next"], "/app/customers"))
