"""Coaches and clients: find by e-mail, send a reset of the password, end sessions."""

from __future__ import annotations

import click

from coaching_service.command_line.admin.running import as_operator, print_fields, print_json, report
from coaching_service.lifecycle import administration as service
from coaching_service.lifecycle.administration import Operator

email_argument = click.argument("email", metavar="EMAIL")


@click.group()
def people() -> None:
    """Coaches and clients of all companies, by the e-mail address with which they sign in.

    \b
    coaching-service admin people find ana@example.com
    coaching-service admin people send-reset ana@example.com
    coaching-service admin people end-sessions ana@example.com
    """


@people.command()
@email_argument
@as_operator
async def find(operator: Operator, email: str, *, as_json: bool) -> None:
    """Show who signs in by EMAIL, in which company, and with how many sessions."""
    person = await service.find(operator, email)
    if as_json:
        print_json(person)
        return
    print_fields(
        [
            ("ID", str(person["id"])),
            ("Name", person["name"]),
            ("Role", {"CUSTOMER": "client"}.get(person["role"], person["role"].lower())),
            ("E-mail", person["email"]),
            ("Company", f"{person['companyName']}, {person['companyId']}, {person['companyState']}"),
            ("Sessions", str(person["sessions"])),
        ]
    )


@people.command("send-reset")
@email_argument
@as_operator
async def send_reset(operator: Operator, email: str, *, as_json: bool) -> None:
    """Send a link to set a new password to EMAIL; it works once, within the hour.

    The password and the sessions stay until the link is used. A running service sends the mail.
    """
    person_id = await service.send_reset(operator, email)
    report(f"A link to set a password is sent to {email}", {"id": person_id}, as_json=as_json)


@people.command("end-sessions")
@email_argument
@as_operator
async def end_sessions(operator: Operator, email: str, *, as_json: bool) -> None:
    """Sign out all devices of EMAIL, and disconnect the assistants of a coach, from their next request.

    API keys and the password stay: for a stolen account, `send-reset` first.
    """
    person = await service.end_sessions(operator, email)
    facts = {"id": person["id"], "sessions": person["sessions"]}
    report(f"{person['sessions']} sessions ended", facts, as_json=as_json)
