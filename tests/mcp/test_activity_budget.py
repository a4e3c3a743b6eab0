"""The size of what happened, as assistants read it."""

from __future__ import annotations

from datetime import timedelta

from tests.support.client import CoachClient
from tests.support.mcp_client import TODAY, McpHttpClient, changed_or_approved
from tests.support.training import client_path

# Measured: 4,700 bytes, since approvals are named.
MAX_BYTES = 4_900
SQUATS = "Back squat: 4x8 @60kg\nLeg curl: 3x12 @40kg"


async def test_twenty_entries_are_short(mcp: McpHttpClient, coach: CoachClient) -> None:
    for name in ("Back squat", "Leg curl", "Front squat"):
        await coach.create_exercise(name)
    today = coach.ctx.caller.today()
    for name in ("Ana", "Cy"):
        about = {"customerId": (await coach.create_customer(name))["_id"]}
        await coach.patch(client_path({"_id": about["customerId"]}), {"phone": "123", "surname": "Example"})
        for week in range(2):
            day = str(today - timedelta(days=7 * week + 1))
            created = await changed_or_approved(
                coach, await mcp.call("create_workout", **about, days=[{"date": day, "name": "Legs", "text": SQUATS}])
            )
            known = {**about, "workoutId": created["workoutId"]}
            for number in (0, 1):
                load = 60 + 5 * week + 2 * number
                text = f"Back squat: 8, 8, {8 - number} @{load}kg | hard\nLeg curl: 3x12 @{40 + number}kg"
                await changed_or_approved(coach, await mcp.call("log_workout", **known, text=text))
            await changed_or_approved(coach, await mcp.call("update_workout", **known, name="Lower body"))
        days = {"startDate": TODAY, "endDate": str(today + timedelta(days=6))}
        await changed_or_approved(
            coach, await mcp.call("create_workout", **about, days=[{"date": TODAY, "name": "A", "text": SQUATS}])
        )
        await changed_or_approved(coach, await mcp.call("adjust_schedule", **about, **days, addLoad=2.5))
        swap = {"exercise": "Back squat", "withExercise": "Front squat", "startDate": TODAY}
        await changed_or_approved(coach, await mcp.call("replace_exercise", **about, **swap))
        note = await changed_or_approved(coach, await mcp.call("add_note", **about, text="Knee hurts after squats"))
    await coach.wait_until_numbered(note["changeId"])

    text = (await mcp.call("get_activity", pageSize=20))["content"][0]["text"]
    assert text.startswith("Activity: page 1, 20 entries; more on page 2\n")
    assert len(text.encode()) < MAX_BYTES
    assert "witemId" not in text
    assert "1 workout changed: items: 2 changed; adjust_schedule by assistant «Test» of «Olga Owner»; changeId" in text
    assert text.count(f"«Cy Example» [{about['customerId']}]") == 1
    last = (await mcp.call("get_activity", pageSize=20, page=2))["content"][0]["text"]
    assert last.startswith("Activity: page 2, ") and "more on page" not in last.splitlines()[0]
