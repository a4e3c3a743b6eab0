"""Listing operations and tools."""

from __future__ import annotations

import sys

import click
from rich.console import Console
from rich.table import Table

from coaching_service import features
from coaching_service.core.http.routes import routes_of
from coaching_service.core.mcp.tools import tools_of


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
