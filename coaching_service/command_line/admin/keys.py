"""The keys of the service: rotate the master keys, and replace the key of Web Push."""

from __future__ import annotations

import click

from coaching_service.command_line.admin.running import as_operator, report
from coaching_service.command_line.maintenance import rotate as rotate_secrets
from coaching_service.lifecycle.administration import Operator
from coaching_service.people.push import keys as push_keys


@click.group()
def keys() -> None:
    """The master keys with which secrets are stored.

    \b
    coaching-service new-secret-key
    coaching-service admin keys rotate
    """


@keys.command()
@as_operator
async def rotate(operator: Operator, *, as_json: bool) -> None:
    """Encrypt every stored secret with the newest of SECRET_KEYS, as `coaching-service rotate-secrets` does.

    Its help says how to replace a master key while the service runs.
    """
    total, changed = await rotate_secrets(operator.services)
    await operator.record("keys.rotated", changed=changed)
    report(f"{total} keys, {changed} of them re-encrypted", {"secrets": total, "changed": changed}, as_json=as_json)


@click.group()
def push() -> None:
    """The key with which the service signs notifications (VAPID). `doctor --check push-key` shows it.

    \b
    coaching-service admin push rotate-key
    """


@push.command("rotate-key")
@as_operator
async def rotate_key(operator: Operator, *, as_json: bool) -> None:
    """Make a new key, and print its public part.

    A device that receives notifications uses the previous key until it opens a page: then it subscribes with the new
    one. Keys that were replaced over 100 days ago are deleted.
    """
    key = await push_keys.rotate(operator.services)
    await operator.record("push.keyRotated", key=key)
    report(f"New devices subscribe with {key}", {"key": key}, as_json=as_json)
