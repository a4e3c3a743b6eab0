"""Names of exercises mean first what is on the client's calendar, then the library."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from tests.support.client import CoachClient
from tests.support.fixed_clock import TODAY
from tests.support.mcp_client import McpHttpClient, tool_change, tool_error, tool_result

pytestmark = pytest.mark.usefixtures("wednesday")
DAYS = [str(TODAY - timedelta(days=number)) for number in range(12)]
Json = dict[str, Any]


async def client_with(mcp: McpHttpClient, coach: CoachClient, *names: str) -> tuple[Json, Json]:
    """Return a client who has own exercises with these names on today's calendar, and their identifiers by name."""
    client = await coach.create_customer()
    ids = {name: (await coach.create_exercise(name))["_id"] for name in names}
    text = "\n".join(f"{name} [{identifier}]: 3x8 @60kg" for name, identifier in ids.items())
    days = [{"date": DAYS[0], "name": "A", "text": text}]
    tool_change(await mcp.call("create_workout", customerId=client["_id"], days=days))
    return client, ids


async def planned(mcp: McpHttpClient, client: Json, text: str) -> list[str]:
    """The exercises of a workout that is planned for yesterday."""
    days = [{"date": DAYS[1], "name": "B", "text": text}]
    created = tool_change(await mcp.call("create_workout", customerId=client["_id"], days=days))
    dates = {"startDate": DAYS[1], "endDate": DAYS[1]}
    listed = tool_result(await mcp.call("get_workouts", customerId=client["_id"], **dates, detail="full"))
    tool_change(await mcp.call("undo", changeId=created["changeId"]))
    return [item["exercise"]["name"] for item in listed["docs"][0]["items"]]


async def test_short_name_means_the_exercise_of_the_client(mcp: McpHttpClient, coach: CoachClient) -> None:
    client, ids = await client_with(mcp, coach, "Paused box squat", "Larsen bench press")
    about = {"customerId": client["_id"]}
    week = {"startDate": DAYS[0], "endDate": DAYS[0]}

    adjusted = tool_change(await mcp.call("adjust_schedule", **about, **week, addLoad=5, exercises=["squats"]))
    assert ", load +5 of «Paused box squat»; «Paused box squat» 60 → 65 kg." in adjusted["summary"]
    assert adjusted["summary"].endswith(" Read «squats» as «Paused box squat».")
    swap = {"exercise": "bench press", "withExercise": "paused squat", "startDate": DAYS[0]}
    swapped = tool_change(await mcp.call("replace_exercise", **about, **swap))
    assert "Replaced «Larsen bench press» by «Paused box squat» in 1 workout" in swapped["summary"]
    tool_change(await mcp.call("undo", changeId=swapped["changeId"]))
    log = {"date": DAYS[0], "text": "squat: 8, 8, 8 @65kg"}
    logged = tool_change(await mcp.call("log_workout", **about, **log))
    assert logged["summary"].endswith(". Read «squat» as «Paused box squat».")
    exact = {"date": DAYS[0], "text": "Larsen bench press: 8 @60kg"}
    assert "Read «" not in tool_change(await mcp.call("log_workout", **about, **exact))["summary"]
    history = tool_result(await mcp.call("get_exercise_history", **about, exercise="Squat"))
    assert history["exerciseId"] == ids["Paused box squat"]
    maximum = tool_change(await mcp.call("set_training_max", **about, exercise="Larsen bench", value=90))
    assert maximum["summary"].endswith("→ 90 kg. Read «Larsen bench» as «Larsen bench press».")
    assert await planned(mcp, client, "Larsen press: 3x5 @70kg") == ["Larsen bench press"]
    all_read = " Read «squats» as «Paused box squat», «Larsen press» as «Larsen bench press»."
    days = [{"date": DAYS[1], "name": "B", "text": "squats: 3x5 @60kg"}, {"date": DAYS[2], "name": "C"}]
    days[1]["text"] = "Larsen press: 3x5 @60kg"
    created = tool_change(await mcp.call("create_workout", **about, days=days))
    assert created["summary"].endswith(all_read)
    exercises = [{"name": name, "sets": "3x5 @60kg"} for name in ("squats", "Larsen press")]
    earlier = {"date": DAYS[3], "name": "D", "exercises": exercises}
    assert tool_change(await mcp.call("create_workout", **about, **earlier))["summary"].endswith(all_read)


