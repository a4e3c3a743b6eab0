"""The options of commands that use a database, and the settings from them."""

from __future__ import annotations

import asyncio
import errno
import os
import shlex
import socket
from contextlib import suppress
from email.message import EmailMessage
from email.utils import localtime, make_msgid
from pathlib import Path
from typing import Any

import click

from coaching_service.core.auth import SecretUnreadable
from coaching_service.core.database.connection import UNAUTHORIZED, as_service_error, hosts_of
from coaching_service.core.errors import ServiceError
from coaching_service.core.jobs.mail import MailRejected
from coaching_service.core.temporary_files import NO_SPACE
from coaching_service.installation.backup.stores import BackupError
from coaching_service.installation.embedded import DatabaseUnavailable
from coaching_service.installation.indexes import IndexConflict
from coaching_service.installation.migrations import NewerDatabase
from coaching_service.settings import Settings, SettingsError

# What the units of deploy/systemd pass to the service.
ENVIRONMENT_FILE = Path("/etc/coaching-service.env")
SERVICE_FOLDER = Path("/var/lib/coaching-service")
BACKUP_FOLDER = Path("/var/lib/coaching-service-backups")

data_option = click.option(
    "--data", type=click.Path(path_type=Path, file_okay=False), help="Folder of the embedded database [.local]."
)


def settings_with(data: Path | None = None) -> Settings:
    """Return the settings of a command: of the environment, or of ENVIRONMENT_FILE if the environment has none.

    With `data` the file is not read: it may name another database. Prints the file and the database if there is a file.
    """
    if data is not None or not ENVIRONMENT_FILE.exists():
        return service_settings_with(data)
    text = None
    if Settings.variables() & {name for name, value in os.environ.items() if value}:
        source = f"Settings of the environment, not of {ENVIRONMENT_FILE}"
    else:
        try:
            text = ENVIRONMENT_FILE.read_text("utf-8")
        except OSError as error:
            source = f"{ENVIRONMENT_FILE} cannot be read ({error.strerror})"
    if text is None:
        settings = service_settings_with()
    else:
        variables = read_variables(text)
        os.environ.update({name: value for name, value in variables.items() if name.startswith("AWS_")})
        defaults = {"DATA_DIR": str(SERVICE_FOLDER), "BACKUP_STORE": str(BACKUP_FOLDER)}
        settings = Settings.from_environment(defaults | variables)
        source = f"Settings of {ENVIRONMENT_FILE}"
    database = hosts_of(settings.mongodb_uri) if settings.mongodb_uri else settings.data_dir.absolute()
    click.echo(f"{source}; database: {database}", err=True)
    return settings


def service_settings_with(data: Path | None = None, **options: Any) -> Settings:
    """Return the settings of the environment, replaced by those given on the command line."""
    given = {name: value for name, value in {"data_dir": data, **options}.items() if value is not None}
    return Settings.from_environment().model_copy(update=given)


def read_variables(text: str) -> dict[str, str]:
    """Return the variables in a file of the form that systemd's EnvironmentFile= reads.

    A value may be quoted; a line that begins with # or ; is a comment, and so is one without "=".
    """
    variables: dict[str, str] = {}
    for line in text.replace("\\\n", "").splitlines():
        name, is_assignment, value = line.strip().partition("=")
        if is_assignment and not name.startswith(("#", ";")):
            variables[name.strip()] = text = value.strip()
            if text.startswith(("'", '"')):
                with suppress(ValueError):  # a quote that does not end belongs to the value
                    variables[name.strip()] = "".join(shlex.split(text))
    return variables


# --- What the command line says about expected errors -----------------------------------------------------------------


_EXPECTED = (SettingsError, DatabaseUnavailable, IndexConflict, NewerDatabase, BackupError, MailRejected, ServiceError)
_FILE_ERRORS = (*NO_SPACE, errno.EROFS, errno.EACCES, errno.EPERM, errno.ENOTDIR, errno.EEXIST)


def describe(error: Exception) -> str | None:
    """Return the sentence about an error of a command, or None if it is not expected."""
    if isinstance(error, _EXPECTED):
        return str(error)
    if isinstance(error, SecretUnreadable):
        return f"A stored API key cannot be read: {error}"
    if isinstance(error, OSError):
        is_of_file = error.errno in _FILE_ERRORS
        return f"{error.filename or 'A file'} cannot be written ({error.strerror})" if is_of_file else None
    if getattr(error, "code", None) in UNAUTHORIZED:
        return "The database refuses the user name and password in MONGODB_URI, or that user lacks permissions"
    known = as_service_error(error)
    return None if known is None else str(known)


# --- Reporting that a scheduled program has failed --------------------------------------------------------------------


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
