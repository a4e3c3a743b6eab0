"""Tools about programs, metrics and completed work."""

from __future__ import annotations

from datetime import timedelta

from tests.support import fixed_clock, training
from tests.support.attention import count_of
from tests.support.client import MONDAY, TUESDAY, UNKNOWN, CoachClient
from tests.support.mcp_client import TODAY, McpHttpClient, approve, named, tool_change, tool_error, tool_result
from tests.support.results import read_compliance, train
from tests.support.training import block_with, log, task

TOMORROW = str(fixed_clock.TODAY + timedelta(days=1))


async def test_program_is_assigned(mcp: McpHttpClient, coach: CoachClient) -> None:
    client = await coach.create_customer()
    program = (await coach.post("/coach/programs", {"name": "Base", "tags": ["strength"]})).ok(201)
    (await coach.post(f"/coach/programs/{program['_id']}/wblocks", {"name": "Day two", "day": 2})).ok(201)
    assert tool_result(await mcp.call("list_programs", search="base stren"))["docs"][0]["_id"] == program["_id"]
    known = {"customerId": client["_id"], "programId": program["_id"]}
    done = tool_change(await mcp.call("assign_program", **known, startDate=TODAY))
    assert done["summary"] == f"Assigned «Base» to «Ana»: 1 workout, {named(TOMORROW)}."
    assert [block["date"] for block in await coach.calendar(client, TODAY, TOMORROW)] == [TOMORROW]


async def test_metrics_are_recorded_and_read(mcp: McpHttpClient, coach: CoachClient) -> None:
    client = await coach.create_customer()
    unit = next(each for each in (await coach.get("/metrics-units")).ok() if each["shortName"] == "kg")
    body = {"name": "Body", "metrics": [{"name": "Weight", "metricUnitId": unit["_id"]}]}
    metric_set = (await coach.post("/coach/metrics-sets", body)).ok(201)
    assert tool_result(await mcp.call("list_metric_sets", customerId=client["_id"]))["docs"] == []
    known = {
        "customerId": client["_id"],
        "metricsSetId": metric_set["_id"],
        "metricId": metric_set["metrics"][0]["_id"],
    }
    tool_error(
        await mcp.call("record_metric", **known, date=MONDAY, value=72.5), "Progress page", "nothing was changed"
    )

    (await coach.post(f"/coach/customers/{client['_id']}/metrics-sets", {"metricsSetId": metric_set["_id"]})).ok(201)
    today, yesterday = [str(fixed_clock.TODAY - timedelta(days=days)) for days in (0, 1)]
    for day, value, before in ((yesterday, 73, None), (yesterday, 72.5, 73), (today, 72, None)):
        recorded = tool_change(await mcp.call("record_metric", **known, date=day, value=value))
        assert (recorded["value"], recorded["previousValue"]) == (value, before)
    history = tool_result(await mcp.call("get_metric_history", **known, pageSize=1))
    assert history == {
        "summary": f"Weight» in kg of «Ana», -0.5 from {yesterday} to {today}",
        "docs": [{"line": f"{today}: 72"}],
        "totalDocs": 2,
        "nextPage": 2,
    }
    (listed,) = tool_result(await mcp.call("list_metric_sets", customerId=client["_id"]))["docs"]
    assert listed["_id"] == metric_set["_id"]
    assert f"«Weight» [{known['metricId']}]: 72.5 kg on {yesterday} -> 72 kg on {today}" in listed["line"]
    tool_error(
        await mcp.call("get_metric_history", **known | {"metricId": UNKNOWN}), "Metric not found", "list_metric_sets"
    )
    tool_error(await mcp.call("get_metric_history", **known | {"metricsSetId": UNKNOWN}), "list_metric_sets")


async def test_values_at_the_ends_of_the_calendar(mcp: McpHttpClient, coach: CoachClient) -> None:
    client, body = await coach.create_customer(), await training.metric_set(coach, "Steps", short="steps")
    (await coach.post(training.client_path(client, "metrics-sets"), {"metricsSetId": body["_id"]})).ok(201)
    known = {"customerId": client["_id"], "metricsSetId": body["_id"], "metricId": body["metrics"][0]["_id"]}
    for day in ("9999-12-31", "2041-03-05"):
        tool_error(await mcp.call("record_metric", **known, date=day, value=900), "date must")
    entries = training.client_path(client, "metrics-sets", body["_id"], "entries")
    (await coach.post(entries, {"metricId": known["metricId"], "value": 900, "date": "1950-01-02"})).ok(201)
    for day in ("1950-01-01", "1950-01-02", "1950-01-20", "1990-01-01"):
        assert not (await mcp.call("record_metric", **known, date=day, value=901)).get("isError"), day