async def test_library_comes_after_the_client(mcp: McpHttpClient, coach: CoachClient) -> None:
    client, _ = await client_with(mcp, coach, "Zercher lunge")
    other = await coach.create_customer("Bo")
    for name in ("Zercher", "Landmine lunge"):
        await coach.create_exercise(name)
    assert await planned(mcp, client, "Zercher: 3x8") == ["Zercher"], "has exactly this name"
    assert await planned(mcp, client, "Landmine lunge: 3x8") == ["Landmine lunge"]
    about = {"startDate": DAYS[0], "exercise": "lunge", "withExercise": "Landmine lunge"}
    swapped = tool_change(await mcp.call("replace_exercise", customerId=client["_id"], **about))
    assert "Replaced «Zercher lunge» by «Landmine lunge» in 1 workout of «Ana»" in swapped["summary"]
    nothing = tool_change(
        await mcp.call("replace_exercise", customerId=other["_id"], **{**about, "exercise": "Zercher lunge"})
    )
    assert nothing["summary"].endswith(" Planned there, with nothing done: no exercise. Nothing was changed.")


async def test_numbers_have_to_match_and_what_is_there_is_said(mcp: McpHttpClient, coach: CoachClient) -> None:
    client, ids = await client_with(mcp, coach, "Hyperext 45 degree", "Hyperext 30 degree", "Nordic drop")
    about = {"customerId": client["_id"], "startDate": DAYS[0]}
    adjust = {**about, "endDate": DAYS[0], "addReps": 1}
    adjusted = tool_change(await mcp.call("adjust_schedule", **adjust, exercises=["45 degree hyperext"]))
    assert "Adjusted 1 workout" in adjusted["summary"]
    assert ", repetitions +1 of «Hyperext 45 degree»; «Hyperext 45 degree» 8 → 9 reps." in adjusted["summary"]
    unknown = tool_error(
        await mcp.call("adjust_schedule", **adjust, exercises=["hyperext 60 degree", "nordic"]),
        "exercises.0 is unknown: the name does not mean exactly one exercise; the nearest: ",
    )
    assert ids["Hyperext 45 degree"] in unknown
    assert "exercises.1" not in unknown
    shared = (await coach.get("/exercises/unified", pageSize=1, pageNum=1, type="public")).ok()["docs"][0]
    other = tool_change(await mcp.call("adjust_schedule", **adjust, exercises=[shared["_id"]]))
    assert other["summary"].endswith(
        " Planned there, with nothing done: «Hyperext 45 degree», «Hyperext 30 degree», «Nordic drop». "
        "Nothing was changed."
    )


@pytest.mark.parametrize("tool", ["adjust_schedule", "replace_exercise"])
async def test_several_exercises_of_the_client_are_alternatives(
    mcp: McpHttpClient, coach: CoachClient, tool: str
) -> None:
    client, ids = await client_with(mcp, coach, "Copenhagen lunge", "Zercher lunge")
    sent: Json = {"startDate": DAYS[0], "endDate": DAYS[0]}
    sent |= {"addReps": 1, "exercises": ["lunge"]} if tool == "adjust_schedule" else {}
    sent |= {"exercise": "lunge", "withExercise": "xyzzy"} if tool == "replace_exercise" else {}
    text = tool_error(await mcp.call(tool, customerId=client["_id"], **sent), *ids.values(), "the nearest: ")
    assert tool == "adjust_schedule" or "withExercise is unknown" in text


async def test_client_who_is_not_there_is_not_found(mcp: McpHttpClient, coach: CoachClient) -> None:
    unknown = {"customerId": "0" * 24, "exercise": "lunge", "value": 50}
    tool_error(await mcp.call("set_training_max", **unknown), "not found")


