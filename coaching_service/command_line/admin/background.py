"""Background jobs: list, retry and cancel; and mail that was not sent: list, and send again."""

from __future__ import annotations

from typing import get_args

import click

from coaching_service import features
from coaching_service.command_line.admin.running import Column, as_operator, format_time, print_list, report
from coaching_service.core.errors import NotFound
from coaching_service.core.ids import ObjectId, parse_id
from coaching_service.lifecycle import administration as service
from coaching_service.lifecycle.administration import JobState, JobSummary, MailSummary, Operator

_job_argument = click.argument("job", metavar="JOB")
_JOBS: tuple[Column[JobSummary], ...] = (
    Column("ID", 24, lambda row: row["id"]),
    Column("STATE", 8, lambda row: row["state"]),
    Column("KIND", 24, lambda row: row["kind"]),
    Column("DUE (UTC)", 16, lambda row: format_time(row["dueAt"])),
    Column("TRIES", 5, lambda row: row["attempts"], right=True),
    Column("COMPANY", 0, lambda row: row["companyId"]),
)
_MAIL: tuple[Column[MailSummary], ...] = (
    Column("ID", 24, lambda row: row["id"]),
    Column("STATE", 8, lambda row: row["state"]),
    Column("TRIES", 5, lambda row: row["tries"], right=True),
    Column("TO", 28, lambda row: row["to"] or "-"),
    Column("SUBJECT", 32, lambda row: (row["subject"] or "-")[:32]),
    Column("REASON", 0, lambda row: row["reason"]),
)


@click.group()
def jobs() -> None:
    """The queue of background jobs of all companies.

    \b
    due      a worker takes it next
    waiting  it is due later
    running  a worker has it
    failing  an attempt failed or was interrupted; it is tried again when it is due
    paused   its company is suspended

    \b
    coaching-service admin jobs list --state failing
    coaching-service admin jobs retry 0123456789abcdef01234567
    """


@jobs.command("list")
@click.option("--kind", type=click.Choice(sorted(features.STEPS)), metavar="KIND", help="Only jobs of this kind.")
@click.option("--state", type=click.Choice(get_args(JobState)), help="Only jobs in this state.")
@as_operator
async def list_jobs(operator: Operator, kind: str | None, state: JobState | None, *, as_json: bool) -> None:
    """List jobs by kind, and when they are due."""
    rows = service.iterate_jobs(operator, kind, state)
    await print_list(rows, _JOBS, as_json=as_json, empty="There is no such job")


@jobs.command()
@_job_argument
@as_operator
async def retry(operator: Operator, job: str, *, as_json: bool) -> None:
    """Make JOB due now, instead of later; a running service takes it within seconds."""
    await service.retry_job(operator, _identifier_of(job))
    report(f"{job} is due", {"id": job, "state": "due"}, as_json=as_json)


@jobs.command()
@_job_argument
@as_operator
async def cancel(operator: Operator, job: str, *, as_json: bool) -> None:
    """Remove JOB: what it was to do is not done. Erasures, and jobs that repeat, cannot be cancelled."""
    kinds = (*features.ERASURES, *features.STANDING_JOBS)
    await service.cancel_job(operator, _identifier_of(job), permanent_kinds=kinds)
    report(f"{job} is cancelled", {"id": job, "state": "cancelled"}, as_json=as_json)


@click.group()
def mail() -> None:
    """Mail that was not sent.

    \b
    retrying  the mail server did not accept it; it is tried again for two days
    failed    it was rejected for good, or an attempt was interrupted and it may have been sent; stored for 30 days

    \b
    coaching-service admin mail list
    coaching-service admin mail resend 0123456789abcdef01234567
    """


@mail.command("list")
@as_operator
async def list_mail(operator: Operator, *, as_json: bool) -> None:
    """List the mail that was not sent: to whom, how often it was tried, and why it failed."""
    await print_list(service.iterate_unsent_mail(operator), _MAIL, as_json=as_json, empty="All mail was sent")


@mail.command()
@click.argument("identifier", metavar="MAIL")
@as_operator
async def resend(operator: Operator, identifier: str, *, as_json: bool) -> None:
    """Send MAIL again, to the same address; a running service does it within seconds. Links in it may have expired."""
    await service.send_again(operator, _identifier_of(identifier))
    report(f"{identifier} is sent again", {"id": identifier, "state": "queued"}, as_json=as_json)


def _identifier_of(text: str) -> ObjectId:
    """Return the identifier of a job that was typed. Raises NotFound for anything else."""
    if (identifier := parse_id(text)) is None:
        raise NotFound("job", f"{text} is not an identifier")
    return identifier
