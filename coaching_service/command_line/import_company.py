"""Importing a file into a company."""

from __future__ import annotations

from pathlib import Path
from typing import IO, cast, get_args

import click
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from coaching_service.command_line.options import data_option, settings_with
from coaching_service.command_line.running import as_owner, console, with_services
from coaching_service.core.database.context import Services
from coaching_service.integrations import commands
from coaching_service.integrations.background_jobs.models import ImportResult
from coaching_service.people.customers.models import OnConflict


@click.command("import")
@click.option("--email", required=True, help="Sign-in address of the owner of the company.")
@click.option("--dry-run", is_flag=True, help="Only check the file, and list its problems.")
@click.option(
    "--on-conflict",
    type=click.Choice(get_args(OnConflict)),
    default="error",
    show_default=True,
    help="Rows of a CSV file whose external identifier a client has: report them, or update the client.",
)
@click.argument("file", type=click.File("rb"))
@data_option
def import_file(email: str, dry_run: bool, on_conflict: OnConflict, file: IO[bytes], data: Path | None) -> None:
    """Import FILE into a company: an export, or a CSV file of clients. Nothing is mailed, and it cannot be undone.

    If it is interrupted, the running service continues, or the next import.
    """

    async def work(services: Services) -> None:
        ctx = await as_owner(services, email)
        columns = (TextColumn("Importing"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        with Progress(*columns, console=console) as bar:
            task = bar.add_task("", total=None)
            job = await commands.import_file(
                ctx,
                file,
                Path(file.name).name,
                dry_run=dry_run,
                on_conflict=on_conflict,
                on_progress=lambda done, total: bar.update(task, completed=done, total=total or None),
            )
        for error in job["errors"]:
            click.echo(" ".join(filter(None, (f"{error['entry']}:", error["field"], error["message"]))), err=True)
        if job["status"] == "failed" or job["result"] is None:
            raise click.ClickException("The file cannot be imported")
        result = cast("ImportResult", job["result"])
        counts = ", ".join(f"{count} {name}" for name, count in result["imported"].items())
        verb = "Would import" if dry_run else "Imported"
        click.echo(f"{verb}: {counts or 'nothing'}; left out: {result['failed']}")

    with_services(settings_with(data), work)
