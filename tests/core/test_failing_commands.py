"""Commands that the database refuses at any moment of a request: the response is 503, never 500.

MongoDB is made to refuse commands with the errors of a server that starts, ends or loses its majority.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, replace
from itertools import cycle
from typing import Any

import pytest
from aiohttp.test_utils import TestServer
from motor.motor_asyncio import AsyncIOMotorClient
from pymongo.errors import PyMongoError
from pymongo.monitoring import CommandFailedEvent, CommandListener, CommandStartedEvent, CommandSucceededEvent

from coaching_service.app import create_app
from coaching_service.core import rate_limits
from coaching_service.core.database.connection import UNCERTAIN, database
from coaching_service.core.database.context import Services
from coaching_service.core.database.outcome import WriteObserver
from coaching_service.core.ids import ObjectId
from coaching_service.settings import Settings
from tests.conftest import PASSWORD
from tests.support.client import CoachClient, Reply
from tests.support.fail_points import FailCommand, fail_point
from tests.support.sampled import some
from tests.support.service_process import until

COMMANDS = ["aggregate", "commitTransaction", "count", "delete", "distinct", "find", "findAndModify"]
COMMANDS += ["getMore", "insert", "update"]
# Fields of the fail point. 11602: InterruptedDueToReplStateChange, 10107: NotWritablePrimary, 91: ShutdownInProgress,
# 211: KeyNotFound, 217: IncompleteTransactionHistory, 365: TemporarilyUnavailable, 64: WriteConcernFailed.
FAILURES: list[dict[str, Any]] = [
    {"errorCode": 11602},
    {"errorCode": 211},
    {"closeConnection": True},
    {"errorCode": 217},
    {"errorCode": 10107},
    {"errorCode": 365},
    {"errorCode": 91},
    {"writeConcernError": {"code": 64, "errmsg": "waiting for replication timed out"}},
]


class Counter(CommandListener):
    """Counts the commands that the fail point can refuse."""

    sent = 0

    def started(self, event: CommandStartedEvent) -> None:
        self.sent += event.command_name in COMMANDS

    def succeeded(self, event: CommandSucceededEvent) -> None: ...

    def failed(self, event: CommandFailedEvent) -> None: ...


@dataclass
class Failing:
    """The application on a connection of its own, whose commands can be refused without disturbing other tests.

    `coach` sends requests to a process that waits for the database, and `hasty` to one that does not wait for long.
    """

    services: Services
    coach: CoachClient
    hasty: CoachClient
    counter: Counter
    fail: FailCommand

    async def recover(self) -> None:
        """Refuse no command any more, and wait until the service uses the database again."""
        await self.fail("off")
        await until(self._responds, "the service uses the database")

    async def _responds(self) -> bool:
        monitor = self.hasty.ctx.services.monitor
        with suppress(PyMongoError, TimeoutError):
            await monitor.check()
            return not monitor.is_lost
        return False


@pytest.fixture
async def failing(coach: CoachClient, settings: Settings) -> AsyncIterator[Failing]:
    """Without background work, whose commands would be refused instead."""
    counter, name = Counter(), f"test {ObjectId()}"
    client: AsyncIOMotorClient[dict[str, Any]] = AsyncIOMotorClient(
        settings.mongodb_uri,
        appname=name,
        event_listeners=[counter, WriteObserver(UNCERTAIN)],
        w="majority",
        heartbeatFrequencyMS=500,
    )
    # Without a cache, as the number of commands of a request must not depend on the time.
    patient = replace(coach.ctx.services, db=database(client, settings.mongodb_database), cache_seconds=0)
    hasty = replace(patient, database_response_seconds=0.5)
    async with AsyncExitStack() as stack:
        clients = []
        for services in (patient, hasty):
            app = create_app(settings, services)
            app.cleanup_ctx.clear()
            server = await stack.enter_async_context(TestServer(app))
            clients.append(CoachClient(server, coach.key, replace(coach.ctx, services=services)))
            clients[-1].checks = False
            stack.push_async_callback(clients[-1].close)
            stack.callback(services.monitor.close)
        fail = await stack.enter_async_context(
            fail_point(coach.ctx.db.client, settings.mongodb_uri, appName=name, failCommands=COMMANDS)
        )
        coach_, hasty_ = clients
        yield Failing(patient, coach_, hasty_, counter, fail)
    client.close()


def requests_of(email: str, client_id: str) -> list[tuple[int, str, str, dict[str, Any]]]:
    """Requests of several kinds: the usual status, method, path and options."""
    client = f"/coach/customers/{client_id}"
    cookie, bearer = {"Cookie": "coach_session=unknown"}, {"X-API-Key": "", "Authorization": "Bearer unknown"}
    dates, token = {"startDate": "2026-03-02", "endDate": "2026-03-15"}, {"refresh_token": "no", "client_id": "no"}
    return [
        (200, "POST", "/auth/login", {"json": {"email": email, "password": PASSWORD}}),
        (401, "POST", "/auth/login", {"json": {"email": email, "password": "a wrong password"}}),
        (401, "POST", "/auth/refresh", {"json": {"refreshToken": "unknown"}}),
        (200, "POST", "/auth/password/forgot", {"json": {"email": email}}),
        (201, "POST", "/coach/customers", {"json": {"name": "Bea"}}),
        (200, "PATCH", client, {"json": {"name": "Cleo"}}),
        (200, "GET", "/coach/customers", {"params": {"archived": "false", "pageSize": 50, "pageNum": 1}}),
        (200, "GET", f"{client}/wblock", {"params": dates}),
        (303, "GET", "/app/customers", {"headers": cookie, "allow_redirects": False}),
        (401, "POST", "/mcp", {"headers": bearer, "json": {"jsonrpc": "2.0", "id": 1}}),
        (401, "POST", "/oauth/token", {"data": {"grant_type": "refresh_token", **token}}),
    ]


async def send(coach: CoachClient, method: str, path: str, options: dict[str, Any]) -> Reply:
    """Send a request with a key of its own."""
    headers = {"Idempotency-Key": str(ObjectId())} | options.get("headers", {})
    return await coach.send(method, path, **options | {"headers": headers})


def says_whether_to_repeat(reply: Reply) -> bool:
    """Whether a 503 says when to send the request again, or that it may have been carried out."""
    is_unknown = reply.json is not None and reply.json.get("code") == "OUTCOME_UNKNOWN"
    return is_unknown or "Retry-After" in reply.headers


async def test_refused_command_is_503_whatever_it_is(coach: CoachClient, failing: Failing) -> None:
    """Some commands of each request are refused, its last one too, and all after it, with each failure in turn."""
    client = await coach.create_customer("Ana")
    identity = await coach.ctx.db["identities"].find_one({"subjectId": coach.ctx.caller.id})
    assert identity is not None
    failures, problems = cycle(FAILURES), []
    for usual, method, path, options in requests_of(identity["address"], client["_id"]):
        request = (method, path, options)
        sent = failing.counter.sent
        reply = await send(failing.coach, *request)
        assert reply.status == usual, (request, reply.raw)
        for number in some(range(failing.counter.sent - sent)[::-1], 4):
            failure = next(failures)
            await coach.ctx.db["rateLimits"].delete_many({})
            await failing.fail("alwaysOn" if "writeConcernError" in failure else {"skip": number}, **failure)
            reply = await send(failing.hasty, *request)
            await failing.recover()
            if reply.status not in (503, usual) or (reply.status == 503 and not says_whether_to_repeat(reply)):
                problems.append(f"{request}, command {number}, {failure}: {reply.status} {reply.raw!r}")
    assert problems == []


async def test_attempt_that_the_driver_repeats_is_counted_once(failing: Failing) -> None:
    """MongoDB returns the whole counter then, whatever the projection: the first response was lost in an election."""
    name = str(ObjectId())
    for expected in (1, 2):
        await failing.fail(
            {"times": 1},
            writeConcernError={"code": 91, "errmsg": "the server ends"},
            errorLabels=["RetryableWriteError"],
        )
        sent = failing.counter.sent
        attempts, seconds = await rate_limits.count(failing.services, "test", name)
        assert failing.counter.sent == sent + 2
        assert (attempts, seconds) == (expected, pytest.approx(900, abs=120))
