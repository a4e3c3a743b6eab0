"""The commands of the program: their list, and an operator who runs them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import click
import pytest
import structlog
from click.testing import CliRunner

from coaching_service.command_line.group import main
from coaching_service.core.database.context import Services
from coaching_service.installation import migrations
from coaching_service.settings import Settings
from tests.support.databases import INDEX_STATE, new_database, remove_documents
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


def refused_start(folder: Path, *arguments: str, **settings: str) -> str:
    """Start the service with invalid settings in this process, and return the one sentence that it is refused with.

    On a thread, where a service that is not refused fails at once: only the main thread may handle signals.
    """
    words, before = ("serve", "--demo", "--port", "0", "--data", str(folder), *arguments), structlog.get_config()
    try:
        with ThreadPoolExecutor(1) as thread:
            return (
                thread.submit(partial(type_in, *words, WORKERS="1", LOG_LEVEL="error", **settings)).result().refused()
            )
    finally:
        structlog.configure(**before)


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
    async with _operating(settings, "operator", has_indexes=False) as instance:
        yield instance


@pytest.fixture(scope="module")
async def prepared_database(settings: Settings) -> AsyncIterator[Operator]:
    """An operator with a database that has all indexes."""
    async with _operating(settings, "prepared", has_indexes=True) as instance:
        yield instance


@pytest.fixture
async def prepared(prepared_database: Operator) -> Operator:
    """An operator with a database that has all indexes and no documents of companies."""
    await remove_documents(prepared_database.services.db, but_of=(INDEX_STATE, migrations.COLLECTION))
    return prepared_database


@asynccontextmanager
async def _operating(settings: Settings, suffix: str, *, has_indexes: bool) -> AsyncIterator[Operator]:
    async with new_database(settings, suffix, has_indexes=has_indexes) as (own, services):
        environment = {
            "MONGODB_URI": str(own.mongodb_uri),
            "MONGODB_DATABASE": own.mongodb_database,
            "SECRET_KEYS": ",".join(own.secret_keys),
        }
        yield Operator(services, environment)
