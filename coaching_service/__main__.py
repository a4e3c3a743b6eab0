"""The command line: `coaching-service --help`."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import IO, Any, TypeVar

import click
import uvloop
from marshmallow import ValidationError, fields
from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table

from coaching_service import demo, features, logs, runtime, seeding
from coaching_service.core.auth.principal import Principal
from coaching_service.core.auth.secrets import SecretUnreadable, new_master_key
from coaching_service.core.database import migrations
from coaching_service.core.database.connection import UNAUTHORIZED, as_service_error, hosts_of
from coaching_service.core.database.context import Context, Services
from coaching_service.core.database.embedded import DatabaseUnavailable
from coaching_service.core.database.indexes import IndexConflict
from coaching_service.core.errors import ServiceError, Unavailable
from coaching_service.core.http.openapi import describe
from coaching_service.core.http.responses import to_json
from coaching_service.core.http.routes import routes_of
from coaching_service.core.mcp.tools import tools_of
from coaching_service.core.validation import Email, Text, Timezone
from coaching_service.demo.company import EMAIL
from coaching_service.integrations import commands
from coaching_service.library.exercises import shared
from coaching_service.lifecycle.orphans import service as orphans
from coaching_service.people.api_keys import service as api_keys
from coaching_service.people.identities import service as identities
from coaching_service.people.identities.passwords import hash_password
from coaching_service.people.sessions.schemas import NewPassword
from coaching_service.people.team import service as team
from coaching_service.people.webhooks import service as webhooks
from coaching_service.settings import Settings, SettingsError, describe_settings

T = TypeVar("T")
_console = Console(stderr=True)
_data = click.option(
    "--data", type=click.Path(path_type=Path, file_okay=False), help="Folder of the embedded database [.local]."
)


_FILE_ERRORS = (
    errno.ENOSPC,
    errno.EDQUOT,
    errno.EFBIG,
    errno.EROFS,
    errno.EACCES,
    errno.EPERM,
    errno.ENOTDIR,
    errno.EEXIST,
)


class _Commands(click.Group):
    """Reports expected errors as one sentence with exit code 1."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except (SettingsError, DatabaseUnavailable, IndexConflict, ServiceError) as error:
            raise click.ClickException(str(error)) from None
        except SecretUnreadable as error:
            raise click.ClickException(f"A stored API key cannot be read: {error}") from None
        except OSError as error:
            if error.errno not in _FILE_ERRORS:
                raise
            raise click.ClickException(f"{error.filename or 'A file'} cannot be written ({error.strerror})") from None
        except Exception as error:
            if getattr(error, "code", None) in UNAUTHORIZED:
                message = (
                    "The database refuses the user name and password in MONGODB_URI, or that user lacks permissions"
                )
            elif (known := as_service_error(error)) is not None:
                message = str(known)
            else:
                raise
            raise click.ClickException(message) from None


@click.group(cls=_Commands)
@click.version_option(package_name="coaching-service")
def main() -> None:
    """The open coaching service.

    Without MONGODB_URI every command works on the embedded MongoDB in the folder --data (one command at a time);
    with it, on that database. `coaching-service settings` lists all settings.

    \b
    Start here:
      coaching-service serve --demo      start the service with a demo company
      coaching-service routes            list every operation and the permission it requires
    """


def _validate_with(field: fields.Field[str]) -> Callable[[click.Context, click.Parameter, str], str]:
    """A click callback that validates a value like a field of a request body."""

    def validate(_: click.Context, __: click.Parameter, value: str) -> str:
        try:
            return field.deserialize(value)
        except ValidationError as error:
            raise click.BadParameter(f"{error.messages[0]}.") from None

    return validate


def _settings(data: Path | None = None, **options: Any) -> Settings:
    """The settings of the environment, replaced by those given on the command line."""
    given = {name: value for name, value in {"data_dir": data, **options}.items() if value is not None}
    return Settings.from_environment().model_copy(update=given)


def _with_services(settings: Settings, work: Callable[[Services], Awaitable[T]]) -> T:
    """Run `work` on the database of the settings, after creating missing indexes."""

    async def run(ready: Settings) -> T:
        async with runtime.open_services(ready) as services:
            await runtime.make_indexes(services)
            return await work(services)

    with _console.status("Opening the database ..."), runtime.open_database(settings) as opened:
        try:
            return uvloop.run(run(opened.settings))
        except Exception as error:
            if isinstance(as_service_error(error), Unavailable) and getattr(error, "code", None) not in UNAUTHORIZED:
                host = hosts_of(opened.settings.mongodb_uri or "")
                raise click.ClickException(f"The database at {host} cannot be reached") from None
            raise


def _existing_folder(settings: Settings) -> Path:
    """The data folder, created if it is missing."""
    settings.data_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
    return settings.data_dir


