"""Maintaining the database: indexes, migrations, files without a record, and secrets."""

from __future__ import annotations

from pathlib import Path

import click

from coaching_service import runtime
from coaching_service.command_line.options import data_option, settings_with
from coaching_service.command_line.running import console, on_database, with_services
from coaching_service.core.database import migrations
from coaching_service.core.database.context import Services
from coaching_service.lifecycle import orphans
from coaching_service.people.api_keys import service as api_keys
from coaching_service.people.push import keys as push_keys
from coaching_service.people.push import service as push
from coaching_service.people.webhooks import service as webhooks


@click.command("ensure-indexes")
@on_database(creates=True, prepares=False)
async def ensure_indexes(services: Services) -> None:
    """Create every missing index. Running it again changes nothing."""
    names = sorted(await runtime.make_indexes(services, compares=True))
    click.echo(f"The indexes of {len(names)} collections exist: {', '.join(names)}")


@click.command()
@click.option("--plan", "only_plan", is_flag=True, help="Only list what is pending; change nothing.")
@data_option
def migrate(data: Path | None, *, only_plan: bool) -> None:
    """Apply pending changes of the stored documents after an update. Running it again changes nothing.

    `serve` does this by itself on the embedded database. With MONGODB_URI the service is not ready until the migrations
    have been applied.
    """

    async def work(services: Services) -> None:
        if only_plan:
            pending = await migrations.find_pending(services.db)
            lines = [f"{step.number:>3}  {step.name}: {step.description}" for step in pending]
            click.echo("\n".join(lines) if lines else "No migration is pending")
            return
        names = await migrations.migrate(services.db, services.vault)
        click.echo(f"Applied: {', '.join(names)}" if names else "No migration is pending")

    with_services(settings_with(data), work, creates=not only_plan)


@click.command("gc-files")
@click.option("--dry-run", is_flag=True, help="Only report.")
@on_database()
async def gc_files(services: Services, *, dry_run: bool) -> None:
    """Remove uploaded files that no record refers to after one hour, and chunks without a file; report the result.

    The running service removes such files every hour.
    """
    result = await orphans.collect(services, remove=not dry_run)
    click.echo(
        f"{result.files} files; {'found' if dry_run else 'removed'}: {result.orphans} without a record and "
        f"{result.chunks_only} with only chunks left, {result.bytes} bytes in total"
    )


@click.command("rotate-secrets")
@on_database()
async def rotate_secrets(services: Services) -> None:
    """Re-encrypt every API key, secret of a webhook, and key and address of Web Push with the newest of SECRET_KEYS.

    \b
    To replace the master key while the service runs:
      1. coaching-service new-secret-key, and set it before the old one: SECRET_KEYS=new,old
      2. restart every process with both keys
      3. coaching-service rotate-secrets (may be interrupted and repeated)
      4. after 24 hours, when no stored response needs the old key: SECRET_KEYS=new, and restart
    """
    total, changed = await rotate(services)
    click.echo(f"{total} keys, {changed} of them re-encrypted")


async def rotate(services: Services) -> tuple[int, int]:
    """Encrypt every secret with the newest master key; returns how many there are, and how many have changed."""
    total = changed = 0
    with console.status("Rotating ...") as status:
        for feature in (api_keys, webhooks, push_keys, push):
            async for is_new in feature.rotate_master_key(services):
                total, changed = total + 1, changed + is_new
                status.update(f"Rotating ... {total} keys")
    return total, changed
