"""The command line with all commands."""

from __future__ import annotations

import errno
from typing import Any

import click

from coaching_service.command_line.admin.group import admin
from coaching_service.command_line.backup import backup, restore
from coaching_service.command_line.create_company import create_company
from coaching_service.command_line.create_key import create_key
from coaching_service.command_line.doctor import COULD_NOT_RUN, doctor
from coaching_service.command_line.ensure_indexes import ensure_indexes
from coaching_service.command_line.export_company import export_company
from coaching_service.command_line.gc_files import gc_files
from coaching_service.command_line.import_company import import_file
from coaching_service.command_line.list_routes import routes
from coaching_service.command_line.list_settings import list_settings
from coaching_service.command_line.migrate import migrate
from coaching_service.command_line.new_secret_key import new_secret_key
from coaching_service.command_line.print_openapi import openapi
from coaching_service.command_line.rotate_secrets import rotate_secrets
from coaching_service.command_line.seed import seed
from coaching_service.command_line.serve import serve
from coaching_service.command_line.shard import shard
from coaching_service.core.auth.secrets import SecretUnreadable
from coaching_service.core.database.backup.manifest import BackupError
from coaching_service.core.database.connection import UNAUTHORIZED, as_service_error
from coaching_service.core.database.embedded import DatabaseUnavailable
from coaching_service.core.database.indexes import IndexConflict
from coaching_service.core.database.migrations import NewerDatabase
from coaching_service.core.errors import ServiceError
from coaching_service.core.temporary_files import NO_SPACE
from coaching_service.settings import SettingsError

_FILE_ERRORS = (
    *NO_SPACE,
    errno.EROFS,
    errno.EACCES,
    errno.EPERM,
    errno.ENOTDIR,
    errno.EEXIST,
)


class _CouldNotRun(click.ClickException):
    exit_code = COULD_NOT_RUN


class _Commands(click.Group):
    """Reports expected errors as one sentence with exit code 1; with 2 for `doctor`, whose 1 means problems."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return self._invoke(ctx)
        except click.ClickException as error:
            if ctx.invoked_subcommand == doctor.name and not isinstance(error, click.UsageError):
                raise _CouldNotRun(error.message) from None
            raise

    def _invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except (SettingsError, DatabaseUnavailable, IndexConflict, NewerDatabase, BackupError, ServiceError) as error:
            raise click.ClickException(str(error)) from None
        except SecretUnreadable as error:
            raise click.ClickException(f"A stored API key cannot be read: {error}") from None
        except OSError as error:
            if error.errno not in _FILE_ERRORS:
                raise
            raise click.ClickException(f"{error.filename or 'A file'} cannot be written ({error.strerror})") from None
        except Exception as error:
            if getattr(error, "code", None) in UNAUTHORIZED:
                message = (
                    "The database refuses the user name and password in MONGODB_URI, or that user lacks permissions"
                )
            elif (known := as_service_error(error)) is not None:
                message = str(known)
            else:
                raise
            raise click.ClickException(message) from None


@click.group(cls=_Commands)
@click.version_option(package_name="coaching-service")
def main() -> None:
    """The open coaching service.

    Without MONGODB_URI every command works on the embedded MongoDB in the folder --data, also while a service runs on
    it; with it, on that database. `coaching-service settings` lists all settings.

    \b
    Start here:
      coaching-service serve --demo      start the service with a demo company
      coaching-service routes            list every operation and the permission it requires
    """


for command in (
    serve,
    seed,
    create_company,
    create_key,
    export_company,
    import_file,
    ensure_indexes,
    migrate,
    backup,
    restore,
    shard,
    gc_files,
    doctor,
    rotate_secrets,
    new_secret_key,
    routes,
    list_settings,
    openapi,
    admin,
):
    main.add_command(command)
