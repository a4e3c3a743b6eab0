"""The group of the operator's commands."""

from __future__ import annotations

import click

from coaching_service.command_line.admin.actions import actions
from coaching_service.command_line.admin.companies import companies
from coaching_service.command_line.admin.jobs import jobs
from coaching_service.command_line.admin.keys import keys
from coaching_service.command_line.admin.mail import mail
from coaching_service.command_line.admin.people import people
from coaching_service.command_line.admin.push import push
from coaching_service.command_line.admin.storage import storage


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


for command in (companies, people, jobs, mail, push, keys, storage, actions):
    admin.add_command(command)
