"""The commands of the program: their list, and an operator who runs them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any, NamedTuple

import click
import pytest
from click.testing import CliRunner

from coaching_service.command_line.group import main
from coaching_service.core.database.context import Services
from coaching_service.settings import Settings
from tests.support.databases import new_database
from tests.support.service_process import SETTINGS

PASSWORD = "correct horse battery"


def all_commands() -> dict[str, click.Command]:
    """Every command by its name in the list of `--help`."""
    context = click.Context(main)
    return {name: command for name in main.list_commands(context) if (command := main.get_command(context, name))}


class CommandResult(NamedTuple):
    """Exit code and output of a command."""

    exit_code: int
    out: str
    err: str

    def ok(self) -> str:
        """Assert that the command succeeded and return what it printed."""
        assert self.exit_code == 0, self.err
        return self.out

    def refused(self, *words: str, exit_code: int = 1) -> str:
        """Assert that the command failed with one sentence that contains `words`, and return that sentence."""
        assert (self.exit_code, self.out) == (exit_code, ""), self.out + self.err
        *usage, sentence = self.err.splitlines()
        assert not usage or (exit_code == 2 and usage[0].startswith("Usage: ")), self.err
        for word in words:
            assert word in sentence
        return sentence.removeprefix("Error: ")


def type_in(*words: str, typed: str | None = None, **environment: str | None) -> CommandResult:
    """Run one command with these settings and no others. Raises any exception other than SystemExit."""
    result = CliRunner(env={**dict.fromkeys(SETTINGS), **environment}).invoke(main, words, input=typed)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return CommandResult(result.exit_code, result.stdout, result.stderr)


class Operator:
    """Runs commands with settings that name a database."""

    def __init__(self, services: Services, environment: dict[str, str]) -> None:
        self.services, self.environment = services, environment

    async def types(self, *words: str, typed: str | None = None, **changed: str) -> CommandResult:
        """Run one command in a thread: it brings its own event loop."""
        return await asyncio.to_thread(type_in, *words, typed=typed, **self.environment | changed)

    async def documents(self) -> dict[str, list[dict[str, Any]]]:
        """Return all documents by collection."""
        db, order = self.services.db, [("_id", 1)]
        return {name: await db[name].find({}, sort=order).to_list(None) for name in await db.list_collection_names()}


@pytest.fixture
async def operator(settings: Settings) -> AsyncIterator[Operator]:
    """An operator with an empty database."""
    async with new_database(settings, "operator", has_indexes=False) as (own, services):
        environment = {
            "MONGODB_URI": str(own.mongodb_uri),
            "MONGODB_DATABASE": own.mongodb_database,
            "SECRET_KEYS": ",".join(own.secret_keys),
        }
        yield Operator(services, environment)
