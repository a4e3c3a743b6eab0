"""What ends a request that would go on without end: its budget of processor time, and a caller who has gone."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import warnings
import weakref
from urllib.parse import urlsplit

import pytest
from aiohttp.test_utils import make_mocked_request

from coaching_service import http_server
from coaching_service.core import budgets
from coaching_service.core.budgets import Budget, metered
from coaching_service.core.database.context import Context, gather_reads
from coaching_service.core.database.worker_thread import on_worker_thread
from coaching_service.core.errors import Unavailable
from coaching_service.core.slots import RequestSlots
from coaching_service.documentation import operator_endpoints
from coaching_service.people.customers import service as customers
from coaching_service.progress import own_today
from tests.support.client import CoachClient
from tests.support.other_process import AsServed
from tests.support.service_process import until
from tests.support.training import client_path


async def work_forever(*_: object) -> int:
    """Use the processor without end, with steps as between operations of the database."""
    while True:
        sum(range(100_000))
        await asyncio.sleep(0)


async def test_a_read_ends_when_its_budget_is_spent(
    coach: CoachClient, other_company: CoachClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In tasks that it has started too; others are served, and the next request of the caller is."""
    ana, bo = await coach.create_customer(), await other_company.create_customer("Bo")
    client = await coach.as_client(ana)
    with monkeypatch.context() as patch:
        patch.setattr(http_server, "READ_SECONDS", 0.2)
        patch.setattr(own_today, "_count_streak_weeks", work_forever)
        answers = [client.get("/customer/today") for _ in range(3)]
        *ended, other = await asyncio.gather(*answers, other_company.get(client_path(bo)))
        for each in ended:
            error = each.refused(503, "processor time")
            assert error["code"] == "UNAVAILABLE"
            assert "Retry-After" in each.headers
        assert other.ok()["name"] == "Bo"
    assert (await client.get("/customer/today")).ok()["streakWeeks"] == 0


async def test_tasks_and_threads_of_a_request_share_its_budget(coach: CoachClient) -> None:
    @on_worker_thread
    async def read_on_thread(ctx: Context) -> None:
        for _ in range(1_000):
            sum(range(100_000))
            await ctx.collection("customers").find({"companyId": ctx.company_id}, {"_id": 1}).to_list(None)

    async def read_together(ctx: Context) -> None:
        await gather_reads(ctx, asyncio.sleep(0), work_forever())

    async def in_request(budget: Budget, read: object) -> None:
        budget.begin()
        await metered(read(coach.ctx))  # type: ignore[operator]  # one of the two above

    for read in (read_on_thread, read_together):
        budget = Budget(0.2)
        with pytest.raises(Unavailable, match="processor time"):
            await asyncio.create_task(in_request(budget, read), context=contextvars.copy_context())
        with pytest.raises(Unavailable):
            budget.require()
        budget.end()
        budget.require()
    assert budgets.current() is None, "what follows has no budget"


async def test_a_read_ends_with_its_caller_and_a_write_does_not(
    as_served: AsServed, coach: CoachClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    ana = await coach.create_customer()
    state = {"begun": 0, "ended": 0, "cancelled": 0}
    gate = asyncio.Event()

    async def wait(*_: object, **__: object) -> None:
        state["begun"] += 1
        try:
            await gate.wait()
        except asyncio.CancelledError:
            state["cancelled"] += 1
            raise
        state["ended"] += 1

    monkeypatch.setattr(customers, "get_visible", wait)  # which both begin with
    url, body = urlsplit(str(as_served.make_url("/"))), b'{"content": "Knee"}'

    async def send_and_go(method: str, sent: bytes) -> None:
        begun = state["begun"]
        _, writer = await asyncio.open_connection(url.hostname, url.port)
        head = f"{method} {client_path(ana, 'notes')}?pageSize=5&pageNum=1 HTTP/1.1\r\nHost: x\r\nX-API-Key: {coach.key}\r\n"
        head += f"Content-Type: application/json\r\nContent-Length: {len(sent)}\r\n\r\n"
        writer.write(head.encode() + sent)

        async def has_begun() -> bool:
            return state["begun"] > begun

        await until(has_begun, "the request is carried out")
        writer.close()

    async def is_cancelled() -> bool:
        return state["cancelled"] == 1

    async def has_ended() -> bool:
        return state["ended"] == 1

    await send_and_go("GET", b"")
    await until(is_cancelled, "the read ends with its caller")
    await send_and_go("POST", body)
    gate.set()
    await until(has_ended, "the write is carried out")
    assert state == {"begun": 2, "ended": 1, "cancelled": 1}


async def test_readiness_ends_while_requests_get_no_turn(coach: CoachClient, monkeypatch: pytest.MonkeyPatch) -> None:
    """It waits in the queue of requests, as a company of its own, and holds no slot."""
    slots = RequestSlots(2)
    endpoints = operator_endpoints.OperatorEndpoints(coach.ctx.services, [], [], slots)
    request = make_mocked_request("GET", "/readyz")
    assert (await endpoints.readyz(request)).status == 200
    monkeypatch.setattr(coach.ctx.services.monitor, "seconds", 0.2)
    async with slots.holding("a"), slots.holding("a"):
        with pytest.raises(Unavailable, match="busy"):
            await endpoints.readyz(request)
        assert (slots.queued, slots.held("a")) == (0, 2)
    monkeypatch.undo()
    assert (await endpoints.readyz(request)).status == 200
    async with slots.holding("b"), slots.holding("b"):
        assert slots.held("b") == 2, "both are free again"


async def test_reads_that_are_cancelled_before_their_first_step_are_closed() -> None:
    async def read() -> None:
        """Read nothing."""

    async def cancel_before_the_first_step() -> None:
        Budget(1.0).begin()
        task = asyncio.ensure_future(metered(read()))
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        await asyncio.create_task(cancel_before_the_first_step())
        gc.collect()


async def test_what_a_cancelled_request_held_is_free_at_once() -> None:
    """Without the garbage collector: an error that refers to itself would hold open queries, and files."""

    class Held:
        pass

    held: list[weakref.ref[Held]] = []

    async def read() -> None:
        own = Held()
        held.append(weakref.ref(own))
        await asyncio.Event().wait()

    async def respond() -> None:
        Budget(10).begin()
        await metered(read())

    gc.disable()
    try:
        for _ in range(3):
            request = asyncio.create_task(respond())
            await until(lambda: len(held) > 0, "it reads")
            request.cancel()
            await asyncio.wait([request])
            del request
            assert held.pop()() is None
    finally:
        gc.enable()
