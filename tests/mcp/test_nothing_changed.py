"""A write that changes nothing says so, and has no changeId."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest

from tests.support.client import CoachClient
from tests.support.fixed_clock import TODAY
from tests.support.mcp_client import McpHttpClient, approve, changed_or_approved, named, tool_change, tool_proposal
from tests.support.training import Json, metric_set

pytestmark = pytest.mark.usefixtures("wednesday")
DAYS = [str(TODAY + timedelta(days=number)) for number in range(4)]
LEGS = """A1) Zercher squat: 1x5 @40kg warmup, 3x8-10 @60kg rest 90s RPE8 | slow
A2) Larsen press: 3x10/side
Zercher squat: 1x5 @70%
circuit Fin, 3 rounds:
- Larsen press: 1x10 | fast
- Zercher squat: 1x30s
task: Walk | 20 minutes
reminder 10:00: hey
form: Daily
metrics: Body"""


async def unchanged(mcp: McpHttpClient, tool: str, **arguments: object) -> str:
    """Call a tool that changes nothing, and return its sentence."""
    result = tool_change(await mcp.call(tool, **arguments))
    assert result["changeId"] is None
    summary = str(result["summary"])
    assert summary.startswith("Nothing changed")
    return summary


async def planned(mcp: McpHttpClient, coach: CoachClient, text: str) -> tuple[Json, list[Json], list[str]]:
    """A workout: the arguments that name it, its items, and the text of each."""
    for name in ("Zercher squat", "Larsen press"):
        await coach.create_exercise(name)
    about = {"customerId": (await coach.create_customer())["_id"]}
    days = [{"date": DAYS[0], "name": "Legs", "text": text}]
    workout_id = (await changed_or_approved(coach, await mcp.call("create_workout", **about, days=days)))["workoutId"]
    [block] = await coach.calendar({"_id": about["customerId"]}, DAYS[0], DAYS[0])
    read = await mcp.call("get_workouts", **about, startDate=DAYS[0], endDate=DAYS[0])
    entries = re.split(r"\n(?=#)", read["structuredContent"]["docs"][0]["lines"])
    return {**about, "workoutId": workout_id}, block["items"], [each.partition(" ")[2] for each in entries]


async def test_items_that_are_so_already(mcp: McpHttpClient, coach: CoachClient) -> None:
    (await coach.post("/coach/forms", {"name": "Daily", "questions": [{"label": "Well?"}]})).ok(201)
    await metric_set(coach)
    about, items, texts = await planned(mcp, coach, LEGS)
    changes: list[Json] = [
        {"action": "change", "itemId": item["_id"], "text": text} for item, text in zip(items, texts, strict=True)
    ]
    changes.append({"action": "change", "itemId": items[1]["_id"], "text": "3x10/side"})
    line = await unchanged(mcp, "update_workout_items", **about, changes=changes)
    assert "; 10:00 «hey» is so already; " in line and "«Fin», 3 rounds" in line
    changes[-1]["text"] = "3x12/side"
    changed = tool_change(await mcp.call("update_workout_items", **about, changes=changes))
    assert changed["changeId"] and changed["summary"].endswith("; changed «Larsen press» 3x10/side → 3x12/side.")


async def test_other_records_that_are_so_already(mcp: McpHttpClient, coach: CoachClient) -> None:
    about, _, _ = await planned(mcp, coach, "Zercher squat: 3x8")
    client = {"customerId": about["customerId"]}
    same = {"name": "Legs", "date": DAYS[0], "order": 0}
    line = await unchanged(mcp, "update_workout", **about, **same)
    assert line == (
        f"Nothing changed: the workout «Legs» of «Ana» is already on {named(DAYS[0])}, position 0 of the day."
    )
    await unchanged(mcp, "update_workout", **about, name="Legs")
    program = {"name": "Base", "description": "Four weeks"}
    created = tool_change(await mcp.call("save_program", **program, days=[{"day": 1, "name": "A"}]))
    known = {"programId": created["programId"]}
    assert await unchanged(mcp, "save_program", **known, **program) == (
        "Nothing changed: the program «Base» is so already."
    )
    ill = {**client, "kind": "ill", "until": DAYS[3]}
    await approve(coach, tool_proposal(await mcp.call("set_availability", **ill, note="Flu."), "CONTACT"))
    for more in ({}, {"note": "Flu."}):
        line = await unchanged(mcp, "set_availability", **ill, **more)
        assert line == f"Nothing changed: «Ana» is ill {DAYS[0]} to {DAYS[3]} «Flu.» already."
    maximum = {**client, "exercise": "Zercher squat", "value": 100}
    tool_change(await mcp.call("set_training_max", **maximum))
    assert (await unchanged(mcp, "set_training_max", **maximum)).endswith("of «Ana» is 100 kg already.")
