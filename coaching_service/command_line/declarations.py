"""Printing what the service declares: operations and tools, settings, and the OpenAPI document."""

from __future__ import annotations

import sys

import click
from rich.console import Console
from rich.table import Table

from coaching_service import features, runtime
from coaching_service.core.http.openapi import describe
from coaching_service.core.http.responses import to_json
from coaching_service.core.http.routes import routes_of
from coaching_service.core.mcp.tools import tools_of
from coaching_service.settings import Settings


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
    document = describe(routes_of(features.ROUTES), features.TAGS, runtime.address_of(Settings.from_environment()))
    sys.stdout.buffer.write(to_json(document) + b"\n")


@click.command("settings")
def list_settings() -> None:
    """Print a Markdown table of all settings: environment variable, default, description."""
    click.echo(describe_settings())


def describe_settings() -> str:
    """Return the settings as a Markdown table: variable, default and description."""
    rows = ["| Variable | Default | Description |", "|---|---|---|"]
    for name, setting in Settings.model_fields.items():
        description = " ".join((setting.description or "").split())
        rows.append(f"| `{name.upper()}` | {_describe_default(setting.default)} | {description} |")
    return "\n".join(rows)


def _describe_default(default: object) -> str:
    if default in (None, ()):
        return "none"
    if isinstance(default, tuple):
        return f"`{','.join(map(str, default))}`"
    return f"`{str(default).lower() if isinstance(default, bool) else default}`"
