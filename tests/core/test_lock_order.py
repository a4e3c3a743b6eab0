"""The order in which a request waits: for the lock of a schedule, for a slot, then for its transaction."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import replace

import pytest

from coaching_service.core.database.context import Context, RequestSlot, in_transaction, schedule_key
from coaching_service.core.errors import Unavailable
from coaching_service.core.ids import ObjectId
from coaching_service.core.slots import RequestSlots
from tests.support.client import CoachClient

ANA, BO = "ana", "bo"


async def test_request_that_waits_for_a_lock_holds_no_slot(coach: CoachClient) -> None:
    slots, entered = RequestSlots(2), []

    async def enter(schedule: str) -> None:
        async with RequestSlot(slots, coach.ctx, schedule=schedule):
            entered.append(schedule)

    async with RequestSlot(slots, coach.ctx, schedule=ANA):
        second = asyncio.create_task(enter(ANA))
        await enter(BO)  # before the second, which waits
        assert entered == [BO]
        assert slots.held(coach.ctx.slot_holder) == 1
    await second
    assert entered == [BO, ANA]


async def test_wait_for_a_lock_is_limited(coach: CoachClient) -> None:
    slots = RequestSlots(2, seconds=0.05)
    async with RequestSlot(slots, coach.ctx, schedule=ANA):
        with pytest.raises(Unavailable):
            await RequestSlot(slots, coach.ctx, schedule=ANA).__aenter__()
    async with RequestSlot(slots, coach.ctx, schedule=ANA):
        pass


async def test_request_without_a_slot_returns_its_lock(coach: CoachClient) -> None:
    slots = RequestSlots(1, seconds=0.05)
    async with RequestSlot(slots, coach.ctx):
        with pytest.raises(Unavailable):
            await RequestSlot(slots, coach.ctx, schedule=ANA).__aenter__()
        cancelled = asyncio.create_task(RequestSlot(slots, coach.ctx, schedule=ANA).__aenter__())
        await asyncio.sleep(0)
        cancelled.cancel()
        with pytest.raises(asyncio.CancelledError):
            await cancelled
    async with RequestSlot(slots, coach.ctx, schedule=ANA):
        pass


def _lock(ctx: Context) -> AbstractAsyncContextManager[None]:
    return RequestSlot(RequestSlots(1), ctx, schedule=ANA)


def _slot(ctx: Context) -> AbstractAsyncContextManager[None]:
    return ctx.services.work_slots.pieces.paced(ctx.slot_holder)


@pytest.mark.parametrize("acquired", [_lock, _slot])
async def test_neither_lock_nor_slot_is_acquired_in_a_transaction(
    coach: CoachClient, acquired: Callable[[Context], AbstractAsyncContextManager[None]]
) -> None:
    async def acquire(ctx: Context) -> None:
        async with acquired(ctx):
            pass

    async def rejected(work: Callable[[Context], Awaitable[None]]) -> None:
        with pytest.raises(RuntimeError, match="never inside"):
            async with asyncio.timeout(10):
                await in_transaction(coach.ctx, work)

    await rejected(acquire)
    await rejected(lambda _: acquire(coach.ctx))  # also with the context from outside of the transaction
    async with RequestSlot(RequestSlots(1), coach.ctx, schedule=ANA):
        await rejected(acquire)  # instead of waiting for the lock
    await acquire(coach.ctx)


async def test_lock_is_that_of_the_declared_schedule(coach: CoachClient, other_company: CoachClient) -> None:
    customer, program, template = ObjectId(), ObjectId(), ObjectId()
    company, named = coach.ctx.company_id, {"customer_id": customer, "program_id": program, "wblock_id": ObjectId()}
    assert schedule_key(coach.ctx, "customer", named) == (company, customer)
    assert schedule_key(coach.ctx, "program", named) == (company, program)
    assert schedule_key(coach.ctx, "customer", {"program_id": program}, {"customerId": customer}) == (company, customer)
    assert schedule_key(coach.ctx, "template", {"templateId": template}) == (company, template)
    assert schedule_key(coach.ctx, None, named) is None, "an operation that declares nothing"
    assert schedule_key(coach.ctx, "customer", {"exercise_id": ObjectId()}, {"customerId": None}) is None
    other = schedule_key(other_company.ctx, "customer", {"customer_id": customer})
    assert other != (company, customer), "no one locks out others"
    own = coach.ctx.acting_as(replace(coach.ctx.caller, role="CUSTOMER", id=customer))
    assert schedule_key(own, None) == schedule_key(own, "customer", {"customer_id": template}) == (company, customer)
