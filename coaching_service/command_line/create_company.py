"""Creating a company."""

from __future__ import annotations

from pathlib import Path

import click

from coaching_service.command_line.options import data_option, settings_with
from coaching_service.command_line.running import validate_with, with_services
from coaching_service.core.database.context import Context, Services
from coaching_service.core.validation import Email, Text, Timezone
from coaching_service.people.api_keys import service as api_keys
from coaching_service.people.identities.passwords import hash_password
from coaching_service.people.sessions.schemas import NewPassword
from coaching_service.people.team import service as team


@click.command("create-company")
@click.argument("company", callback=validate_with(Text()))
@click.option("--name", required=True, callback=validate_with(Text()), help="The owner's name.")
@click.option("--email", required=True, callback=validate_with(Email()), help="The owner's sign-in address.")
@click.option(
    "--password",
    prompt=True,
    hide_input=True,
    confirmation_prompt=True,
    callback=validate_with(NewPassword()),
    help="12 characters or more.",
)
@click.option(
    "--timezone",
    default="UTC",
    show_default=True,
    callback=validate_with(Timezone()),
    help="IANA name, such as Europe/Madrid.",
)
@click.option("--load-unit", type=click.Choice(["kg", "lb"]), default="kg", show_default=True)
@data_option
def create_company(
    company: str, name: str, email: str, password: str, timezone: str, load_unit: str, data: Path | None
) -> None:
    """Create COMPANY with its owner, and print an API key of the owner."""

    async def work(services: Services) -> None:
        ctx = Context(services)
        password_hash = await hash_password(password)
        owner = await team.create_company(
            ctx, company, name, email, password_hash, timezone=timezone, load_unit=load_unit
        )
        key = await api_keys.create(ctx.acting_as(owner), "Command line")
        click.echo(f"Company  {owner.company.id}\nKey      {key['key']}")

    with_services(settings_with(data), work)
