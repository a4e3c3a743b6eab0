"""What the operator has done."""

from __future__ import annotations

from pathlib import Path

import click

from coaching_service.command_line.admin.running import Column, as_operator, format_time, json_option, print_list
from coaching_service.command_line.options import data_option
from coaching_service.core import audit
from coaching_service.core.audit import OperatorAction
from coaching_service.lifecycle.administration.service import Operator

_COLUMNS = (Column("TIME (UTC)", 16), Column("OPERATOR", 16), Column("ACTION", 24), Column("SUBJECT", 0))


@click.command()
@click.option("--limit", type=click.IntRange(1), default=100, show_default=True, help="Number of actions.")
@json_option
@data_option
def actions(limit: int, as_json: bool, data: Path | None) -> None:
    """List what operators have done with `admin`, newest first.

    The log has identifiers and reasons, and stays when a company is erased.
    """

    async def work(operator: Operator) -> None:
        rows = audit.iterate_operator_actions(operator.services, limit)
        await print_list(rows, _COLUMNS, _cells, as_json=as_json, empty="There are no actions")

    as_operator(data, work)


def _cells(row: OperatorAction) -> tuple[str, ...]:
    return format_time(row["createdAt"]), row["operator"], row["action"], str(row["subjectId"] or "-")
