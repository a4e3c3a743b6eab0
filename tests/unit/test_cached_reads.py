"""Values that are read once for many requests, for a moment."""

from __future__ import annotations

import asyncio
import gc
from functools import partial
from typing import Any

import pytest

from coaching_service.core.cached_reads import MAX_CACHED_READS, CachedReads

FOREVER = 3600.0


class Database:
    """Counts reads; each waits until it may continue."""

    def __init__(self) -> None:
        self.reads = 0
        self.may_continue = asyncio.Event()

    async def read(self) -> int:
        self.reads += 1
        number = self.reads
        await self.may_continue.wait()
        return number


async def value(number: int) -> int:
    return number


async def failure() -> int:
    raise LookupError


async def test_requests_share_a_read_and_its_value() -> None:
    database, cached = Database(), CachedReads[str, int](FOREVER)
    requests = asyncio.gather(*(cached.get("a", database.read) for _ in range(5)))
    await asyncio.sleep(0)
    database.may_continue.set()
    assert await requests == [1] * 5
    assert await cached.get("a", database.read) == 1
    assert await cached.get("b", database.read) == 2


async def test_a_value_ages_from_the_time_before_it_was_read() -> None:
    time = [0.0]
    database, cached = Database(), CachedReads[str, int](10, lambda: time[0])
    slow = asyncio.create_task(cached.get("a", database.read))
    await asyncio.sleep(0)
    time[0] = 9.9
    early = asyncio.create_task(cached.get("a", database.read))
    await asyncio.sleep(0)
    time[0] = 10.0
    late = asyncio.create_task(cached.get("a", database.read))  # must not wait for what was read before
    await asyncio.sleep(0)
    database.may_continue.set()
    assert await asyncio.gather(slow, early, late) == [1, 1, 2]


async def test_values_of_no_seconds_are_read_each_time() -> None:
    cached = CachedReads[str, int](0)
    assert [await cached.get("a", partial(value, number)) for number in (1, 2)] == [1, 2]


async def test_a_failed_read_is_not_used_again() -> None:
    cached = CachedReads[str, int](FOREVER)
    results = await asyncio.gather(*(cached.get("a", failure) for _ in range(3)), return_exceptions=True)
    assert [type(each) for each in results] == [LookupError] * 3
    assert len(cached) == 0  # its error refers to the requests that received it
    assert await cached.get("a", partial(value, 1)) == 1


async def test_a_read_continues_when_the_request_that_began_it_is_cancelled() -> None:
    database, cached = Database(), CachedReads[str, int](FOREVER)
    first, second = (asyncio.create_task(cached.get("a", database.read)) for _ in range(2))
    await asyncio.sleep(0)
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    database.may_continue.set()
    assert (await second, database.reads) == (1, 1)


async def test_nothing_is_reported_when_a_read_fails_that_no_request_waits_for() -> None:
    reported: list[dict[str, Any]] = []
    loop, cached, may_fail = asyncio.get_running_loop(), CachedReads[str, int](FOREVER), asyncio.Event()
    loop.set_exception_handler(lambda _, context: reported.append(context))

    async def fail() -> int:
        await may_fail.wait()
        raise LookupError

    only = asyncio.create_task(cached.get("a", fail))
    await asyncio.sleep(0)
    only.cancel()
    await asyncio.gather(only, return_exceptions=True)
    may_fail.set()
    for _ in range(3):
        await asyncio.sleep(0)
    gc.collect()
    loop.set_exception_handler(None)
    assert (reported, len(cached)) == ([], 0)


async def test_the_number_of_values_is_bounded() -> None:
    for seconds in (0, FOREVER):
        cached = CachedReads[int, int](seconds)
        for number in range(MAX_CACHED_READS + 10):
            await cached.get(number, partial(value, number))
        assert len(cached) == 10
        assert await cached.get(MAX_CACHED_READS + 9, partial(value, MAX_CACHED_READS + 9)) == MAX_CACHED_READS + 9
