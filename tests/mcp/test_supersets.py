"""Supersets of workouts that assistants change."""

from __future__ import annotations

from typing import Any

import pytest

from tests.mcp.test_workout_tools import DAY, ids, read, without_ids
from tests.support.client import CoachClient
from tests.support.mcp_client import McpHttpClient, tool_change

pytestmark = pytest.mark.usefixtures("wednesday")


async def test_a_new_superset_is_none_of_those_that_are_there(coach: CoachClient, mcp: McpHttpClient) -> None:
    """A letter names a superset by its place: the second one is A when the first is gone."""
    for name in ("Back squat", "Leg curl", "Plank", "Burpee", "Row", "Dip"):
        await coach.create_exercise(name)
    client = await coach.create_customer()
    known = {"customerId": client["_id"]}
    text = "A1) Back squat: 4x8\nA2) Leg curl: 3x12\nB1) Plank: 3x30s\nB2) Dip: 3x8"
    day = {"date": DAY, "name": "Legs", "text": text}
    known |= {"workoutId": tool_change(await mcp.call("create_workout", **known, days=[day]))["workoutId"]}
    squat, curl, *_ = ids((await read(mcp, client))["docs"][0]["lines"])
    changes: list[dict[str, Any]] = [{"action": "remove", "itemId": each} for each in (squat, curl)]
    changes.append({"action": "add", "text": "B1) Burpee: 1x10\nB2) Row: 1x500m\nBack squat: 3x5"})
    tool_change(await mcp.call("update_workout_items", **known, changes=changes))
    lines = without_ids((await read(mcp, client))["docs"][0]["lines"])
    assert lines == ["A1) «Plank»: 3x30s", "A2) «Dip»: 3x8", "B1) «Burpee»: 1x10", "B2) «Row»: 1x500m", lines[4]]

    *_, last = ids((await read(mcp, client))["docs"][0]["lines"])
    for label in ("B", "B2", "C"):
        change = [{"action": "change", "itemId": last, "text": f"{label}) Back squat: 3x5"}]
        tool_change(await mcp.call("update_workout_items", **known, changes=change))
        lines = without_ids((await read(mcp, client))["docs"][0]["lines"])
        assert lines[4].startswith("C1)" if label == "C" else "B3)")
