"""Loads, sets, repetitions and times are compared with what the client has done (contract, section 18, "loads")."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import pytest

from tests.support.client import CoachClient
from tests.support.fixed_clock import TODAY
from tests.support.mcp_client import McpHttpClient, approve, tool_change, tool_error, tool_proposal
from tests.support.training import Json, block_with, client_path, exercise_of, log, metric_set, task

pytestmark = pytest.mark.usefixtures("wednesday")
DAYS = [str(TODAY + timedelta(days=number)) for number in range(60)]
REASON = "UNUSUAL_AMOUNT"


def sets(load: float | None = None, percent: float | None = None) -> Json:
    """A set of five repetitions."""
    return {"type": "reps_load", "minPlannedReps": 5, "load": load, "loadPercent": percent}


def create(client: Json, day: str, text: str) -> dict[str, Any]:
    """The arguments of a new workout."""
    return {"customerId": client["_id"], "days": [{"date": day, "name": "Legs", "text": text}]}


async def with_best(coach: CoachClient, load: float, *, ago: int = 5, known: Json | None = None) -> tuple[Json, Json]:
    """A client who has done a deadlift so many days ago, which was planned without a load."""
    ana, deadlift = await coach.create_customer("Ana"), known or await coach.create_exercise("Deadlift")
    plan = {"type": "reps_load", "minPlannedReps": 5}
    block = await block_with(coach, ana, exercise_of(deadlift, plan), date=str(TODAY - timedelta(days=ago)))
    done = [{"reps": 5, "load": load}]
    (await log(coach, block, block["items"][0], customerSets=done, isCompleted=True)).ok()
    return ana, deadlift


async def test_loads_of_new_workouts(mcp: McpHttpClient, coach: CoachClient) -> None:
    deadlift = None
    for best, loads in (
        (102.5, ((153.5, False), (154, True))),  # 1.5 times is 153.75
        (12, ((22, False), (22.5, True))),  # 10 kg above
        (30, ((41, False),)),  # above by more than 10 kg, and not 1.5 times
        (None, ((60, False), (61, True))),
    ):
        ana, deadlift = await with_best(coach, best or 100, ago=5 if best else 370, known=deadlift)
        before = f"the heaviest in 12 months was {best:g} kg" if best else "no load to compare with in 12 months"
        for day, (load, asks) in zip(DAYS[1:], loads, strict=False):
            result = await mcp.call("create_workout", **create(ana, day, f"Deadlift: 3x5 @{load}kg"))
            if asks:
                summary = tool_proposal(result, REASON)["summary"]
                assert summary.endswith(f" «Deadlift» {load:g} kg: {before}."), summary
                assert "because it has an unusual load" in result["content"][0]["text"]
                assert "of the client" not in result["content"][0]["text"], "who may have no data"
            else:
                tool_change(result)


async def test_each_way_to_a_load_is_compared(mcp: McpHttpClient, coach: CoachClient) -> None:
    ana, deadlift = await with_best(coach, 102.5)
    push_up, _ = [await coach.create_exercise(name) for name in ("Push-Up", "Lateral Raise")]
    about = {"customerId": ana["_id"]}
    body = {"type": "reps", "minPlannedReps": 10}
    planned = await block_with(coach, ana, exercise_of(push_up, body), exercise_of(deadlift, sets(100)), date=DAYS[1])
    items = [each["_id"] for each in planned["items"]]
    known = {**about, "workoutId": planned["_id"]}

    async def asks(tool: str, *words: str, **arguments: Any) -> Json:
        proposal = tool_proposal(await mcp.call(tool, **about, **arguments), REASON)
        assert all(word in proposal["summary"] for word in words), proposal["summary"]
        return proposal

    heavy = "«Deadlift» 400 kg: the heaviest in 12 months was 102.5 kg."
    await asks("create_workout", heavy, days=[{"date": DAYS[2], "name": "A", "text": "Deadlift: 10x10 @400kg"}])
    edit = {"workoutId": planned["_id"], "changes": [{"action": "change", "itemId": items[0]}]}
    edit["changes"][0]["text"] = "Deadlift: 5x20 @250kg"
    await asks("update_workout_items", "«Deadlift» 250 kg", **edit)
    swap = {"exercise": "Deadlift", "withExercise": "Lateral Raise", "startDate": DAYS[0], "load": "keep"}
    await asks("replace_exercise", "«Lateral Raise» 100 kg: no load to compare with in 12 months", **swap)
    await asks("set_training_max", heavy, exercise="Deadlift", value=400)
    (await coach.put(client_path(ana, "training-maxes", deadlift["_id"]), {"value": 120})).ok()
    await asks(
        "create_workout", "«Deadlift» 240 kg", days=[{"date": DAYS[2], "name": "A", "text": "Deadlift: 1x1 @200%"}]
    )
    tool_change(await mcp.call("create_workout", **create(ana, DAYS[3], "Deadlift: 1x1 @90%")))
    past = await block_with(coach, ana, exercise_of(deadlift, sets()), date=str(TODAY))
    await asks("log_workout", "«Deadlift» 300 kg", workoutId=past["_id"], text="Deadlift: 5 @300kg")
    # What stays as it was is not asked about.
    more = {"action": "add", "text": "Push-Up: 3x10"}
    tool_change(await mcp.call("update_workout_items", **known, changes=[more]))


async def test_more_sets_repetitions_and_time_than_is_usual(mcp: McpHttpClient, coach: CoachClient) -> None:
    ana, squat = await coach.create_customer("Ana"), await coach.create_exercise("Squat")
    block = await block_with(coach, ana, exercise_of(squat, sets(20)), date=DAYS[1])
    days = {"customerId": ana["_id"], "startDate": DAYS[1], "endDate": DAYS[1]}
    many = tool_proposal(await mcp.call("adjust_schedule", **days, addReps=5000), REASON)
    assert many["summary"].endswith("5,005 repetitions: more than 100.")
    many = tool_proposal(await mcp.call("adjust_schedule", **days, addSets=99), REASON)
    assert many["summary"].endswith("100 sets: more than 20.")
    for text, asks in (
        ("Squat: 20x5", False),
        ("Squat: 21x5", True),
        ("Squat: 3x100", False),
        ("Squat: 3x90-101", True),
        ("Squat: 1x3600s", False),
        ("Squat: 1x3601s", True),
        ("circuit Round, 3 rounds:\n- Squat: 1x101", True),
        ("circuit Round, 10 rounds:\n- Squat: 2x5", False),
        ("circuit Round, 11 rounds:\n- Squat: 2x5", True),
        ("Squat: 3x5 @110%", False),
        ("Squat: 3x5 @111%", True),  # of what is not known
    ):
        result = await mcp.call("create_workout", **create(ana, DAYS[2], text))
        assert ("executed" in result["structuredContent"]) is asks, text
    done = {"customerId": ana["_id"], "workoutId": block["_id"], "text": "Squat: 500 @20kg"}
    tool_proposal(await mcp.call("log_workout", **done), REASON)
    done = {"customerId": ana["_id"], "workoutId": block["_id"], "text": "Squat: 21x5 @20kg"}
    tool_proposal(await mcp.call("log_workout", **done), REASON)
    program = {"name": "Base", "days": [{"day": 1, "name": "A", "text": "Squat: 3x101 @20kg"}]}
    tool_proposal(await mcp.call("save_program", **program), REASON)


async def test_more_on_a_day_than_is_usual(mcp: McpHttpClient, coach: CoachClient) -> None:
    """Each item is usual, and all of them together are not: in one workout, in several, and over several calls."""
    ana, _ = await coach.create_customer("Ana"), await coach.create_exercise("Squat")
    for day, line, lines, most in (
        (1, "Squat: 20x5", 5, None),
        (2, "Squat: 20x5", 6, "120 sets on {}: more than 100."),
        (2, "Squat: 20x100", 1, None),
        (3, "Squat: 10x100", 2, None),
        (4, "Squat: 10x100", 3, "3,000 repetitions on {}: more than 2,000."),
        (5, "Squat: 6x3600s", 1, None),
        (6, "Squat: 7x3600s", 1, "25,200 seconds of sets on {}: more than 21,600."),
        (7, "circuit Round, 5 rounds:\n- Squat: 2x100", 2, None),
        (8, "circuit Round, 5 rounds:\n- Squat: 2x100", 3, "3,000 repetitions on {}: more than 2,000."),
    ):
        result = await mcp.call("create_workout", **create(ana, DAYS[day], "\n".join([line] * lines)))
        if most is None:
            tool_change(result)
        else:
            assert tool_proposal(result, REASON)["summary"].endswith(most.format(DAYS[day])), (line, lines)
    # A day has 100 sets already: another workout, another call, and a copy add to it.
    again = await mcp.call("create_workout", **create(ana, DAYS[1], "Squat: 1x5"))
    assert "101 sets on" in tool_proposal(again, REASON)["summary"]
    await coach.ctx.db["assistantSpending"].delete_many({"companyId": coach.ctx.company_id})
    days = {"customerId": ana["_id"], "startDate": DAYS[3], "endDate": DAYS[3], "targetDate": DAYS[1]}
    assert "120 sets on" in tool_proposal(await mcp.call("copy_schedule", **days), REASON)["summary"]
    three = {"name": "A", "text": "Squat: 20x5\nSquat: 20x5"}
    many = {"customerId": ana["_id"], "days": [{"date": DAYS[9], **three}] * 3}
    assert "120 sets on" in tool_proposal(await mcp.call("create_workout", **many), REASON)["summary"]
    program = {"name": "Base", "days": [{"day": 1, "name": "A", "text": "\n".join(["Squat: 20x5"] * 6)}]}
    assert "120 sets of a workout" in tool_proposal(await mcp.call("save_program", **program), REASON)["summary"]
    # What is there already is not asked about when something else of the day is changed.
    await approve(coach, tool_proposal(again, REASON))
    [first, *_] = (await coach.get(client_path(ana, "wblock"), startDate=DAYS[1], endDate=DAYS[1])).ok()
    tool_change(await mcp.call("update_workout", customerId=ana["_id"], workoutId=first["_id"], name="Legs"))


async def test_dates_far_away_are_asked_about_by_whichever_tool(mcp: McpHttpClient, coach: CoachClient) -> None:
    ana, near, far = await coach.create_customer("Ana"), "2032-03-05", "2032-03-06"
    block = await block_with(coach, ana, task(), date=DAYS[2])
    program = (await coach.post("/coach/programs", {"name": "Base"})).ok(201)
    for day in (1, 3):
        (await coach.post(f"/coach/programs/{program['_id']}/wblocks", {"name": "A", "day": day})).ok(201)
    about, source = {"customerId": ana["_id"]}, {"startDate": DAYS[2], "endDate": DAYS[2]}
    tool_change(await mcp.call("create_workout", **create(ana, near, "task: A")))
    for tool, arguments in (
        ("create_workout", create(ana, far, "task: A")),
        ("update_workout", {**about, "workoutId": block["_id"], "date": far}),
        ("copy_schedule", {**about, **source, "targetDate": far}),
        ("assign_program", {**about, "programId": program["_id"], "startDate": "2032-03-04"}),
    ):
        proposed = (await mcp.call(tool, **arguments))["structuredContent"]
        assert (proposed["executed"], "FAR_DATE" in proposed["reasons"]) == (False, True), tool


async def test_an_assistant_does_not_climb_on_what_it_has_planned_itself(
    mcp: McpHttpClient, coach: CoachClient
) -> None:
    ana, deadlift = await with_best(coach, 100)

    async def plan(day: int, load: int) -> Json:
        await coach.ctx.db["assistantSpending"].delete_many({"companyId": coach.ctx.company_id})
        return await mcp.call("create_workout", **create(ana, DAYS[day], f"Deadlift: 3x5 @{load}kg"))

    tool_change(await plan(1, 150))
    higher = tool_proposal(await plan(2, 151), REASON)
    assert "the heaviest in 12 months was 100 kg" in higher["summary"]
    today = await block_with(coach, ana, exercise_of(deadlift, sets()), date=str(TODAY))
    logged = {"customerId": ana["_id"], "workoutId": today["_id"], "text": "Deadlift: 5 @150kg"}
    tool_change(await mcp.call("log_workout", **logged))
    tool_proposal(await plan(3, 151), REASON)
    # What a person approves, plans or does counts.
    await approve(coach, higher)
    tool_change(await plan(4, 226))
    tool_proposal(await plan(5, 227), REASON)
    await block_with(coach, ana, exercise_of(deadlift, sets(200)), date=DAYS[6])
    tool_change(await plan(7, 300))


async def test_an_assistant_does_not_climb_on_what_it_has_confirmed_itself(
    coach: CoachClient, with_key: Callable[..., Awaitable[McpHttpClient]]
) -> None:
    ana, _ = await with_best(coach, 100)
    mcp = await with_key(confirmInChat=True)
    heavy = create(ana, DAYS[1], "Deadlift: 3x5 @200kg")
    asked = (await mcp.call("create_workout", **heavy))["structuredContent"]
    tool_change(await mcp.call("create_workout", **heavy, confirmationToken=asked["confirmationToken"]))
    heavier = (await mcp.call("create_workout", **create(ana, DAYS[2], "Deadlift: 3x5 @201kg")))["structuredContent"]
    assert heavier["reasons"] == [REASON]
    assert heavier["summary"].endswith(" «Deadlift» 201 kg: the heaviest in 12 months was 100 kg.")


async def test_an_assigned_program_is_compared_with_its_client(mcp: McpHttpClient, coach: CoachClient) -> None:
    ana, deadlift = await with_best(coach, 50)
    program = (await coach.post("/coach/programs", {"name": "Base"})).ok(201)
    day = {"name": "A", "day": 1, "items": [exercise_of(deadlift, sets(90))]}
    (await coach.post(f"/coach/programs/{program['_id']}/wblocks", day)).ok(201)
    assigned = {"customerId": ana["_id"], "programId": program["_id"], "startDate": DAYS[1]}
    assert "«Deadlift» 90 kg" in tool_proposal(await mcp.call("assign_program", **assigned), REASON)["summary"]


async def test_values_of_metrics_far_from_the_last(mcp: McpHttpClient, coach: CoachClient) -> None:
    ana, body = await coach.create_customer("Ana"), await metric_set(coach)
    (await coach.post(client_path(ana, "metrics-sets"), {"metricsSetId": body["_id"]})).ok(201)
    known = {"customerId": ana["_id"], "metricsSetId": body["_id"], "metricId": body["metrics"][0]["_id"]}
    old = [str(TODAY - timedelta(days=ago)) for ago in (90, 40, 2)]
    tool_change(await mcp.call("record_metric", **known, date=old[0], value=64.8))
    tool_change(await mcp.call("record_metric", **known, date=old[1], value=130))  # not of the last 30 days
    tool_change(await mcp.call("record_metric", **known, date=old[2], value=64.8))
    for value, asks in ((0, True), (300, True), (77.8, True), (51.8, True), (77.7, False), (64.8, False)):
        result = await mcp.call("record_metric", **known, date=str(TODAY), value=value)
        if asks:
            summary = tool_proposal(result, "FAR_VALUE")["summary"]
            assert summary.endswith(f"The last value, of {old[2]}, is 64.8."), summary
        else:
            tool_change(result)
    tool_error(await mcp.call("record_metric", **known, date=str(TODAY), value=-64), "must not be negative")


async def test_values_of_metrics_are_compared_with_those_of_people_and_with_the_next(
    mcp: McpHttpClient, coach: CoachClient
) -> None:
    """An assistant does not come to any value in small steps, nor by an earlier date; what is approved counts."""
    ana, body = await coach.create_customer("Ana"), await metric_set(coach)
    (await coach.post(client_path(ana, "metrics-sets"), {"metricsSetId": body["_id"]})).ok(201)
    metric = {"metricId": body["metrics"][0]["_id"]}
    known = {"customerId": ana["_id"], "metricsSetId": body["_id"], **metric}
    entries = client_path(ana, "metrics-sets", body["_id"], "entries")
    days = [str(TODAY - timedelta(days=ago)) for ago in range(40)]
    (await coach.post(entries, {**metric, "date": days[5], "value": 64.8})).ok(201)

    for ago, value in ((6, 300), (35, 300), (6, 0)):
        earlier = await mcp.call("record_metric", **known, date=days[ago], value=value)
        summary = tool_proposal(earlier, "FAR_VALUE")["summary"]
        assert summary.endswith(f"The next value, of {days[5]}, is 64.8."), summary
    tool_change(await mcp.call("record_metric", **known, date=days[36], value=300))  # more than 30 days before

    tool_change(await mcp.call("record_metric", **known, date=days[1], value=77))
    tool_change(await mcp.call("record_metric", **known, date=days[0], value=70))
    for date in (days[1], days[0]):
        step = tool_proposal(await mcp.call("record_metric", **known, date=date, value=80), "FAR_VALUE")
        assert step["summary"].endswith(f"The last value, of {days[5]}, is 64.8."), step["summary"]
    await approve(coach, step)
    tool_change(await mcp.call("record_metric", **known, date=days[0], value=95))
    tool_proposal(await mcp.call("record_metric", **known, date=days[0], value=99), "FAR_VALUE")
