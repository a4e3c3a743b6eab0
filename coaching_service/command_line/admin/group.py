"""The group of the operator's commands, and the lists of storage and of what operators have done."""

from __future__ import annotations

import click

from coaching_service.command_line.admin.background import jobs, mail
from coaching_service.command_line.admin.companies import companies
from coaching_service.command_line.admin.keys import keys, push
from coaching_service.command_line.admin.people import people
from coaching_service.command_line.admin.running import Column, as_operator, format_bytes, format_time, print_list
from coaching_service.core import audit
from coaching_service.core.audit import OperatorAction
from coaching_service.lifecycle import administration
from coaching_service.lifecycle.administration import CompanyUsage, Operator


@click.group()
def admin() -> None:
    """Administer the service: companies, people, jobs, mail, push, keys and storage.

    The commands work while services run on the same database, the embedded one too, and take effect at once in all of
    them. Every command is recorded with your user name: `admin actions` lists that. With --json they print one object
    in each line. Exit code: 0 done, 1 refused, with one sentence on standard error; 2 wrong usage.

    \b
    coaching-service admin companies list
    coaching-service admin companies suspend olga@example.com "Invoice 2026-118 is not paid"
    """


for group in (companies, people, jobs, mail, push, keys):
    admin.add_command(group)


def _used(row: CompanyUsage) -> str | None:
    """Return how much of its quota a company uses: the greater of files and bytes; None without a quota."""
    shares = [used / most for used, most in ((row["files"], row["maxFiles"]), (row["bytes"], row["maxBytes"])) if most]
    return f"{max(shares):.0%}" if shares else None


_USAGE: tuple[Column[CompanyUsage], ...] = (
    Column("ID", 24, lambda row: row["id"]),
    Column("FILES", 8, lambda row: row["files"], right=True),
    Column("STORAGE", 9, lambda row: format_bytes(row["bytes"]), right=True),
    Column("USED", 5, _used, right=True),
    Column("NAME", 0, lambda row: row["name"]),
)


@admin.command()
@as_operator
async def storage(operator: Operator, *, as_json: bool) -> None:
    """List the files of each company: how many, and their size; thumbnails count as files of their own.

    USED is the part of MAX_STORAGE_BYTES_PER_COMPANY or MAX_FILES_PER_COMPANY, the greater of both.

    \b
    coaching-service admin storage
    coaching-service admin storage --json | jq -s 'sort_by(-.bytes)[:10]'
    """
    await print_list(administration.iterate_usage(operator), _USAGE, as_json=as_json, empty="There are no companies")


_ACTIONS: tuple[Column[OperatorAction], ...] = (
    Column("TIME (UTC)", 16, lambda row: format_time(row["createdAt"])),
    Column("OPERATOR", 16, lambda row: row["operator"]),
    Column("ACTION", 24, lambda row: row["action"]),
    Column("SUBJECT", 0, lambda row: row["subjectId"]),
)


@admin.command()
@click.option("--limit", type=click.IntRange(1), default=100, show_default=True, help="Number of actions.")
@as_operator
async def actions(operator: Operator, limit: int, *, as_json: bool) -> None:
    """List what operators have done with `admin`, newest first.

    The log has identifiers and reasons, and stays when a company is erased.
    """
    rows = audit.iterate_operator_actions(operator.services, limit)
    await print_list(rows, _ACTIONS, as_json=as_json, empty="There are no actions")
