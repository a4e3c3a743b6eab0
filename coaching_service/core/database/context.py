"""What a domain function is given first: who asks, and where the data is."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, field, replace
from email.message import EmailMessage
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeVar

from motor.motor_asyncio import AsyncIOMotorClientSession, AsyncIOMotorCollection, AsyncIOMotorDatabase

from coaching_service.core.auth.secrets import Vault
from coaching_service.core.errors import Unavailable
from coaching_service.core.ids import ObjectId
from coaching_service.core.media import Pictures

if TYPE_CHECKING:
    from coaching_service.core.auth.principal import Principal

Database = AsyncIOMotorDatabase[dict[str, Any]]
Collection = AsyncIOMotorCollection[dict[str, Any]]
T = TypeVar("T")


class MailSender(Protocol):
    """What sends a mail. `repeatable`: handing the same mail over twice does no harm."""

    repeatable: ClassVar[bool]

    async def send(self, mail: EmailMessage) -> None:
        """Hand a mail over. Raises MailRefused when it was certainly not taken."""


@dataclass(frozen=True, slots=True)
class Services:
    """What the running process offers every request: made once at start.

    `base_url` is the address clients know (no trailing slash); `post` sends mail; `registration`: companies may
    sign up by themselves; `pictures` decodes them; `sign_in_line` is where sign-ins wait for one another; `wake` tells
    the background worker that there is work.
    """

    db: Database
    vault: Vault
    base_url: str
    post: MailSender
    registration: bool = True
    pictures: Pictures = field(default_factory=Pictures)
    sign_in_line: asyncio.Lock = field(default_factory=asyncio.Lock)
    wake: asyncio.Event = field(default_factory=asyncio.Event)
    _collections: dict[str, Collection] = field(default_factory=dict, init=False, repr=False)

    def collection(self, name: str) -> Collection:
        """The collection of that name, made once: the driver takes its time for each."""
        if (found := self._collections.get(name)) is None:
            found = self._collections[name] = self.db[name]
        return found


@dataclass(frozen=True, slots=True)
class Context:
    """One piece of work: on behalf of whom, from which address, and inside which transaction, if any.

    `hung_up` tells whether whoever asked is gone, so that work in a long line need not be done.
    """

    services: Services
    principal: Principal | None = None
    session: AsyncIOMotorClientSession | None = None
    request_id: str = "-"
    address: str = "-"
    is_disconnected: Callable[[], bool] = bool  # which gives False

    @property
    def db(self) -> Database:
        """The database."""
        return self.services.db

    @property
    def caller(self) -> Principal:
        """The one asking; a public operation that needs one is a defect."""
        if self.principal is None:
            raise RuntimeError("this operation needs a principal")
        return self.principal

    @property
    def company_id(self) -> ObjectId:
        """The company every query begins with."""
        return self.caller.company.id

    def acting_as(self, principal: Principal) -> Context:
        """The same work on behalf of `principal`."""
        return replace(self, principal=principal)


async def in_transaction(
    ctx: Context, work: Callable[[Context], Coroutine[Any, Any, T]], *, patience: float = 20.0
) -> T:
    """Do `work` in one transaction, or inside the one `ctx` already is in.

    `work` is run again when the transaction collides with another: it must have no effect outside the database. It is
    not begun again after `patience` seconds, where the driver alone would go on for two minutes: raises Unavailable.
    """
    if ctx.session is not None:
        return await work(ctx)
    until = time.monotonic() + patience

    async def once(session: AsyncIOMotorClientSession) -> T:
        if time.monotonic() > until:
            raise Unavailable("The database cannot be reached or is too busy; nothing was changed, try again")
        return await work(replace(ctx, session=session))

    async with await ctx.db.client.start_session() as session:
        result: T = await session.with_transaction(once)
        return result


async def gather_reads(ctx: Context, *reads: Awaitable[Any]) -> list[Any]:
    """The results of independent `reads`: at the same time, or one after another inside a transaction,
    where the server takes one operation at a time. Of several failures the first in order is raised."""
    if ctx.session is None:
        answers = await asyncio.gather(*reads, return_exceptions=True)
        for answer in answers:
            if isinstance(answer, BaseException):
                raise answer
        return answers
    results = []
    pending = list(reads)
    try:
        while pending:
            results.append(await pending.pop(0))
    finally:
        for unread in pending:
            if asyncio.iscoroutine(unread):
                unread.close()
    return results
