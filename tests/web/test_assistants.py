"""Pages of connected assistants: their list, what each has changed, and disconnecting them."""

from __future__ import annotations

from datetime import datetime

import pytest
from aiohttp.test_utils import TestServer

from tests.support.assistants import authorize_assistant
from tests.support.client import UNKNOWN, CoachClient
from tests.support.mcp_client import TODAY, McpHttpClient, tool_change
from tests.support.visitor import Visitor


async def test_assistant_is_disconnected(coach: CoachClient, owner_page: Visitor) -> None:
    here = "/app/settings/assistants"
    (await owner_page.get(here)).ok().says("No assistants connected", "http://coaching.test/mcp")
    claude = await authorize_assistant(coach.ctx)
    name = claude.grant["clientName"]
    path = f"{here}/{claude.grant['_id']}/disconnect"
    assert path in (await owner_page.get(here)).says(name).links

    confirmation = (await owner_page.get(path)).says(f"Disconnect the assistant “{name}”?", "loses access immediately")
    (await owner_page.submit(confirmation, path)).ok().says(f"{name} disconnected.", "No assistants connected")

    (await owner_page.submit(confirmation, path)).ok().says("The form was sent twice and processed once.")


async def test_assistants_are_listed_by_time_connected(coach: CoachClient, owner_page: Visitor) -> None:
    for name, connected_at in (("Second", "2026-01-02"), ("Third", "2026-01-03"), ("First", "2026-01-01")):
        assistant = await authorize_assistant(coach.ctx, name)
        await coach.ctx.db["assistantGrants"].update_one(
            {"_id": assistant.grant["_id"]}, {"$set": {"createdAt": datetime.fromisoformat(connected_at)}}
        )

    page = await owner_page.get("/app/settings/assistants")

    positions = [page.html.index(f"<b>{name}</b>") for name in ("First", "Second", "Third")]
    assert positions == sorted(positions)


async def test_disconnecting_an_assistant_is_audited(coach: CoachClient, owner_page: Visitor) -> None:
    assistant = await authorize_assistant(coach.ctx)
    path = f"/app/settings/assistants/{assistant.grant['_id']}/disconnect"

    await owner_page.submit(await owner_page.get(path), path)

    entries = await coach.ctx.db["audit"].find({"companyId": coach.ctx.company_id}).to_list(None)
    assert [entry["action"] for entry in entries].count("assistant.revoked") == 1


@pytest.mark.usefixtures("wednesday")
async def test_page_of_an_assistant_shows_what_it_has_changed_with_undo(
    coach: CoachClient, owner_page: Visitor, public_server: TestServer
) -> None:
    ana = await coach.create_customer()
    grant = await authorize_assistant(coach.ctx, "Claude")
    other = await authorize_assistant(coach.ctx, "Other")
    async with McpHttpClient(public_server, {"Authorization": f"Bearer {grant.tokens.access}"}) as mcp:
        squat = await coach.create_exercise()
        exercises = [{"exerciseId": squat["_id"], "sets": [{"reps": 5}]}]
        arguments = {"customerId": ana["_id"], "date": TODAY, "name": "Legs", "exercises": exercises}
        change = tool_change(await mcp.call("create_workout", **arguments))
    await coach.wait_until_numbered(change["changeId"])
    path = f"/app/settings/assistants/{grant.grant['_id']}"
    listed = (await owner_page.get("/app/settings/assistants")).ok()
    assert f'href="{path}"' in listed.html

    page = (await owner_page.get(path)).ok().says("Claude", "Read, change, contact people", "Workout created", "Ana")
    (await owner_page.get(f"/app/settings/assistants/{other.grant['_id']}")).ok().says("Nothing changed")
    undo = next(form for form in page.forms if form.action.endswith("/undo"))
    page = (await owner_page.submit(page, undo.action)).ok().says("Undone.", "Workout created", "Undone")
    assert page.path == path
    assert undo.action not in [form.action for form in page.forms]
    assert await coach.calendar(ana, TODAY, TODAY) == []
    (await owner_page.get(f"{path}?after=wrong")).ok().says("Workout created")
    (await owner_page.get(f"/app/settings/assistants/{UNKNOWN}")).ok(404)
