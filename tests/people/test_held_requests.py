"""Requests that wait for events: shared reads, turns, and how many of them there may be."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from aiohttp.test_utils import TestServer

from coaching_service.app import create_app
from coaching_service.core.database.context import Services
from coaching_service.core.errors import Unavailable
from coaching_service.core.events import CompanySignals
from coaching_service.core.slots import RequestSlots
from coaching_service.people.changes import events
from coaching_service.people.customers import batch
from coaching_service.settings import Settings
from tests.support.client import CoachClient
from tests.support.counted_commands import counting_commands
from tests.support.service_process import until
from tests.support.training import employee_key

Json = dict[str, Any]


class Polls:
    """Requests for the next event of a company, all with the same cursor, that wait until they are ended."""

    def __init__(self, signals: CompanySignals, company: CoachClient) -> None:
        self._signals, self._company = signals, company
        self.running: list[asyncio.Task[Any]] = []

    async def begin(self, reader: CoachClient, count: int, **query: Any) -> None:
        """Begin so many requests, and wait until all that are running wait."""
        start = (await reader.get("/coach/events", limit=500)).ok()["nextCursor"]
        arguments = {"limit": 5, "after": start, "wait": 25, **query}
        self.running += [asyncio.create_task(reader.get("/coach/events", **arguments)) for _ in range(count)]
        company = self._company.ctx.company_id
        await until(lambda: self._signals.count(company) == len(self.running), "all wait")

    async def end(self) -> None:
        """Cancel all of them, and wait until none waits."""
        for poll in self.running:
            poll.cancel()
        await asyncio.gather(*self.running, return_exceptions=True)


@pytest.fixture
async def polls(coach: CoachClient) -> AsyncIterator[Polls]:
    """The requests of a test that wait, ended with it."""
    polls = Polls(coach.ctx.services.number_signals, coach)
    yield polls
    await polls.end()


async def another_key(coach: CoachClient, interactive: CoachClient, name: str) -> CoachClient:
    """A client with a further key of the company, whose event is numbered: it ends no request that waits afterwards."""
    before = (await coach.get("/coach/events", limit=500)).ok()["nextCursor"]
    created = (await interactive.post("/coach/api-keys", {"name": name})).ok(201)
    numbered = (await coach.get("/coach/events", after=before, wait=25)).ok()["docs"]
    assert [event["data"]["keyId"] for event in numbered] == [created["_id"]]
    return coach.with_key(created["key"])


async def test_twenty_requests_of_a_key_wait(coach: CoachClient, interactive: CoachClient, polls: Polls) -> None:
    second = await another_key(coach, interactive, "Second")
    await polls.begin(coach, 20)
    refused = await coach.get("/coach/events", limit=5, wait=25)
    refused.refused(429)
    assert (refused.json["code"], refused.headers["Retry-After"]) == ("TOO_MANY_WAITING", "5")
    (await coach.get("/coach/events", limit=5)).ok()  # it does not wait
    await polls.begin(second, 1)
    polls.running[0].cancel()
    await until(lambda: coach.ctx.services.number_signals.count(coach.ctx.company_id) == 20, "one has ended", 10)
    polls.running.pop(0)
    await polls.begin(coach, 1)


async def test_fifty_requests_of_a_company_wait(
    coach: CoachClient, interactive: CoachClient, other_company: CoachClient, polls: Polls
) -> None:
    for key in [await another_key(coach, interactive, name) for name in ("First", "Second", "Third")]:
        await polls.begin(key, 16)
    await polls.begin(coach, 2)
    (await coach.get("/coach/events", limit=5, wait=25)).refused(429)
    of_others = Polls(coach.ctx.services.number_signals, other_company)
    await of_others.begin(other_company, 1)
    await of_others.end()


async def test_requests_that_wait_for_the_same_share_a_read(
    coach: CoachClient, services: Services, settings: Settings
) -> None:
    """The number of reads after a change does not grow with the number of requests."""
    with counting_commands(settings, services) as (counted, commands):
        async with TestServer(create_app(settings, counted)) as server:
            reader = CoachClient(server, coach.key, coach.ctx)
            polls = Polls(counted.number_signals, coach)
            await polls.begin(reader, 20)
            commands.clear()
            ana = await batch.create_customer(coach.ctx, {"name": "Ana"})
            for reply in await asyncio.gather(*polls.running):
                assert [event["customerId"] for event in reply.ok()["docs"]] == [str(ana["_id"])]
            assert commands["aggregate"] <= 6, commands  # of 20 requests; a busy machine adds one of a cache
            await reader.close()


async def test_a_scope_is_applied_to_what_is_shared(coach: CoachClient, polls: Polls) -> None:
    """The reads are the same, the events are not."""
    scoped = coach.with_key(await employee_key(coach, "customers.view"))
    await polls.begin(coach, 1)
    await polls.begin(scoped, 1, wait=2)
    ana = await coach.create_customer("Ana")
    of_owner, of_employee = await asyncio.gather(*polls.running)
    assert [event["customerId"] for event in of_owner.ok()["docs"]] == [ana["_id"]]
    assert of_employee.ok()["docs"] == []


async def test_answers_wait_for_their_turn(coach: CoachClient) -> None:
    """While others hold all slots, no answer is read: neither the first, nor one after waiting."""
    slots = RequestSlots(1, seconds=0.1)
    ctx = replace(coach.ctx, turn=partial(slots.holding, coach.ctx.company_id))
    async with slots.holding("another"):
        for wait in (0, 25):
            with pytest.raises(Unavailable, match="busy"):
                await events.list_events(ctx, limit=5, wait=wait)
    signals, company_id = coach.ctx.services.number_signals, coach.ctx.company_id
    waiting = asyncio.create_task(events.list_events(ctx, limit=5, wait=25))
    await until(lambda: signals.count(company_id) and not slots.held(company_id), "it waits without a slot")
    async with slots.holding("another"):
        signals.notify(company_id)
        with pytest.raises(Unavailable, match="busy"):
            await waiting


async def test_route_takes_turns(coach: CoachClient, services: Services) -> None:
    def turns() -> float | None:
        return services.metrics.registry.get_sample_value("request_queue_duration_seconds_count", {"queue": "database"})

    before = turns() or 0
    (await coach.get("/coach/events", limit=5)).ok()
    assert turns() == before + 1
