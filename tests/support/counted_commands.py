"""Counting what is sent to the database."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace

from motor.motor_asyncio import AsyncIOMotorClient
from pymongo.monitoring import CommandListener, CommandStartedEvent

from coaching_service.core.database.connection import database
from coaching_service.core.database.context import Services
from coaching_service.settings import Settings


class CountedCommands(CommandListener):
    """Counts the commands that are sent to the database."""

    def __init__(self) -> None:
        self.commands: Counter[str] = Counter()

    def started(self, event: CommandStartedEvent) -> None:
        self.commands[event.command_name] += 1

    def succeeded(self, _: object) -> None:
        """Not of interest."""

    failed = succeeded


@contextmanager
def counting_commands(settings: Settings, services: Services) -> Iterator[tuple[Services, Counter[str]]]:
    """The services on a connection of its own, and how often each command has been sent on it."""
    counted = CountedCommands()
    with closing(AsyncIOMotorClient(settings.mongodb_uri, event_listeners=[counted])) as client:
        yield replace(services, db=database(client, settings.mongodb_database)), counted.commands
