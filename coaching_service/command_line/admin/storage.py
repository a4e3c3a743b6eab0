"""Storage: files and bytes of each company."""

from __future__ import annotations

from pathlib import Path

import click

from coaching_service.command_line.admin.running import Column, as_operator, format_bytes, json_option, print_list
from coaching_service.command_line.options import data_option
from coaching_service.lifecycle.administration import service
from coaching_service.lifecycle.administration.models import CompanyUsage
from coaching_service.lifecycle.administration.service import Operator

_COLUMNS = (
    Column("ID", 24),
    Column("FILES", 8, right=True),
    Column("STORAGE", 9, right=True),
    Column("USED", 5, right=True),
    Column("NAME", 0),
)


@click.command()
@json_option
@data_option
def storage(as_json: bool, data: Path | None) -> None:
    """List the files of each company: how many, and their size; thumbnails count as files of their own.

    USED is the part of MAX_STORAGE_BYTES_PER_COMPANY or MAX_FILES_PER_COMPANY, the greater of both.

    \b
    coaching-service admin storage
    coaching-service admin storage --json | jq -s 'sort_by(-.bytes)[:10]'
    """

    async def work(operator: Operator) -> None:
        rows = service.iterate_usage(operator)
        await print_list(rows, _COLUMNS, _cells, as_json=as_json, empty="There are no companies")

    as_operator(data, work)


def _cells(row: CompanyUsage) -> tuple[str, ...]:
    return str(row["id"]), str(row["files"]), format_bytes(row["bytes"]), _used(row), row["name"]


def _used(row: CompanyUsage) -> str:
    """Return how much of its quota a company uses: the greater of files and bytes."""
    shares = [used / most for used, most in ((row["files"], row["maxFiles"]), (row["bytes"], row["maxBytes"])) if most]
    return f"{max(shares):.0%}" if shares else "-"
