"""Creating companies and API keys."""

from __future__ import annotations

import sys
from pathlib import Path

import click
from marshmallow import ValidationError

from coaching_service import demo, seeding
from coaching_service.command_line import running
from coaching_service.command_line.options import data_option, settings_with
from coaching_service.core.auth import new_master_key
from coaching_service.core.database.backup.contents import new_identity
from coaching_service.core.database.context import Context, Services
from coaching_service.core.validation import Email, Text, Timezone
from coaching_service.demo import EMAIL
from coaching_service.integrations import commands
from coaching_service.library.exercises import service as exercises
from coaching_service.people import api_keys, team
from coaching_service.people.identities.passwords import NewPassword, hash_password


@click.command("create-company")
@click.argument("company", callback=running.validate_with(Text()))
@click.option("--name", required=True, callback=running.validate_with(Text()), help="The owner's name.")
@click.option("--email", required=True, callback=running.validate_with(Email()), help="The owner's sign-in address.")
@click.option("--password", help="12 characters or more; asked for without it. Other users of the machine can see it.")
@click.option("--password-stdin", is_flag=True, help="Read the password from standard input, its first line.")
@click.option(
    "--timezone",
    default="UTC",
    show_default=True,
    callback=running.validate_with(Timezone()),
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
    new_password = _read_password(command, password, from_stdin=password_stdin)

    async def work(services: Services) -> None:
        ctx = Context(services)
        password_hash = await hash_password(new_password)
        owner = await team.create_company(
            ctx, company, name, email, password_hash, timezone=timezone, load_unit=load_unit
        )
        key = await api_keys.create(ctx.acting_as(owner), "Command line")
        click.echo(f"Company  {owner.company.id}\nKey      {key['key']}")

    running.with_services(settings_with(data), work, creates=True)


def _read_password(command: click.Context, given: str | None, *, from_stdin: bool) -> str:
    """Return the password of the option `--password`, else of `--password-stdin`, else what is typed twice.

    Raises UsageError for both options, and BadParameter if it is not accepted as a new password.
    """
    if given is not None and from_stdin:
        raise click.UsageError("Use --password or --password-stdin, not both.", command)
    if from_stdin:
        given = sys.stdin.readline().rstrip("\r\n")
    elif given is None:
        given = click.prompt("Password", hide_input=True, confirmation_prompt=True)
    try:
        password: str = NewPassword().deserialize(given)
    except ValidationError as error:
        raise click.BadParameter(f"{error.messages[0]}.", command, param_hint="--password") from None
    return password


@click.command("create-key")
@click.option("--email", required=True, help="Sign-in address of the coach the key belongs to.")
@click.option("--name", default="Command line", show_default=True, help="Name of the key.")
@click.option("--outreach", is_flag=True, help="Assistants with it may contact people and change many clients at once.")
@running.on_database()
async def create_key(services: Services, email: str, name: str, *, outreach: bool) -> None:
    """Create an API key for a coach and print it."""
    coach = await running.find_coach(services, email)
    key = await api_keys.create(Context(services).acting_as(coach), name, {"outreach": outreach})
    click.echo(key["key"])


# --- Making keys: master keys, and keys for backups -------------------------------------------------------------------


@click.command("new-secret-key")
def new_secret_key() -> None:
    """Print a new master key for SECRET_KEYS. Store it safely: data encrypted with it cannot be read without it."""
    click.echo(new_master_key())


@click.command("new-backup-key")
def new_backup_key() -> None:
    """Print a new private key for encrypted backups, and its public key, in the format of age.

    The public key is for BACKUP_RECIPIENTS. Store the private key with the master key, in a password manager or on
    paper, and not on the machine that makes the backups: without it no backup can be read.

    \b
      coaching-service new-backup-key > backup.key
    """
    private, public = new_identity()
    click.echo(f"# public key: {public}\n{private}")


# --- Sample data ------------------------------------------------------------------------------------------------------


@click.command()
@click.option("--clients", type=click.IntRange(1), help="Number of clients to add, to try large companies.")
@click.option(
    "--email",
    default=EMAIL,
    show_default=True,
    help="Sign-in address of a coach of the company that receives --clients.",
)
@running.on_database(creates=True)
async def seed(services: Services, clients: int | None, email: str) -> None:
    """Publish the shared exercise library and create the demo company. Running it again changes nothing."""
    written = await exercises.publish_shared(services)
    facts = await demo.ensure_demo(services, lambda subject: running.console.print(f"Creating {subject} ..."))
    await commands.ensure_sample_proposal(services)
    click.echo(f"{written} shared exercises written; the demo company is {facts['companyId']}")
    if clients:
        ctx = Context(services).acting_as(await running.find_coach(services, email))
        with seeding.progress_bar(running.console, clients) as report_progress:
            await seeding.seed_clients(services, ctx, clients, report_progress)
        click.echo(f"{clients} clients added to the company of {email}")
