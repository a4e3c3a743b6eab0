"""Master keys: rotate."""

from __future__ import annotations

from pathlib import Path

import click

from coaching_service.command_line.admin.running import as_operator, json_option, report
from coaching_service.command_line.options import data_option
from coaching_service.command_line.rotate_secrets import rotate as rotate_secrets
from coaching_service.lifecycle.administration.service import Operator


@click.group()
def keys() -> None:
    """The master keys with which secrets are stored.

    \b
    coaching-service new-secret-key
    coaching-service admin keys rotate
    """


@keys.command()
@json_option
@data_option
def rotate(as_json: bool, data: Path | None) -> None:
    """Encrypt every stored secret with the newest of SECRET_KEYS, as `coaching-service rotate-secrets` does.

    Its help says how to replace a master key while the service runs.
    """

    async def work(operator: Operator) -> None:
        total, changed = await rotate_secrets(operator.services)
        await operator.record("keys.rotated", changed=changed)
        message = f"{total} keys, {changed} of them re-encrypted"
        report(message, {"secrets": total, "changed": changed}, as_json=as_json)

    as_operator(data, work)
