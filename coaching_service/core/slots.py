"""What requests wait for, in this order: the lock of a schedule, a slot that companies share fairly, a transaction.

Those who write the same documents wait for a lock instead of repeating transactions. A transaction that waited for a
lock, or for a slot, would wait for requests that may be waiting for what it has written.
"""

from __future__ import annotations

import asyncio
import math
import sys
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Hashable, Iterator
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from weakref import WeakValueDictionary

from coaching_service.core.errors import Unavailable
from coaching_service.core.metrics import Metrics, QueueMetrics

_in_transaction: ContextVar[bool] = ContextVar("in_transaction", default=False)


class KeyedLocks:
    """One lock for each key that is in use. Transactions of other processes do not wait."""

    def __init__(self) -> None:
        self._locks: WeakValueDictionary[Hashable, asyncio.Lock] = WeakValueDictionary()

    def lock_of(self, key: Hashable) -> asyncio.Lock:
        """Return the lock of `key`, which exists as long as any caller refers to it."""
        lock = self._locks.get(key)
        if lock is None:
            lock = self._locks[key] = asyncio.Lock()
        return lock


def require_no_transaction() -> None:
    """Raise RuntimeError within a transaction, where nothing may wait for a lock or a slot."""
    if _in_transaction.get():
        raise RuntimeError("a lock or slot is acquired before the transaction, never inside it")


@contextmanager
def within_transaction() -> Iterator[None]:
    """Run a transaction, in which `require_no_transaction` raises."""
    token = _in_transaction.set(True)
    try:
        yield
    finally:
        _in_transaction.reset(token)


# --- Slots: a company with many requests does not delay the others ----------------------------------------------------


_SHARED_SECONDS = 1.0
_PIECES = 4
_REST, _MIN_REST_SECONDS, _MAX_REST_SECONDS = 2, 0.005, 0.25
_UPLOADS_OF_A_COMPANY, _UPLOAD_SECONDS = 16, 60.0
_EXPORTS_OF_A_COMPANY, _EXPORT_SECONDS = 4, 2.5


class Sharing:
    """Whether several companies use the service: from the moment a second one does until only one did for a second.

    `clock` returns seconds.
    """

    __slots__ = ("_clock", "_latest", "_until")

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._latest: Hashable = self  # no company yet
        self._until = -math.inf

    def record_request_of(self, company: Hashable) -> None:
        """Record that a company uses the service."""
        if company != self._latest:
            if self._latest is not self:
                self._until = self._clock() + _SHARED_SECONDS
            self._latest = company

    def __bool__(self) -> bool:
        return self._clock() < self._until


