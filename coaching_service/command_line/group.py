"""The command line with all commands, each imported when it is used: most import the whole service."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import click

from coaching_service.memory import without_collection

# By the name of a command: its module and function in this package, and its line in the list of commands.
_COMMANDS = {
    "serve": ("serve:serve", "Start the service."),
    "seed": ("companies:seed", "Create the demo company, or many clients."),
    "create-company": ("companies:create_company", "Create a company with its owner and an API key."),
    "create-key": ("companies:create_key", "Create an API key for a coach."),
    "export": ("companies:export_company", "Write everything of a company to a file."),
    "import": ("companies:import_file", "Import an export, or a CSV file, into a company."),
    "ensure-indexes": ("doctor:ensure_indexes", "Create every missing index."),
    "migrate": ("doctor:migrate", "Change the stored documents after an upgrade."),
    "backup": ("backup:backup", "Back up the whole database while the service runs."),
    "backups": ("backup:backups", "List the backups of the store."),
    "verify-backup": ("backup:verify_backup", "Verify what the store has of the backups."),
    "restore": ("backup:restore", "Restore a backup."),
    "shard": ("backup:shard", "Print the commands that shard the database."),
    "gc-files": ("doctor:gc_files", "Remove files that no record refers to."),
    "doctor": ("doctor:doctor", "Check the stored data."),
    "report-failure": ("options:report_failure", "Report that a scheduled program has failed."),
    "rotate-secrets": ("doctor:rotate_secrets", "Encrypt all secrets with the first master key."),
    "new-backup-key": ("companies:new_backup_key", "Print a new key for encrypted backups."),
    "new-secret-key": ("companies:new_secret_key", "Print a new master key."),
    "routes": ("running:routes", "List every operation and the permission it requires."),
    "settings": ("running:list_settings", "List all settings."),
    "listen": ("listen:listen", "Forward events to a program under development."),
    "openapi": ("running:openapi", "Print the OpenAPI document."),
    "admin": ("admin:admin", "Administer the service: companies, people, jobs, mail."),
}
_COULD_NOT_RUN = 2  # of `doctor`, whose 1 means problems


class _CouldNotRun(click.ClickException):
    exit_code = _COULD_NOT_RUN


class _Commands(click.Group):
    """Reports expected errors as one sentence with exit code 1; with 2 for `doctor`."""

    def list_commands(self, _: click.Context) -> list[str]:
        return sorted(_COMMANDS)

    def get_command(self, _: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        module, function = _COMMANDS[cmd_name][0].split(":")
        with without_collection():
            command: click.Command = getattr(import_module(f"coaching_service.command_line.{module}"), function)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, _COMMANDS[name][1]) for name in self.list_commands(ctx)])

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except (click.UsageError, click.Abort, click.exceptions.Exit):
            raise
        except Exception as error:
            from coaching_service.command_line import options

            is_doctor = ctx.invoked_subcommand == "doctor"
            if isinstance(error, click.ClickException) and not is_doctor:
                raise
            message = error.message if isinstance(error, click.ClickException) else options.describe(error)
            if message is None:
                raise
            raise (_CouldNotRun if is_doctor else click.ClickException)(message) from None


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
