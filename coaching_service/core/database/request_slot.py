"""What a request that uses the database holds: the lock of the schedule that it changes, then a slot."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Hashable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any, Literal

from coaching_service.core.database.context import Context
from coaching_service.core.slots import RequestSlots, overloaded, require_no_transaction

if TYPE_CHECKING:
    from types import TracebackType

# What has a schedule; an operation that changes it declares which in `locks`. Its identifier is `customerId` and so on.
Schedule = Literal["customer", "program", "template"]


def schedule_key(ctx: Context, owner: Schedule | None, *arguments: Mapping[str, Any]) -> Hashable | None:
    """Return the key of the lock for the schedule that a write changes; clients lock their own, whatever they write.

    `owner`: what the operation declares in `locks`. None if it declares nothing, or the `arguments` do not name one.
    """
    if ctx.principal is None:
        return None
    if not ctx.caller.is_coach:
        return ctx.company_id, ctx.caller.id
    names = () if owner is None else (f"{owner}_id", f"{owner}Id")
    identifiers = (named[name] for named in arguments for name in names if named.get(name))
    identifier = next(identifiers, None)
    return None if identifier is None else (ctx.company_id, identifier)


class RequestSlot(AbstractAsyncContextManager[None]):
    """Holds one of `slots` for the caller of `ctx`, who has waited for `waited` seconds before.

    `schedule`: the key of the schedule that the request changes; the requests of this process that change it run one
    after another, and wait for their turn without a slot. This is the only place that acquires a lock of a schedule.

    A request that has changed what processes cache waits at the end, without the slot (see CacheWait). This is a class
    because a generator would cost each request more time. Raises Unavailable if the queue is full or the wait too long.
    """

    __slots__ = ("_company", "_ctx", "_lock", "_slots", "_waited")

    def __init__(
        self, slots: RequestSlots, ctx: Context, waited: float = 0.0, *, schedule: Hashable | None = None
    ) -> None:
        self._ctx, self._slots, self._company, self._waited = ctx, slots, ctx.slot_holder, waited
        self._lock = None if schedule is None else ctx.services.schedule_locks.lock_of(schedule)

    async def __aenter__(self) -> None:
        """Wait for the lock and the slot."""
        if self._lock is None:
            await self._slots.acquire(self._company, self._waited)
        else:
            await self._acquire_both(self._lock)
        self._ctx.cache_wait.is_deferred = True

    async def _acquire_both(self, lock: asyncio.Lock) -> None:
        require_no_transaction()
        started = time.monotonic()
        try:
            async with asyncio.timeout(self._slots.remaining_seconds(self._waited)):
                await lock.acquire()
        except TimeoutError:
            raise overloaded() from None
        try:
            await self._slots.acquire(self._company, self._waited + time.monotonic() - started)
        except BaseException:
            lock.release()
            raise

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Release the slot and the lock, and wait unless the request is cancelled."""
        self._slots.release(self._company)
        if self._lock is not None:
            self._lock.release()
        if kind is None or not issubclass(kind, asyncio.CancelledError):
            await self._ctx.cache_wait.end()
