"""Creating a company."""

from __future__ import annotations

from pathlib import Path

import click

from coaching_service.command_line.options import data_option, settings_with
from coaching_service.command_line.passwords import read_password
from coaching_service.command_line.running import validate_with, with_services
from coaching_service.core.database.context import Context, Services
from coaching_service.core.validation import Email, Text, Timezone
from coaching_service.people.api_keys import service as api_keys
from coaching_service.people.identities.passwords import hash_password
from coaching_service.people.team import service as team


@click.command("create-company")
@click.argument("company", callback=validate_with(Text()))
@click.option("--name", required=True, callback=validate_with(Text()), help="The owner's name.")
@click.option("--email", required=True, callback=validate_with(Email()), help="The owner's sign-in address.")
@click.option("--password", help="12 characters or more; asked for without it. Other users of the machine can see it.")
@click.option("--password-stdin", is_flag=True, help="Read the password from standard input, its first line.")
@click.option(
    "--timezone",
    default="UTC",
    show_default=True,
    callback=validate_with(Timezone()),
    help="IANA name, such as Europe/Madrid.",
)
@click.option("--load-unit", type=click.Choice(["kg", "lb"]), default="kg", show_default=True)
@data_option
@click.pass_context
def create_company(
    command: click.Context,
    company: str,
    name: str,
    email: str,
    password: str | None,
    password_stdin: bool,
    timezone: str,
    load_unit: str,
    data: Path | None,
) -> None:
    """Create COMPANY with its owner, and print an API key of the owner."""
    new_password = read_password(command, password, from_stdin=password_stdin)

    async def work(services: Services) -> None:
        ctx = Context(services)
        password_hash = await hash_password(new_password)
        owner = await team.create_company(
            ctx, company, name, email, password_hash, timezone=timezone, load_unit=load_unit
        )
        key = await api_keys.create(ctx.acting_as(owner), "Command line")
        click.echo(f"Company  {owner.company.id}\nKey      {key['key']}")

    with_services(settings_with(data), work, creates=True)
