"""Routes whose handler and JSON are made by one worker thread."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from coaching_service import features
from coaching_service.app import authenticate
from coaching_service.core.auth import anyone
from coaching_service.core.database.context import Context, Services
from coaching_service.core.errors import NotFound
from coaching_service.core.http.handlers import HandlerDependencies, mount
from coaching_service.core.http.routes import Routes, routes_of
from coaching_service.core.slots import RequestSlots
from coaching_service.http_server import request_middleware
from coaching_service.library.exercises.models import EXERCISE
from tests.support.client import CoachClient

# Large responses, and those of the measured requests of docs/performance.md.
ENCODED_ON_WORKER_THREADS = {
    ("GET", "/coach/customers"),
    ("GET", "/coach/customers/{customerId}/wblock"),
    ("GET", "/coach/programs/{programId}/wblock"),
    ("GET", "/customer/wblock"),
    ("POST", "/coach/customers/{customerId}/schedule/copy"),
    ("POST", "/coach/programs/{programId}/copy-days"),
}


@dataclass
class Threads:
    """The threads that called the handler and encoded its result."""

    called: list[int] = field(default_factory=list)
    encoded: list[int] = field(default_factory=list)

    def result(self) -> dict[str, Any]:
        """A result whose encoding is recorded: sets are sorted when they are encoded."""
        self.called.append(threading.get_ident())
        threads = self

        class Word(str):
            def __lt__(self, other: str) -> bool:
                threads.encoded.append(threading.get_ident())
                return str.__lt__(self, other)

        return {"words": {Word("squat"), Word("press")}}


@pytest.fixture
async def threads() -> Threads:
    return Threads()


@pytest.fixture
async def recording_server(services: Services, threads: Threads) -> TestServer:
    """Serves results that are encoded by the event loop, by a worker thread, and one that is an error."""
    routes = Routes("", tag="Test")

    @routes.get("/loop", access=anyone(), returns=EXERCISE)
    async def on_loop(_: Context) -> dict[str, Any]:
        """Return a result."""
        return threads.result()

    @routes.get("/thread", access=anyone(), returns=EXERCISE, on_worker_thread=True)
    async def on_thread(ctx: Context) -> dict[str, Any]:
        """Return a result after a read of the database."""
        await ctx.collection("customers").find_one({"companyId": ctx.company_id})
        return threads.result()

    @routes.get("/missing", access=anyone(), returns=EXERCISE, on_worker_thread=True)
    async def fail(_: Context) -> dict[str, Any]:
        """Fail."""
        raise NotFound("exercise")

    app = web.Application(middlewares=[request_middleware(services)])
    slots, bulk = [RequestSlots(number, queued=100, seconds=60) for number in (8, 2)]
    mount(app, routes.declared, HandlerDependencies(services, authenticate, slots, bulk, RequestSlots(1), body_limit=1))
    return TestServer(app)


async def test_result_is_encoded_by_the_thread_that_called_the_handler(
    recording_server: TestServer, threads: Threads, coach: CoachClient
) -> None:
    headers = {"X-API-Key": coach.key or ""}
    async with recording_server, aiohttp.ClientSession(headers=headers) as http:
        for path in ("/loop", "/thread"):
            async with http.get(recording_server.make_url(path)) as response:
                assert (response.status, await response.json()) == (200, {"words": ["press", "squat"]})
        async with http.get(recording_server.make_url("/missing")) as response:
            assert (response.status, (await response.json())["code"]) == (404, "EXERCISE_NOT_FOUND")
    (loop, thread), own = threads.called, threading.get_ident()
    assert (loop, thread == own) == (own, False)
    assert threads.encoded == [loop, thread]


def test_only_json_results_are_encoded_by_a_worker_thread() -> None:
    routes = Routes("/test", tag="Test")
    others: list[dict[str, Any]] = [{"returns": None}, {"returns": bytes}]
    others += [{"returns": EXERCISE, name: True} for name in ("upserts", "resumable")]
    for other in others:
        with pytest.raises(TypeError, match="JSON results only"):

            @routes.put("", access=anyone(), on_worker_thread=True, **other)
            async def handler(_: Context) -> None:
                """Return something else."""


def test_routes_whose_results_are_encoded_by_worker_threads() -> None:
    declared = {(route.method, route.path) for route in routes_of(features.ROUTES) if route.on_worker_thread}
    assert declared == ENCODED_ON_WORKER_THREADS
