"""The command line: `coaching-service --help`."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import click
import uvloop
from marshmallow import ValidationError, fields
from rich.console import Console
from rich.table import Table

from coaching_service import demo, features, logs, runtime, seeding
from coaching_service.core.auth.principal import Principal
from coaching_service.core.auth.secrets import SecretUnreadable, new_master_key
from coaching_service.core.database.connection import as_service_error
from coaching_service.core.database.context import Context, Services
from coaching_service.core.database.embedded import DatabaseUnavailable
from coaching_service.core.errors import ServiceError
from coaching_service.core.http.openapi import describe
from coaching_service.core.http.responses import to_json
from coaching_service.core.http.routes import routes_of
from coaching_service.core.mcp.tools import tools_of
from coaching_service.core.validation import Email, Text, Timezone
from coaching_service.demo.company import EMAIL
from coaching_service.library.exercises import shared
from coaching_service.lifecycle.orphans import service as orphans
from coaching_service.people.api_keys import service as api_keys
from coaching_service.people.identities import service as identities
from coaching_service.people.identities.passwords import hash_password
from coaching_service.people.sessions.schemas import NewPassword
from coaching_service.people.team import service as team
from coaching_service.settings import Settings, SettingsError

T = TypeVar("T")
_console = Console(stderr=True)
_data = click.option(
    "--data", type=click.Path(path_type=Path, file_okay=False), help="Folder of the embedded database [.local]."
)


class _Commands(click.Group):
    """Turns what we foresee into one sentence and exit code 1."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except (SettingsError, DatabaseUnavailable, ServiceError) as error:
            raise click.ClickException(str(error)) from None
        except SecretUnreadable as error:
            raise click.ClickException(f"A stored API key cannot be read: {error}") from None
        except Exception as error:
            if getattr(error, "code", None) in (13, 18):  # MongoDB's Unauthorized and AuthenticationFailed
                sentence = "The database refuses the name and password in MONGODB_URI, or what they may do"
            elif (known := as_service_error(error)) is not None:
                sentence = str(known)
            else:
                raise
            raise click.ClickException(sentence) from None


@click.group(cls=_Commands)
@click.version_option(package_name="coaching-service")
def main() -> None:
    """The open coaching service.

    Without MONGODB_URI every command works on the embedded MongoDB in the folder --data (one command at a time);
    with it, on that database. README.md lists all settings.

    \b
    Start here:
      coaching-service serve --demo      a running service with a demo company in it
      coaching-service routes            every operation and who may call it
    """


def _judged(field: fields.Field[str]) -> Callable[[click.Context, click.Parameter, str], str]:
    """A callback that judges a value as a request's body would be."""

    def callback(_: click.Context, __: click.Parameter, value: str) -> str:
        try:
            return field.deserialize(value)
        except ValidationError as error:
            raise click.BadParameter(f"{error.messages[0]}.") from None

    return callback


def _settings(data: Path | None = None, **changes: Any) -> Settings:
    given = {name: value for name, value in changes.items() if value is not None}
    settings = replace(Settings.from_environment(), **given)
    return settings if data is None else replace(settings, data_dir=data)


def _with_services(settings: Settings, work: Callable[[Services], Awaitable[T]]) -> T:
    """Run `work` on the settings' database, indexes made."""

    async def run(settings: Settings) -> T:
        async with runtime.open_services(settings) as services:
            await runtime.make_indexes(services)
            return await work(services)

    with _console.status("Opening the database ..."), runtime.database_for(settings) as ready:
        return uvloop.run(run(ready))


async def _coach(services: Services, email: str) -> Principal:
    """The coach who signs in by `email`."""
    found = await identities.subject_of(services, email)
    coach = await team.principal(services, found.subject_id) if found else None
    if coach is None:
        raise click.ClickException(f"No coach signs in as {email}; create-company makes one")
    return coach


@main.command()
@click.option("--host", help="Address to listen on [127.0.0.1].")
@click.option("--port", type=click.IntRange(0, 65_535), help="Port to listen on; 0 takes a free one [8080].")
@_data
@click.option("--demo", "with_demo", is_flag=True, help="Make the demo company, and write DIR/demo.json.")
def serve(host: str | None, port: int | None, data: Path | None, with_demo: bool) -> None:
    """Serve until Ctrl-C or SIGTERM."""
    settings = _settings(data, host=host, port=port)
    logs.configure(settings.log_format, settings.log_level)
    bound, settings = runtime.listen_on(settings)

    async def started(services: Services) -> None:
        await shared.publish(services)
        facts = await demo.ensure_demo(services) if with_demo else None
        click.echo(f"Address  {services.base_url}\nDocs     {services.base_url}/docs")
        if facts is not None:
            click.echo(f"Sign-in  {facts['email']}  {facts['password']}\nKey      {facts['apiKey']}")
            demo.write_atomically(settings.data_dir / "demo.json", facts)
        sys.stdout.flush()

    with bound, runtime.database_for(settings, runtime.stop_serving) as ready:
        uvloop.run(runtime.serve(ready, bound, started))