async def _find_coach(services: Services, email: str) -> Principal:
    """The coach who signs in with `email`. Raises ClickException if there is none."""
    identity = await identities.find_by_email(services, email)
    coach = await team.load_principal(services, identity.subject_id) if identity else None
    if coach is None:
        raise click.ClickException(f"No coach signs in with {email}; create-company creates one")
    return coach


async def _as_owner(services: Services, email: str) -> Context:
    """A context of the owner who signs in with `email`. Raises ClickException if there is none."""
    coach = await _find_coach(services, email)
    if coach.role != "OWNER":
        raise click.ClickException(f"{email} is not the owner of a company")
    return Context(services, operation="importCompany").acting_as(coach)


@main.command()
@click.option("--host", help="Address to listen on [127.0.0.1].")
@click.option("--port", type=click.IntRange(0, 65_535), help="Port to listen on; 0 takes a free one [8080].")
@_data
@click.option("--demo", "with_demo", is_flag=True, help="Create the demo company and write DIR/demo.json.")
def serve(host: str | None, port: int | None, data: Path | None, with_demo: bool) -> None:
    """Start the service; stop it with Ctrl-C or SIGTERM."""
    settings = _settings(data, host=host, port=port)
    logs.configure(settings.log_format, settings.log_level)
    bound, settings = runtime.bind(settings)

    async def on_ready(services: Services) -> None:
        await shared.publish(services)
        if with_demo:
            demo_file = _existing_folder(settings) / "demo.json"
            facts = await demo.ensure_demo(services)
        click.echo(f"Address  {services.base_url}\nDocs     {services.base_url}/docs")
        if with_demo:
            click.echo(f"Sign-in  {facts['email']}  {facts['password']}\nKey      {facts['apiKey']}")
        database = hosts_of(settings.mongodb_uri) if settings.mongodb_uri else settings.data_dir.absolute()
        click.echo(f"Data     {database}\nStop     Ctrl-C")
        sys.stdout.flush()
        if with_demo:
            demo.write_atomically(demo_file, facts)

    with bound, runtime.open_database(settings, runtime.stop_without_database) as opened:
        uvloop.run(runtime.serve(opened, bound, on_ready))


@main.command()
@click.option("--clients", type=click.IntRange(1), help="Number of clients to add, to try large companies.")
@click.option(
    "--email",
    default=EMAIL,
    show_default=True,
    help="Sign-in address of a coach of the company that receives --clients.",
)
@_data
def seed(clients: int | None, email: str, data: Path | None) -> None:
    """Publish the shared exercise library and create the demo company. Running it again changes nothing."""

    async def work(services: Services) -> None:
        written = await shared.publish(services)
        facts = await demo.ensure_demo(services, lambda subject: _console.print(f"Creating {subject} ..."))
        click.echo(f"{written} shared exercises written; the demo company is {facts['companyId']}")
        if clients:
            ctx = Context(services).acting_as(await _find_coach(services, email))
            with seeding.progress_bar(_console, clients) as report_progress:
                await seeding.seed_clients(services, ctx, clients, report_progress)
            click.echo(f"{clients} clients added to the company of {email}")

    _with_services(_settings(data), work)


@main.command("create-company")
@click.argument("company", callback=_validate_with(Text()))
@click.option("--name", required=True, callback=_validate_with(Text()), help="The owner's name.")
@click.option("--email", required=True, callback=_validate_with(Email()), help="The owner's sign-in address.")
@click.option(
    "--password",
    prompt=True,
    hide_input=True,
    confirmation_prompt=True,
    callback=_validate_with(NewPassword()),
    help="12 characters or more.",
)
@click.option(
    "--timezone",
    default="UTC",
    show_default=True,
    callback=_validate_with(Timezone()),
    help="IANA name, such as Europe/Madrid.",
)
@click.option("--load-unit", type=click.Choice(["kg", "lb"]), default="kg", show_default=True)
@_data
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

    _with_services(_settings(data), work)


@main.command("create-key")
@click.option("--email", required=True, help="Sign-in address of the coach the key belongs to.")
@click.option("--name", default="Command line", show_default=True, help="Name of the key.")
@_data
def create_key(email: str, name: str, data: Path | None) -> None:
    """Create an API key for a coach and print it."""

    async def work(services: Services) -> None:
        key = await api_keys.create(Context(services).acting_as(await _find_coach(services, email)), name)
        click.echo(key["key"])

    _with_services(_settings(data), work)


@main.command("export")
@click.option("--email", required=True, help="Sign-in address of the owner of the company.")
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@_data
def export_company(email: str, file: Path, data: Path | None) -> None:
    """Write everything of a company to FILE, a ZIP archive: account, libraries and all clients with their files.

    `docs/export-format.md` describes it; `import` reads it.
    """

    async def work(services: Services) -> None:
        ctx = await _as_owner(services, email)
        with Progress(TextColumn("Exporting"), DownloadColumn(), TimeElapsedColumn(), console=_console) as bar:
            task = bar.add_task("")
            size = await commands.export_company(ctx, file, lambda done: bar.update(task, completed=done))
        click.echo(f"{file}: {size} bytes")

    _with_services(_settings(data), work)


