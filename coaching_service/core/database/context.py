"""The first argument of every service function: the caller, and where the data is."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field, replace
from email.message import EmailMessage
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from motor.motor_asyncio import AsyncIOMotorClientSession, AsyncIOMotorCollection, AsyncIOMotorDatabase

from coaching_service.core.auth.secrets import Vault
from coaching_service.core.database.monitor import DatabaseMonitor
from coaching_service.core.events import DomainEvent, EventBus
from coaching_service.core.ids import ObjectId
from coaching_service.core.media import ImageProcessor

if TYPE_CHECKING:
    from coaching_service.core.auth.principal import Principal

MAX_FILE_WRITES = 4

Database = AsyncIOMotorDatabase[dict[str, Any]]
Collection = AsyncIOMotorCollection[dict[str, Any]]


class MailSender(Protocol):
    """Sends e-mail. `repeatable`: sending the same e-mail twice does no harm."""

    repeatable: ClassVar[bool]

    async def send(self, mail: EmailMessage) -> None:
        """Send an e-mail. Raises MailRejected if it was certainly not accepted."""


@dataclass(frozen=True, slots=True)
class Services:
    """What the process offers to every request, made once at start.

    `events` has the subscribers of domain events; `base_url` is the public address without a trailing slash;
    `registration`: companies may sign up by themselves; `image_processor` decodes uploaded images; `sign_in_lock` is
    held while a password is verified; `job_available` wakes the background worker;
    `file_write_slots` limits how many files are written to GridFS at the same time; `database_response_seconds`: how
    long a request waits at most while the database does not respond.
    """

    db: Database
    vault: Vault
    events: EventBus
    base_url: str
    mail_sender: MailSender
    registration: bool = True
    image_processor: ImageProcessor = field(default_factory=ImageProcessor)
    sign_in_lock: AbstractAsyncContextManager[object] = field(default_factory=asyncio.Lock)
    job_available: asyncio.Event = field(default_factory=asyncio.Event)
    file_write_slots: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(MAX_FILE_WRITES))
    database_response_seconds: float = 2.0
    monitor: DatabaseMonitor = field(init=False, repr=False)
    _collections: dict[str, Collection] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "monitor", DatabaseMonitor(self.db, self.database_response_seconds))

    def collection(self, name: str) -> Collection:
        """The driver's collection of that name, cached: creating one takes the driver some time.

        Raises Unavailable while the database is lost, so that nothing waits for it.
        """
        self.monitor.require()
        if (collection := self._collections.get(name)) is None:
            collection = self._collections[name] = self.db[name]
        return collection


@dataclass(frozen=True, slots=True)
class Context:
    """One request or piece of background work: its caller, its network address, and its transaction, if any.

    `is_disconnected` returns whether the caller has closed the connection, so that queued work can be skipped.
    """

    services: Services
    principal: Principal | None = None
    session: AsyncIOMotorClientSession | None = None
    request_id: str = "-"
    network_address: str = "-"
    is_disconnected: Callable[[], bool] = bool  # bool() is False

    @property
    def db(self) -> Database:
        """The database."""
        return self.services.db

    @property
    def caller(self) -> Principal:
        """The authenticated caller. Raises RuntimeError in a public operation, which has none."""
        if self.principal is None:
            raise RuntimeError("this operation needs a principal")
        return self.principal

    @property
    def company_id(self) -> ObjectId:
        """The caller's company, with which every query begins."""
        return self.caller.company.id

    def acting_as(self, principal: Principal) -> Context:
        """A copy of this context with `principal` as its caller."""
        return replace(self, principal=principal)

    async def publish(self, event: DomainEvent) -> None:
        """Call the subscribers of a domain event, in the transaction of this context."""
        await self.services.events.publish(self, event)
