"""The commands of the command line."""

from __future__ import annotations

import click

from coaching_service.command_line.group import main


def all_commands() -> dict[str, click.Command]:
    """Every command by its name in the list of `--help`."""
    context = click.Context(main)
    return {name: command for name in main.list_commands(context) if (command := main.get_command(context, name))}
