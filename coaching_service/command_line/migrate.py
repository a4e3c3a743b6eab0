"""Changing stored documents after an update."""

from __future__ import annotations

from pathlib import Path

import click

from coaching_service.command_line.options import data_option, settings_with
from coaching_service.command_line.running import with_services
from coaching_service.core.database import migrations
from coaching_service.core.database.context import Services


@click.command()
@click.option("--plan", "only_plan", is_flag=True, help="Only list what is pending; change nothing.")
@data_option
def migrate(data: Path | None, *, only_plan: bool) -> None:
    """Apply pending changes of the stored documents after an update. Running it again changes nothing.

    `serve` does this by itself on the embedded database. With MONGODB_URI the service is not ready until the migrations
    have been applied.
    """

    async def work(services: Services) -> None:
        if only_plan:
            pending = await migrations.find_pending(services.db)
            lines = [f"{step.number:>3}  {step.name}: {step.description}" for step in pending]
            click.echo("\n".join(lines) if lines else "No migration is pending")
            return
        names = await migrations.migrate(services.db, services.vault)
        click.echo(f"Applied: {', '.join(names)}" if names else "No migration is pending")

    with_services(settings_with(data), work, creates=not only_plan)
