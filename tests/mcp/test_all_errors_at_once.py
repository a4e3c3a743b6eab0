"""All errors of a call come at once: arguments, dates and names."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.client import CoachClient
from tests.support.mcp_client import McpHttpClient, tool_change, tool_error

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
        ("schedule_check_in", {}, ["form is required, or metrics or task", "weekday is required, or everyDays"]),
        ("schedule_check_in", {"form": "zzz", "weekday": 9}, ["weekday must", "form is unknown"]),
        (
            "schedule_check_in",
            {"metrics": "zzz", "everyDays": 0, "until": "x"},
            ["everyDays", "until", "metrics is un"],
        ),
        (
            "schedule_check_in",
            {
                "form": "zzz",
                "metrics": "z",
                "task": "z",
                "weekday": 1,
                "everyDays": 2,
                "startDate": DAY,
                "until": BEFORE,
            },
            ["metrics must not", "task must not", "everyDays must not", "until must not be before", "form is unknown"],
        ),
        (
            "create_exercise",
            {"name": "back squat", "muscles": ["Nope"], "videoUrl": "zz"},
            ["videoUrl must", "muscles has unknown names: «Nope»", "name means «Back squat»"],
        ),
        ("create_workout", {}, ["days is required."]),
        (
            "set_availability",
            {"kind": "back", "until": BEFORE, "note": "x", "startDate": DAY},
            [
                "until must not be combined",
                "note must not be combined",
                "until must not be before startDate",
            ],
        ),
        (
            "copy_schedule",
            {"startDate": DAY, "endDate": DAY, "targetDate": DAY, "exercises": ["back squat"], "rounding": 5},
            [
                "exercises needs a change: addLoad, addPercent or addReps.",
                "rounding needs a change: addLoad or addPercent",
            ],
        ),
        (
            "adjust_schedule",
            {"startDate": DAY, "endDate": DAY, "exercises": ["x1"], "addSetz": 1},
            ["addLoad is required", "exercises needs a change", "exercises.0 is unknown", "unknown field"],
        ),
    ],
)
async def test_arguments_dates_and_names(
    mcp: McpHttpClient, coach: CoachClient, tool: str, sent: dict[str, Any], words: list[str]
) -> None:
    client = await coach.create_customer()
    await coach.create_exercise("Back squat")
    about = {} if tool in ("save_program", "create_exercise") else {"customerId": client["_id"]}
    tool_error(await mcp.call(tool, **about, **sent), *words, "nothing was changed")


async def test_unknown_client_is_named_with_other_errors(mcp: McpHttpClient) -> None:
    sent = {"customerId": "0" * 24, "exercise": "Back squat", "value": -5}
    tool_error(await mcp.call("set_training_max", **sent), "value must", "Customer not found")


async def test_lines_and_items_of_a_workout(mcp: McpHttpClient, coach: CoachClient) -> None:
    about = {"customerId": (await coach.create_customer())["_id"]}
    days = [{"date": DAY, "name": "Legs", "text": "task: Walk"}]
    workout_id = tool_change(await mcp.call("create_workout", **about, days=days))["workoutId"]
    log = {**about, "text": "Zork: 3\nBench 5", "sessionRpe": 12}
    for workout in ({"workoutId": workout_id}, {"date": DAY}):
        tool_error(await mcp.call("log_workout", **log, **workout), "sessionRpe must", "line 1", "line 2")
    tool_error(await mcp.call("log_workout", **log, date=BEFORE), "sessionRpe must", "date has no workout")
    changes = [{"action": "swap", "itemId": "a" * 24}, {"action": "remove", "itemId": "b" * 24}, {"action": "add"}]
    refused = await mcp.call("update_workout_items", **about, workoutId=workout_id, changes=changes)
    items = [f"changes.{number}.itemId is not an item" for number in (0, 1)]
    tool_error(refused, "changes.0.action must", "changes.2.text is required", *items)


async def test_clients_and_groups_are_checked_with_other_arguments(mcp: McpHttpClient, coach: CoachClient) -> None:
    unknown = "0" * 24
    several = {"customerIds": [unknown, unknown[:-1] + "1"]}
    sent: list[tuple[str, dict[str, Any], list[str]]] = [
        ("send_message", {"groups": ["zzz"], "text": ""}, ["text", "groups has names that no group has"]),
        ("send_message", {**several, "text": ""}, ["text", "customerIds.0 was not found", "customerIds.1 was not"]),
        ("assign_program", {"groups": ["zzz"], "startDate": "soon"}, ["startDate must", "groups has names"]),
        ("clear_schedule", {**several, "startDate": DAY, "endDate": BEFORE}, ["endDate must", "customerIds.1 was not"]),
    ]
    for tool, arguments, words in sent:
        tool_error(await mcp.call(tool, **arguments), *words)
    about = {"customerId": unknown}
    others: list[tuple[str, dict[str, Any], list[str]]] = [
        ("schedule_check_in", {"task": "Walk", "weekday": 9}, ["weekday must"]),
        ("assign_program", {"programId": unknown, "startDate": "soon"}, ["startDate must", "Program not found"]),
        ("set_availability", {"kind": "lazy"}, ["kind must"]),
        ("record_metric", {"value": "much"}, ["value must", "metricId is required"]),
        ("get_workouts", {"startDate": DAY, "endDate": BEFORE}, ["endDate must not"]),
    ]
    for tool, arguments, words in others:
        tool_error(await mcp.call(tool, **about, **arguments), *words, "Customer not found")
    both = await mcp.call("send_message", customerId=unknown, groups=["a"], customerIds=[unknown], text="Hi")
    tool_error(both, "customerIds must not be combined with customerId", "groups must not be combined")
