"""Tools about several clients at once: one proposal that lists their names."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest
from aiohttp.test_utils import TestServer

from coaching_service.people import api_keys
from tests.support.client import UNKNOWN, CoachClient
from tests.support.mcp_client import McpHttpClient, approve, named, tool_change, tool_error, tool_proposal
from tests.support.training import client_path, exercise_of, log

pytestmark = pytest.mark.usefixtures("wednesday")
START = "2031-03-17"  # a Monday, in twelve days
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
        f"Assign «Base» to 2 clients, workouts {named(START, TUESDAY)}: «Ana» 2; «Bo» 1 (1 day had workouts). "
        "On days that had workouts: leave as they are."
    )
    assert await coach.calendar(ana, START, TUESDAY) == []
    done = await approve(coach, proposed["structuredContent"])
    assert (done["customerIds"], done["workoutsAdded"], len(done["assignmentIds"])) == (ids[:2], 3, 2)
    names = [[block["name"] for block in await coach.calendar(each, START, TUESDAY)] for each in (ana, bo, cy)]
    assert names == [["Day 1", "Day 2"], ["Swim", "Day 2"], []]

    alone = tool_change(await mcp.call("assign_program", **assign, customerIds=[cy["_id"]], weekdays=[2, 1]))
    assert alone["summary"] == f"Assigned «Base» to «Cy»: 2 workouts, {named(START, TUESDAY)}."
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
    assert proposal["summary"] == "Send to 2 clients, «Ana», «Bo», delivered in a minute: «Well done!»."
    assert await texts(coach, ana) == []
    done = await approve(coach, proposed["structuredContent"])
    assert done["customerIds"] == [ana["_id"], bo["_id"]]
    assert [await texts(coach, each) for each in (ana, bo, cy)] == [["Well done!"], ["Well done!"], []]
    recalled = tool_proposal(await mcp.call("undo", changeId=done["changeId"]), "MANY_CLIENTS")
    await approve(coach, recalled)
    assert [await texts(coach, each) for each in (ana, bo)] == [[], []]
    alone = await mcp.call("send_message", customerIds=[cy["_id"]], text="And you")
    assert tool_proposal(alone, "CONTACT")["summary"] == "Send to «Cy», delivered in a minute: «And you»."


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


async def two_on_a_program(coach: CoachClient) -> tuple[Json, list[Json]]:
    """A program with a squat a week for two weeks, and Ana and Bo, who are on it from START."""
    squat = await coach.create_exercise("Back squat")
    program: Json = (await coach.post("/coach/programs", {"name": "Base"})).ok(201)
    for day in (1, 8):
        block = {"name": f"Legs {day}", "day": day, "items": [exercise_of(squat)]}
        (await coach.post(f"/coach/programs/{program['_id']}/wblocks", block)).ok(201)
    clients = [await coach.create_customer(name) for name in ("Ana", "Bo")]
    for client in clients:
        body = {"customerId": client["_id"], "startDate": START}
        (await coach.post(f"/coach/programs/{program['_id']}/assign", body)).ok(201)
    return program, clients


async def planned(coach: CoachClient, client: Json) -> list[tuple[str, float]]:
    """The exercise and the load of each workout of two weeks."""
    blocks = await coach.calendar(client, START, str(datetime.fromisoformat(START).date() + timedelta(days=13)))
    items = [block["items"][0] for block in blocks]
    return [(item["exercise"]["name"], item["exerciseSets"][0]["load"]) for item in items]


async def test_exercise_is_replaced_for_everyone_on_a_program(mcp: McpHttpClient, coach: CoachClient) -> None:
    """Contract 20, in three calls: the programs, the replacement, and what became of the proposal."""
    await coach.create_exercise("Leg press")
    program, clients = await two_on_a_program(coach)
    [listed] = (await mcp.call("list_programs"))["structuredContent"]["docs"]
    swap = {"exercise": "back squat", "withExercise": "leg press", "startDate": START, "load": "keep"}
    proposed = await mcp.call("replace_exercise", assignedProgramId=listed["_id"], **swap)
    week_after = str(datetime.fromisoformat(START).date() + timedelta(days=7))
    summary = tool_proposal(proposed, "MANY_DAYS", "MANY_CLIENTS")["summary"]
    assert summary.startswith(
        f"Replace «Back squat» by «Leg press» in 4 workouts of 2 clients, {named(START, week_after)}: "
        "«Ana» 2 workouts; «Bo» 2 workouts; planned loads are kept."
    )
    assert [await planned(coach, each) for each in clients] == [[("Back squat", 60)] * 2] * 2
    await approve(coach, proposed["structuredContent"])
    read = await mcp.call("get_proposal", proposalId=proposed["structuredContent"]["proposalId"])
    assert read["structuredContent"]["status"] == "executed"
    assert [await planned(coach, each) for each in clients] == [[("Leg press", 60)] * 2] * 2
    assert program["_id"] == listed["_id"]


async def test_schedules_of_several_clients_are_changed(mcp: McpHttpClient, coach: CoachClient) -> None:
    """What is done stays, and is counted by client."""
    program, clients = await two_on_a_program(coach)
    ids = [each["_id"] for each in clients]
    [first, _] = await coach.calendar(clients[0], START, "9999-12-31")
    (await log(coach, first, first["items"][0], isCompleted=True)).ok()
    week = {"startDate": START, "endDate": str(datetime.fromisoformat(START).date() + timedelta(days=6))}

    proposed = await mcp.call("adjust_schedule", customerIds=ids, **week, addLoad=2.5)
    summary = tool_proposal(proposed, "MANY_CLIENTS")["summary"]
    assert f"Adjust 1 workout of 2 clients, {named(START)}, load +2.5: «Ana» 0 workouts" in summary
    assert "«Ana» 0 workouts, 1 left because something is done; «Bo» 1 workout; «Back squat» 60 → 62.5 kg." in summary
    await approve(coach, proposed["structuredContent"])
    assert await planned(coach, clients[1]) == [("Back squat", 62.5), ("Back squat", 60)]

    target = str(datetime.fromisoformat(START).date() + timedelta(days=28))
    proposed = await mcp.call("copy_schedule", customerIds=ids, **week, targetDate=target)
    assert "2 new workouts" in tool_proposal(proposed, "MANY_CLIENTS")["summary"]
    proposed = await mcp.call("clear_schedule", assignedProgramId=program["_id"], **week)
    summary = tool_proposal(proposed, "MANY_CLIENTS")["summary"]
    assert "Remove 1 workout of 2 clients" in summary
    done = await approve(coach, proposed["structuredContent"])
    assert done["customerIds"] == ids
    tool_change(await mcp.call("undo", changeId=done["changeId"]))  # only Bo's calendar had something to clear
    assert len(await planned(coach, clients[1])) == 2


async def test_program_that_runs_for_no_client_is_named(mcp: McpHttpClient, coach: CoachClient) -> None:
    program = await program_of_two_days(coach)
    week = {"startDate": START, "endDate": START}
    refused = await mcp.call("clear_schedule", assignedProgramId=program["_id"], **week)
    tool_error(refused, "assignedProgramId has no active client")
    tool_error(await mcp.call("clear_schedule", assignedProgramId=UNKNOWN, **week), "Program not found")
    both = {"assignedProgramId": program["_id"], "customerIds": [UNKNOWN]}
    tool_error(await mcp.call("clear_schedule", **both, **week), "assignedProgramId must not be combined")
    tool_error(await mcp.call("clear_schedule", **week), "customerId is required, or customerIds.")


@pytest.mark.parametrize(
    ("tool", "fields"),
    [
        ("adjust_schedule", {"endDate": START, "addLoad": 5}),
        ("replace_exercise", {"exercise": "Squat", "withExercise": "Press"}),
        ("clear_schedule", {"endDate": START}),
        ("copy_schedule", {"endDate": START, "targetDate": TUESDAY}),
    ],
)
async def test_no_client_is_named_as_the_error(mcp: McpHttpClient, tool: str, fields: Json) -> None:
    tool_error(await mcp.call(tool, customerIds=[], startDate=START, **fields), "customerIds should not be empty")
