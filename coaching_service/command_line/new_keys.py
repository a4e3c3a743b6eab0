"""Making keys: master keys, and keys for backups."""

from __future__ import annotations

import click

from coaching_service.core.auth.secrets import new_master_key
from coaching_service.core.database.backup.encryption import new_identity


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
