"""Listing the settings."""

from __future__ import annotations

import click

from coaching_service.settings import Settings


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
