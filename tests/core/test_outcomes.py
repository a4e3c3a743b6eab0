"""A request that fails says whether it may have changed something: its database is lost at one command."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from typing import Any

import pytest
from aiohttp.test_utils import TestServer

from coaching_service.app import create_app
from coaching_service.core.database import context
from coaching_service.core.database.connection import Deadlines, connect, database
from coaching_service.core.database.context import Services
from coaching_service.core.ids import ObjectId
from coaching_service.people.sessions import service as sessions
from coaching_service.settings import Settings
from tests.conftest import PASSWORD
from tests.core.test_uploads import form, picture
from tests.support.client import CoachClient, Reply
from tests.support.database_proxy import DatabaseProxy, Moment, proxy_to
from tests.support.mcp_client import McpHttpClient, tool_error
from tests.support.visitor import Visitor

UNAVAILABLE, UNKNOWN = (503, "UNAVAILABLE", "1"), (503, "OUTCOME_UNKNOWN", None)
REPEATABLE = (503, "OUTCOME_UNKNOWN", "1")
COMMIT = "commitTransaction"


@dataclass
class Losing:
    """A service that loses its database at a moment, with a coach and an assistant."""

    coach: CoachClient
    mcp: McpHttpClient
    visitor: Visitor
    proxy: DatabaseProxy

    def lose(self, command: str, collection: str | None = None, *, done: bool = False) -> None:
        """Lose the database when a command is sent, or once it has executed the command (`done`)."""
        self.proxy.wait_for(Moment(command, collection, done=done), self.proxy.cut)


@pytest.fixture
async def losing(
    settings: Settings, services: Services, coach: CoachClient, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Losing]:
    """Without background jobs, and without patience: transactions are not repeated."""
    defaults = context.in_transaction.__kwdefaults__
    assert defaults is not None
    monkeypatch.setitem(defaults, "patience", 0.0)
    async with AsyncExitStack() as stack:
        proxy, uri = await stack.enter_async_context(proxy_to(str(settings.mongodb_uri)))
        client = connect(uri, Deadlines(operation=2, selection=0.3))
        app = create_app(settings, replace(services, db=database(client, settings.mongodb_database)))
        app.cleanup_ctx.clear()
        # It sends its last commands through the proxy, which this loop runs.
        stack.push_async_callback(asyncio.to_thread, client.close)
        server = await stack.enter_async_context(TestServer(app))
        own, visitor = CoachClient(server, coach.key, coach.ctx), Visitor(server)
        stack.push_async_callback(own.close)
        stack.push_async_callback(visitor.close)
        mcp = await stack.enter_async_context(McpHttpClient(server, {"X-API-Key": str(coach.key)}))
        yield Losing(own, mcp, visitor, proxy)


def outcome_of(reply: Reply) -> tuple[int, str, str | None]:
    """Status, code and `Retry-After` of an error."""
    return reply.status, reply.json["code"], reply.headers.get("Retry-After")


async def create_note(coach: CoachClient, client: dict[str, Any], **options: Any) -> Reply:
    """Create a note: a transaction."""
    return await coach.post(f"/coach/customers/{client['_id']}/notes", {"content": "Knee"}, **options)


async def list_notes(coach: CoachClient, client: dict[str, Any]) -> list[str]:
    """The texts that are stored."""
    stored = coach.ctx.db["notes"].find({"customerId": ObjectId(client["_id"])})
    return [note["content"] async for note in stored]


# --- REST ------------------------------------------------------------------------------------------------------------


async def test_change_that_was_not_committed_is_unavailable(coach: CoachClient, losing: Losing) -> None:
    client = await coach.create_customer()
    losing.lose("insert", "notes", done=True)
    assert outcome_of(await create_note(losing.coach, client)) == UNAVAILABLE
    assert await list_notes(coach, client) == []


@pytest.mark.parametrize("done", [False, True], ids=["lost on its way", "executed"])
async def test_commit_without_response_is_unknown(coach: CoachClient, losing: Losing, done: bool) -> None:
    client = await coach.create_customer()
    losing.lose(COMMIT, done=done)
    reply = await create_note(losing.coach, client)
    assert outcome_of(reply) == UNKNOWN
    assert reply.json["message"] == "It may have been saved: look before you try again"
    assert await list_notes(coach, client) == (["Knee"] if done else [])


async def test_unknown_outcome_of_a_request_with_a_key_says_when_to_send_it_again(
    coach: CoachClient, losing: Losing
) -> None:
    client, key = await coach.create_customer(), {"Idempotency-Key": str(ObjectId())}
    losing.lose(COMMIT, done=True)
    reply = await create_note(losing.coach, client, headers=key)
    assert outcome_of(reply) == REPEATABLE
    assert "same Idempotency-Key" in reply.json["message"]
    assert (await create_note(coach, client, headers=key)).ok(201)["content"] == "Knee"
    assert await list_notes(coach, client) == ["Knee"]


async def test_single_write_without_response_is_unknown(
    coach: CoachClient, losing: Losing, anonymous: CoachClient
) -> None:
    """The refresh token is used up: who sends it again signs out all devices of the family."""
    identity = await coach.ctx.db["identities"].find_one({"subjectId": coach.ctx.caller.id})
    assert identity is not None
    session = (await anonymous.post("/auth/login", {"email": identity["address"], "password": PASSWORD})).ok()
    losing.lose("update", "sessions", done=True)
    renewal = {"refreshToken": session["refreshToken"]}
    assert outcome_of(await losing.coach.post("/auth/refresh", renewal)) == UNKNOWN
    (await anonymous.post("/auth/refresh", renewal)).refused(401)


async def test_single_insert_without_response_is_unknown(losing: Losing) -> None:
    """Registering an application: its identifier is lost with the response."""
    losing.lose("insert", "oauthClients", done=True)
    metadata = {"redirect_uris": ["https://outcome.test/callback"], "client_name": "Outcome"}
    assert outcome_of(await losing.coach.post("/oauth/register", metadata)) == UNKNOWN


async def test_uploaded_file_without_its_record_changes_nothing(coach: CoachClient, losing: Losing) -> None:
    client = await coach.create_customer()
    losing.lose("insert", "changes", done=True)
    path = f"/coach/customers/{client['_id']}/profile-photo"
    assert outcome_of(await losing.coach.send("PUT", path, data=form(picture(), "profilePhotoFile"))) == UNAVAILABLE


async def test_reads_and_counters_leave_no_doubt(coach: CoachClient, losing: Losing) -> None:
    """A sign-in counts the attempt first; a key records its use."""
    losing.lose("findAndModify", "rateLimits", done=True)
    reply = await losing.coach.post("/auth/login", {"email": "nina@outcome.test", "password": "a wrong password"})
    assert outcome_of(reply) == UNAVAILABLE


# --- tools and pages -------------------------------------------------------------------------------------------------


async def test_tools_say_whether_to_look_or_to_repeat(coach: CoachClient, losing: Losing) -> None:
    losing.lose(COMMIT, done=True)
    error = tool_error(await losing.mcp.call("create_customer", name="Ana"), "It may have been saved", "Look before")
    assert "nothing was changed" not in error
    assert await coach.names() == ["Ana"]


async def test_tools_with_a_key_are_repeated(coach: CoachClient, losing: Losing) -> None:
    losing.lose(COMMIT, done=True)
    call = {"name": "Ana", "idempotencyKey": "outcome"}
    tool_error(await losing.mcp.call("create_customer", **call), "It may have been saved", "same idempotencyKey")


async def test_tool_that_changed_nothing_says_so(coach: CoachClient, losing: Losing) -> None:
    losing.lose("insert", "customers", done=True)
    tool_error(await losing.mcp.call("create_customer", name="Ana"), "nothing was changed", "Try again")
    assert await coach.names() == []


async def test_page_says_that_it_may_have_been_saved(coach: CoachClient, losing: Losing) -> None:
    losing.visitor.keep(coach_session=(await sessions.start_for_coach(coach.ctx, coach.ctx.caller.id)).token)
    page = await losing.visitor.get("/app/customers/new")
    losing.lose(COMMIT, done=True)
    saved = await losing.visitor.submit(page, "/app/customers/new", name="Ana")
    saved.ok(503).says("It may have been saved", "Look before you try again")
    assert await coach.names() == ["Ana"]
