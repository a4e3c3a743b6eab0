"""Workouts that were imported, as assistants read them."""

from __future__ import annotations

from tests.support.client import CoachClient
from tests.support.imported_history import HEVY
from tests.support.mcp_client import McpHttpClient, tool_result
from tests.support.transfer import import_file


async def test_an_imported_workout_says_what_was_done(coach: CoachClient, mcp: McpHttpClient) -> None:
    ana = await coach.create_customer("Ana")
    await import_file(coach, HEVY.encode(), name="workouts.csv", customerId=ana["_id"])
    read = await mcp.call("get_workouts", customerId=ana["_id"], startDate="2025-11-17", endDate="2025-11-17")
    text = read["content"][0]["text"]
    assert "Barbell Bench Press" in text
    assert "10 @20.41kg warmup, 8 @61.23kg RPE8.5" in text
    tool_result(read)
