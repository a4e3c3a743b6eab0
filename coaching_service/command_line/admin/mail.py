"""Mail that was not sent: list, and send again."""

from __future__ import annotations

from pathlib import Path

import click

from coaching_service.command_line.admin.jobs import identifier_of
from coaching_service.command_line.admin.running import Column, as_operator, json_option, print_list, report
from coaching_service.command_line.options import data_option
from coaching_service.lifecycle.administration import background as service
from coaching_service.lifecycle.administration.models import MailSummary
from coaching_service.lifecycle.administration.service import Operator

_COLUMNS = (
    Column("ID", 24),
    Column("STATE", 8),
    Column("TRIES", 5, right=True),
    Column("TO", 28),
    Column("SUBJECT", 32),
    Column("REASON", 0),
)


@click.group()
def mail() -> None:
    """Mail that was not sent.

    \b
    retrying  the mail server did not accept it; it is tried again for two days
    failed    it was rejected for good, or an attempt was interrupted and it may have been sent; stored for 30 days

    \b
    coaching-service admin mail list
    coaching-service admin mail resend 0123456789abcdef01234567
    """


@mail.command("list")
@json_option
@data_option
def list_mail(as_json: bool, data: Path | None) -> None:
    """List the mail that was not sent: to whom, how often it was tried, and why it failed."""

    async def work(operator: Operator) -> None:
        rows = service.iterate_unsent_mail(operator)
        await print_list(rows, _COLUMNS, _cells, as_json=as_json, empty="All mail was sent")

    as_operator(data, work)


def _cells(row: MailSummary) -> tuple[str, ...]:
    tries, to, subject = str(row["tries"]), row["to"] or "-", row["subject"] or "-"
    return str(row["id"]), row["state"], tries, to, subject[:32], row["reason"]


@mail.command()
@click.argument("identifier", metavar="MAIL")
@json_option
@data_option
def resend(identifier: str, as_json: bool, data: Path | None) -> None:
    """Send MAIL again, to the same address; a running service does it within seconds. Links in it may have expired."""

    async def work(operator: Operator) -> None:
        await service.send_again(operator, identifier_of(identifier))
        report(f"{identifier} is sent again", {"id": identifier, "state": "queued"}, as_json=as_json)

    as_operator(data, work)
