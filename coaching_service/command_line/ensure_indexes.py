"""Creating the indexes."""

from __future__ import annotations

from pathlib import Path

import click

from coaching_service import runtime
from coaching_service.command_line.options import data_option, settings_with
from coaching_service.command_line.running import with_services
from coaching_service.core.database.context import Services


@click.command("ensure-indexes")
@data_option
def ensure_indexes(data: Path | None) -> None:
    """Create every missing index. Running it again changes nothing."""

    async def work(services: Services) -> None:
        names = sorted(await runtime.make_indexes(services, compares=True))
        click.echo(f"The indexes of {len(names)} collections exist: {', '.join(names)}")

    with_services(settings_with(data), work, creates=True, prepares=False)
