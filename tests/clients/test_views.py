"""The views of MCP Apps in Chromium, shown by the official bridge for hosts.

Collected with `--clients`; needs Node (20 or newer) and Chromium.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import BaseTestServer, TestServer
from axe_playwright_python.async_playwright import Axe
from playwright.async_api import Browser, ConsoleMessage, Frame, Page, expect

from tests.clients.programs import HERE, run
from tests.mcp.conftest import mcp, usual_first_load
from tests.support.assistants import authorize_assistant
from tests.support.client import CoachClient
from tests.support.mcp_client import McpHttpClient, tool_change
from tests.support.service_process import until
from tests.web.browser.conftest import chromium, picture

__all__ = ["chromium", "mcp", "usual_first_load"]
TYPESCRIPT = HERE / "typescript"
# The policy of a host that obeys the specification; others set none.
STRICT = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'"
Show = Callable[..., Awaitable[Frame]]
TODAY = datetime.now(UTC).date()
DAYS = [str(TODAY - timedelta(days=days)) for days in (15, 8, 1)]


@pytest.fixture(scope="session")
async def host_script() -> str:
    """The script of the host, with the official packages in it."""
    if not (TYPESCRIPT / "node_modules" / "@modelcontextprotocol" / "ext-apps").exists():
        await run("npm", "ci", "--no-audit", "--no-fund", cwd=TYPESCRIPT)
    await run("npm", "run", "--silent", "build:browser", cwd=TYPESCRIPT)
    return (TYPESCRIPT / "generated" / "browser" / "host.js").read_text("utf-8")


@pytest.fixture
async def page(chromium: Browser, host_script: str) -> AsyncIterator[Page]:
    """A page on which the host runs; nothing on it may fail."""
    complaints: list[str] = []
    context = await chromium.new_context(viewport={"width": 760, "height": 800})
    opened = await context.new_page()

    def record(message: ConsoleMessage) -> None:
        if message.type == "error" and "405" not in message.text:  # there is no stream for an earlier revision
            complaints.append(message.text)

    opened.on("console", record)
    opened.on("pageerror", lambda error: complaints.append(str(error)))
    yield opened
    await context.close()
    assert complaints == []


@pytest.fixture
async def host() -> AsyncIterator[BaseTestServer]:
    """A server of the host's page, whose origin may call the service."""

    async def respond(_: web.Request) -> web.Response:
        page = "<!doctype html><html lang=en><head><title>Host</title></head><body></body></html>"
        return web.Response(text=page, content_type="text/html")

    application = web.Application()
    application.router.add_get("/", respond)
    async with TestServer(application) as server:
        yield server


@pytest.fixture
def show(page: Page, host: BaseTestServer, host_script: str, public_server: TestServer, coach: CoachClient) -> Show:
    """Shows the view of a tool that is called with arguments, and returns its frame when it has the result."""

    async def make(
        tool: str, arguments: dict[str, Any], *, theme: str = "light", mode: str = "auto", policy: str = ""
    ) -> Frame:
        await page.goto(str(host.make_url("/")))
        await page.evaluate(host_script)
        endpoint = str(public_server.make_url("/mcp"))
        # A key gets no nonce, so its views have no buttons: an assistant does.
        token = (await authorize_assistant(coach.ctx)).tokens.access
        settings = {"endpoint": endpoint, "token": token, "mode": mode, "theme": theme, "policy": policy}
        await page.evaluate("given => show(...given)", [settings, tool, arguments])
        frame = page.frames[-1]
        await expect(frame.get_by_role("main")).not_to_contain_text("Loading")
        return frame

    return make


async def violations(frame: Frame) -> list[str]:
    """Return all accessibility violations that axe-core finds in a view."""
    await frame.evaluate(Axe().axe_script)
    results = await frame.evaluate("axe.run().then(results => results.violations)")
    return [f"{each['id']}: {[node['html'][:160] for node in each['nodes']]}" for each in results]


@pytest.fixture
async def trained(coach: CoachClient, mcp: McpHttpClient) -> str:
    """A client with three workouts, two of them done."""
    customer = await coach.create_customer("Ana", surname="<b>Flores</b>")
    await coach.create_exercise("Back squat")
    for day, load in zip(DAYS, (60, 65, 70), strict=True):
        about = {"customerId": customer["_id"]}
        days = [{"name": f"Legs {load}", "date": day, "text": f"Back squat: 3x5 @{load}kg | Knees <i>out</i>"}]
        workout = tool_change(await mcp.call("create_workout", **about, days=days))["workoutId"]
        if load < 70:
            text = f"Back squat: 5, 5, 5 @{load}kg"
            tool_change(await mcp.call("log_workout", **about, workoutId=workout, text=text))
    return str(customer["_id"])


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_the_week(show: Show, trained: str, mode: str) -> None:
    arguments = {"customerId": trained, "startDate": DAYS[0], "endDate": str(TODAY)}
    frame = await show("get_workouts", arguments, mode=mode, policy=STRICT)
    await expect(frame.get_by_role("heading", level=1)).to_have_text("Workouts of Ana <b>Flores</b>, loads in kg")
    await expect(frame.get_by_role("heading", level=3)).to_have_text(["Legs 60", "Legs 65", "Legs 70"])
    await expect(frame.get_by_text("Done", exact=True)).to_have_count(2)
    await expect(frame.get_by_text("Back squat: 3x5 @60kg | Knees <i>out</i>")).to_be_visible()
    assert await violations(frame) == []
    await picture(frame.page, "views", f"week-{mode}")


