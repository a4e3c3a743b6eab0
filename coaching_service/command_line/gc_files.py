"""Removing files that no record refers to."""

from __future__ import annotations

from pathlib import Path

import click

from coaching_service.command_line.options import data_option, settings_with
from coaching_service.command_line.running import with_services
from coaching_service.core.database.context import Services
from coaching_service.lifecycle.orphans import service as orphans


@click.command("gc-files")
@click.option("--dry-run", is_flag=True, help="Only report.")
@data_option
def gc_files(dry_run: bool, data: Path | None) -> None:
    """Remove uploaded files that no record refers to after one hour, and chunks without a file; report the result.

    The running service removes such files every hour.
    """

    async def work(services: Services) -> None:
        result = await orphans.collect(services, remove=not dry_run)
        click.echo(
            f"{result.files} files; {'found' if dry_run else 'removed'}: {result.orphans} without a record and "
            f"{result.chunks_only} with only chunks left, {result.bytes} bytes in total"
        )

    with_services(settings_with(data), work)
