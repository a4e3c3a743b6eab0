"""Values from the database that many requests need, read once and used for a fraction of a second.

What each request with an API key reads, the key with its coach and company, is cached in every process for
CACHE_SECONDS. A transaction that changes or deletes such a document returns CACHE_SECONDS after its commit: by then no
process uses a value that it read before. So a revoked key is refused from the first request after the response to the
revocation, in every process. See `Documents.is_cached` and docs/decisions/sessions-and-keys.md.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Iterable
from functools import partial
from typing import Any, Generic, TypeVar, cast

K = TypeVar("K")
V = TypeVar("V")

# Processes of two versions of the service may share a database: to cache longer, first release a version that waits
# longer.
CACHE_SECONDS = 0.25
MAX_CACHED_READS = 2000
_MARGIN_SECONDS = 0.01  # a timer may end a little early, and clocks of machines do not run at exactly the same speed


class _Read(Generic[V]):
    """A read. `began`: the clock just before it was sent; `value`: its result, as soon as there is no `task`."""

    __slots__ = ("began", "task", "value")

    def __init__(self, began: float, task: asyncio.Task[V]) -> None:
        self.began = began
        self.task: asyncio.Task[V] | None = task
        self.value: V | None = None


class CachedReads(Generic[K, V]):
    """Values by key, each used for `seconds` after its read began, also by requests that arrive while it is read.

    Only for the event loop. `clock` returns seconds.
    """

    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._seconds = seconds
        self._clock = clock
        self._reads: dict[K, _Read[V]] = {}

    def __len__(self) -> int:
        """Return the number of stored values, those that are too old included; at most MAX_CACHED_READS."""
        return len(self._reads)

    async def get(self, key: K, read: Callable[[], Coroutine[Any, Any, V]]) -> V:
        """Return the cached value of `key`, or what `read` returns. Raises what `read` raises, which is not cached.

        A read continues when the request that began it is cancelled, because others may wait for it.
        """
        now = self._clock()
        cached = self._reads.get(key)
        if cached is None or now - cached.began >= self._seconds:
            if len(self._reads) >= MAX_CACHED_READS:
                recent = {key: read for key, read in self._reads.items() if now - read.began < self._seconds}
                self._reads = recent if len(recent) < MAX_CACHED_READS else {}
            task = asyncio.create_task(read())
            cached = self._reads[key] = _Read(now, task)
            task.add_done_callback(partial(self._end, key, cached))
        if cached.task is None:
            return cast("V", cached.value)
        return await asyncio.shield(cached.task)

    def _end(self, key: K, read: _Read[V], task: asyncio.Task[V]) -> None:
        """Replace the task by its value, or remove the read if it failed, with what its error refers to."""
        if task.cancelled() or task.exception() is not None:
            if self._reads.get(key) is read:
                del self._reads[key]
        else:
            read.value, read.task = task.result(), None


class RecentValues(Generic[K, V]):
    """Values by key, each for some seconds after it was read; for few keys, as none is removed before `clear`."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._values: dict[K, tuple[float, V]] = {}

    def put(self, key: K, value: V) -> None:
        """Store a value that has just been read."""
        self._values[key] = (time.monotonic(), value)

    def select(self, keys: Iterable[K]) -> dict[K, V]:
        """Return the values of the keys that were read recently."""
        oldest = time.monotonic() - self._seconds
        entries = {key: entry for key in keys if (entry := self._values.get(key)) is not None}
        return {key: value for key, (at, value) in entries.items() if at >= oldest}

    def clear(self) -> None:
        """Remove all values: they have changed."""
        self._values.clear()


class CacheWait:
    """The wait of a request that has changed what processes cache, from the end of its transaction.

    The transaction itself waits, unless `is_deferred`: then `end` has to be called, after releasing what others can
    use meanwhile.
    """

    __slots__ = ("_until", "is_deferred")

    def __init__(self) -> None:
        self.is_deferred = False
        self._until = 0.0

    @staticmethod
    def seconds(cache_seconds: float) -> float:
        """Return how long to wait for values that are cached for `cache_seconds`."""
        return cache_seconds + _MARGIN_SECONDS if cache_seconds else 0.0

    def defer(self, seconds: float) -> None:
        """Make `end` wait until `seconds` from now."""
        self._until = time.monotonic() + seconds

    async def end(self) -> None:
        """Wait as long as the transactions would have waited, and no longer defer what follows."""
        self.is_deferred = False
        if (seconds := self._until - time.monotonic()) > 0:
            await asyncio.sleep(seconds)
