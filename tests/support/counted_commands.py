"""Counting what is sent to the database."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from typing import Any

from motor.motor_asyncio import AsyncIOMotorClient
from pymongo.monitoring import CommandListener, CommandStartedEvent

from coaching_service.core.database.connection import database
from coaching_service.core.database.context import Services
from coaching_service.settings import Settings


class CountedCommands(CommandListener):
    """Counts the commands that are sent to the database, or those since the last transaction began.

    A transaction that collides with another one is repeated: its commands before that do not count then.
    """

    def __init__(self, *, of_last_transaction: bool = False) -> None:
        self.commands: Counter[str] = Counter()
        self._of_last_transaction = of_last_transaction

    def started(self, event: CommandStartedEvent) -> None:
        if self._of_last_transaction and event.command.get("startTransaction"):
            self.commands.clear()
        self.commands[event.command_name] += 1

    def succeeded(self, event: object) -> None:
        """Not of interest."""

    def failed(self, event: object) -> None:
        """Not of interest."""


@contextmanager
def counting_commands(
    settings: Settings, services: Services, *, of_last_transaction: bool = False
) -> Iterator[tuple[Services, Counter[str]]]:
    """The services on a connection of its own, and how often each command has been sent on it.

    `of_last_transaction`: since the last transaction began.
    """
    counted = CountedCommands(of_last_transaction=of_last_transaction)
    client: AsyncIOMotorClient[Any] = AsyncIOMotorClient(settings.mongodb_uri, event_listeners=[counted])
    with closing(client):
        yield replace(services, db=database(client, settings.mongodb_database)), counted.commands
