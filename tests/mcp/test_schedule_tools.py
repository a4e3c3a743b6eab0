"""What assistants do with many days of a client's calendar."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from coaching_service.core.dates import name_period
from tests.support.client import CoachClient
from tests.support.fixed_clock import TODAY
from tests.support.mcp_client import McpHttpClient, approve, named, tool_change, tool_error, tool_proposal

pytestmark = pytest.mark.usefixtures("wednesday")
DAYS = [str(TODAY + timedelta(days=number)) for number in range(40)]
TEXT = "Back squat: 4x8 @60kg, 1x8 @70%\nBench press: 3x10 @40kg\ncircuit Finisher, 2 rounds:\n- Bench press: 1x5 @20kg"


async def lines(mcp: McpHttpClient, client: dict[str, Any], first: int, last: int) -> list[str]:
    """The dates and lines of the workouts of some days."""
    dates = {"startDate": DAYS[first], "endDate": DAYS[last]}
    content = (await mcp.call("get_workouts", customerId=client["_id"], **dates))["structuredContent"]
    return [
        f"{doc['date']} {line.split(' ', 1)[1] if line.startswith('#') else line}"
        for doc in content["docs"]
        for line in doc["lines"].splitlines()
    ]


async def test_days_are_copied_adjusted_and_exercises_replaced(mcp: McpHttpClient, coach: CoachClient) -> None:
    client = await coach.create_customer()
    for name in ("Back squat", "Bench press", "Dumbbell press"):
        await coach.create_exercise(name, loadType="assistance" if name == "Dumbbell press" else "load")
    about = {"customerId": client["_id"]}
    tool_change(await mcp.call("create_workout", **about, days=[{"date": DAYS[0], "name": "A", "text": TEXT}]))

    copy = {**about, "startDate": DAYS[0], "endDate": DAYS[1], "targetDate": DAYS[2], "addLoad": 2.5}
    copied = tool_change(await mcp.call("copy_schedule", **copy, repeat=2, exercises=["bench press"]))
    assert len(copied["workoutIds"]) == 2
    assert copied["summary"] == (
        f"Copied {name_period(DAYS[0], DAYS[1], str(TODAY))} of «Ana»: 2 new workouts, {named(DAYS[2], DAYS[4])}, "
        "load +2.5 of «Bench press»; «Bench press» 20 → 22.5 kg, 20 → 25 kg, 40 → 42.5 kg, 40 → 45 kg."
    )
    read = await lines(mcp, client, 4, 5)
    assert read == [
        f"{DAYS[4]} «Back squat»: 4x8 @60kg, 1x8 @70%",
        f"{DAYS[4]} «Bench press»: 3x10 @45kg",
        f"{DAYS[4]} circuit «Finisher», 2 rounds:",
        f"{DAYS[4]} - «Bench press»: 1x5 @25kg",
    ]

    adjust = {**about, "startDate": DAYS[2], "endDate": DAYS[5]}
    adjusted = tool_change(await mcp.call("adjust_schedule", **adjust, addPercent=-10, addReps=1))
    assert adjusted["summary"] == (
        f"Adjusted 2 workouts (6 items) of «Ana», {named(DAYS[2], DAYS[4])}, load -10%, repetitions +1; "
        "«Back squat» 60 → 55 kg, 8 → 9 reps, «Bench press» 22.5 → 20.25 kg, 25 → 22.5 kg, 42.5 → 37.5 kg, 45 → 40 kg, 10 → 11 reps, 5 → 6 reps."
    )
    assert f"{DAYS[2]} «Back squat»: 4x9 @55kg, 1x9 @70%" in await lines(mcp, client, 2, 2)

    swap = {**about, "exercise": "Bench press", "withExercise": "«Dumbbell press»", "startDate": DAYS[4]} | {
        "load": "keep"
    }
    swapped = tool_change(await mcp.call("replace_exercise", **swap))
    assert swapped["summary"] == (
        f"Replaced «Bench press» by «Dumbbell press» in 1 workout (2 items) of «Ana», {named(DAYS[4])}; "
        "planned loads are kept."
    )
    assert f"{DAYS[4]} - «Dumbbell press»: 1x6 @22.5kg" in await lines(mcp, client, 4, 4)
    last = {**about, "startDate": DAYS[4], "endDate": DAYS[4], "exercises": ["dumbbell press"]}
    easier = tool_change(await mcp.call("adjust_schedule", **last, addLoad=5))
    assert "«Dumbbell press» 22.5 → 27.5 kg assistance" in easier["summary"]
    tool_change(await mcp.call("undo", changeId=easier["changeId"]))
    tool_change(await mcp.call("undo", changeId=swapped["changeId"]))
    assert f"{DAYS[4]} - «Bench press»: 1x6 @22.5kg" in await lines(mcp, client, 4, 4)

    added = tool_change(await mcp.call("copy_schedule", **{**copy, "targetDate": DAYS[4], "endDate": DAYS[0]}))
    assert added["summary"].endswith(f"; these days had workouts, the new ones follow them: {named(DAYS[4])} «A».")
    tool_change(await mcp.call("undo", changeId=added["changeId"]))
    past = {**copy, "endDate": DAYS[0], "targetDate": str(TODAY - timedelta(days=2)), "addLoad": None}
    behind = tool_change(await mcp.call("copy_schedule", **past))
    assert behind["summary"].endswith(". All of these days are in the past.")
    tool_change(await mcp.call("undo", changeId=behind["changeId"]))

    long = {**copy, "targetDate": DAYS[10], "repeat": 4}
    proposal = tool_proposal(await mcp.call("copy_schedule", **long), "MANY_DAYS")
    assert await lines(mcp, client, 6, 39) == []
    other = tool_change(await mcp.call("create_workout", **about, days=[{"date": DAYS[1], "name": "B"}]))
    session = await coach.interactive()
    (await session.post(f"/coach/proposals/{proposal['proposalId']}/approve")).refused(409, "have changed")
    again = tool_proposal(await mcp.call("copy_schedule", **long), "MANY_DAYS")
    assert again["proposalId"] != proposal["proposalId"]
    tool_change(await mcp.call("undo", changeId=other["changeId"]))
    await approve(coach, tool_proposal(await mcp.call("copy_schedule", **long), "MANY_DAYS"))
    assert len({line.split()[0] for line in await lines(mcp, client, 10, 17)}) == 4

    for tool, arguments, words in [
        ("copy_schedule", {**copy, "addPercent": 5}, "addPercent must not be combined with addLoad"),
        ("copy_schedule", {**copy, "exercises": ["xyzzy"]}, "exercises.0 is unknown: no exercise has this name"),
        ("adjust_schedule", adjust, "addLoad is required, or addPercent, addReps, addSets or setsPercent"),
        (
            "replace_exercise",
            {**swap, "withExercise": "raise"},
            "withExercise is unknown: the name does not mean exactly one",
        ),
    ]:
        tool_error(await mcp.call(tool, **arguments), words, "nothing was changed")


async def test_replacement_without_an_end_is_confirmed_when_its_dates_are_far_apart(
    mcp: McpHttpClient, coach: CoachClient
) -> None:
    client = await coach.create_customer()
    for name in ("Bench press", "Dumbbell press"):
        await coach.create_exercise(name)
    days = [{"date": DAYS[number], "name": "A", "text": "Bench press: 3x10"} for number in (0, 20)]
    tool_change(await mcp.call("create_workout", customerId=client["_id"], days=days))
    swap = {"customerId": client["_id"], "exercise": "Bench press", "withExercise": "Dumbbell press"}

    proposal = tool_proposal(await mcp.call("replace_exercise", **swap, startDate=DAYS[0]), "MANY_DAYS")
    assert await lines(mcp, client, 0, 20) == [f"{DAYS[number]} «Bench press»: 3x10" for number in (0, 20)]
    swapped = await approve(coach, proposal)
    tool_proposal(await mcp.call("undo", changeId=swapped["changeId"]), "MANY_DAYS")
    back = {"customerId": client["_id"], "exercise": "Dumbbell press", "withExercise": "Bench press"}
    tool_change(await mcp.call("replace_exercise", **back, startDate=DAYS[15]))


async def test_small_steps_are_exact_and_days_with_workouts_are_named(mcp: McpHttpClient, coach: CoachClient) -> None:
    client = await coach.create_customer()
    await coach.create_exercise("Dumbbell press")
    about = {"customerId": client["_id"]}
    days = [
        {"date": DAYS[0], "name": "A", "text": "Dumbbell press: 1x8 @12kg, 1x8 @7kg"},
        {"date": DAYS[7], "name": "Swim", "text": "task: Swim"},
    ]
    tool_change(await mcp.call("create_workout", **about, days=days))

    adjust = {**about, "startDate": DAYS[0], "endDate": DAYS[0]}
    adjusted = tool_change(await mcp.call("adjust_schedule", **adjust, addLoad=2))
    assert adjusted["summary"].endswith("load +2; «Dumbbell press» 7 → 9 kg, 12 → 14 kg.")
    adjusted = tool_change(await mcp.call("adjust_schedule", **adjust, addLoad=1.5, rounding=0))
    assert adjusted["summary"].endswith("9 → 10.5 kg, 14 → 15.5 kg.")
    adjusted = tool_change(await mcp.call("adjust_schedule", **adjust, addLoad=-4, rounding=4))
    assert adjusted["summary"].endswith("10.5 → 8 kg, 15.5 → 12 kg.")

    copy = {**about, "startDate": DAYS[0], "endDate": DAYS[0], "targetDate": DAYS[7], "onConflict": "skip"}
    copied = tool_change(await mcp.call("copy_schedule", **copy))
    assert copied["summary"].endswith(
        f"; these days had workouts, left as they are: {named(DAYS[7])} «Swim». Nothing was changed."
    )
    program = (await coach.post("/coach/programs", {"name": "Base"})).ok(201)
    path = f"/coach/programs/{program['_id']}/wblocks"
    (await coach.post(path, {"name": "Run", "day": 1})).ok(201)
    assign = {**about, "programId": program["_id"], "startDate": DAYS[7], "onConflict": "replace"}
    assigned = tool_change(await mcp.call("assign_program", **assign))
    assert assigned["summary"].endswith(
        f"; these days had workouts, replaced where nothing is done: {named(DAYS[7])} «Swim»."
    )


async def test_sets_are_reduced_by_a_third(mcp: McpHttpClient, coach: CoachClient) -> None:
    client = await coach.create_customer()
    await coach.create_exercise("Back squat")
    days = [{"date": DAYS[0], "name": "A", "text": "Back squat: 1x5 @20kg warmup, 3x8 @60kg"}]
    tool_change(await mcp.call("create_workout", customerId=client["_id"], days=days))
    adjust = {"customerId": client["_id"], "startDate": DAYS[0], "endDate": DAYS[0]}
    adjusted = tool_change(await mcp.call("adjust_schedule", **adjust, setsPercent=-33, addPercent=-50))
    assert adjusted["summary"].endswith(", load -50%, sets -33%; «Back squat» 20 → 10 kg, 60 → 30 kg, 4 → 3 sets.")
    assert await lines(mcp, client, 0, 0) == [f"{DAYS[0]} «Back squat»: 1x5 @10kg warmup, 2x8 @30kg"]
    copy = {**adjust, "targetDate": DAYS[1], "addSets": 1}
    assert "; «Back squat» 3 → 4 sets." in tool_change(await mcp.call("copy_schedule", **copy))["summary"]
    tool_error(
        await mcp.call("adjust_schedule", **adjust, setsPercent=-33, addSets=1),
        "setsPercent must not be combined with addSets",
    )


async def test_sets_of_another_exercise_are_named(mcp: McpHttpClient, coach: CoachClient) -> None:
    client = await coach.create_customer()
    squat, press = [await coach.create_exercise(name) for name in ("Back squat", "Leg press")]
    days = [{"date": DAYS[0], "name": "A", "text": "Back squat: 2x8 @60kg"}]
    tool_change(await mcp.call("create_workout", customerId=client["_id"], days=days))
    [block] = (await coach.get(f"/coach/customers/{client['_id']}/wblock", startDate=DAYS[0], endDate=DAYS[0])).ok()
    sets = [
        {"index": 1, "reps": 8, "load": 60, "exerciseId": squat["_id"], "isCompleted": True},
        {"index": 2, "reps": 12, "load": 140, "exerciseId": press["_id"], "isCompleted": True},
    ]
    log = {"isCompleted": True, "customerSets": sets, "swappedFor": {"exerciseId": press["_id"], "reason": None}}
    path = f"/customer/wblocks/{block['_id']}/witems/{block['items'][0]['_id']}/log"
    (await (await coach.as_client(client)).put(path, log)).ok()

    dates = {"startDate": DAYS[0], "endDate": DAYS[0]}
    content = (await mcp.call("get_workouts", customerId=client["_id"], **dates))["structuredContent"]
    assert "done: 8 @60kg; done instead «Leg press»: #2 12 @140kg" in content["docs"][0]["lines"]
