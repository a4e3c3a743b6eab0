"""What assistants can do, in main tasks."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from aiohttp.test_utils import TestServer

from coaching_service import features
from coaching_service.core.mcp import tools_of
from tests.mcp.test_tool_catalogue import listed_names
from tests.support.client import MONDAY, TUESDAY, UNKNOWN, CoachClient
from tests.support.mcp_client import (
    TODAY,
    McpHttpClient,
    approve,
    named,
    official_client,
    tool_change,
    tool_error,
    tool_proposal,
    tool_result,
)


async def test_tools_list_is_deterministic_and_cacheable(mcp: McpHttpClient) -> None:
    first, second = [(await mcp.request_modern("tools/list")).ok()["result"] for _ in range(2)]
    assert first == second
    assert (first["ttlMs"], first["cacheScope"]) == (60_000, "private")
    assert (await mcp.request("tools/list", {"cursor": "next"})).json["error"]["code"] == -32602


async def test_list_customers_takes_the_specified_parameters(mcp: McpHttpClient, coach: CoachClient) -> None:
    schema = next(tool for tool in tools_of(features.TOOLS) if tool.name == "list_customers").input_schema
    assert schema["properties"].keys() == {"page", "pageSize", "search", "isArchived", "groups"}
    assert "required" not in schema
    facts = schema["properties"]
    assert (facts["page"]["default"], facts["pageSize"]["default"], facts["isArchived"]["default"]) == (1, 20, False)
    assert facts["pageSize"]["maximum"] == 100

    for number in range(21):
        await coach.create_customer(name=f"Client {number:02}", groups=["Odd"] if number % 2 else ["Even"])
    gone = await coach.create_customer(name="Archie Archived")
    (await coach.put("/coach/customers/archive", {"id": gone["_id"]})).ok()

    first = tool_result(await mcp.call("list_customers"))
    assert [len(first["docs"]), first["totalDocs"], first["nextPage"]] == [20, 21, 2]
    second = tool_result(await mcp.call("list_customers", page=2))
    assert [each["line"] for each in second["docs"]] == ["Client 20»; groups «Even"]
    assert tool_result(await mcp.call("list_customers", search="client 1", groups=["Odd"]))["totalDocs"] == 5
    assert [each["_id"] for each in tool_result(await mcp.call("list_customers", isArchived=True))["docs"]] == [
        gone["_id"]
    ]
    assert tool_result(await mcp.call("list_customers", pageSize=100))["totalDocs"] == 21
    tool_error(await mcp.call("list_customers", pageSize=101), "pageSize must not be greater than 100", "Correct")


async def test_get_customer_returns_trainer_name_and_local_date(mcp: McpHttpClient, coach: CoachClient) -> None:
    created = await coach.create_customer(assignedTo=str(coach.ctx.caller.id), timezone="Pacific/Kiritimati")
    customer = tool_result(await mcp.call("get_customer", customerId=created["_id"]))
    assert "trainer «Olga Owner»" in customer["lines"] and "(Pacific/Kiritimati)" in customer["lines"]
    assert customer["today"] == str(coach.ctx.caller.today("Pacific/Kiritimati"))


async def test_client_created_by_tool_is_visible_over_rest(mcp: McpHttpClient, coach: CoachClient) -> None:
    created = tool_change(await mcp.call("create_customer", name="Ana", email="ana@example.com"))
    assert "firstAccessToken" not in created
    read = (await coach.get(f"/coach/customers/{created['customerId']}")).ok()
    assert (read["name"], read["email"]) == ("Ana", "ana@example.com")
    tool_error(await mcp.call("create_customer", email="nobody"), "name is required", "email must be an e-mail address")


async def test_workout_created_by_tool_reads_the_same_over_rest(mcp: McpHttpClient, coach: CoachClient) -> None:
    client = await coach.create_customer()
    exercise = tool_result(await mcp.call("list_exercises", search="back squat", pageSize=1))["docs"][0]
    plank = tool_result(await mcp.call("list_exercises", search="plank", pageSize=1))["docs"][0]
    squat = {
        "exerciseId": exercise["_id"],
        "superset": "A",
        "sets": [
            {"reps": 5, "load": 40, "isWarmup": True},
            {"reps": 5, "repsMax": 8, "load": 100, "count": 2, "rest": 90},
        ],
    }
    hold = {"exerciseId": plank["_id"], "superset": "A", "instructions": "Breathe", "sets": [{"seconds": 60}]}
    run = {"exerciseId": plank["_id"], "sets": [{"meters": 400, "count": 2}]}
    arguments = {"customerId": client["_id"], "date": TODAY, "name": "Legs"}
    created = tool_change(await mcp.call("create_workout", **arguments, exercises=[squat, hold, run]))
    assert created["summary"] == f"Created 1 workout of «Ana»: «Legs» on {named(TODAY)}."
    (block,) = await coach.calendar(client, TODAY, TODAY)
    assert (block["_id"], block["name"], block["date"]) == (created["workoutId"], "Legs", TODAY)
    first, second, third = block["items"]
    assert first["exercise"]["_id"] == exercise["_id"]
    assert first["supersetId"] == second["supersetId"] == "A"
    assert [(each["index"], each["type"], each["isWarmup"]) for each in first["exerciseSets"]] == [
        (1, "reps_load", True),
        (2, "reps_load", False),
        (3, "reps_load", False),
    ]
    assert first["exerciseSets"][2]["maxPlannedReps"] == 8
    assert (second["exerciseSets"][0]["type"], second["exerciseInstructions"]) == ("time", "Breathe")
    assert [each["plannedMeters"] for each in third["exerciseSets"]] == [400, 400]


async def read_workout(mcp: McpHttpClient, client: dict[str, Any], date: str) -> dict[str, Any]:
    """The one workout of a date in full."""
    days = {"customerId": client["_id"], "startDate": date, "endDate": date}
    result = await mcp.call("get_workouts", **days, detail="full")
    (workout,) = result["structuredContent"]["docs"]
    assert isinstance(workout, dict)
    return workout


async def test_percentages_amrap_and_kinds_of_sets_are_written_and_read(mcp: McpHttpClient, coach: CoachClient) -> None:
    client, squat = await coach.create_customer(), await coach.create_exercise()
    (await coach.put(f"/coach/customers/{client['_id']}/training-maxes/{squat['_id']}", {"value": 140})).ok()
    sets: list[dict[str, Any]] = [
        {"reps": 5, "loadPercent": 75, "count": 2},
        {"reps": 8, "load": 40, "setKind": "drop"},
        {"isAmrap": True, "perSide": True, "setKind": "failure"},
    ]
    arguments = {"customerId": client["_id"], "date": TODAY, "name": "Legs"}

    as_array, as_text = [
        {"exerciseId": squat["_id"], "sets": sets},
        {"name": squat["name"], "sets": "2x5 @75%, 1x8 @40kg drop, 1xAMRAP/side failure"},
    ]
    tool_change(await mcp.call("create_workout", **arguments, exercises=[as_array, as_text]))

    half = {"type": "reps_load", "isWarmup": False, "minPlannedReps": 5, "maxPlannedReps": 5}
    heavy = {**half, "load": 105, "loadPercent": 75}
    drop = {**half, "minPlannedReps": 8, "maxPlannedReps": 8, "load": 40, "setKind": "drop"}
    amrap = {"type": "reps", "isWarmup": False, "isAmrap": True, "perSide": True, "setKind": "failure"}
    workout = await read_workout(mcp, client, TODAY)
    written = [{"index": index, **each} for index, each in enumerate((heavy, heavy, drop, amrap), 1)]
    assert [item["exerciseSets"] for item in workout["items"]] == [written, written]
    assert "today 75% is 105kg" in workout["lines"]


async def test_workout_created_over_rest_reads_the_same_by_tool(mcp: McpHttpClient, coach: CoachClient) -> None:
    client = await coach.create_customer()
    block = await coach.schedule(client)
    path = f"/coach/customers/{client['_id']}/wblocks/{block['_id']}/witems"
    item = (await coach.post(path, {"type": "TASK", "taskFields": {"title": "Walk", "description": "Slowly"}})).ok(201)
    read = await read_workout(mcp, client, MONDAY)
    assert (read["_id"], read["name"]) == (block["_id"], f"«{block['name']}»")
    assert read["items"] == [
        {
            "_id": item["_id"],
            "type": "TASK",
            "order": 0,
            "isCompleted": False,
            "taskFields": {"title": "«Walk»", "description": "«Slowly»"},
            "mediaCount": 0,
        }
    ]
    tool_error(
        await mcp.call("get_workouts", customerId=client["_id"], startDate=MONDAY, endDate="2027-03-02"),
        "endDate must be less than 93 days after startDate",
    )


async def test_items_are_added_and_moved(mcp: McpHttpClient, coach: CoachClient) -> None:
    client = await coach.create_customer()
    monday, tuesday = await coach.schedule(client), await coach.schedule(client, date=TUESDAY)
    known = {"customerId": client["_id"], "workoutId": monday["_id"]}
    add = [{"action": "add", "text": "task: Walk\nreminder 08:30: Drink"}]
    proposed = tool_proposal(await mcp.call("update_workout_items", **known, changes=add), "CONTACT")
    added = (await approve(coach, proposed))["itemIds"]
    calendar = await coach.calendar(client, MONDAY, TUESDAY)
    assert [[item["type"] for item in block["items"]] for block in calendar] == [["TASK", "REMINDER"], []]

    move = [{"action": "move", "itemId": added[0], "toWorkoutId": tuesday["_id"]}]
    tool_change(await mcp.call("update_workout_items", **known, changes=move))
    calendar = await coach.calendar(client, MONDAY, TUESDAY)
    assert [[item["_id"] for item in block["items"]] for block in calendar] == [[added[1]], [added[0]]]
    again = await mcp.call("update_workout_items", **known, changes=move)
    tool_error(again, "Workout item not found")


@pytest.mark.parametrize(
    ("planned", "words"),
    [
        ({}, "exercises.0.sets.0 must have exactly one of reps, seconds and meters"),
        ({"reps": 5, "seconds": 5}, "one of reps, seconds and meters"),
        ({"reps": 8, "repsMax": 5}, "repsMax must not be less than reps"),
        ({"reps": 5, "load": 60, "loadPercent": 70}, "loadPercent must not be combined with load"),
        ({"perSide": True}, "must have exactly one of reps, seconds and meters"),
        ({"reps": "5 or so"}, "reps must be an integer"),
        ({"reps": 5, "weight": 5}, "exercises.0.sets.0 unknown field; the known ones are reps, repsMax"),
        ({"reps": 5, "count": 21}, "count must not be greater than 20"),
    ],
    ids=str,
)
async def test_invalid_set_is_rejected_and_nothing_is_scheduled(
    mcp: McpHttpClient, coach: CoachClient, planned: dict[str, Any], words: str
) -> None:
    client = await coach.create_customer()
    exercise = await coach.create_exercise()
    result = await mcp.call(
        *("create_workout",),
        customerId=client["_id"],
        date=TODAY,
        name="Legs",
        exercises=[{"exerciseId": exercise["_id"], "sets": [planned]}],
    )
    tool_error(result, words, "nothing was changed")
    assert await coach.calendar(client, TODAY, TODAY) == []


async def test_workout_with_an_unknown_exercise_is_not_created(mcp: McpHttpClient, coach: CoachClient) -> None:
    client = await coach.create_customer()
    exercise = await coach.create_exercise()
    exercises = [{"exerciseId": each, "sets": [{"reps": 5}]} for each in (exercise["_id"], UNKNOWN)]
    result = await mcp.call("create_workout", customerId=client["_id"], date=TODAY, name="Legs", exercises=exercises)
    tool_error(result, "exercises.1.exerciseId: Exercise not found; nothing was changed.", "list_exercises")
    assert await coach.calendar(client, TODAY, TODAY) == []


async def test_errors_do_not_quote_the_arguments(mcp: McpHttpClient) -> None:
    evil = "<script>$where"
    for arguments in ({evil: 1}, {"search": {evil: 1}}, {"groups": [evil, 7]}, {"page": evil}):
        assert evil not in tool_error(await mcp.call("list_customers", **arguments))
    tool_error(await mcp.call("list_customers", pagesize=5), "unknown field; the known ones are page, pageSize, search")
    reply = await mcp.request("tools/call", {"name": "list_customers", "arguments": [evil]})
    assert evil not in reply.raw.decode()


async def test_errors_are_short_and_deep_nesting_is_rejected(mcp: McpHttpClient) -> None:
    wrong = {"exerciseId": UNKNOWN, "sets": [{"repetitions": 5}] * 50}
    text = tool_error(await mcp.call("create_workout", exercises=[wrong] * 50), "and 2493 more of the kind")
    assert len(text) < 4_000
    deep = '{"a":' * 900 + "1" + "}" * 900
    call = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": "list_customers", "arguments": "deep"},
    }
    body = orjson.dumps(call).replace(b'"deep"', deep.encode())
    reply = await mcp.send(data=body, headers={"Content-Type": "application/json"})
    assert (reply.status, reply.json["error"]["code"]) == (400, -32700)


async def test_null_means_absent_and_whole_floats_are_integers(mcp: McpHttpClient) -> None:
    assert tool_result(await mcp.call("list_exercises", search=None, page=None, pageSize=5.0))["nextPage"] == 2
    tool_error(await mcp.call("list_customers", pageSize=5.5), "must be an integer")


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_official_client_in_each_protocol_era(public_server: TestServer, coach: CoachClient, mode: str) -> None:
    async with official_client(public_server, {"X-API-Key": str(coach.key)}, mode) as assistant:
        assert assistant.protocol_version == {"auto": "2026-07-28", "legacy": "2025-11-25"}[mode]
        assert assistant.server_info is not None
        assert assistant.server_info.name == "coaching-service"
        listed = await assistant.list_tools()
        assert {tool.name for tool in listed.tools} == listed_names()
        created = await assistant.call_tool("create_customer", {"name": "Ana"})
        assert created.structured_content is not None
        assert (await coach.get(f"/coach/customers/{created.structured_content['customerId']}")).ok()["name"] == "Ana"
        missing = await assistant.call_tool("get_customer", {"customerId": UNKNOWN})
        assert missing.is_error
