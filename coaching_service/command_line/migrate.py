"""Changing stored documents after an update."""

from __future__ import annotations

from pathlib import Path

import click

from coaching_service.command_line.running import data_option, settings_with, with_services
from coaching_service.core.database import migrations
from coaching_service.core.database.context import Services


@click.command()
@data_option
def migrate(data: Path | None) -> None:
    """Apply pending changes of the stored documents after an update. Running it again changes nothing.

    `serve` does this by itself on the embedded database. With MONGODB_URI the service is not ready until the migrations
    have been applied.
    """

    async def work(services: Services) -> None:
        names = await migrations.migrate(services.db, services.vault)
        click.echo(f"Applied: {', '.join(names)}" if names else "No migration is pending")

    with_services(settings_with(data), work)
