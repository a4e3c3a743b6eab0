"""The monitor of the database, with a database that responds when the test says so."""

from __future__ import annotations

import asyncio
import threading
from contextlib import suppress
from typing import Any, cast

import pytest
from pymongo.errors import AutoReconnect, OperationFailure

from coaching_service.core.database.connection import DatabaseMonitor
from coaching_service.core.errors import Unavailable
from tests.support.service_process import until


class ControlledDatabase:
    """A database of which only reads by the monitor exist; `responds` is cleared while it does not respond."""

    def __init__(self) -> None:
        self.responds = threading.Event()
        self.responds.set()
        self.failure: Exception | None = None
        self.reads = 0

    @property
    def delegate(self) -> ControlledDatabase:
        """The driver's own object."""
        return self

    def get_collection(self, _: str, **__: object) -> ControlledDatabase:
        """The collection that is read."""
        return self

    def find_one(self, _: object) -> None:
        """Read, on the monitor's thread."""
        self.reads += 1
        self.responds.wait(60)
        if self.failure is not None:
            raise self.failure

    def monitor(self, seconds: float) -> DatabaseMonitor:
        """A monitor of this database."""
        return DatabaseMonitor(cast("Any", self), seconds)


@pytest.fixture
def db() -> ControlledDatabase:
    return ControlledDatabase()


async def test_long_request_is_not_interrupted_while_the_database_responds(db: ControlledDatabase) -> None:
    monitor = db.monitor(seconds=10)
    monitor._interval = 0.001
    async with monitor.interrupting():
        await until(lambda: db.reads > 3, "the database has been checked several times")
    assert not monitor.is_lost


async def test_nothing_is_sent_for_short_requests(db: ControlledDatabase) -> None:
    monitor = db.monitor(seconds=3600)
    for _ in range(100):
        async with monitor.interrupting():
            await asyncio.sleep(0)
    assert db.reads == 0


async def test_waiting_requests_are_interrupted_until_the_database_responds_again(db: ControlledDatabase) -> None:
    monitor = db.monitor(seconds=0.1)
    db.responds.clear()
    interrupted = [asyncio.create_task(wait_for_ever(monitor)) for _ in range(3)]
    for outcome in await asyncio.gather(*interrupted, return_exceptions=True):
        assert isinstance(outcome, Unavailable)
        assert outcome.headers == {"Retry-After": "1"}
    with pytest.raises(Unavailable):
        monitor.require()

    db.responds.set()
    await until(lambda: not monitor.is_lost, "the monitor notices by itself")
    monitor.require()


async def test_lost_database_is_checked_again_at_once_after_a_long_check(
    db: ControlledDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pause could contain, each time, the moment at which a majority confirms writes."""
    monitor, pauses, checks = db.monitor(seconds=0.1), list[float](), 0
    monitor.is_lost = True
    watching, sleep = asyncio.current_task(), asyncio.sleep

    async def check_for_long() -> None:
        nonlocal checks
        checks += 1
        monitor.is_lost = checks < 3
        with suppress(TimeoutError):
            async with asyncio.timeout(monitor._interval):
                await asyncio.Event().wait()

    async def pause(seconds: float) -> None:
        if asyncio.current_task() is watching:
            pauses.append(seconds)
        else:  # an application of other tests, in the background
            await sleep(seconds)

    monkeypatch.setattr(monitor, "check", check_for_long)
    monkeypatch.setattr(asyncio, "sleep", pause)
    await monitor._watch()
    assert checks == len(pauses) == 3
    assert max(pauses) < monitor._interval / 2


async def test_a_busy_process_does_not_report_the_database_as_lost(db: ControlledDatabase) -> None:
    """A read that is late because the process had no time for it is repeated."""
    monitor = db.monitor(seconds=0.2)
    db.responds.clear()
    checking = asyncio.create_task(monitor.check())
    await until(lambda: db.reads == 1, "it is being checked")
    threading.Event().wait(0.3)  # the event loop is blocked for longer than a read may take
    await until(lambda: db.reads == 1 and not checking.done(), "the read is not lost")
    db.responds.set()
    await checking
    assert not monitor.is_lost


async def test_a_process_that_stays_busy_notices_a_lost_database(db: ControlledDatabase) -> None:
    monitor = db.monitor(seconds=0.1)
    db.responds.clear()
    checking = asyncio.create_task(monitor.check())
    while not checking.done():
        threading.Event().wait(0.05)
        await asyncio.sleep(0)
    assert isinstance(checking.exception(), TimeoutError)
    assert monitor.is_lost
    db.responds.set()


async def test_begun_response_is_not_interrupted(db: ControlledDatabase) -> None:
    monitor = db.monitor(seconds=0.1)
    db.responds.clear()
    async with monitor.interrupting() as interruption:
        interruption.end()
        with pytest.raises(Unavailable):
            await wait_for_ever(monitor)
        await asyncio.sleep(0)
    db.responds.set()


async def test_timeouts_of_the_request_itself_are_not_changed(db: ControlledDatabase) -> None:
    with pytest.raises(TimeoutError):
        async with db.monitor(seconds=3600).interrupting(), asyncio.timeout(0.001):
            await asyncio.Event().wait()


UNREACHABLE = (AutoReconnect("connection refused"), OperationFailure("no majority", 11602))


@pytest.mark.parametrize("failure", [*UNREACHABLE, OperationFailure("not authorized", 13)])
async def test_only_failures_to_respond_count(db: ControlledDatabase, failure: Exception) -> None:
    monitor = db.monitor(seconds=10)
    db.failure = failure
    with pytest.raises(type(failure)):
        await monitor.check()
    assert monitor.is_lost == (failure in UNREACHABLE)


async def wait_for_ever(monitor: DatabaseMonitor) -> None:
    async with monitor.interrupting():
        await asyncio.Event().wait()
