"""Checking the stored data."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Literal

import click
import orjson
from rich.console import Console
from rich.markup import escape

from coaching_service import features, runtime
from coaching_service.command_line.options import data_option, settings_with
from coaching_service.command_line.running import console, on_database, progress, with_services
from coaching_service.core.database.checks import Check, CheckResult, run_checks
from coaching_service.core.database.context import Services
from coaching_service.installation import migrations
from coaching_service.lifecycle import consistency
from coaching_service.people import api_keys, push, second_factor
from coaching_service.people.webhooks import service as webhooks

PROBLEMS, COULD_NOT_RUN = 1, 2
_FINDING = ("problem", "count", "example", "advice", "is_notice")  # in the output of --json, before the identifiers


def _names(_: click.Context, __: click.Parameter, names: tuple[str, ...]) -> tuple[Check, ...]:
    known = {check.name: check for check in features.CHECKS}
    if unknown := set(names) - set(known):
        raise click.BadParameter(f"{', '.join(sorted(unknown))} is not one of: {', '.join(known)}.")
    return tuple(known[name] for name in names) or features.CHECKS


@click.command()
@click.option("--repair", is_flag=True, help="Correct what can be corrected safely while the service runs.")
@click.option(
    "--delete-unreferenced-files",
    "deleting_files",
    is_flag=True,
    help="With --repair: also delete files that no record has referred to for a day. Not if records may be missing.",
)
@click.option("--check", "checks", multiple=True, callback=_names, help="Only this check; may be repeated.")
@click.option(
    "--json", "as_json", is_flag=True, help="Print the results as JSON, with the identifiers of all findings."
)
@data_option
def doctor(repair: bool, deleting_files: bool, checks: tuple[Check, ...], as_json: bool, data: Path | None) -> None:
    """Check the stored data, and say what to do about each problem. It may run while the service runs.

    Nothing is changed without --repair, which counts again what is counted, creates missing indexes, releases blocked
    jobs and deletes what is left of uploads that were interrupted over a day ago. Identifiers in the output contain no
    personal data.

    \b
    Exit code:
      0  no problem, or all are repaired
      1  problems
      2  a check could not run
    """
    if deleting_files and not repair:
        raise click.UsageError("--delete-unreferenced-files needs --repair")

    async def work(services: Services) -> list[CheckResult]:
        await migrations.require_known(services.db)
        seen: list[str] = []
        with progress("Checking", len(checks)) as update:

            def report(result: CheckResult) -> None:
                if result.check.name not in seen:
                    seen.append(result.check.name)
                read = f" ({result.documents} read)" if result.documents else ""
                update(completed=len(seen) - 1, description=result.check.title + read)

            return await run_checks(services, checks, repairing=repair, deleting_files=deleting_files, report=report)

    results = with_services(settings_with(data), work, prepares=False)
    if as_json:
        _write_json(results, sys.stdout.buffer)
    else:
        _print(results)
    if any(result.error is not None for result in results):
        raise SystemExit(COULD_NOT_RUN)
    if any(result.problems for result in results):
        raise SystemExit(PROBLEMS)


def _status(result: CheckResult) -> Literal["ok", "notice", "problem", "error"]:
    if result.error is not None:
        return "error"
    if result.problems:
        return "problem"
    return "notice" if result.findings else "ok"


def _write_json(results: Sequence[CheckResult], out: IO[bytes]) -> None:
    """Write the results one after another: there may be more identifiers than fit into memory."""
    for number, result in enumerate(results):
        out.write(b",\n" if number else b"[\n")
        about = {"check": result.check.name, "title": result.check.title, "status": _status(result)}
        out.write(orjson.dumps({**about, "documents": result.documents, "error": result.error})[:-1])
        for name, findings in (("repaired", result.repaired), ("findings", result.findings)):
            out.write(b',"%s":[' % name.encode())
            for position, finding in enumerate(findings):
                out.write(b",\n " if position else b"\n ")
                described = {name: getattr(finding, name) for name in _FINDING}
                out.write(orjson.dumps(described)[:-1] + b',"identifiers":[')
                for index, identifier in enumerate(finding.identifiers):
                    out.write((b"," if index else b"") + orjson.dumps(identifier))
                out.write(b"]}")
            out.write(b"]")
        out.write(b"}")
    out.write(b"\n]\n")
    out.flush()


def _print(results: Sequence[CheckResult]) -> None:
    out = Console(width=None if sys.stdout.isatty() else 200, highlight=False)
    colors = {"ok": "green", "notice": "cyan", "problem": "red", "error": "red"}
    for result in results:
        status = _status(result)
        out.print(f"[{colors[status]}]{status:8}[/] {result.check.title} ({result.check.name})")
        if result.error is not None:
            out.print(f"         could not run: {escape(result.error)}")
        for finding in result.repaired:
            out.print(f"         repaired: {escape(finding.problem)}: {finding.count}")
        for finding in result.findings:
            example = f", such as {escape(finding.example)}" if finding.example else ""
            out.print(
                f"         {escape(finding.problem)}: {finding.count}{example}\n         {escape(finding.advice)}."
            )
    problems = sum(len(result.problems) for result in results)
    out.print(f"{len(results)} checks, {problems} problems")


# --- Maintaining the database: indexes, migrations, files without a record, and secrets -------------------------------


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
    result = await consistency.collect(services, remove=not dry_run)
    click.echo(
        f"{result.files} files; {'found' if dry_run else 'removed'}: {result.orphans} without a record and "
        f"{result.chunks_only} with only chunks left, {result.bytes} bytes in total"
    )


@click.command("rotate-secrets")
@on_database()
async def rotate_secrets(services: Services) -> None:
    """Re-encrypt API keys, secrets of webhooks and second factors, and keys and addresses of Web Push.

    \b
    To replace the master key while the service runs:
      1. coaching-service new-secret-key, and set it before the old one: SECRET_KEYS=new,old; the first one encrypts
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
        for feature in (api_keys, webhooks, push, second_factor):
            async for is_new in feature.rotate_master_key(services):
                total, changed = total + 1, changed + is_new
                status.update(f"Rotating ... {total} keys")
    return total, changed