@main.command()
@click.option("--clients", type=click.IntRange(1), help="Add so many clients more, to try large companies.")
@click.option("--email", default=EMAIL, show_default=True, help="Of whose company --clients become.")
@_data
def seed(clients: int | None, email: str, data: Path | None) -> None:
    """Publish the shared exercise library and make the demo company. Repeating changes nothing."""

    async def work(services: Services) -> None:
        written = await shared.publish(services)
        facts = await demo.ensure_demo(services, lambda what: _console.print(f"Making {what} ..."))
        click.echo(f"{written} shared exercises written; demo company {facts['companyId']} is there")
        if clients:
            ctx = Context(services).acting_as(await _coach(services, email))
            with seeding.progress_bar(_console, clients) as told:
                await seeding.seed_clients(services, ctx, clients, told)
            click.echo(f"{clients} clients added to the company of {email}")

    _with_services(_settings(data), work)


@main.command("create-company")
@click.argument("company", callback=_judged(Text()))
@click.option("--name", required=True, callback=_judged(Text()), help="The owner's name.")
@click.option("--email", required=True, callback=_judged(Email()), help="The owner's sign-in address.")
@click.option(
    "--password",
    prompt=True,
    hide_input=True,
    confirmation_prompt=True,
    callback=_judged(NewPassword()),
    help="12 characters or more.",
)
@click.option(
    "--timezone",
    default="UTC",
    show_default=True,
    callback=_judged(Timezone()),
    help="IANA name, such as Europe/Madrid.",
)
@click.option("--load-unit", type=click.Choice(["kg", "lb"]), default="kg", show_default=True)
@_data
def create_company(
    company: str, name: str, email: str, password: str, timezone: str, load_unit: str, data: Path | None
) -> None:
    """Create COMPANY with its owner, and print an API key of the owner's."""

    async def work(services: Services) -> None:
        ctx = Context(services)
        password_hash = await hash_password(password)
        owner = await team.found_company(
            ctx, company, name, email, password_hash, timezone=timezone, load_unit=load_unit
        )
        key = await api_keys.create(ctx.acting_as(owner), "Command line")
        click.echo(f"Company  {owner.company.id}\nKey      {key['key']}")

    _with_services(_settings(data), work)


@main.command("create-key")
@click.option("--email", required=True, help="Sign-in address of the coach the key acts as.")
@click.option("--name", default="Command line", show_default=True, help="What the key is for.")
@_data
def create_key(email: str, name: str, data: Path | None) -> None:
    """Print a new API key of a coach."""

    async def work(services: Services) -> None:
        key = await api_keys.create(Context(services).acting_as(await _coach(services, email)), name)
        click.echo(key["key"])

    _with_services(_settings(data), work)


@main.command("ensure-indexes")
@_data
def ensure_indexes(data: Path | None) -> None:
    """Make every index the service needs. Repeating changes nothing."""

    async def work(services: Services) -> None:
        names = sorted(await runtime.make_indexes(services))
        click.echo(f"Indexes of {len(names)} collections are there: {', '.join(names)}")

    _with_services(_settings(data), work)


@main.command("gc-files")
@click.option("--dry-run", is_flag=True, help="Only report.")
@_data
def gc_files(dry_run: bool, data: Path | None) -> None:
    """Find uploads of over an hour ago that no record names, and other lost bytes; report and remove them.

    The running service removes such uploads every hour by itself.
    """

    async def work(services: Services) -> None:
        found = await orphans.collect(services, remove=not dry_run)
        click.echo(
            f"{found.files} files; {'found' if dry_run else 'removed'}: {found.orphans} that no record names and "
            f"{found.ownerless} of which only bytes are left, {found.bytes} bytes together"
        )

    _with_services(_settings(data), work)


@main.command("rotate-secrets")
@_data
def rotate_secrets(data: Path | None) -> None:
    """Encrypt every API key anew under the newest of SECRET_KEYS.

    \b
    To change the master key without anybody noticing:
      1. coaching-service new-secret-key, and put it before the old one: SECRET_KEYS=new,old
      2. restart every process with both
      3. coaching-service rotate-secrets (may be interrupted and repeated)
      4. after 24 hours, when no kept answer needs the old one: SECRET_KEYS=new, and restart
    """

    async def work(services: Services) -> None:
        seen = changed = 0
        with _console.status("Rotating ...") as status:
            async for is_new in api_keys.rotate(services):
                seen, changed = seen + 1, changed + is_new
                status.update(f"Rotating ... {seen} keys")
        click.echo(f"{seen} keys, {changed} of them encrypted anew")

    _with_services(_settings(data), work)


@main.command("new-secret-key")
def new_secret_key() -> None:
    """Print a new master key for SECRET_KEYS. Keep it: what it encrypts is lost with it."""
    click.echo(new_master_key())


@main.command()
def routes() -> None:
    """Print every operation and every tool, and who may call it."""
    rows = [(route.method, route.path, str(route.access), route.summary) for route in routes_of(features.ROUTES)]
    rows += [("tool", tool.name, str(tool.access), tool.title) for tool in tools_of(features.TOOLS)]
    table = Table("Method", "Path", "Access", "Summary", box=None)
    for row in rows:
        table.add_row(*row)
    Console(width=None if sys.stdout.isatty() else 260).print(table)


@main.command()
def openapi() -> None:
    """Print the OpenAPI document."""
    document = describe(routes_of(features.ROUTES), features.TAGS, runtime.address_of(Settings.from_environment()))
    sys.stdout.buffer.write(to_json(document) + b"\n")


if __name__ == "__main__":
    main()
