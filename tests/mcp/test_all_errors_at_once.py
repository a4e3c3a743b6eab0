"""All errors of a call come at once: arguments, dates and names."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.client import CoachClient
from tests.support.mcp_client import McpHttpClient, tool_error

DAY, BEFORE = "2026-03-02", "2026-03-01"


@pytest.mark.parametrize(
    ("tool", "sent", "words"),
    [
        (
            "adjust_schedule",
            {
                "startDate": DAY,
                "endDate": BEFORE,
                "addLoad": "much",
                "setsPercent": 5,
                "addSets": 1,
                "exercises": ["x1"],
            },
            [
                "endDate must not be before",
                "addLoad must",
                "setsPercent must not be combined",
                "exercises.0 is unknown",
            ],
        ),
        (
            "copy_schedule",
            {"startDate": "2024-01-01", "endDate": DAY, "targetDate": "soon", "addReps": 1, "exercises": ["x1", "x2"]},
            ["endDate must be less than", "targetDate must", "exercises.0 is unknown", "exercises.1 is unknown"],
        ),
        (
            "replace_exercise",
            {"startDate": DAY, "endDate": BEFORE, "exercise": "x1", "withExercise": "x2"},
            ["endDate must not be before", "exercise is unknown", "withExercise is unknown"],
        ),
        (
            "create_workout",
            {"days": [{"date": "2026-02-30", "name": "", "text": "xyzzy: 3x8\nBack squat: many"}]},
            ["days.0.date must", "days.0.name should not be empty", "days.0.text line 1", "line 2"],
        ),
        (
            "save_program",
            {"days": [{"day": 0, "name": "A", "text": "xyzzy: 3x8"}, {"day": 2, "name": "B", "text": "Back squat"}]},
            ["days.0.day must", "name is required", "days.0.text line 1", "days.1.text line 1"],
        ),
        ("set_training_max", {"exercise": "x1", "value": -5}, ["value must", "exercise is unknown"]),
        (
            "update_workout_items",
            {"workoutId": "x", "changes": [{"action": "add", "text": "xyzzy: 3x8"}, {"action": "remove"}]},
            ["workoutId must", "changes.1.itemId is required", "changes.0.text line 1"],
        ),
        ("clear_schedule", {"startDate": "x", "endDate": "y"}, ["startDate must", "endDate must"]),
    ],
)
async def test_arguments_dates_and_names(
    mcp: McpHttpClient, coach: CoachClient, tool: str, sent: dict[str, Any], words: list[str]
) -> None:
    client = await coach.create_customer()
    await coach.create_exercise("Back squat")
    about = {} if tool == "save_program" else {"customerId": client["_id"]}
    tool_error(await mcp.call(tool, **about, **sent), *words, "nothing was changed")


async def test_unknown_client_is_named_with_other_errors(mcp: McpHttpClient) -> None:
    sent = {"customerId": "0" * 24, "exercise": "Back squat", "value": -5}
    tool_error(await mcp.call("set_training_max", **sent), "value must", "Customer not found")
