"""Clearing days, training maximums and own exercises for assistants."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.support.client import CoachClient
from tests.support.fixed_clock import TODAY
from tests.support.mcp_client import McpHttpClient, named, tool_change, tool_error, tool_proposal, tool_result
from tests.support.training import client_path

pytestmark = pytest.mark.usefixtures("wednesday")
DAYS = [str(TODAY + timedelta(days=number)) for number in range(20)]


async def test_days_are_cleared_but_for_what_was_done(mcp: McpHttpClient, coach: CoachClient) -> None:
    client = await coach.create_customer()
    about = {"customerId": client["_id"]}
    days = [{"date": DAYS[number], "name": name, "text": "task: Walk"} for number, name in enumerate("ABC")]
    created = tool_change(await mcp.call("create_workout", **about, days=days))
    done = created["workoutIds"][1]
    tool_change(await mcp.call("log_workout", **about, workoutId=done, sessionRpe=7))
    form = (await coach.post("/coach/forms", {"name": "Check-in", "questions": [{"label": "Well?"}]})).ok(201)
    weekly = {"formId": form["_id"], "everyDays": 7, "startDate": DAYS[0]}
    (await coach.post(client_path(client, "check-ins"), weekly)).ok(201)

    cleared = tool_change(await mcp.call("clear_schedule", **about, startDate=DAYS[0], endDate=DAYS[2]))
    assert cleared["summary"] == (
        f"Removed 2 workouts of «Ana», {named(DAYS[0], DAYS[2])}: «A» on {named(DAYS[0])}, «C» on {named(DAYS[2])}; "
        f"kept 1 workout with something done: «B» on {named(DAYS[1])}."
    )
    blocks = await coach.calendar(client, DAYS[0], DAYS[2])
    assert [block["name"] for block in blocks] == ["Check-in", "B"]
    nothing = tool_change(await mcp.call("clear_schedule", **about, startDate=DAYS[3], endDate=DAYS[3]))
    assert nothing["summary"] == f"Removed 0 workouts of «Ana», {named(DAYS[3])}. Nothing was changed."
    other = (await coach.create_customer("Bo"))["_id"]
    for tool, more in (("clear_schedule", {}), ("adjust_schedule", {"addLoad": 2.5})):  # many days, many clients
        both = {"customerIds": [client["_id"], other], "startDate": DAYS[3], "endDate": DAYS[19]}
        empty = tool_change(await mcp.call(tool, **both | more))
        assert empty["changeId"] is None and empty["summary"].endswith(" Nothing was changed.")
    tool_change(await mcp.call("undo", changeId=cleared["changeId"]))
    assert [block["name"] for block in await coach.calendar(client, DAYS[2], DAYS[2])] == ["C"]

    tool_proposal(await mcp.call("clear_schedule", **about, startDate=DAYS[0], endDate=DAYS[7]), "MANY_DAYS")
    assert len(await coach.calendar(client, DAYS[0], DAYS[2])) == 4
    wrong = await mcp.call("clear_schedule", **about, startDate=DAYS[1], endDate=DAYS[0])
    tool_error(wrong, "endDate must not be before startDate")


async def test_training_maximum_is_set_and_loads_follow(mcp: McpHttpClient, coach: CoachClient) -> None:
    client = await coach.create_customer()
    squat = await coach.create_exercise("Back squat")
    about = {"customerId": client["_id"]}
    days = [{"date": DAYS[0], "name": "A", "text": "Back squat: 1x5 @70%"}]
    tool_change(await mcp.call("create_workout", **about, days=days))

    set_to = tool_change(await mcp.call("set_training_max", **about, exercise="back squat", value=100))
    assert set_to["summary"] == "Set the training maximum of «Back squat» of «Ana»: none → 100 kg."
    assert set_to["exerciseId"] == squat["_id"]
    [block] = await coach.calendar(client, DAYS[0], DAYS[0])
    assert block["items"][0]["exerciseSets"][0]["load"] == 70
    changed = tool_change(await mcp.call("set_training_max", **about, exercise=squat["_id"], value=102.5))
    assert changed["summary"].endswith("«Ana»: 100 kg → 102.5 kg.")
    tool_change(await mcp.call("undo", changeId=changed["changeId"]))
    assert (await coach.get(client_path(client, "training-maxes"))).ok()[0]["value"] == 100

    (await (await coach.as_client(client)).patch("/customer/me", {"loadUnit": "lb"})).ok()
    pounds = tool_change(await mcp.call("set_training_max", **about, exercise="back squat", value=225))
    assert pounds["summary"].endswith("«Ana»: 220.5 lb → 225 lb.")
    assert (await coach.get(client_path(client, "training-maxes"))).ok()[0]["value"] == 102.06
    tool_error(await mcp.call("set_training_max", **about, exercise="xyzzy", value=90), "exercise is unknown")


async def test_estimate_is_named_before_the_first_training_maximum(mcp: McpHttpClient, coach: CoachClient) -> None:
    client, squat = await coach.create_customer(), await coach.create_exercise("Back squat")
    record = {"exerciseId": squat["_id"], "type": "estimated_1rm", "value": 120, "date": DAYS[0]}
    (await coach.post(client_path(client, "personal-records"), record)).ok(201)
    set_to = tool_change(await mcp.call("set_training_max", customerId=client["_id"], exercise="Back squat", value=108))
    assert set_to["summary"].endswith("«Ana»: 120 kg (estimated) → 108 kg.")


async def test_own_exercise_is_created_without_a_confirmation(mcp: McpHttpClient, coach: CoachClient) -> None:
    new = {"name": "Sled slalom", "videoUrl": "https://video.example.com/sled", "muscles": ["quadriceps", "Glutes"]}
    created = tool_change(await mcp.call("create_exercise", **new, instructions="Lean back.", equipment="Sled"))
    assert created["summary"] == "Created the exercise «Sled slalom» with the video «https://video.example.com/sled»."
    exercise = (await coach.get(f"/exercises/{created['exerciseId']}")).ok()
    assert (exercise["videoLink"], exercise["defaultInstructions"]) == (new["videoUrl"], "Lean back.")
    assert (exercise["type"], exercise["equipment"], exercise["loadType"]) == ("strength", "Sled", "load")
    assert [muscle["name"] for muscle in exercise["muscleGroups"]] == ["Quadriceps", "Glutes"]

    tool_change(await mcp.call("undo", changeId=created["changeId"]))
    (await coach.get(f"/exercises/{created['exerciseId']}")).refused(404)
    unknown = await mcp.call("create_exercise", name="Sled push", muscles=["legs"])
    tool_error(unknown, "muscles has unknown names: «legs». Known are Chest, Front Deltoids")
    wrong = await mcp.call("create_exercise", name="", videoUrl="sled", type="sport")
    tool_error(wrong, "name should not be empty", "videoUrl must be an http or https address", "type must be one of")


async def test_exercise_with_a_name_that_means_one_already_is_not_created(
    mcp: McpHttpClient, coach: CoachClient
) -> None:
    own = await coach.create_exercise("Sled drag", aliases=["Prowler pull"])
    names = ["RDL", "bench press", "sled drag", "PROWLER PULL"]
    known = tool_result(await mcp.call("list_exercises", names=names))["docs"]
    assert [each["_id"] for each in known][2:] == [own["_id"]] * 2
    for name, about in zip(names, known, strict=True):
        refused = await mcp.call("create_exercise", name=name, muscles=["legs"])
        tool_error(refused, f"[{about['_id']}] already: use it", "a word that tells them apart", "muscles has unknown")
    assert tool_result(await mcp.call("list_exercises", names=names))["docs"] == known
    apart = tool_change(await mcp.call("create_exercise", name="Backward sled drag with a harness"))
    (await coach.get(f"/exercises/{apart['exerciseId']}")).ok()

    await coach.create_exercise("Sled drag")  # REST creates it, so the name means neither
    tool_error(await mcp.call("create_exercise", name="Sled drag"), own["_id"], "«Sled drag» [", "already")
