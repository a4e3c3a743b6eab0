"""How much of an assistant's context workouts take.

Budgets are in tokens of o200k_base (npm gpt-tokenizer), measured once for these very workouts; the tests compare bytes.
"""

from __future__ import annotations

import datetime
from datetime import timedelta
from typing import Any

import orjson
import pytest

from coaching_service.core.ids import ObjectId
from tests.support.client import CoachClient
from tests.support.fixed_clock import TODAY
from tests.support.mcp_client import McpHttpClient, tool_change

pytestmark = pytest.mark.usefixtures("wednesday")
START = TODAY - timedelta(days=28)
LOWER = """\
Barbell Back Squat: 1x5 @60kg warmup, 4x6-8 @100kg rest 150s RPE8 | Controlled descent, drive through the heels
A1) Romanian Deadlift: 3x8-10 @80kg rest 90s RPE8
A2) Leg Press: 3x10-12 @160kg rest 90s
Lying Leg Curl: 3x12-15 @40kg rest 60s
Standing Calf Raise: 4x12-15 @50kg rest 60s
Plank: 3x45s rest 45s"""
LOWER_DONE = """\
Barbell Back Squat: 5 @60kg, 8, 8, 7, 6 @100kg | Last set was hard, hips fine today
Romanian Deadlift: 10, 9, 9 @80kg
Leg Press: 12, 12, 10 @160kg
Lying Leg Curl: 15, 14, 12 @40kg
Standing Calf Raise: 15, 15, 13, 12 @50kg
Plank: 45s, 45s, 40s"""
UPPER = """\
Barbell Bench Press: 1x8 @40kg warmup, 4x6-8 @80kg rest 150s RPE8
A1) Pull-Up: 3x6-8 rest 90s | Full range of motion
A2) Dumbbell Shoulder Press: 3x8-10 @22.5kg rest 90s
Seated Cable Row: 3x10-12 @60kg rest 75s
Dumbbell Lateral Raise: 3x12-15 @10kg rest 60s
Cable Triceps Pushdown: 3x12-15 @25kg rest 60s"""
UPPER_DONE = """\
Barbell Bench Press: 8 @40kg, 8, 7, 7, 6 @80kg
Pull-Up: 8, 7, 6
Dumbbell Shoulder Press: 10, 9, 8 @22.5kg | Left shoulder a little tight
Seated Cable Row: 12, 12, 11 @60kg
Dumbbell Lateral Raise: 15, 14, 12 @10kg
Cable Triceps Pushdown: 15, 15, 13 @25kg"""
# 8,000 and 2,500 tokens: a token has 2.09 bytes or more. Measured: 6,344 tokens of text for the month, 1,596 for a week;
# of data 6,616 and 1,718.
MONTH_BYTES, WEEK_BYTES = 16_700, 5_200


async def test_month_of_logged_workouts_is_short(mcp: McpHttpClient, coach: CoachClient) -> None:
    client = await coach.create_customer(name="Ana", surname="Lopez")
    known = {"customerId": client["_id"]}
    texts = [(LOWER, LOWER_DONE, "Lower body"), (UPPER, UPPER_DONE, "Upper body")]
    week = [(START + timedelta(days=day), *texts[number % 2]) for number, day in enumerate((0, 1, 3, 4, 5))]
    written = [{"date": str(date), "name": name, "text": plan} for date, plan, _, name in week]
    workouts = tool_change(await mcp.call("create_workout", **known, days=written))["workoutIds"]
    for workout, (_, _, done, _) in zip(workouts, week, strict=True):
        log: dict[str, Any] = {"workoutId": workout, "text": done, "durationMinutes": 62, "sessionRpe": 7}
        tool_change(await mcp.call("log_workout", **known, **log))
    stored = coach.ctx.db["workoutBlocks"]
    blocks = await stored.find({"companyId": coach.ctx.company_id}).to_list(None)
    for days in (7, 14, 21):  # the same in each week
        for block in blocks:
            date = str(datetime.date.fromisoformat(block["date"]) + timedelta(days=days))
            items = [{**item, "_id": ObjectId()} for item in block["items"]]
            await stored.insert_one({**block, "_id": ObjectId(), "date": date, "items": items})

    for days, budget in ((28, MONTH_BYTES), (7, WEEK_BYTES)):
        period = {"startDate": str(START), "endDate": str(START + timedelta(days=days - 1))}
        result = await mcp.call("get_workouts", **known, **period)
        assert result["structuredContent"]["totalDocs"] == 5 * days // 7
        assert "nextPage" not in result["structuredContent"]
        text, data = result["content"][0]["text"].encode(), orjson.dumps(result["structuredContent"])
        assert len(text) < budget
        assert len(data) < budget
