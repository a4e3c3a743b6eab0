"""What commands share: access to the database and its console."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from functools import partial, wraps
from pathlib import Path
from typing import Concatenate, ParamSpec, TypeVar

import click
import uvloop
from marshmallow import ValidationError, fields
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from coaching_service import features, runtime
from coaching_service.command_line.options import data_option, settings_with
from coaching_service.core.auth import Principal
from coaching_service.core.database.connection import UNAUTHORIZED, as_service_error, hosts_of
from coaching_service.core.database.context import Context, Services
from coaching_service.core.errors import Unavailable
from coaching_service.core.http.responses import to_json
from coaching_service.core.http.routes import routes_of
from coaching_service.core.mcp import tools_of
from coaching_service.documentation.openapi import describe
from coaching_service.people import team
from coaching_service.people.identities import service as identities
from coaching_service.settings import Settings

T = TypeVar("T")
P = ParamSpec("P")
console = Console(stderr=True)


@contextmanager
def progress(
    title: str, total: int | None, *columns: ProgressColumn, transient: bool = True
) -> Iterator[Callable[..., None]]:
    """Show a bar; yields the function that updates it, with the arguments of rich's. One that is `transient` is gone at
    the end, and only shown on a terminal."""
    columns = (TextColumn("{task.description}"), *(columns or (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())))
    with Progress(*columns, console=console, transient=transient, disable=transient and not console.is_terminal) as bar:
        yield partial(bar.update, bar.add_task(title, total=total))


def validate_with(field: fields.Field[str]) -> Callable[[click.Context, click.Parameter, str], str]:
    """Return a click callback that validates a value like a field of a request body."""

    def validate(_: click.Context, __: click.Parameter, value: str) -> str:
        try:
            return field.deserialize(value)
        except ValidationError as error:
            raise click.BadParameter(f"{error.messages[0]}.") from None

    return validate


def with_services(
    settings: Settings, work: Callable[[Services], Awaitable[T]], *, creates: bool = False, prepares: bool = True
) -> T:
    """Run `work` on the database of the settings, which with `prepares` gets the indexes that it lacks.

    The embedded database may be in use by a running service. Raises SettingsError if there is no database, unless the
    command `creates` it.
    """
    if not creates:
        settings.require_database()

    async def run(ready: Settings) -> T:
        async with runtime.open_services(ready) as services:
            if not creates:
                await runtime.require_collections(services, settings)
            if prepares:
                await runtime.make_indexes(services)
            return await work(services)

    with console.status("Opening the database ..."), runtime.open_database(settings, shared=True) as opened:
        try:
            return uvloop.run(run(opened.settings))
        except Exception as error:
            if isinstance(as_service_error(error), Unavailable) and getattr(error, "code", None) not in UNAUTHORIZED:
                host = hosts_of(opened.settings.mongodb_uri or "")
                raise click.ClickException(f"The database at {host} cannot be reached") from None
            raise


def on_database(
    *, creates: bool = False, prepares: bool = True
) -> Callable[[Callable[Concatenate[Services, P], Awaitable[None]]], Callable[..., None]]:
    """Return the decorator of a command that runs as a whole on the database of its settings, as `with_services` does.

    The command takes the services, and gets the option --data.
    """

    def decorate(
        command: Callable[Concatenate[Services, P], Awaitable[None]],
    ) -> Callable[..., None]:
        @data_option
        @wraps(command)
        def run(data: Path | None, *arguments: P.args, **given: P.kwargs) -> None:
            settings = settings_with(data)
            with_services(
                settings, lambda services: command(services, *arguments, **given), creates=creates, prepares=prepares
            )

        return run

    return decorate


async def find_coach(services: Services, email: str) -> Principal:
    """Return the coach who signs in with `email`. Raises ClickException if there is none."""
    identity = await identities.find_by_email(services, email)
    coach = await team.get_principal(services, identity.subject_id) if identity else None
    if coach is None:
        raise click.ClickException(f"No coach signs in with {email}; create-company creates one")
    return coach


async def as_owner(services: Services, email: str) -> Context:
    """Return a context of the owner who signs in with `email`. Raises ClickException if there is none."""
    coach = await find_coach(services, email)
    if coach.role != "OWNER":
        raise click.ClickException(f"{email} is not the owner of a company")
    return Context(services, operation="importCompany").acting_as(coach)


# --- Printing what the service declares: operations and tools, settings, and the OpenAPI document ---------------------


@click.command()
def routes() -> None:
    """List every operation and tool with the permission it requires."""
    rows = [(route.method, route.path, str(route.access), route.summary) for route in routes_of(features.ROUTES)]
    tools = tools_of((*features.TOOLS, *features.VIEW_TOOLS))
    rows += [("tool", tool.name, str(tool.access), tool.title) for tool in tools]
    table = Table("Method", "Path", "Access", "Summary", box=None)
    for row in rows:
        table.add_row(*row)
    Console(width=None if sys.stdout.isatty() else 260).print(table)


@click.command()
def openapi() -> None:
    """Print the OpenAPI document."""
    document = describe(
        routes_of(features.ROUTES),
        features.TAGS,
        runtime.address_of(Settings.from_environment()),
        features.WEBHOOKS(),
    )
    sys.stdout.buffer.write(to_json(document) + b"\n")


@click.command("settings")
def list_settings() -> None:
    """Print a Markdown table of all settings: environment variable, default, description."""
    click.echo(describe_settings())


def describe_settings() -> str:
    """Return the settings as a Markdown table: variable, default and description."""
    rows = ["| Variable | Default | Description |", "|---|---|---|"]
    for name, setting in Settings.model_fields.items():
        description, default = " ".join((setting.description or "").split()), setting.default
        if default in (None, ()):
            text = "none"
        elif isinstance(default, tuple):
            text = f"`{','.join(map(str, default))}`"
        else:
            text = f"`{str(default).lower() if isinstance(default, bool) else default}`"
        rows.append(f"| `{name.upper()}` | {text} | {description} |")
    return "\n".join(rows)
