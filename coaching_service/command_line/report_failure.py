"""Reporting that a scheduled program has failed."""

from __future__ import annotations

import asyncio
import socket
from email.message import EmailMessage
from email.utils import localtime, make_msgid

import click

from coaching_service.command_line.options import settings_with


@click.command("report-failure")
@click.argument("unit")
def report_failure(unit: str) -> None:
    """Report that UNIT, a unit of systemd, has failed: to standard error, and by mail to OPERATOR_EMAIL, if it is set.

    deploy/systemd/coaching-service-failure@.service calls it.
    """
    settings, host = settings_with(), socket.gethostname()
    # "<2>" is the level "critical" of the journal.
    click.echo(f"<2>{unit} has failed on {host}: journalctl -u {unit}", err=True)
    if settings.operator_email is None:
        return
    sender = settings.mail_sender()
    mail = EmailMessage()
    mail["From"], mail["To"] = sender.sender, settings.operator_email
    mail["Message-ID"], mail["Date"] = make_msgid(), localtime()
    mail["Subject"] = f"{unit} has failed on {host}"
    mail.set_content(f"{unit} has failed on {host}. Its log: journalctl -u {unit}\n")
    asyncio.run(sender.send(mail))
