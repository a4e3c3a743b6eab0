"""Exporting a company to a file."""

from __future__ import annotations

from pathlib import Path

import click
from rich.progress import DownloadColumn, Progress, TextColumn, TimeElapsedColumn

from coaching_service.command_line.options import data_option, settings_with
from coaching_service.command_line.running import as_owner, console, with_services
from coaching_service.core.database.context import Services
from coaching_service.integrations import commands


@click.command("export")
@click.option("--email", required=True, help="Sign-in address of the owner of the company.")
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@data_option
def export_company(email: str, file: Path, data: Path | None) -> None:
    """Write everything of a company to FILE, a ZIP archive: account, libraries and all clients with their files.

    `docs/export-format.md` describes it; `import` reads it.
    """

    async def work(services: Services) -> None:
        ctx = await as_owner(services, email)
        with Progress(TextColumn("Exporting"), DownloadColumn(), TimeElapsedColumn(), console=console) as bar:
            task = bar.add_task("")
            size = await commands.export_company(ctx, file, lambda done: bar.update(task, completed=done))
        click.echo(f"{file}: {size} bytes")

    with_services(settings_with(data), work)
