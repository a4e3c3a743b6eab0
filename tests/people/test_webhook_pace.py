"""How many attempts of webhooks run at the same time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from coaching_service.people.webhooks import dispatcher
from coaching_service.people.webhooks.dispatcher import AttemptSlots, Lane, Pace
from tests.support.service_process import until


@pytest.fixture
def slots(monkeypatch: pytest.MonkeyPatch) -> AttemptSlots:
    """Two slots for fast attempts and two for slow ones; an attempt is slow at once when it waits."""
    monkeypatch.setattr(dispatcher, "_TOTAL", 2)
    monkeypatch.setattr(dispatcher, "SLOW_SECONDS", 0.02)
    return AttemptSlots()


@pytest.fixture
async def hanging(slots: AttemptSlots) -> AsyncIterator[list[Pace]]:
    """Four webhooks with an attempt each that does not end."""
    paces = [Pace(slots, "company") for _ in range(4)]

    async def hang(webhook: Pace) -> None:
        async with webhook.attempting():
            await asyncio.Event().wait()

    tasks = [asyncio.create_task(hang(webhook)) for webhook in paces]
    await until(lambda: all(webhook.is_slow for webhook in paces), "all attempts are slow", 10)
    yield paces
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def test_attempts_that_hang_leave_their_slots_to_others(slots: AttemptSlots, hanging: list[Pace]) -> None:
    async with asyncio.timeout(10), Pace(slots, "company").attempting(), Pace(slots, "other").attempting():
        pass


async def test_slow_webhooks_wait_for_each_other(slots: AttemptSlots, hanging: list[Pace]) -> None:
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.1), hanging[0].attempting():
            pass


async def test_webhook_gets_more_attempts_once_it_has_responded_quickly(slots: AttemptSlots) -> None:
    webhook = Pace(slots, "company")
    lane = Lane(webhook, 3, 1)
    await lane.enter()
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(lane.enter(), 0.01)
    async with webhook.attempting():
        pass
    await lane.enter()
    await lane.enter()
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(lane.enter(), 0.01)
    lane.leave()
    await asyncio.wait_for(lane.enter(), 1)
