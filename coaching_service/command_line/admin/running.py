"""What the commands of the operator share: options, the operator's name, and what they print."""

from __future__ import annotations

import os
import pwd
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import wraps
from pathlib import Path
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar

import click

from coaching_service.command_line.options import data_option, settings_with
from coaching_service.command_line.running import with_services
from coaching_service.core.database.context import Services
from coaching_service.core.http.responses import to_json
from coaching_service.lifecycle.administration import Operator

T = TypeVar("T")
P = ParamSpec("P")
_UNITS = ("B", "kB", "MB", "GB", "TB")

json_option = click.option(
    "--json", "as_json", is_flag=True, help="Print JSON, one object in each line, for scripts; its fields are stable."
)
company_argument = click.argument("company", metavar="COMPANY")


@dataclass(frozen=True)
class Column(Generic[T]):
    """A column of a printed list: its title, its width, and its value in a row; the last one may be longer."""

    title: str
    width: int
    value: Callable[[T], object]
    right: bool = False

    def align(self, value: object) -> str:
        """Return `value` in the width of the column; `-` for None."""
        text = "-" if value is None else str(value)
        return text.rjust(self.width) if self.right else text.ljust(self.width)


def operator_name() -> str:
    """Return the name of the operating system's user, of the one before `sudo`."""
    user_id = os.environ.get("SUDO_UID", "") if os.getuid() == 0 else ""
    number = int(user_id) if user_id.isdigit() else os.getuid()
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:  # a container may run as a user without a name
        return f"uid {number}"


def run_as_operator(data: Path | None, work: Callable[[Operator], Awaitable[T]]) -> T:
    """Run `work` as the operator, on the database of the settings, also while a service runs."""

    async def run(services: Services) -> T:
        return await work(Operator(services, operator_name()))

    return with_services(settings_with(data), run)


def as_operator(
    command: Callable[Concatenate[Operator, P], Awaitable[None]],
) -> Callable[..., None]:
    """Return a command that runs as a whole as the operator: it takes the operator, and gets --json and --data."""

    @json_option
    @data_option
    @wraps(command)
    def run(data: Path | None, *arguments: P.args, **given: P.kwargs) -> None:
        run_as_operator(data, lambda operator: command(operator, *arguments, **given))

    return run


def print_json(value: Mapping[str, Any]) -> None:
    """Print one object in one line."""
    sys.stdout.buffer.write(to_json(value) + b"\n")
    sys.stdout.buffer.flush()


async def print_list(rows: AsyncIterator[T], columns: Sequence[Column[T]], *, as_json: bool, empty: str) -> None:
    """Print rows as they are read: in columns, or as JSON. `empty` is printed to standard error if there are none."""
    count = 0
    async for row in rows:
        if as_json:
            print_json(row)  # type: ignore[arg-type]  # every row is a TypedDict
        else:
            if count == 0:
                click.echo("  ".join(column.align(column.title) for column in columns).rstrip())
            click.echo("  ".join(column.align(column.value(row)) for column in columns).rstrip())
        count += 1
    if not count and not as_json:
        click.echo(empty, err=True)


def print_fields(fields: Sequence[tuple[str, str]]) -> None:
    """Print names and values, one in each line."""
    width = max(len(name) for name, _ in fields)
    for name, value in fields:
        click.echo(f"{name.ljust(width)}  {value}".rstrip())


def report(message: str, facts: Mapping[str, Any], *, as_json: bool) -> None:
    """Print the outcome of a change: a sentence, or its facts as JSON."""
    if as_json:
        print_json(facts)
    else:
        click.echo(message)


def format_bytes(size: int) -> str:
    """Return a size for people: `15.2 MB`."""
    amount, unit = float(size), 0
    while amount >= 1000 and unit < len(_UNITS) - 1:
        amount, unit = amount / 1000, unit + 1
    return f"{size} B" if unit == 0 else f"{amount:.1f} {_UNITS[unit]}"


def format_time(time: datetime | None) -> str:
    """Return a stored time (UTC) to the minute; `-` for None."""
    return "-" if time is None else f"{time:%Y-%m-%d %H:%M}"
