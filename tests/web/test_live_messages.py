"""What open pages of messages ask for: requests that wait for the next message (contract 12)."""

from __future__ import annotations

import asyncio
import json
import re
from datetime import timedelta
from typing import Any

import pytest

from coaching_service.core.database.documents import now
from coaching_service.core.events import MAX_PAGES_OF_A_SESSION
from coaching_service.web.views import messages
from tests.support.client import CoachClient
from tests.support.service_process import until
from tests.support.training import Json, client_path
from tests.support.visitor import HtmlPage, Visitor
from tests.web.conftest import ClientPage, Colleague

INBOX, OWN = "/app/inbox/live", "/train/messages/live"


def live(customer: Json) -> str:
    """The address that the page of a conversation asks."""
    return f"/app/customers/{customer['_id']}/messages/live"


async def position_of(page: Visitor, path: str) -> int:
    """The number to continue from; it is answered at once."""
    news = json_of(await page.get(path))
    assert news["hasNews"] is False
    after: int = news["after"]
    return after


async def waiting(coach: CoachClient, page: Visitor, path: str, after: int, number: int = 1) -> asyncio.Task[Any]:
    """A request that waits, once it does."""
    task = asyncio.create_task(page.get(f"{path}?after={after}"))
    signals, company = coach.ctx.services.number_signals, coach.ctx.company_id
    await until(lambda: signals.count(company) >= number, "the page waits")
    return task


async def write(coach: CoachClient, customer: Json, text: str = "Hello") -> None:
    """Send a message of the client."""
    (await (await coach.as_client(customer)).post("/customer/messages", {"text": text})).ok(201)


def json_of(page: HtmlPage) -> Json:
    """The answer of a request."""
    assert page.headers["Cache-Control"] == "no-store"
    answer: Json = json.loads(page.ok().html)
    return answer


async def test_pages_wait_for_the_next_message_of_theirs(
    coach: CoachClient, owner_page: Visitor, client_page: ClientPage
) -> None:
    ana, bo = await coach.create_customer("Ana"), await coach.create_customer("Bo")
    of_ana = await client_page(coach, ana)
    after = await position_of(owner_page, live(ana))
    pages = [
        await waiting(coach, page, path, after, number)
        for number, (page, path) in enumerate([(owner_page, live(ana)), (owner_page, INBOX), (of_ana, OWN)], 1)
    ]
    await write(coach, bo)
    inbox = json_of(await pages.pop(1))
    assert inbox["hasNews"] is True and inbox["after"] > after
    (await coach.post(client_path(ana, "notes"), {"content": "No message"})).ok(201)
    assert [page.done() for page in pages] == [False, False]
    (await coach.post(client_path(ana, "messages"), {"text": "Well done"})).ok(201)
    for page in pages:
        news = json_of(await page)
        assert news["hasNews"] is True and news["after"] > inbox["after"]


async def test_answer_without_news_says_where_to_continue(
    coach: CoachClient, owner_page: Visitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(messages, "_WAIT_SECONDS", 0.1)
    ana = await coach.create_customer("Ana")
    note = await coach.post(client_path(ana, "notes"), {"content": "No message"})
    await coach.wait_until_numbered(note.headers["X-Change-Id"])
    news = json_of(await owner_page.get(f"{live(ana)}?after=0"))
    assert news == {"after": await position_of(owner_page, live(ana)), "hasNews": False}
    (await owner_page.get(f"{live(ana)}?after={news['after'] + 99}")).ok(410)


async def test_pages_of_a_conversation_begin_where_they_were_read(
    coach: CoachClient, owner_page: Visitor, client_page: ClientPage
) -> None:
    ana = await coach.create_customer("Ana")
    await write(coach, ana)
    for page, path in (
        (owner_page, f"/app/customers/{ana['_id']}/messages"),
        (owner_page, "/app/inbox"),
        (await client_page(coach, ana), "/train/messages"),
    ):
        html = (await page.get(path)).ok().html
        begins = re.search(f'data-live="{path}/live" data-live-after="([0-9]+)"', html)
        assert begins is not None
        assert int(begins[1]) <= await position_of(page, f"{path}/live")


async def test_access_is_checked_before_and_after_waiting(
    coach: CoachClient, colleague: Colleague, client_page: ClientPage
) -> None:
    ana = await coach.create_customer("Ana")
    assigned, of_ana = await colleague("customers.view", scope="assigned"), await client_page(coach, ana)
    (await assigned.get(live(ana))).ok(403)
    inbox = await waiting(coach, assigned, INBOX, await position_of(assigned, INBOX))
    ending = await waiting(coach, of_ana, OWN, await position_of(of_ana, OWN), 2)
    await coach.ctx.db["sessions"].delete_many({"companyId": coach.ctx.company_id, "kind": "customer"})
    (await coach.post(client_path(ana, "messages"), {"text": "Secret"})).ok(201)
    assert (await ending).path.startswith("/app/sign-in"), "the session has ended"
    assert not inbox.done(), "the message is of a client who is not assigned"
    inbox.cancel()


async def test_an_open_page_does_not_extend_the_session(coach: CoachClient, owner_page: Visitor) -> None:
    sessions, where = coach.ctx.db["sessions"], {"companyId": coach.ctx.company_id}
    await sessions.update_many(where, {"$set": {"access.0.until": now() + timedelta(minutes=5)}})

    async def ends() -> list[Any]:
        stored = await sessions.find(where).to_list(None)
        return [each["access"][0]["until"] for each in stored]

    before = await ends()
    for path in (INBOX, "/app/inbox"):
        (await owner_page.send("GET", path, headers={"X-Live": "1"})).ok()
    assert await ends() == before
    (await owner_page.get("/app/inbox")).ok()
    assert await ends() != before


async def test_pages_have_limits_of_their_own(coach: CoachClient, owner_page: Visitor) -> None:
    after = await position_of(owner_page, INBOX)
    pages = [await waiting(coach, owner_page, INBOX, after, number) for number in range(1, MAX_PAGES_OF_A_SESSION + 1)]
    (await owner_page.get(f"{INBOX}?after={after}")).ok(429)
    ana = await coach.create_customer("Ana")
    (await coach.get("/coach/events", limit=1, wait=20)).ok()
    await write(coach, ana)
    assert {json_of(await page)["hasNews"] for page in pages} == {True}
