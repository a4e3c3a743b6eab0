"""The queue that companies share: who gets the next slot, and who is refused."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Sequence

import pytest

from coaching_service.core.errors import Unavailable
from coaching_service.core.slots import RequestSlots, Sharing

NOISY, QUIET, THIRD = "noisy", "quiet", "third"


class Queue:
    """Slots with a clock that the test sets, and the order in which the waiting requests got theirs."""

    def __init__(
        self, running: int, queued: int = 1000, *, shared: int | None = None, alone: int | None = None
    ) -> None:
        self.seconds = 0.0
        self.slots = RequestSlots(
            running, queued, 1000, shared=shared, alone=alone, sharing=Sharing(lambda: self.seconds)
        )
        self.started: list[str] = []
        self.tasks: list[asyncio.Task[None]] = []

    async def ask(self, *companies: str) -> None:
        """Ask for a slot for each of the companies, in this order."""
        for company in companies:
            self.tasks.append(asyncio.create_task(self._start(company)))
        await self.settle()

    async def _start(self, company: str) -> None:
        await self.slots.acquire(company)
        self.started.append(company)

    async def finish(self, *companies: str) -> list[str]:
        """Return the slots of the companies, and say who got them."""
        self.started.clear()
        for company in companies:
            self.slots.release(company)
        await self.settle()
        return list(self.started)

    async def settle(self) -> None:
        for _ in range(3):
            await asyncio.sleep(0)

    def refused(self) -> int:
        """How many requests were refused."""
        return sum(1 for each in self.tasks if each.done() and isinstance(each.exception(), Unavailable))


async def test_company_that_holds_fewest_is_next() -> None:
    queue = Queue(running=4)
    await queue.ask(*[NOISY] * 20, QUIET, QUIET, THIRD)
    assert queue.started == [NOISY] * 4, "alone it may use all"
    assert await queue.finish(NOISY) == [QUIET]
    assert await queue.finish(NOISY) == [THIRD]
    assert await queue.finish(NOISY) == [NOISY], "all three hold one, and the turn of the first comes first"
    assert await queue.finish(QUIET) == [QUIET]
    assert await queue.finish(QUIET, THIRD) == [NOISY, NOISY], "nothing is unused while someone waits"


async def test_companies_take_turns() -> None:
    queue = Queue(running=1)
    await queue.ask(NOISY, *[NOISY] * 6, *[QUIET] * 3, *[THIRD] * 2)
    order = []
    running = NOISY
    while queue.slots.queued:
        [running] = await queue.finish(running)
        order.append(running)
    assert order == [NOISY, QUIET, THIRD] * 2 + [NOISY, QUIET] + [NOISY] * 3


async def test_limit_applies_while_others_use_the_slots_and_a_second_longer() -> None:
    queue = Queue(running=4, shared=2)
    await queue.ask(*[NOISY] * 10)
    assert queue.started == [NOISY] * 4
    await queue.ask(QUIET)
    assert await queue.finish(NOISY) == [QUIET]
    assert await queue.finish(NOISY, QUIET) == [], "from now on it may hold two"
    assert await queue.finish(NOISY) == [NOISY]
    await queue.ask(QUIET, QUIET)
    assert (queue.slots.held(NOISY), queue.slots.held(QUIET)) == (2, 2), "what it leaves free serves others at once"
    queue.seconds += 2
    assert await queue.finish(QUIET, QUIET, NOISY) == [NOISY] * 3
    assert queue.slots.held(NOISY) == 4


async def test_some_slots_are_never_for_one_company() -> None:
    queue = Queue(running=3, alone=2)
    await queue.ask(NOISY, NOISY, NOISY, QUIET)
    assert queue.started == [NOISY, NOISY, QUIET]
    assert await queue.finish(QUIET) == []
    assert await queue.finish(NOISY) == [NOISY]


async def test_requests_for_other_slots_count_as_activity() -> None:
    sharing = Sharing()
    database, pieces = RequestSlots(8, sharing=sharing), RequestSlots(4, shared=1, sharing=sharing)
    await pieces.acquire(NOISY)
    await pieces.acquire(NOISY)
    for _ in range(2):
        pieces.release(NOISY)
    await database.acquire(QUIET)
    await pieces.acquire(NOISY)
    waiting = asyncio.create_task(pieces.acquire(NOISY))
    await asyncio.sleep(0)
    assert not waiting.done()
    pieces.release(NOISY)
    await waiting


async def test_company_rests_after_a_piece_only_while_others_are_active() -> None:
    slots = RequestSlots(2, shared=1)
    async with slots.paced(NOISY):
        assert slots.held(NOISY) == 1
    assert slots.held(NOISY) == 0, "it is alone"
    async with slots.paced(QUIET):
        following = asyncio.create_task(slots.acquire(QUIET))
        await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert (slots.held(QUIET), following.done()) == (1, False), "it rests"
    async with slots.paced(NOISY), slots.paced(THIRD):
        assert slots.held(THIRD) == 1, "both slots are free for others"
    await following


async def test_full_queue_refuses_the_company_that_fills_it() -> None:
    queue = Queue(running=1, queued=3)
    await queue.ask(*[NOISY] * 4, QUIET)
    assert queue.refused() == 1
    assert await queue.finish(NOISY) == [NOISY]
    assert await queue.finish(NOISY) == [QUIET]
    await queue.ask(QUIET, QUIET, QUIET)
    assert queue.refused() == 2, "the last of those that have as many is refused itself"
    assert await queue.finish(QUIET) == [NOISY]
    assert queue.slots.queued == 2


async def test_requests_beyond_the_queue_are_refused_at_once() -> None:
    slots = RequestSlots(running=1, queued=2, seconds=1000)
    await slots.acquire(NOISY)
    waiting = [asyncio.create_task(slots.acquire(NOISY)) for _ in range(2)]
    await asyncio.sleep(0)
    with pytest.raises(Unavailable) as raised:
        await slots.acquire(NOISY)
    assert raised.value.headers == {"Retry-After": "1"}
    for _ in range(2):
        slots.release(NOISY)
    await asyncio.gather(*waiting)


async def test_request_waits_for_a_limited_time() -> None:
    slots = RequestSlots(running=1, queued=2, seconds=0.01)
    await slots.acquire(NOISY)
    for _ in range(3):  # a request that is refused leaves the queue
        with pytest.raises(Unavailable, match="busy"):
            await slots.acquire(QUIET)
    slots.release(NOISY)
    await slots.acquire(QUIET)


async def test_earlier_waits_of_a_request_count() -> None:
    slots = RequestSlots(running=1, queued=2, seconds=1000)
    async with slots.holding(NOISY):
        with pytest.raises(Unavailable, match="busy"):
            await slots.acquire(NOISY, waited=1000)
    await slots.acquire(NOISY, waited=1000)
    assert slots.held(NOISY) == 1


async def test_cancelled_requests_leave_the_queue_and_lose_no_slot() -> None:
    queue = Queue(running=1)
    await queue.ask(NOISY, NOISY, QUIET, THIRD)
    queue.tasks[1].cancel()
    queue.slots.release(NOISY)  # the slot is given to one who is cancelled before it can use it
    queue.tasks[2].cancel()
    await queue.settle()
    assert queue.started == [NOISY, THIRD]
    assert queue.slots.queued == 0
    assert await queue.finish(THIRD) == []
    await queue.ask(NOISY)
    assert queue.started == [NOISY]


def most_held_by_one(slots: RequestSlots, companies: Sequence[str]) -> int:
    return max(map(slots.held, companies))


@pytest.mark.parametrize("seed", range(20))
async def test_slots_are_neither_lost_nor_doubled(seed: int) -> None:
    """Any order of requests, ends and cancellations: at most 4 hold a slot, and no slot is free while one waits."""
    chance, queue, companies = random.Random(seed), Queue(running=4, queued=12), "abc"
    for _ in range(300):
        holding = Counter({each: queue.slots.held(each) for each in companies})
        action = chance.random()
        if action < 0.5:
            await queue.ask(chance.choice("aaab" + companies))
        elif action < 0.6 and (waiting := [each for each in queue.tasks if not each.done()]):
            chance.choice(waiting).cancel()
        elif holding.total():
            queue.slots.release(chance.choice(list(holding.elements())))
        if chance.random() < 0.7:
            await queue.settle()
            running = sum(map(queue.slots.held, companies))
            assert running <= 4
            assert queue.slots.queued <= 12
            assert running == 4 or queue.slots.queued == 0
            assert most_held_by_one(queue.slots, companies) <= 4
    for each in queue.tasks:
        each.cancel()
    await asyncio.gather(*queue.tasks, return_exceptions=True)
