"""The progress and the result of a bulk operation, or of its undo, that continues in the background."""

from __future__ import annotations

from typing import Any

from coaching_service.core.accepted import Accepted
from coaching_service.core.auth.access import coach
from coaching_service.core.auth.permissions import CUSTOMERS
from coaching_service.core.database.context import Context
from coaching_service.core.ids import ObjectId
from coaching_service.people.bulk_jobs import service as bulk_jobs
from coaching_service.people.changes import undo
from coaching_service.people.customers import bulk as customers_by_id
from coaching_service.web.pages import Pages, Redirect

_PATH = "/app/jobs"
_SHOWN = 100

pages = Pages(_PATH)


def job_path(accepted: Accepted) -> str:
    """Return the path of the page of a job."""
    return f"{_PATH}/{accepted.job_id}"


@pages.get("/{bulkJobId}", access=coach(CUSTOMERS.VIEW), template="customers/bulk_job.html")
async def bulk_job_page(ctx: Context, bulk_job_id: ObjectId) -> dict[str, Any]:
    """The progress of a job, and its result."""
    job = await bulk_jobs.read(ctx, bulk_job_id)
    result = job["result"] or {}
    failed = result.get("failed", [])[:_SHOWN]
    names = await customers_by_id.load_names(ctx, [each["customerId"] for each in failed if "customerId" in each])
    return {
        "job": job,
        "is_unfinished": job["status"] in ("queued", "running"),
        "failed": [(names.get(each.get("customerId"), ""), each["message"]) for each in failed],
        "failed_count": len(result.get("failed", [])),
    }


@pages.post("/{bulkJobId}/cancel", access=coach(CUSTOMERS.VIEW), on=bulk_job_page, idempotent=True)
async def cancel_bulk_job(ctx: Context, bulk_job_id: ObjectId) -> Redirect:
    """End a job before its next step."""
    job = await bulk_jobs.cancel(ctx, bulk_job_id)
    return Redirect(f"{_PATH}/{bulk_job_id}", "Cancelled." if job["status"] == "cancelled" else "It had ended already.")


@pages.post("/{bulkJobId}/undo", access=coach(CUSTOMERS.VIEW), on=bulk_job_page, request_class="bulk", idempotent=True)
async def undo_bulk_job(ctx: Context, bulk_job_id: ObjectId) -> Redirect:
    """Undo what a job has changed."""
    job = await bulk_jobs.read(ctx, bulk_job_id)
    result = await undo.undo_or_begin_job(ctx, (job["result"] or {}).get("batchId", bulk_job_id))
    return Redirect(job_path(result) if isinstance(result, Accepted) else f"{_PATH}/{bulk_job_id}", "Undone.")