class RequestSlots:
    """Slots for one class of requests, and the queue of the companies that wait for one.

    `running` requests hold a slot at once, and `queued` others wait, none of them longer than `seconds`. A free slot
    goes to the company that holds the fewest, and to those that hold as many in turn. A company alone may hold `alone`
    slots (all by default), and `shared` (as many by default) from the moment another company uses them too until it
    has used none for a second. When the queue is full, the company that has most requests in it loses one.

    A company is any hashable value (see `Context.slot_holder`). `metrics` are those to report to. `sharing` says
    whether other companies are active; by default only requests for these slots count.
    """

    def __init__(
        self,
        running: int,
        queued: int = sys.maxsize,
        seconds: float = math.inf,
        metrics: QueueMetrics | None = None,
        *,
        alone: int | None = None,
        shared: int | None = None,
        sharing: Sharing | None = None,
    ) -> None:
        self._size, self._max_queued, self._seconds = running, queued, seconds
        self._metrics = metrics or Metrics().queue("database")
        self._alone = min(alone or running, running)
        self._shared = min(shared or self._alone, self._alone)
        self._free = running
        self._held: dict[Hashable, int] = {}
        self._queued = 0
        self._waiting: dict[Hashable, deque[asyncio.Future[None]]] = {}  # in the order of their turns
        self._sharing = Sharing() if sharing is None else sharing

    @property
    def queued(self) -> int:
        """How many requests wait."""
        return self._queued

    def held(self, company: Hashable) -> int:
        """Return how many slots a company holds."""
        return self._held.get(company, 0)

    def remaining_seconds(self, waited: float) -> float | None:
        """Return how long a request may still wait that has waited for `waited` seconds; None: without a limit."""
        return None if self._seconds == math.inf else self._seconds - waited

    @asynccontextmanager
    async def holding(self, company: Hashable) -> AsyncIterator[None]:
        """Hold a slot while the context is open; raises the same as `acquire`."""
        await self.acquire(company)
        try:
            yield
        finally:
            self.release(company)

    @asynccontextmanager
    async def paced(self, company: Hashable, least_rest: float = _MIN_REST_SECONDS) -> AsyncIterator[None]:
        """Hold a slot while the context is open, for a piece of work that uses much CPU or disk.

        While other companies are active, the company then rests: the slot counts as held by it for twice as long as the
        piece took, at least `least_rest` seconds, and other companies can use it at once.
        """
        await self.acquire(company)
        began = time.monotonic()
        try:
            yield
        finally:
            if not self._sharing:
                self.release(company)
            else:
                seconds = min(max(_REST * (time.monotonic() - began), least_rest), _MAX_REST_SECONDS)
                self._free += 1
                asyncio.get_running_loop().call_later(seconds, self._end_held, company)
                if self._waiting:
                    self._start_waiting()

    async def acquire(self, company: Hashable, waited: float = 0.0) -> None:
        """Wait for a slot. `waited`: the seconds that the request has waited before, which count.

        Raises Unavailable if the queue is full or the wait too long, RuntimeError within a transaction.
        """
        require_no_transaction()
        self._sharing.record_request_of(company)
        held = self._held.get(company, 0)
        if self._free > 0 and held < self._limit() and company not in self._waiting:
            self._free -= 1
            self._held[company] = held + 1
            self._metrics.seconds.observe(0)
        else:
            await self._wait(company, waited)

    async def require_turns(self, seconds: float) -> None:
        """Wait until a slot is free, without holding it. Raises Unavailable if that takes longer than `seconds`."""
        if self._free > 0:
            return
        try:
            async with asyncio.timeout(seconds):
                await self._wait(self, 0.0)
        except TimeoutError:
            raise overloaded() from None
        self.release(self)

    def take_now(self, company: Hashable) -> None:
        """Hold a slot even if none is free: others wait until enough are released."""
        self._free -= 1
        self._held[company] = self.held(company) + 1

    def release(self, company: Hashable) -> None:
        """Return a slot of a company, and give it to the next."""
        self._free += 1
        self._end_held(company)

    def _end_held(self, company: Hashable) -> None:
        if (held := self._held[company]) > 1:
            self._held[company] = held - 1
        else:
            del self._held[company]
        if self._waiting:
            self._start_waiting()

    def _limit(self) -> int:
        """Return how many slots one company may hold now."""
        if self._shared == self._alone:
            return self._alone
        return self._shared if self._sharing else self._alone

    def _start_waiting(self) -> None:
        """Give the free slots to the companies whose turn it is.

        A company that waits because of its limit holds a slot, so this is called again when that ends.
        """
        limit = self._limit()
        while self._free > 0 and self._waiting:
            company = min(self._waiting, key=self.held)  # the first of those that hold the fewest
            if self.held(company) >= limit:
                return
            turn = self._waiting[company][0]
            self._remove(company, turn)
            if turn.done():  # its request has been cancelled
                continue
            if company in self._waiting:
                self._waiting[company] = self._waiting.pop(company)  # the last in turn
            turn.set_result(None)
            self.take_now(company)

    async def _wait(self, company: Hashable, waited: float) -> None:
        if self._queued >= self._max_queued:  # the company that has most in the queue loses its last request
            longest = max(self._waiting, key=lambda each: len(self._waiting[each]))
            self._metrics.full.inc()
            if len(self._waiting[longest]) <= len(self._waiting.get(company, ())) + 1:
                raise overloaded()
            self._refuse(longest, self._waiting[longest][-1])
        loop = asyncio.get_running_loop()
        turn: asyncio.Future[None] = loop.create_future()
        self._waiting.setdefault(company, deque()).append(turn)
        self._queued += 1
        timer = None
        if self._seconds < math.inf:
            timer = loop.call_later(self._seconds - waited, self._time_out, company, turn)
        try:
            with self._metrics.waiting.track_inprogress(), self._metrics.seconds.time():
                await turn
        except asyncio.CancelledError:
            if turn.cancelled():
                self._remove(company, turn)
            elif turn.exception() is None:  # it got a slot before it was cancelled
                self.release(company)
            raise
        finally:
            if timer is not None:
                timer.cancel()

    def _time_out(self, company: Hashable, turn: asyncio.Future[None]) -> None:
        if not turn.done():
            self._metrics.timed_out.inc()
            self._refuse(company, turn)

    def _refuse(self, company: Hashable, turn: asyncio.Future[None]) -> None:
        self._remove(company, turn)
        if not turn.done():
            turn.set_exception(overloaded())

    def _remove(self, company: Hashable, turn: asyncio.Future[None]) -> None:
        waiting = self._waiting.get(company)
        if waiting is not None and turn in waiting:
            waiting.remove(turn)
            self._queued -= 1
            if not waiting:
                del self._waiting[company]


class WorkSlots:
    """Slots of one process for work other than requests to the database.

    `uploads`: uploads in progress, until the file is stored; one that waits is not read. `exports`: exports that are
    being sent. `pieces`: pieces of uploads, files, exports and large JSON bodies that are worked on at once; to be held
    `paced`. `sharing`: whether several companies send requests of any kind.
    """

    def __init__(self, sharing: Sharing | None = None, exports: RequestSlots | None = None) -> None:
        self.sharing = Sharing() if sharing is None else sharing
        self.uploads = RequestSlots(sys.maxsize, seconds=_UPLOAD_SECONDS, alone=_UPLOADS_OF_A_COMPANY)
        self.exports = exports or RequestSlots(sys.maxsize, seconds=_EXPORT_SECONDS, alone=_EXPORTS_OF_A_COMPANY)
        self.pieces = RequestSlots(_PIECES, shared=1, sharing=self.sharing)


def overloaded() -> Unavailable:
    """Return the error for a request that may not wait any longer."""
    return Unavailable("The service is busy; try again shortly")