@main.command("import")
@click.option("--email", required=True, help="Sign-in address of the owner of the company.")
@click.option("--dry-run", is_flag=True, help="Only check the file, and list its problems.")
@click.argument("file", type=click.File("rb"))
@_data
def import_file(email: str, dry_run: bool, file: IO[bytes], data: Path | None) -> None:
    """Import FILE into a company: an export, or a CSV file of clients. Nothing is mailed, and it cannot be undone.

    If it is interrupted, the running service continues, or the next import.
    """

    async def work(services: Services) -> None:
        ctx = await _as_owner(services, email)
        columns = (TextColumn("Importing"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        with Progress(*columns, console=_console) as bar:
            task = bar.add_task("", total=None)
            job = await commands.import_file(
                ctx,
                file,
                Path(file.name).name,
                dry_run=dry_run,
                on_progress=lambda done, total: bar.update(task, completed=done, total=total or None),
            )
        for error in job["errors"]:
            click.echo(" ".join(filter(None, (f"{error['entry']}:", error["field"], error["message"]))), err=True)
        if job["status"] == "failed" or job["result"] is None:
            raise click.ClickException("The file cannot be imported")
        counts = ", ".join(f"{count} {name}" for name, count in job["result"]["imported"].items())
        verb = "Would import" if dry_run else "Imported"
        click.echo(f"{verb}: {counts or 'nothing'}; left out: {job['result']['failed']}")

    _with_services(_settings(data), work)


@main.command("ensure-indexes")
@_data
def ensure_indexes(data: Path | None) -> None:
    """Create every missing index. Running it again changes nothing."""

    async def work(services: Services) -> None:
        names = sorted(await runtime.make_indexes(services))
        click.echo(f"The indexes of {len(names)} collections exist: {', '.join(names)}")

    _with_services(_settings(data), work)


@main.command()
@_data
def migrate(data: Path | None) -> None:
    """Apply pending changes of the stored documents after an update. Running it again changes nothing.

    `serve` does this by itself on the embedded database. With MONGODB_URI the service is not ready until the migrations
    have been applied.
    """

    async def work(services: Services) -> None:
        names = await migrations.migrate(services.db, services.vault)
        click.echo(f"Applied: {', '.join(names)}" if names else "No migration is pending")

    _with_services(_settings(data), work)


@main.command("gc-files")
@click.option("--dry-run", is_flag=True, help="Only report.")
@_data
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

    _with_services(_settings(data), work)


@main.command("rotate-secrets")
@_data
def rotate_secrets(data: Path | None) -> None:
    """Re-encrypt every API key and every secret of a webhook with the newest of SECRET_KEYS.

    \b
    To replace the master key while the service runs:
      1. coaching-service new-secret-key, and set it before the old one: SECRET_KEYS=new,old
      2. restart every process with both keys
      3. coaching-service rotate-secrets (may be interrupted and repeated)
      4. after 24 hours, when no stored response needs the old key: SECRET_KEYS=new, and restart
    """

    async def work(services: Services) -> None:
        total = changed = 0
        with _console.status("Rotating ...") as status:
            for rotation in (api_keys.rotate_master_key(services), webhooks.rotate_master_key(services)):
                async for is_new in rotation:
                    total, changed = total + 1, changed + is_new
                    status.update(f"Rotating ... {total} keys")
        click.echo(f"{total} keys, {changed} of them re-encrypted")

    _with_services(_settings(data), work)


@main.command("new-secret-key")
def new_secret_key() -> None:
    """Print a new master key for SECRET_KEYS. Store it safely: data encrypted with it cannot be read without it."""
    click.echo(new_master_key())


@main.command()
def routes() -> None:
    """List every operation and tool with the permission it requires."""
    rows = [(route.method, route.path, str(route.access), route.summary) for route in routes_of(features.ROUTES)]
    rows += [("tool", tool.name, str(tool.access), tool.title) for tool in tools_of(features.TOOLS)]
    table = Table("Method", "Path", "Access", "Summary", box=None)
    for row in rows:
        table.add_row(*row)
    Console(width=None if sys.stdout.isatty() else 260).print(table)


@main.command("settings")
def list_settings() -> None:
    """Print a Markdown table of all settings: environment variable, default, description."""
    click.echo(describe_settings())


@main.command()
def openapi() -> None:
    """Print the OpenAPI document."""
    document = describe(routes_of(features.ROUTES), features.TAGS, runtime.address_of(Settings.from_environment()))
    sys.stdout.buffer.write(to_json(document) + b"\n")


def run() -> None:
    """Run the command line, and exit without waiting for threads: those of a frozen database cannot be interrupted."""
    code = 0
    try:
        main()
    except SystemExit as exited:
        code = exited.code if isinstance(exited.code, int) else 1
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    run()
