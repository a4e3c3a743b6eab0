"""Encrypting stored secrets with a new master key."""

from __future__ import annotations

from pathlib import Path

import click

from coaching_service.command_line.options import data_option, settings_with
from coaching_service.command_line.running import console, with_services
from coaching_service.core.database.context import Services
from coaching_service.people.api_keys import service as api_keys
from coaching_service.people.push import keys as push_keys
from coaching_service.people.push import service as push
from coaching_service.people.webhooks import service as webhooks


@click.command("rotate-secrets")
@data_option
def rotate_secrets(data: Path | None) -> None:
    """Re-encrypt every API key, secret of a webhook, and key and address of Web Push with the newest of SECRET_KEYS.

    \b
    To replace the master key while the service runs:
      1. coaching-service new-secret-key, and set it before the old one: SECRET_KEYS=new,old
      2. restart every process with both keys
      3. coaching-service rotate-secrets (may be interrupted and repeated)
      4. after 24 hours, when no stored response needs the old key: SECRET_KEYS=new, and restart
    """

    async def work(services: Services) -> None:
        total, changed = await rotate(services)
        click.echo(f"{total} keys, {changed} of them re-encrypted")

    with_services(settings_with(data), work)


async def rotate(services: Services) -> tuple[int, int]:
    """Encrypt every secret with the newest master key; returns how many there are, and how many have changed."""
    total = changed = 0
    with console.status("Rotating ...") as status:
        for feature in (api_keys, webhooks, push_keys, push):
            async for is_new in feature.rotate_master_key(services):
                total, changed = total + 1, changed + is_new
                status.update(f"Rotating ... {total} keys")
    return total, changed
