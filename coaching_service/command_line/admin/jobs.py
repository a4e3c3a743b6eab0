"""Background jobs: list, retry and cancel."""

from __future__ import annotations

from pathlib import Path
from typing import cast, get_args

import click

from coaching_service import features
from coaching_service.command_line.admin.running import (
    Column,
    as_operator,
    format_time,
    json_option,
    print_list,
    report,
)
from coaching_service.command_line.options import data_option
from coaching_service.core.errors import NotFound
from coaching_service.core.ids import ObjectId, parse_id
from coaching_service.lifecycle.administration import background as service
from coaching_service.lifecycle.administration.models import JobState, JobSummary
from coaching_service.lifecycle.administration.service import Operator

job_argument = click.argument("job", metavar="JOB")
_COLUMNS = (
    Column("ID", 24),
    Column("STATE", 8),
    Column("KIND", 24),
    Column("DUE (UTC)", 16),
    Column("TRIES", 5, right=True),
    Column("COMPANY", 0),
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
@json_option
@data_option
def list_jobs(kind: str | None, state: str | None, as_json: bool, data: Path | None) -> None:
    """List jobs by kind, and when they are due."""

    async def work(operator: Operator) -> None:
        rows = service.iterate_jobs(operator, kind, cast("JobState | None", state))
        await print_list(rows, _COLUMNS, _cells, as_json=as_json, empty="There is no such job")

    as_operator(data, work)


def _cells(row: JobSummary) -> tuple[str, ...]:
    due, company = format_time(row["dueAt"]), str(row["companyId"] or "-")
    return str(row["id"]), row["state"], row["kind"], due, str(row["attempts"]), company


@jobs.command()
@job_argument
@json_option
@data_option
def retry(job: str, as_json: bool, data: Path | None) -> None:
    """Make JOB due now, instead of later; a running service takes it within seconds."""

    async def work(operator: Operator) -> None:
        await service.retry_job(operator, identifier_of(job))
        report(f"{job} is due", {"id": job, "state": "due"}, as_json=as_json)

    as_operator(data, work)


@jobs.command()
@job_argument
@json_option
@data_option
def cancel(job: str, as_json: bool, data: Path | None) -> None:
    """Remove JOB: what it was to do is not done. Erasures, and jobs that repeat, cannot be cancelled."""

    async def work(operator: Operator) -> None:
        kinds = (*features.ERASURES, *features.STANDING_JOBS)
        await service.cancel_job(operator, identifier_of(job), permanent_kinds=kinds)
        report(f"{job} is cancelled", {"id": job, "state": "cancelled"}, as_json=as_json)

    as_operator(data, work)


def identifier_of(text: str) -> ObjectId:
    """Return the identifier of a job that was typed. Raises NotFound for anything else."""
    if (identifier := parse_id(text)) is None:
        raise NotFound("job", f"{text} is not an identifier")
    return identifier
