"""Transactions that collide or lose their connection: retried for a limited time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest
from motor.motor_asyncio import AsyncIOMotorClient
from pymongo.errors import (
    AutoReconnect,
    BulkWriteError,
    ConfigurationError,
    ExecutionTimeout,
    NetworkTimeout,
    OperationFailure,
    PyMongoError,
    ServerSelectionTimeoutError,
)

from coaching_service.core.database import context
from coaching_service.core.database.connection import as_service_error, database, is_disk_full
from coaching_service.core.database.context import Context, in_transaction, transactional
from coaching_service.core.database.worker_thread import on_worker_thread
from coaching_service.core.errors import Unavailable
from coaching_service.core.ids import ObjectId
from coaching_service.people.customers import service as customers
from coaching_service.settings import Settings
from tests.support.client import CoachClient
from tests.support.fail_points import FailCommand, fail_point

MAX_TIME_EXPIRED, NO_SUCH_TRANSACTION, OUT_OF_DISK_SPACE = 50, 251, 14031
RunInTransaction = Callable[..., Awaitable[Any]]


async def test_transaction_waits_for_a_conflicting_one_and_gives_up_in_time(coach: CoachClient) -> None:
    ana = ObjectId((await coach.create_customer("Ana"))["_id"])
    locked, release = asyncio.Event(), asyncio.Event()

    async def lock_until_released(tx: Context) -> None:
        await customers.lock_and_mark_figures(tx, ana)
        locked.set()
        await release.wait()

    async def lock(tx: Context) -> None:
        await customers.lock_and_mark_figures(tx, ana)

    first = asyncio.create_task(in_transaction(coach.ctx, lock_until_released))
    await locked.wait()
    with pytest.raises(Unavailable):
        await in_transaction(coach.ctx, lock, patience=0.2)
    second = asyncio.create_task(in_transaction(coach.ctx, lock))
    release.set()
    await first
    await second


@pytest.fixture
async def ctx(coach: CoachClient, settings: Settings) -> AsyncIterator[Context]:
    """The coach on a connection of its own, whose commands can be made to fail without disturbing other tests."""
    client: AsyncIOMotorClient[dict[str, Any]] = AsyncIOMotorClient(settings.mongodb_uri, appname=f"test {ObjectId()}")
    services = replace(coach.ctx.services, db=database(client, settings.mongodb_database))
    yield replace(coach.ctx, services=services)
    client.close()


@pytest.fixture
async def fail_commit(ctx: Context, coach: CoachClient, settings: Settings) -> AsyncIterator[FailCommand]:
    """Make the next commits of `ctx` fail."""
    name = ctx.db.client.delegate.options.pool_options.metadata["application"]["name"]
    common = {"failCommands": ["commitTransaction"], "appName": name}
    async with fail_point(coach.ctx.db.client, settings.mongodb_uri, **common) as configure:
        yield configure


@pytest.fixture(params=["event loop", "worker thread"])
def run(request: pytest.FixtureRequest) -> RunInTransaction:
    """`in_transaction`, on the event loop and on a worker thread."""

    async def run(ctx: Context, work: Callable[[Context], Awaitable[Any]], patience: float = 20) -> Any:
        return await in_transaction(ctx, work, patience=patience)

    return on_worker_thread(run) if request.param == "worker thread" else run


class Change:
    """A change in two documents of a collection; counts how often it was run."""

    def __init__(self, ctx: Context) -> None:
        self.runs, self.id = 0, ObjectId()
        self.collection = ctx.db["transactionTests"]

    async def __call__(self, tx: Context) -> int:
        self.runs += 1
        collection = tx.collection("transactionTests")
        for part in (1, 2):
            await collection.insert_one({"change": self.id, "part": part}, session=tx.session)
        return self.runs

    async def count(self) -> int:
        return await self.collection.count_documents({"change": self.id})


async def test_transient_failure_at_commit_runs_the_whole_transaction_again(
    ctx: Context, fail_commit: FailCommand, run: RunInTransaction
) -> None:
    change = Change(ctx)
    await fail_commit({"times": 1}, errorCode=NO_SUCH_TRANSACTION, errorLabels=["TransientTransactionError"])
    assert await run(ctx, change) == 2
    assert (change.runs, await change.count()) == (2, 2)


async def test_unknown_commit_result_repeats_only_the_commit(
    ctx: Context, fail_commit: FailCommand, run: RunInTransaction
) -> None:
    change = Change(ctx)
    await fail_commit({"times": 3}, errorCode=MAX_TIME_EXPIRED)
    assert await run(ctx, change) == 1
    assert (change.runs, await change.count()) == (1, 2)


async def test_connection_lost_at_commit_takes_effect_once(
    ctx: Context, fail_commit: FailCommand, run: RunInTransaction
) -> None:
    change = Change(ctx)
    await fail_commit({"times": 2}, closeConnection=True)
    assert await run(ctx, change) == 1
    assert (change.runs, await change.count()) == (1, 2)


@pytest.mark.parametrize("code", [6, 7, 43, 89, 91, 94, 134, 189, 211, 217, 365, 9001, 10107, 11601, 11602, 13436])
def test_error_of_a_server_that_starts_or_ends_is_503(code: int) -> None:
    in_bulk = {"writeErrors": [{"code": code}]}
    for error in (OperationFailure("refused", code), BulkWriteError(in_bulk)):
        assert isinstance(as_service_error(error), Unavailable)
    assert as_service_error(BulkWriteError({"writeErrors": [{"code": code}, {"code": 121}]})) is None


@pytest.mark.parametrize("error", [NetworkTimeout("timed out"), ExecutionTimeout("too long", 50)])
def test_an_operation_that_took_too_long_does_not_blame_the_database(error: Exception) -> None:
    service_error = as_service_error(error)
    assert service_error is not None
    assert service_error.message == "The service is busy; try again shortly"


@pytest.mark.parametrize("error", [ServerSelectionTimeoutError("no primary"), AutoReconnect("connection refused")])
def test_a_server_that_is_not_found_cannot_be_reached(error: Exception) -> None:
    service_error = as_service_error(error)
    assert service_error is not None
    assert service_error.message == "The database cannot be reached; try again shortly"


async def test_command_that_was_not_sent_is_repeated(ctx: Context, run: RunInTransaction) -> None:
    """The driver sends none on a connection that was opened while the server started."""
    change, failures = Change(ctx), [ConfigurationError("Sessions are not supported by this MongoDB deployment")]

    async def fail_first(tx: Context) -> int:
        if failures:
            raise failures.pop()
        return await change(tx)

    assert await run(ctx, fail_first) == 1
    assert (change.runs, await change.count()) == (1, 2)


async def test_commit_that_was_not_sent_is_repeated(ctx: Context) -> None:
    """Alone: an earlier attempt, whose outcome is unknown, may have taken effect."""
    unknown = OperationFailure("unknown", MAX_TIME_EXPIRED)
    unknown._add_error_label("UnknownTransactionCommitResult")
    outcomes: list[Exception | None] = [unknown, ConfigurationError("no sessions"), None]

    class Session:
        """What a session does at commits."""

        async def commit_transaction(self) -> None:
            if (outcome := outcomes.pop(0)) is not None:
                raise outcome

    await context._commit(ctx, Session(), lambda: True)  # type: ignore[arg-type]
    assert outcomes == []
    outcomes += [unknown, ConfigurationError("no sessions")]
    with pytest.raises(OperationFailure):
        await context._commit(ctx, Session(), lambda: len(outcomes) > 0)  # type: ignore[arg-type]


async def test_commit_is_not_repeated_for_ever(ctx: Context, fail_commit: FailCommand, run: RunInTransaction) -> None:
    change = Change(ctx)
    await fail_commit(errorCode=MAX_TIME_EXPIRED)
    with pytest.raises(OperationFailure):
        await run(ctx, change, patience=0.3)
    assert (change.runs, await change.count()) == (1, 0)


async def test_transient_failures_do_not_run_the_transaction_for_ever(
    ctx: Context, fail_commit: FailCommand, run: RunInTransaction
) -> None:
    change = Change(ctx)
    await fail_commit(errorCode=NO_SUCH_TRANSACTION, errorLabels=["TransientTransactionError"])
    with pytest.raises(Unavailable):
        await run(ctx, change, patience=2)
    assert change.runs > 1
    assert await change.count() == 0


async def test_other_failures_abort_at_once(ctx: Context, run: RunInTransaction) -> None:
    change = Change(ctx)

    async def fail(tx: Context) -> None:
        await change(tx)
        raise AutoReconnect("not transient: the driver sets no label")

    with pytest.raises(PyMongoError, match="no label"):
        await run(ctx, fail)
    assert (change.runs, await change.count()) == (1, 0)


async def test_full_disk_is_unavailable(ctx: Context, fail_commit: FailCommand, run: RunInTransaction) -> None:
    """Commands report it by code; the build of an index by the text of the operating system alone (seen: code 8)."""
    await fail_commit({"times": 1}, errorCode=OUT_OF_DISK_SPACE)
    with pytest.raises(OperationFailure) as failure:
        await run(ctx, Change(ctx))
    by_text = OperationFailure("28: No space left on device", 8)
    for error in (failure.value, by_text):
        service_error = as_service_error(error)
        assert isinstance(service_error, Unavailable)
        assert service_error.message == "The database has no space left; contact its operator"
    assert not is_disk_full(OperationFailure("another failure", 8))


async def test_transactional_function_joins_the_transaction_of_its_caller(ctx: Context) -> None:
    change = Change(ctx)

    @transactional
    async def change_once(tx: Context, *, fail: bool) -> object:
        await change(tx)
        if fail:
            raise ValueError
        return tx.session

    @transactional
    async def change_twice(tx: Context) -> None:
        assert await change_once(tx, fail=False) is tx.session
        await change_once(tx, fail=True)

    with pytest.raises(ValueError):
        await change_twice(ctx)
    assert (change.runs, await change.count()) == (2, 0)
    assert await change_once(ctx, fail=False) is not None
    assert await change.count() == 2


async def test_abort_that_takes_too_long_does_not_block_the_next_attempt(
    ctx: Context, fail_commit: FailCommand, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The abort continues in the background; the transaction is retried in another session."""
    change = Change(ctx)
    monkeypatch.setattr(context, "_ABORT_SECONDS", 0.05)
    await fail_commit(
        {"times": 1},
        failCommands=["abortTransaction"],
        blockConnection=True,
        blockTimeMS=1000,
    )

    async def fail_once(tx: Context) -> int:
        run = await change(tx)
        if run == 1:
            error = OperationFailure("conflict", 112)
            error._add_error_label("TransientTransactionError")
            raise error
        return run

    assert await in_transaction(ctx, fail_once) == 2
    assert await change.count() == 2