async def test_values_have_all_their_digits(mcp: McpHttpClient, coach: CoachClient) -> None:
    client, body = await coach.create_customer(), await training.metric_set(coach, "Steps", short="steps")
    (await coach.post(training.client_path(client, "metrics-sets"), {"metricsSetId": body["_id"]})).ok(201)
    known = {"customerId": client["_id"], "metricsSetId": body["_id"], "metricId": body["metrics"][0]["_id"]}
    today, yesterday = [str(fixed_clock.TODAY - timedelta(days=days)) for days in (0, 1)]
    for day, value, shown in (
        (yesterday, 1234567, "1234567 steps"),
        (yesterday, 1234567.25, "1234567 → 1234567.25 steps"),
        (today, 1334567, "1334567 steps"),
    ):
        recorded = tool_change(await mcp.call("record_metric", **known, date=day, value=value))
        assert f"«Steps» {shown} on {day}" in recorded["summary"]
        (listed,) = tool_result(await mcp.call("list_metric_sets", customerId=client["_id"]))["docs"]
        assert day == today or listed["line"].endswith(f": {value} steps on {day}"), "one value has one date"
    history = tool_result(await mcp.call("get_metric_history", **known))
    assert f", +99999.75 from {yesterday} to {today}" in history["summary"]
    assert [each["line"] for each in history["docs"]] == [f"{today}: 1334567", f"{yesterday}: 1234567.25"]
    (listed,) = tool_result(await mcp.call("list_metric_sets", customerId=client["_id"]))["docs"]
    assert f": 1234567.25 steps on {yesterday} -> 1334567 steps on {today}" in listed["line"]
    squat = await coach.create_exercise()
    await train(coach, client, squat, *[(100, 999.5)] * 14)
    sessions = tool_result(await mcp.call("get_exercise_history", customerId=client["_id"], exerciseId=squat["_id"]))
    assert sessions["docs"][0]["line"].endswith("volume 1399300")
    days = {"startDate": MONDAY, "endDate": MONDAY}
    load = tool_result(await mcp.call("get_training_load", customerId=client["_id"], **days))
    assert "volume load 1399300" in load["docs"][0]["line"]


async def test_completed_work_is_read_with_names_and_units(mcp: McpHttpClient, coach: CoachClient) -> None:
    client = await coach.create_customer()
    exercise = await coach.create_exercise()
    block = await coach.schedule(client)
    path = f"/coach/customers/{client['_id']}/wblocks/{block['_id']}/witems"
    planned = [{"type": "reps_load", "minPlannedReps": 5, "maxPlannedReps": 5, "load": 100}]
    item = (await coach.post(path, {"type": "EXERCISE", "exerciseId": exercise["_id"], "exerciseSets": planned})).ok(
        201
    )
    done = {"isCompleted": True, "customerSets": [{"index": 1, "reps": 5, "load": 100, "isCompleted": True}]}
    (await coach.put(f"{path}/{item['_id']}/log", done)).ok()

    known = {"customerId": client["_id"]}
    result = await mcp.call("get_exercise_history", **known, exercise=exercise["name"])
    assert await mcp.call("get_exercise_history", **known, exerciseId=exercise["_id"]) == result
    history = result["structuredContent"]
    assert history["exerciseId"] == exercise["_id"]
    line = f"{MONDAY} 5 @100kg; best 5 @100kg, estimated 1RM 116.67, volume 500"
    assert history["docs"] == [{"_id": block["_id"], "line": line}]
    assert f"{line} [{block['_id']}]" in result["content"][0]["text"]
    assert history["weeks"] == []  # the last 12 only
    tool_error(await mcp.call("get_exercise_history", **known), "exercise is required")
    days = {"startDate": MONDAY, "endDate": TUESDAY}
    load = tool_result(await mcp.call("get_training_load", customerId=client["_id"], **days))
    assert [each["line"] for each in load["docs"]] == [f"{MONDAY}: 1 sessions; 1 sets; 5 reps; volume load 500"]
    compliance = tool_result(await mcp.call("get_compliance", customerId=client["_id"], **days))
    assert compliance["summary"] == f"Ana», {MONDAY} to {TUESDAY}: 100% (1 of 1 workout days)"
    assert compliance["docs"] == [{"line": f"{MONDAY} done: «{block['name']}"}]
    half = await mcp.call("get_compliance", customerId=client["_id"], startDate=MONDAY)
    tool_error(half, "endDate is required together with startDate")
    activity = tool_result(await mcp.call("get_activity", customerId=client["_id"], pageSize=1))
    assert (len(activity["docs"]), activity["nextPage"]) == (1, 2)
    assert f"[workout {block['_id']}]" in activity["docs"][0]["line"]


async def test_compliance_equals_that_of_rest(mcp: McpHttpClient, coach: CoachClient) -> None:
    """Contract 7: days up to yesterday count, and today only once it is completed."""
    client, today = await coach.create_customer(), coach.ctx.caller.today()
    for offset, completed in ((-2, True), (-1, False), (0, False), (1, True), (2, False)):
        block = await block_with(coach, client, task(), date=str(today + timedelta(days=offset)))
        if completed:
            (await log(coach, block, block["items"][0])).ok()
    start, end = str(today - timedelta(days=3)), str(today + timedelta(days=3))
    tool = tool_result(await mcp.call("get_compliance", customerId=client["_id"], startDate=start, endDate=end))
    rest = await read_compliance(coach, client, **{"from": start, "to": end})
    assert (rest["totalWorkoutDays"], rest["completedWorkoutDays"], rest["workoutCompletionPercentage"]) == (2, 1, 50)
    assert tool["summary"].endswith("50% (1 of 2 workout days)")
    assert len(tool["docs"]) == 5


