"""Listing the settings."""

from __future__ import annotations

import click

from coaching_service.settings import describe_settings


@click.command("settings")
def list_settings() -> None:
    """Print a Markdown table of all settings: environment variable, default, description."""
    click.echo(describe_settings())
