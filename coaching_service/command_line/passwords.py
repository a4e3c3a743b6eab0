"""The password of a new account: an option, the standard input, or a question."""

from __future__ import annotations

import sys

import click
from marshmallow import ValidationError

from coaching_service.people.sessions.schemas import NewPassword


def read_password(command: click.Context, given: str | None, *, from_stdin: bool) -> str:
    """Return the password of the option `--password`, else of `--password-stdin`, else what is typed twice.

    Raises UsageError for both options, and BadParameter if it is not accepted as a new password.
    """
    if given is not None and from_stdin:
        raise click.UsageError("Use --password or --password-stdin, not both.", command)
    if from_stdin:
        given = sys.stdin.readline().rstrip("\r\n")
    elif given is None:
        given = click.prompt("Password", hide_input=True, confirmation_prompt=True)
    try:
        password: str = NewPassword().deserialize(given)
    except ValidationError as error:
        raise click.BadParameter(f"{error.messages[0]}.", command, param_hint="--password") from None
    return password
