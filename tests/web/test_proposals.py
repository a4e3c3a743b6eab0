"""Proposals of assistants in the web application: on Today, on a page of their own, and in the list."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator

import pytest
from aiohttp.test_utils import TestServer

from tests.support.client import CoachClient
from tests.support.mcp_client import McpHttpClient, propose_invitation, tool_change, tool_proposal
from tests.support.visitor import HtmlPage, Visitor
from tests.web.conftest import Colleague, NewVisitor

LIST, TODAY = "/app/proposals", "/app/attention"


@pytest.fixture
async def mcp(server: TestServer, coach: CoachClient) -> AsyncIterator[McpHttpClient]:
    """POSTs to /mcp with the coach's key."""
    async with McpHttpClient(server, {"X-API-Key": coach.key or ""}) as client:
        yield client


async def propose(mcp: McpHttpClient, coach: CoachClient, name: str) -> str:
    """Propose to invite a client, and return the path of the proposal's page."""
    return f"{LIST}/{await propose_invitation(mcp, coach, name)}"


def badge(page: HtmlPage) -> bool:
    """Whether the navigation says that proposals wait."""
    return "proposals wait" in page.text or "proposal waits" in page.text


async def test_today_begins_with_what_waits(mcp: McpHttpClient, coach: CoachClient, owner_page: Visitor) -> None:
    today = await owner_page.get(TODAY)
    assert "Your assistant proposes" not in today.text and not badge(today)
    await coach.create_customer("Zoe")
    ana = await propose(mcp, coach, "Ana")
    bo = await propose(mcp, coach, "Bo")
    today = (await owner_page.get(TODAY)).ok()
    today.says("Your assistant proposes", "Create the client Ana and invite them by e-mail.", "2 proposals wait")
    assert "«" not in today.text
    assert today.text.index("Your assistant proposes") < today.text.index("All proposals")

    approved = await owner_page.submit(today, f"{ana}/approve")
    assert approved.path == TODAY
    approved.says("Approved and done.", "1 proposal waits")
    assert sorted(await coach.names()) == ["Ana", "Zoe"]
    rejected = await owner_page.submit(approved, f"{bo}/reject")
    rejected.says("Rejected. Nothing was changed.")
    assert "Your assistant proposes" not in rejected.text and not badge(rejected)
    assert sorted(await coach.names()) == ["Ana", "Zoe"]


async def test_all_of_one_assistant_are_approved(mcp: McpHttpClient, coach: CoachClient, owner_page: Visitor) -> None:
    for name in ("Ana", "Bo", "Cleo"):
        await propose(mcp, coach, name)
    today = await owner_page.get(TODAY)
    later = await propose(mcp, coach, "Dora")  # the coach has not seen it
    (await owner_page.submit(today, f"{LIST}/approve-all")).says("3 proposals approved and done.")
    assert sorted(await coach.names()) == ["Ana", "Bo", "Cleo"]
    (await owner_page.submit(await owner_page.get(later), f"{later}/reject")).ok()
    listed = (await owner_page.get(LIST)).says("Create the client Cleo", "Done", "decided by Olga Owner")
    assert not badge(listed)
    (await owner_page.get(f"{LIST}?status=pending")).ok().says("No such proposals")


async def test_page_of_a_proposal(mcp: McpHttpClient, coach: CoachClient, owner_page: Visitor) -> None:
    path = await propose(mcp, coach, "Ana")
    page = (await owner_page.get(path)).ok()
    page.says(
        "Your assistant proposes",
        "Nothing is done yet. You decide, because it sends mail or messages to people.",
        "Before and after",
    )
    assert [link for link in page.links if link.startswith("/app/customers/")] == []  # there is no such client yet
    done = await owner_page.submit(page, f"{path}/approve")
    assert done.path == path
    done.says("Approved and done.", "Approved by Olga Owner", "Show the change, or undo it")
    # The page that was open in another tab.
    again = (await owner_page.submit(page, f"{path}/reject")).ok(409)
    again.says("This was decided already, or has expired. Nothing was changed now.")
    assert await coach.names() == ["Ana"]


async def test_a_stale_proposal_is_not_done(mcp: McpHttpClient, coach: CoachClient, owner_page: Visitor) -> None:
    customer = await coach.create_customer("Ana")
    days = [{"date": "2026-03-02", "name": "Legs", "text": "task: Walk"}]
    await mcp.call("create_workout", customerId=customer["_id"], days=days)
    copy = {"startDate": "2026-03-02", "endDate": "2026-03-15", "targetDate": "2026-03-16"}
    proposed = await mcp.call("copy_schedule", customerId=customer["_id"], **copy)
    path = f"{LIST}/{tool_proposal(proposed, 'MANY_DAYS')['proposalId']}"
    page = (await owner_page.get(path)).ok()
    assert f"/app/customers/{customer['_id']}" in page.links
    days = [{"date": "2026-03-03", "name": "Arms", "text": "task: Swim"}]
    await mcp.call("create_workout", customerId=customer["_id"], days=days)
    stale = (await owner_page.submit(page, f"{path}/approve")).ok(409)
    stale.says("The records have changed since. Ask your assistant to propose it again.")


async def test_an_access_that_is_gone_does_nothing(mcp: McpHttpClient, coach: CoachClient, owner_page: Visitor) -> None:
    path = await propose(mcp, coach, "Ana")
    page = await owner_page.get(path)
    session = await coach.interactive()
    [key] = (await session.get("/coach/api-keys")).ok()
    (await session.delete(f"/coach/api-keys/{key['_id']}")).ok(204)
    (await owner_page.submit(page, f"{path}/approve")).says("Not permitted", "Nothing was changed")
    assert await session.names() == []


async def test_a_recalled_message(mcp: McpHttpClient, coach: CoachClient, owner_page: Visitor) -> None:
    customer = await coach.create_customer("Ana")
    proposed = await mcp.call("send_message", customerId=customer["_id"], text="Hello")
    path = f"{LIST}/{tool_proposal(proposed, 'CONTACT')['proposalId']}"
    (await owner_page.submit(await owner_page.get(path), f"{path}/approve")).says("Approved and done.")
    read = await mcp.call("get_proposal", proposalId=path.rpartition("/")[2])
    change = read["structuredContent"]["result"]["changeId"]
    tool_change(await mcp.call("undo", changeId=change))
    page = (await owner_page.get(path)).ok()
    page.says("Recalled", "The message was recalled.")
    assert "not decided" not in page.text


async def test_sign_in_returns_to_the_proposal(mcp: McpHttpClient, coach: CoachClient, new_visitor: NewVisitor) -> None:
    path = await propose(mcp, coach, "Ana")
    sign_in = await new_visitor().get(path)
    assert sign_in.path == f"/app/sign-in?next={path}"


async def test_another_coach_does_not_see_it(mcp: McpHttpClient, coach: CoachClient, colleague: Colleague) -> None:
    path = await propose(mcp, coach, "Ana")
    eli = await colleague("customers.view", "customers.edit", "customers.create")
    assert (await eli.get(path)).status == 404
    assert not badge((await eli.get(TODAY)).ok())
    (await eli.get(LIST)).ok().says("No proposals")


async def test_times_on_today_are_those_of_the_company(
    mcp: McpHttpClient, coach: CoachClient, owner_page: Visitor
) -> None:
    (await (await coach.interactive()).patch("/coach/account", {"timezone": "Asia/Kolkata"})).ok()
    await propose(mcp, coach, "Ana")
    assert re.search(r"until \d+ \w{3} \d{4}, \d\d:\d\d", (await owner_page.get(TODAY)).ok().text)
