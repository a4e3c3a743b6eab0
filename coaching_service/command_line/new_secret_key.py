"""Making a master key."""

from __future__ import annotations

import click

from coaching_service.core.auth.secrets import new_master_key


@click.command("new-secret-key")
def new_secret_key() -> None:
    """Print a new master key for SECRET_KEYS. Store it safely: data encrypted with it cannot be read without it."""
    click.echo(new_master_key())
