"""The options of commands that use a database, and the settings from them."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import Any

import click

from coaching_service.core.database.connection import hosts_of
from coaching_service.settings import Settings

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
            variables[name.strip()] = _unquote(value.strip())
    return variables


def _unquote(value: str) -> str:
    if not value.startswith(("'", '"')):
        return value
    try:
        return "".join(shlex.split(value))
    except ValueError:  # a quote that does not end belongs to the value
        return value