@pytest.mark.parametrize("theme", ["light", "dark"])
async def test_progress(show: Show, trained: str, theme: str) -> None:
    arguments = {"customerId": trained, "exercise": "Back squat"}
    frame = await show("get_exercise_history", arguments, theme=theme)
    chart = frame.get_by_role("img", name="Estimated 1RM by week: 70 on")
    await expect(chart).to_be_visible()
    assert await violations(frame) == []
    ink = await frame.evaluate("getComputedStyle(document.body).backgroundColor")
    assert ink == {"light": "rgb(255, 255, 255)", "dark": "rgb(24, 32, 28)"}[theme]
    await frame.get_by_text("All values").click()
    await expect(frame.get_by_text("best 5 @65kg")).to_be_visible()
    assert await violations(frame) == []
    await picture(frame.page, "views", f"progress-{theme}")


async def propose(show: Show, coach: CoachClient, name: str, **options: Any) -> Frame:
    """The view of a call that a coach has to decide on."""
    email = f"{name.lower()}-{coach.ctx.company_id}@example.com"
    return await show("create_customer", {"name": name, "email": email, "sendInvitation": True}, **options)


async def shown(frame: Frame) -> dict[str, Any]:
    """What the host has seen: the text for the model, and what the view has asked of the host."""
    result: dict[str, Any] = await frame.page.evaluate("shown")
    return result


@pytest.mark.parametrize(("theme", "mode"), [("light", "auto"), ("dark", "legacy")])
async def test_a_proposal_is_approved_and_another_rejected(
    show: Show, coach: CoachClient, theme: str, mode: str
) -> None:
    frame = await propose(show, coach, "Ana", theme=theme, mode=mode, policy=STRICT)
    await expect(frame.get_by_role("heading", level=1)).to_have_text("Your assistant proposes")
    await expect(frame.get_by_text("You decide, because it sends mail or messages to people.")).to_be_visible()
    await expect(frame.get_by_text("Before", exact=True)).to_be_visible()
    assert await violations(frame) == []
    await picture(frame.page, "views", f"proposal-{theme}")
    assert await coach.names() == []

    await frame.page.keyboard.press("Tab")
    await frame.get_by_role("button", name="Approve").focus()
    await frame.page.keyboard.press("Enter")
    await expect(frame.get_by_role("heading", level=1)).to_have_text("Approved")
    await expect(frame.get_by_role("status")).to_have_text(
        "Approved. Created the client Ana and invited them by e-mail."
    )
    await expect(frame.get_by_role("button")).to_have_count(0)
    assert await coach.names() == ["Ana"]
    assert await violations(frame) == []
    seen = await shown(frame)
    [call] = seen["calls"]
    assert call["name"] == "decide_proposal"
    assert call["arguments"].keys() == {"proposalId", "decision", "nonce"}
    assert call["arguments"]["nonce"] not in seen["text"] + str(seen["informed"])
    assert "has approved proposal" in seen["informed"][0]

    frame = await propose(show, coach, "Bo", theme=theme, mode=mode)
    await frame.get_by_role("button", name="Reject").click()
    await expect(frame.get_by_role("heading", level=1)).to_have_text("Rejected")
    assert await coach.names() == ["Ana"]


async def test_a_proposal_that_was_decided_elsewhere(show: Show, coach: CoachClient) -> None:
    frame = await propose(show, coach, "Ana")
    await frame.get_by_role("link", name="Open in the coaching application").click()
    await until(lambda: has_link(frame), "the link")
    [link] = (await shown(frame))["links"]
    session = await coach.interactive()
    (await session.post(f"/coach/proposals/{link.rpartition('/')[2]}/reject")).ok()
    await frame.get_by_role("button", name="Approve").click()
    await expect(frame.get_by_role("status")).to_contain_text("This proposal has been decided, or has expired")
    assert await violations(frame) == []
    await picture(frame.page, "views", "proposal-closed")


async def has_link(frame: Frame) -> bool:
    """Whether the view has opened an address."""
    return bool((await shown(frame))["links"])
