"""Logging the workout of a day."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from tests.support.client import UNKNOWN, CoachClient
from tests.support.fixed_clock import TODAY
from tests.support.mcp_client import McpHttpClient, tool_change, tool_error
from tests.support.schedules import batch

pytestmark = pytest.mark.usefixtures("wednesday")
DAYS = [str(TODAY - timedelta(days=number)) for number in range(12)]


async def test_workout_of_a_day_is_logged(mcp: McpHttpClient, coach: CoachClient) -> None:
    client = await coach.create_customer()
    await coach.create_exercise("Bench press")
    about = {"customerId": client["_id"]}
    days = [{"date": DAYS[0], "name": "Push", "text": "Bench press: 3x8 @60kg"}]
    push = tool_change(await mcp.call("create_workout", **about, days=days))["workoutId"]
    form = (await coach.post("/coach/forms", {"name": "Daily", "questions": [{"label": "Well?"}]})).ok(201)
    daily = {"formId": form["_id"], "everyDays": 1, "startDate": DAYS[0]}
    (await coach.post(f"/coach/customers/{client['_id']}/check-ins", daily)).ok(201)
    await batch(coach, client, {"name": "Rest", "date": DAYS[0], "isRest": True})

    logged = tool_change(await mcp.call("log_workout", **about, date=DAYS[0], text="Bench press: 8, 8, 7 @60kg"))
    assert logged["workoutId"] == push
    [block] = [each for each in await coach.calendar(client, DAYS[0], DAYS[0]) if each["_id"] == push]
    assert [done["reps"] for done in block["items"][0]["customerSets"]] == [8, 8, 7]


async def test_two_workouts_of_a_day_are_named(mcp: McpHttpClient, coach: CoachClient) -> None:
    client = await coach.create_customer()
    blocks = [{"name": name, "date": DAYS[3]} for name in ("Push", "Run")]
    push, run = (await batch(coach, client, *blocks))["created"]
    about = {"customerId": client["_id"], "sessionRpe": 7}
    tool_error(
        await mcp.call("log_workout", **about, date=DAYS[3]),
        f"date has 2 workouts: «Push» on {DAYS[3]} [{push['_id']}], «Run» on {DAYS[3]} [{run['_id']}]. Send the workoutId",
    )
    near = f"date has no workout; within a week of it: «Push» on {DAYS[3]} [{push['_id']}]"
    tool_error(await mcp.call("log_workout", **about, date=DAYS[10]), near)
    tool_error(await mcp.call("log_workout", **about, date=DAYS[11]), "date has no workout; within a week of it: none")
    assert [block["sessionRpe"] for block in await coach.calendar(client, DAYS[3], DAYS[3])] == [None, None]


@pytest.mark.parametrize(
    ("sent", "words"),
    [
        ({}, ["workoutId is required, or date", "text is required"]),
        ({"workoutId": UNKNOWN, "date": DAYS[0], "feeling": 9}, ["workoutId must not be combined", "feeling must"]),
        ({"date": "yesterday", "sessionRpe": 11}, ["date must", "sessionRpe must"]),
    ],
)
async def test_all_errors_come_at_once(
    mcp: McpHttpClient, coach: CoachClient, sent: dict[str, Any], words: list[str]
) -> None:
    client = await coach.create_customer()
    tool_error(await mcp.call("log_workout", customerId=client["_id"], **sent), *words)