async def test_assistant_confirms_a_value_far_from_the_last(coach: CoachClient, mcp: McpHttpClient) -> None:
    ana, body = await coach.create_customer("Ana"), await training.metric_set(coach, "Weight")
    (await coach.post(training.client_path(ana, "metrics-sets"), {"metricsSetId": body["_id"]})).ok(201)
    today = fixed_clock.TODAY
    known = {"customerId": ana["_id"], "metricsSetId": body["_id"], "metricId": body["metrics"][0]["_id"]}
    for ago, value in ((3, 72.5), (2, 87), (2, 72)):  # exactly 20 % more is not far
        assert (
            "proposalId"
            not in (await mcp.call("record_metric", **known, date=str(today - timedelta(days=ago)), value=value))[
                "structuredContent"
            ]
        )
    for value in (86.5, 14):
        asked = (await mcp.call("record_metric", **known, date=str(today - timedelta(days=1)), value=value))[
            "structuredContent"
        ]
        assert asked["reasons"] == ["FAR_VALUE"]
        assert "is 72." in asked["summary"]
    assert len(await training.history(coach, ana, body)) == 2
    await approve(coach, asked)
    assert (await training.history(coach, ana, body))[-1] == {"date": str(today - timedelta(days=1)), "value": 14}
    refused = await mcp.call("record_metric", **known, date=str(today + timedelta(days=1)), value=72)
    assert refused["isError"]


async def test_tools_show_and_take_loads_in_the_unit_of_the_client(mcp: McpHttpClient, coach: CoachClient) -> None:
    """Another client has the company's; REST always has. A unit in the text counts."""
    squat = await coach.create_exercise("Squat")
    ana, bo = await coach.create_customer("Ana"), await coach.create_customer("Bo")
    (await (await coach.as_client(ana)).patch("/customer/me", {"loadUnit": "lb"})).ok()
    day = str(fixed_clock.TODAY)
    for client, load, shown in ((ana, 100.02, "3x5 @220.5lb"), (bo, 220.5, "3x5 @220.5kg")):
        known = {"customerId": client["_id"]}
        created = tool_change(
            await mcp.call("create_workout", **known, days=[{"date": day, "name": "Legs", "text": "Squat: 3x5 @220.5"}])
        )
        assert created
        [block] = await coach.calendar(client, day, day)
        assert {each["load"] for each in block["items"][0]["exerciseSets"]} == {load}
        assert shown in str(tool_result(await mcp.call("get_workouts", **known, startDate=day, endDate=day)))
    known = {"customerId": ana["_id"]}
    [block] = await coach.calendar(ana, day, day)
    logged = await mcp.call("log_workout", **known, workoutId=block["_id"], text="Squat: 5 @225, 5 @100kg, 5 @225")
    assert "225lb" in str(logged)
    [block] = await coach.calendar(ana, day, day)
    done = block["items"][0]
    assert [each["load"] for each in done["customerSets"]] == [102.06, 100, 102.06]
    history = await mcp.call("get_exercise_history", **known, exercise="Squat")
    assert "loads in lb" in str(history) and "225lb" in str(history)
    assert "volume 3352.3" in history["structuredContent"]["docs"][0]["line"]
    edit = {"action": "change", "itemId": done["_id"], "text": "4x5 @45"}
    await mcp.call("update_workout_items", **known, workoutId=block["_id"], changes=[edit])
    assert squat["_id"] == done["exerciseId"]


async def test_activity_has_the_values_of_a_logged_metric_set(mcp: McpHttpClient, coach: CoachClient) -> None:
    ana, body = await coach.create_customer(), await training.metric_set(coach, "Weight", "Lean mass")
    block = await block_with(coach, ana, training.metrics_of(body))
    weight, mass = body["metrics"]
    values = [{"metricId": weight["_id"], "value": 80}, {"metricId": mass["_id"], "value": 61.5}]
    (await log(coach, block, block["items"][0], isCompleted=True, values=values)).ok()
    text = (await mcp.call("get_activity", customerId=ana["_id"]))["content"][0]["text"]
    assert "«Weight» 80 kg «Lean mass» 61.5 kg" in text


async def test_activity_has_the_records_that_attention_counts(mcp: McpHttpClient, coach: CoachClient) -> None:
    """The results of an exercise that was done for the first time are no records in either."""
    ana, squat, row = await coach.create_customer(), await coach.create_exercise(), await coach.create_exercise("Row")
    await train(coach, ana, squat, (5, 100), date=str(fixed_clock.TODAY - timedelta(days=1)))
    await train(coach, ana, squat, (6, 110), date=TODAY)
    await train(coach, ana, row, (8, 40), date=TODAY)
    text = (await mcp.call("get_activity", customerId=ana["_id"]))["content"][0]["text"]
    assert (text.count(" personal_record "), text.count(" first_result ")) == (3, 3), text
    assert await count_of(coach, ana, "personal_record") == 3
