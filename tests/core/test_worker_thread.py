"""Functions with several database operations on one worker thread."""

from __future__ import annotations

import asyncio
import threading

import pytest

from coaching_service.core.database.context import Context, gather_reads, in_transaction, transactional
from coaching_service.core.database.worker_thread import on_worker_thread
from coaching_service.core.errors import NotFound
from coaching_service.core.ids import ObjectId
from coaching_service.people.customers import batch
from coaching_service.people.customers import service as customers
from tests.support.client import CoachClient
from tests.support.service_process import until


async def find_names(ctx: Context) -> list[str]:
    """The names of the company's clients, read in the two ways in which cursors are read."""
    where, by_name = {"companyId": ctx.company_id}, [("name", 1)]
    listed = await ctx.collection("customers").find(where, {"name": 1}, sort=by_name).to_list(None)
    streamed = [
        each async for each in ctx.collection("customers").aggregate([{"$match": where}, {"$sort": {"name": 1}}])
    ]
    assert [each["name"] for each in listed] == [each["name"] for each in streamed]
    return [each["name"] for each in listed]


async def test_operations_and_transactions_share_one_thread(coach: CoachClient) -> None:
    threads = set()

    @transactional
    async def create_two(tx: Context) -> None:
        assert tx.session is not None
        for name in ("Ana", "Bo"):
            await batch.create_customer(tx, {"name": name})
            threads.add(threading.get_ident())

    @on_worker_thread
    async def create(ctx: Context) -> list[list[str]]:
        before = await find_names(ctx)
        await create_two(ctx)
        threads.add(threading.get_ident())
        return [before, *await gather_reads(ctx, find_names(ctx), find_names(ctx))]

    ctx = coach.ctx
    assert await create(ctx) == [[], ["Ana", "Bo"], ["Ana", "Bo"]]
    assert len(threads) == 1
    assert threading.get_ident() not in threads
    assert len(ctx.change_ids) == 1, "one batch for both clients"


async def test_function_in_a_transaction_stays_in_it(coach: CoachClient) -> None:
    @on_worker_thread
    async def create(ctx: Context) -> int:
        await batch.create_customer(ctx, {"name": "Ana"})
        return threading.get_ident()

    async def work(tx: Context) -> int:
        return await create(tx)

    assert await in_transaction(coach.ctx, work) == threading.get_ident()


async def test_errors_are_those_of_the_function_and_nothing_is_stored(coach: CoachClient) -> None:
    @on_worker_thread
    @transactional
    async def create_and_fail(ctx: Context) -> None:
        await batch.create_customer(ctx, {"name": "Ana"})
        await customers.get_visible(ctx, ObjectId())

    with pytest.raises(NotFound):
        await create_and_fail(coach.ctx)
    assert await find_names(coach.ctx) == []


async def test_function_must_not_wait_for_the_event_loop(coach: CoachClient) -> None:
    @on_worker_thread
    @transactional
    async def create_and_wait(ctx: Context) -> None:
        await batch.create_customer(ctx, {"name": "Ana"})
        await asyncio.sleep(0)

    with pytest.raises(RuntimeError, match="may only await the database"):
        await create_and_wait(coach.ctx)
    assert await find_names(coach.ctx) == []


async def test_cancelled_caller_aborts_the_transaction(coach: CoachClient) -> None:
    """The caller does not wait for the thread, whose next operation fails."""
    created, continued, ended = threading.Event(), threading.Event(), threading.Event()

    @on_worker_thread
    @transactional
    async def create_two(ctx: Context) -> None:
        try:
            await batch.create_customer(ctx, {"name": "Ana"})
            created.set()
            continued.wait(30)
            await batch.create_customer(ctx, {"name": "Bo"})
        finally:
            ended.set()

    creating = asyncio.create_task(create_two(coach.ctx))
    await until(created.is_set, "the first client is created")
    creating.cancel()
    with pytest.raises(asyncio.CancelledError):
        await creating
    continued.set()
    await until(ended.is_set, "the function has ended")
    assert await find_names(coach.ctx) == []
    await batch.create_customer(coach.ctx, {"name": "Cy"})  # nothing is locked
