"""The queue of jobs, and mail that was not sent, of all companies."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection
from contextlib import suppress
from datetime import datetime
from typing import cast

from coaching_service.core import audit
from coaching_service.core.auth.secrets import SecretUnreadable
from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import now
from coaching_service.core.database.transactions import transactional
from coaching_service.core.errors import Conflict, NotFound
from coaching_service.core.ids import ObjectId
from coaching_service.core.jobs import inspection, mail
from coaching_service.core.jobs.mail import MailContent
from coaching_service.core.jobs.queue import StoredJob
from coaching_service.core.jobs.unsent_mail import FailedMail, failed_mails
from coaching_service.lifecycle.administration.models import JobState, JobSummary, MailSummary
from coaching_service.lifecycle.administration.service import Operator

# --- jobs ------------------------------------------------------------------------------------------------------------


async def iterate_jobs(operator: Operator, kind: str | None, state: JobState | None) -> AsyncIterator[JobSummary]:
    """Yield the jobs of all companies, of a kind and in a state if given."""
    await operator.record("jobs.listed")
    async for job in inspection.iterate(operator.services, kind):
        if state in (None, _state_of(job)):
            yield _summary(job)


async def retry_job(operator: Operator, job_id: ObjectId) -> None:
    """Make a job due now. Raises NotFound, Conflict while it is running."""
    await _change_job(Context(operator.services), operator.name, await _require_idle(operator, job_id), "job.retried")


async def cancel_job(operator: Operator, job_id: ObjectId, *, permanent_kinds: Collection[str]) -> None:
    """Remove a job. Raises NotFound, Conflict while it is running, or if it is of a kind that must not be removed."""
    job = await _require_idle(operator, job_id)
    if job["kind"] in permanent_kinds:
        raise Conflict(f"A job of the kind {job['kind']} cannot be cancelled")
    await _change_job(Context(operator.services), operator.name, job, "job.cancelled")


@transactional
async def _change_job(ctx: Context, operator: str, job: StoredJob, action: str) -> None:
    changes = inspection.make_due if action == "job.retried" else inspection.remove
    if not await changes(ctx, job):
        raise Conflict("A worker has begun the job meanwhile; try again")
    await audit.record_operator(ctx, operator, action, job["_id"], kind=job["kind"])


async def _require_idle(operator: Operator, job_id: ObjectId) -> StoredJob:
    if (job := await inspection.find(operator.services, job_id)) is None:
        raise NotFound("job")
    if _state_of(job) == "running":
        raise Conflict("The job is running; try again when it has ended")
    return job


def _state_of(job: StoredJob) -> JobState:
    is_later = job["runAfter"] > now()
    if job.get("isPaused"):
        return "paused"
    if job["lease"] is not None and is_later:
        return "running"
    if job["attempts"]:
        return "failing"
    return "waiting" if is_later else "due"


def _summary(job: StoredJob) -> JobSummary:
    return {
        "id": job["_id"],
        "kind": job["kind"],
        "state": _state_of(job),
        "companyId": job["companyId"],
        "clientId": job["about"],
        "dueAt": job["runAfter"],
        "attempts": job["attempts"],
        "createdAt": job["createdAt"],
    }


# --- mail ------------------------------------------------------------------------------------------------------------


async def iterate_unsent_mail(operator: Operator) -> AsyncIterator[MailSummary]:
    """Yield the mail of all companies that was not sent: what was given up in 30 days, and what is tried again."""
    await operator.record("mail.listed")
    given_up = failed_mails.across_companies(operator.services)
    async for each in given_up.find({}, sort=[("createdAt", 1)], hint="createdAt"):
        failed = cast("FailedMail", each)
        yield _mail_summary(operator, failed, failed["sealed"], failed["reason"], failed["tries"], None)
    async for job in inspection.iterate(operator.services, mail.SEND):
        arguments = job["arguments"]
        if arguments["tries"]:
            reason = arguments.get("reason", "")
            yield _mail_summary(operator, job, arguments["sealed"], reason, arguments["tries"], job["runAfter"])


async def send_again(operator: Operator, mail_id: ObjectId) -> None:
    """Send a mail again that was given up, or now instead of later. Raises NotFound, Conflict while it is sent."""
    given_up = failed_mails.across_companies(operator.services)
    if (failed := cast("FailedMail | None", await given_up.find_one({"_id": mail_id}))) is None:
        job = await _require_idle(operator, mail_id)
        if job["kind"] != mail.SEND:
            raise NotFound("mail")
        await _change_job(Context(operator.services), operator.name, job, "job.retried")
        return
    await _send_again(await operator.acting_in(failed["companyId"]), operator.name, failed)


@transactional
async def _send_again(ctx: Context, operator: str, failed: FailedMail) -> None:
    if not await mail.send_again(ctx, failed):
        raise NotFound("mail")
    await audit.record_operator(ctx, operator, "mail.sentAgain", failed["_id"])


def _mail_summary(
    operator: Operator, stored: FailedMail | StoredJob, sealed: bytes, reason: str, tries: int, due_at: datetime | None
) -> MailSummary:
    content: MailContent | None = None
    with suppress(SecretUnreadable):
        content = mail.open_content(operator.services.vault, stored["_id"], sealed)
    return {
        "id": stored["_id"],
        "state": "failed" if due_at is None else "retrying",
        "companyId": stored["companyId"],
        "clientId": stored["about"],
        "to": content and content["to"],
        "subject": content and content["subject"],
        "reason": reason,
        "tries": tries,
        "dueAt": due_at,
    }
