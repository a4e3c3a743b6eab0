"""Web Push: replace the key of the service."""

from __future__ import annotations

from pathlib import Path

import click

from coaching_service.command_line.admin.running import as_operator, json_option, report
from coaching_service.command_line.options import data_option
from coaching_service.lifecycle.administration.service import Operator
from coaching_service.people.push import keys


@click.group()
def push() -> None:
    """The key with which the service signs notifications (VAPID). `doctor --check push-key` shows it.

    \b
    coaching-service admin push rotate-key
    """


@push.command("rotate-key")
@json_option
@data_option
def rotate_key(as_json: bool, data: Path | None) -> None:
    """Make a new key, and print its public part.

    A device that receives notifications uses the previous key until it opens a page: then it subscribes with the new
    one. Keys that were replaced over 100 days ago are deleted.
    """

    async def work(operator: Operator) -> None:
        key = await keys.rotate(operator.services)
        await operator.record("push.keyRotated", key=key)
        report(f"New devices subscribe with {key}", {"key": key}, as_json=as_json)

    as_operator(data, work)
