"""Creating an API key."""

from __future__ import annotations

from pathlib import Path

import click

from coaching_service.command_line.options import data_option, settings_with
from coaching_service.command_line.running import find_coach, with_services
from coaching_service.core.database.context import Context, Services
from coaching_service.people.api_keys import service as api_keys


@click.command("create-key")
@click.option("--email", required=True, help="Sign-in address of the coach the key belongs to.")
@click.option("--name", default="Command line", show_default=True, help="Name of the key.")
@click.option("--outreach", is_flag=True, help="Assistants with it may contact people and change many clients at once.")
@data_option
def create_key(email: str, name: str, *, outreach: bool, data: Path | None) -> None:
    """Create an API key for a coach and print it."""

    async def work(services: Services) -> None:
        coach = await find_coach(services, email)
        key = await api_keys.create(Context(services).acting_as(coach), name, {"outreach": outreach})
        click.echo(key["key"])

    with_services(settings_with(data), work)
