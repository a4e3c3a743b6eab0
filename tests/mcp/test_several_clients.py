"""Tools about several clients at once: one proposal that lists their names."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from aiohttp.test_utils import TestServer

from coaching_service.people.api_keys import service as api_keys
from tests.support.client import UNKNOWN, CoachClient
from tests.support.mcp_client import McpHttpClient, approve, tool_change, tool_error, tool_proposal
from tests.support.training import client_path

TODAY = datetime.now(UTC).date()
START = str(TODAY + timedelta(days=(7 - TODAY.weekday()) % 7 + 7))  # a Monday
TUESDAY = str(datetime.fromisoformat(START).date() + timedelta(days=1))
Json = dict[str, Any]


async def program_of_two_days(coach: CoachClient) -> Json:
    program: Json = (await coach.post("/coach/programs", {"name": "Base"})).ok(201)
    for day in (1, 2):
        (await coach.post(f"/coach/programs/{program['_id']}/wblocks", {"name": f"Day {day}", "day": day})).ok(201)
    return program


async def texts(coach: CoachClient, client: Json) -> list[str]:
    return [each["text"] for each in (await coach.get(client_path(client, "messages"))).ok()["docs"]]


async def test_program_is_assigned_to_several_clients(mcp: McpHttpClient, coach: CoachClient) -> None:
    ana, bo, cy = [await coach.create_customer(name) for name in ("Ana", "Bo", "Cy")]
    program = await program_of_two_days(coach)
    days = [{"date": START, "name": "Swim", "text": "task: Swim"}]
    tool_change(await mcp.call("create_workout", customerId=bo["_id"], days=days))
    assign = {"programId": program["_id"], "startDate": START, "onConflict": "skip"}

    ids = [ana["_id"], bo["_id"], ana["_id"]]
    proposed = await mcp.call("assign_program", **assign, customerIds=ids)
    assert tool_proposal(proposed, "MANY_CLIENTS")["summary"] == (
        f"Assigned «Base» to 2 clients, workouts from {START} to {TUESDAY}: «Ana» 2; «Bo» 1 (1 day had workouts). "
        "On days that had workouts: left as they are."
    )
    assert await coach.calendar(ana, START, TUESDAY) == []
    done = await approve(coach, proposed["structuredContent"])
    assert (done["customerIds"], done["workoutsAdded"], len(done["assignmentIds"])) == (ids[:2], 3, 2)
    names = [[block["name"] for block in await coach.calendar(each, START, TUESDAY)] for each in (ana, bo, cy)]
    assert names == [["Day 1", "Day 2"], ["Swim", "Day 2"], []]

    alone = tool_change(await mcp.call("assign_program", **assign, customerIds=[cy["_id"]], weekdays=[2, 1]))
    assert alone["summary"] == f"Assigned «Base» to «Cy»: 2 workouts from {START} to {TUESDAY}."
    assert alone["customerId"] == cy["_id"]


async def test_program_is_assigned_to_active_clients_of_groups(mcp: McpHttpClient, coach: CoachClient) -> None:
    for name, groups in (("Ana", ["Team"]), ("Bo", ["Team", "Run"]), ("Cy", ["Run"]), ("Di", ["Team"])):
        client = await coach.create_customer(name, groups=groups)
    (await coach.put("/coach/customers/archive", {"id": client["_id"]})).ok()
    assign = {"programId": (await program_of_two_days(coach))["_id"], "startDate": START}
    proposed = await mcp.call("assign_program", **assign, groups=["team"])
    assert "to 2 clients, workouts" in tool_proposal(proposed, "MANY_CLIENTS")["summary"]
    assert "«Ana» 2; «Bo» 2." in tool_proposal(proposed, "MANY_CLIENTS")["summary"]


async def test_message_is_sent_to_each(mcp: McpHttpClient, coach: CoachClient) -> None:
    ana, bo, cy = [await coach.create_customer(name, groups=[name]) for name in ("Ana", "Bo", "Cy")]
    proposed = await mcp.call("send_message", groups=["ana", "BO"], text="Well done!")
    proposal = tool_proposal(proposed, "CONTACT", "MANY_CLIENTS")
    assert proposal["summary"] == "Sent to 2 clients, «Ana», «Bo», delivered in a minute: «Well done!»."
    assert await texts(coach, ana) == []
    done = await approve(coach, proposed["structuredContent"])
    assert done["customerIds"] == [ana["_id"], bo["_id"]]
    assert [await texts(coach, each) for each in (ana, bo, cy)] == [["Well done!"], ["Well done!"], []]
    recalled = tool_proposal(await mcp.call("undo", changeId=done["changeId"]), "MANY_CLIENTS")
    await approve(coach, recalled)
    assert [await texts(coach, each) for each in (ana, bo)] == [[], []]
    alone = await mcp.call("send_message", customerIds=[cy["_id"]], text="And you")
    assert tool_proposal(alone, "CONTACT")["summary"] == "Sent to «Cy», delivered in a minute: «And you»."


async def test_access_without_outreach_changes_one_client_only(public_server: TestServer, coach: CoachClient) -> None:
    ana, bo = [await coach.create_customer(name) for name in ("Ana", "Bo")]
    assign = {"programId": (await program_of_two_days(coach))["_id"], "startDate": START}
    key = (await api_keys.create(coach.ctx, "Test", {"outreach": False}))["key"]
    async with McpHttpClient(public_server, {"X-API-Key": key}) as mcp:
        both = await mcp.call("assign_program", **assign, customerIds=[ana["_id"], bo["_id"]])
        tool_error(both, "change several clients at once")
        tool_error(await mcp.call("create_customers", customers=[{"name": "Cy"}, {"name": "Di"}]), "several clients")
        tool_change(await mcp.call("create_customers", customers=[{"name": "Cy"}, {"name": "Di"}], dryRun=True))
        tool_change(await mcp.call("assign_program", **assign, customerIds=[bo["_id"]]))
    assert [len(await coach.calendar(each, START, TUESDAY)) for each in (ana, bo)] == [0, 2]
    assert await coach.names() == ["Ana", "Bo"]


@pytest.mark.parametrize(
    ("chosen", "words"),
    [
        ({}, ["customerId is required, or customerIds or groups"]),
        ({"customerIds": [UNKNOWN], "groups": ["Team"]}, ["groups must not be combined with customerIds"]),
        ({"customerIds": [UNKNOWN] * 51}, ["customerIds"]),
        ({"customerIds": [UNKNOWN, UNKNOWN]}, ["customerIds.0 was not found", "customerIds.1 was not found"]),
        ({"groups": ["Taem", "Team"]}, ["that no group has: «Taem»; the nearest: «Team»"]),
    ],
)
async def test_clients_that_cannot_be_chosen_are_named(
    mcp: McpHttpClient, coach: CoachClient, chosen: Json, words: list[str]
) -> None:
    ana = await coach.create_customer(groups=["Team"])
    tool_error(await mcp.call("send_message", **chosen, text="Hello"), *words)
    about = {"workoutId": UNKNOWN, "text": "Hello"}
    tool_error(await mcp.call("send_message", groups=["Team"], **about), "workoutId needs a customerId")
    assert await texts(coach, ana) == []
