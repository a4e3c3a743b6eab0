"""What assistants do with programs."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

from tests.support.client import CoachClient
from tests.support.fixed_clock import TODAY
from tests.support.mcp_client import McpHttpClient, approve, tool_change, tool_error, tool_proposal

pytestmark = pytest.mark.usefixtures("wednesday")
UPPER, LOWER = "A1) Bench press: 4x8 @?\nA2) Row: 4x10", "Back squat: 5x5 @80%"


def after(days: int) -> str:
    """The date some days after today."""
    return str(TODAY + timedelta(days=days))


async def read(mcp: McpHttpClient, program_id: str) -> list[tuple[int, str, list[str]]]:
    """The days of a program: number, name and lines without identifiers."""
    result = await mcp.call("get_program", programId=program_id)
    docs = result["structuredContent"]["docs"]
    assert all(f"day {doc['day']} {doc['name']} [{doc['_id']}]" in result["content"][0]["text"] for doc in docs)
    return [
        (doc["day"], doc["name"], [line.split(" ", 1)[1] for line in doc.get("lines", "").splitlines()]) for doc in docs
    ]


async def test_program_is_written_read_changed_and_assigned(mcp: McpHttpClient, coach: CoachClient) -> None:
    for name in ("Back squat", "Bench press", "Row"):
        await coach.create_exercise(name)
    client = await coach.create_customer()
    days = [
        {"day": 1, "name": "Upper", "text": UPPER},
        {"day": 2, "name": "Off", "isRest": True},
        {"day": 3, "name": "Lower", "text": LOWER},
    ]
    created = tool_change(await mcp.call("save_program", name="Base", description="Four weeks", days=days))
    assert created["summary"] == "Created the program «Base»: 3 workouts written, 2 days with workouts."
    known = {"programId": created["programId"]}
    upper = ["A1) «Bench press»: 4x8 @?", "A2) «Row»: 4x10"]
    assert await read(mcp, created["programId"]) == [
        (1, "«Upper»", upper),
        (2, "«Off»", []),
        (3, "«Lower»", ["«Back squat»: 5x5 @80%"]),
    ]

    change = {"days": [{"day": 3, "name": "Legs", "text": "Back squat: 3x5 @85%"}], "name": "Better"}
    changed = tool_proposal(await mcp.call("save_program", **known, **change), "PROGRAM_DAYS")
    await approve(coach, changed)
    assert changed["summary"].startswith(
        "Change the program «Base» → «Better»: 1 workout written in place of «Lower» on day 3"
    )
    assert (await read(mcp, created["programId"]))[2] == (3, "«Legs»", ["«Back squat»: 3x5 @85%"])

    assign = {"customerId": client["_id"], "startDate": after(0), **known}
    not_wednesday = [1, 2, 4, 5, 6, 7]
    assigned = tool_change(await mcp.call("assign_program", **assign, weekdays=not_wednesday))
    assert assigned["workoutsAdded"] == 2
    dates = [block["date"] for block in await coach.calendar(client, after(0), after(9))]
    assert len(dates) == 2
    assert 3 not in [datetime.fromisoformat(date).isoweekday() for date in dates]
    today = datetime.fromisoformat(after(0)).isoweekday()
    for weekdays, taken in (([today], 8), ([*range(1, 8)], 2)):  # days 1 and 3: a week apart, and one after the other
        other = (await coach.create_customer(f"Other {taken}"))["_id"]
        said = await mcp.call("assign_program", **assign | {"customerId": other}, weekdays=weekdays)
        assert f"On these weekdays the 3 days of the program take {taken}." in said["structuredContent"]["summary"]
    tool_error(await mcp.call("assign_program", **assign, weekdays=[1, 1]), "weekdays must have each weekday only once")

    calendar: dict[str, Any] = {"customerId": client["_id"], "startDate": after(0), "endDate": after(6)}
    copy = tool_change(await mcp.call("save_program", name="Copy", **calendar))
    copied = [(day, name) for day, name, _ in await read(mcp, copy["programId"])]
    named = ", ".join(f"day {day} {name}" for day, name in copied)
    assert copy["summary"].endswith(f" {len(copied)} days with workouts: {named}.")
    assert next(entry[1:] for entry in await read(mcp, copy["programId"])) == ("«Upper»", upper)
    longer = {**calendar, "endDate": after(7)}
    tool_change(await mcp.call("save_program", name="Long", **longer))  # a new program concerns no client
    refused: list[tuple[dict[str, Any], str]] = [
        ({"days": days}, "name is required for a new program"),
        ({"name": "A"}, "days is required, or customerId, startDate and endDate"),
        ({**known, **calendar}, "customerId must not be combined with programId or days"),
        (
            {"name": "A", "days": [{"day": 1, "name": "B", "text": "Row 4x8"}]},
            "days.0.text line 1: expected NAME: SETS",
        ),
    ]
    for arguments, words in refused:
        tool_error(await mcp.call("save_program", **arguments), words)