async def client_of_library(mcp: McpHttpClient, coach: CoachClient, name: str) -> Json:
    """Return a client who has an exercise of the shared library on today's calendar."""
    client = await coach.create_customer()
    days = [{"date": DAYS[0], "name": "A", "text": f"{name}: 3x8"}]
    tool_change(await mcp.call("create_workout", customerId=client["_id"], days=days))
    return client


async def test_exact_names_come_before_the_calendar_and_muscles_name_nothing(
    mcp: McpHttpClient, coach: CoachClient
) -> None:
    goblet = await client_of_library(mcp, coach, "Goblet Squat")
    assert await planned(mcp, goblet, "Back squat: 3x8") == ["Barbell Back Squat"]
    assert await planned(mcp, goblet, "Squat: 3x8") == ["Goblet Squat"], "an alias comes after the calendar"
    days = [{"date": DAYS[1], "name": "B", "text": "Glutes squat: 3x8"}]
    unknown = await mcp.call("create_workout", customerId=goblet["_id"], days=days)
    tool_error(unknown, "line 1: the name does not mean exactly one exercise; the nearest: ", "Squat")
    hinge = await client_of_library(mcp, coach, "Romanian Deadlift")
    assert await planned(mcp, hinge, "Deadlift: 3x8\nRDL: 3x8") == ["Barbell Deadlift", "Romanian Deadlift"]
    bench = await client_of_library(mcp, coach, "Dumbbell Bench Press")
    assert await planned(mcp, bench, "Bench press: 3x8") == ["Dumbbell Bench Press"], "the same with other equipment"


async def test_letter_is_no_label_where_an_exercise_has_the_whole_name(mcp: McpHttpClient, coach: CoachClient) -> None:
    client = await coach.create_customer()
    for name in ("A skip", "Skip", "B stance hinge"):
        await coach.create_exercise(name)
    assert await planned(mcp, client, "A skip: 3x20m") == ["A skip"]
    assert await planned(mcp, client, "Skip: 3x20m\nA) skip: 2x20m\nA1 skip: 2x20m") == ["Skip"] * 3
    text = "A Back squat: 3x8\nA Skip: 3x20m\nB stance hinge: 3x8\nA Push-up: 3x8"
    assert await planned(mcp, client, text) == ["Barbell Back Squat", "A skip", "B stance hinge", "Push-Up"]
    dates = {"startDate": DAYS[2], "endDate": DAYS[2]}
    days = [{"date": DAYS[2], "name": "B", "text": text}]
    tool_change(await mcp.call("create_workout", customerId=client["_id"], days=days))
    listed = tool_result(await mcp.call("get_workouts", customerId=client["_id"], **dates, detail="full"))
    assert [item.get("supersetId") for item in listed["docs"][0]["items"]] == ["A", None, None, "A"]
    tool_change(await mcp.call("log_workout", customerId=client["_id"], date=DAYS[2], text="A skip: 3x20m"))


async def test_names_mean_the_same_by_rest_and_tools(mcp: McpHttpClient, coach: CoachClient) -> None:
    client = await coach.create_customer()
    names = ["RDL", "Kettlebell press", "Nordics", "Seated Machine Curl", "walking lunges DB"]
    resolved = (await coach.post("/exercises/resolve", {"names": names})).ok()["results"]
    assert [each["match"] and each["match"]["name"] for each in resolved] == [
        "Romanian Deadlift",
        None,
        None,
        None,
        "Dumbbell Walking Lunge",
    ]
    for each in resolved:
        days = [{"date": DAYS[3], "name": "C", "text": f"{each['name']}: 3x8"}]
        answer = await mcp.call("create_workout", customerId=client["_id"], days=days)
        if each["match"] is None:
            tool_error(answer, "does not mean exactly one exercise")
        else:
            assert each["match"]["name"] in tool_change(answer)["summary"]
