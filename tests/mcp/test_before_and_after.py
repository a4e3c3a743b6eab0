"""A write says what the target days held, and what it changed as before and after."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.support.client import CoachClient
from tests.support.fixed_clock import TODAY
from tests.support.mcp_client import McpHttpClient, approve, named, tool_change, tool_error, tool_proposal

pytestmark = pytest.mark.usefixtures("wednesday")
NOTES = """Zercher squat: 4x8 @60kg | slow
Larsen press: 3x10
Zercher squat: 2x5
circuit Fin, 3 rounds:
- Larsen press: 1x10 | fast
- Zercher squat: 1x30s
task: Walk | 20 minutes
reminder 10:00: hey"""
DAYS = [str(TODAY + timedelta(days=number)) for number in range(4)]


async def test_new_and_moved_workouts_name_what_their_days_held(mcp: McpHttpClient, coach: CoachClient) -> None:
    about = {"customerId": (await coach.create_customer())["_id"]}
    first = [{"date": DAYS[number], "name": name} for number, name in enumerate("AB")]
    assert "already" not in tool_change(await mcp.call("create_workout", **about, days=first))["summary"]

    more = [{"date": DAYS[number], "name": f"{number}"} for number in (0, 1, 2)]
    created = tool_change(await mcp.call("create_workout", **about, days=more))
    assert created["summary"].endswith(f"; there were already «A» on {named(DAYS[0])}, «B» on {named(DAYS[1])}.")

    moved = {**about, "workoutId": created["workoutIds"][2], "date": DAYS[1], "name": "C", "order": 0}
    line = tool_change(await mcp.call("update_workout", **moved))["summary"]
    assert line == (
        f"Changed the workout «2» → «C» of «Ana», {named(DAYS[2])} → {named(DAYS[1])}, position 0 of the day; "
        f"there were already «B» on {named(DAYS[1])}, «1» on {named(DAYS[1])}."
    )
    stays = tool_change(await mcp.call("update_workout", **{**moved, "order": 2}))["summary"]
    assert stays == f"Changed the workout «C» of «Ana», {named(DAYS[1])}, position 0 → 2 of the day."


async def test_items_are_stated_before_and_after(mcp: McpHttpClient, coach: CoachClient) -> None:
    about = {"customerId": (await coach.create_customer())["_id"]}
    for name in ("Zercher squat", "Larsen press"):
        await coach.create_exercise(name)
    text = "Zercher squat: 4x8 @60kg\nLarsen press: 3x10"
    days = [{"date": DAYS[0], "name": "A", "text": text}]
    about["workoutId"] = tool_change(await mcp.call("create_workout", **about, days=days))["workoutId"]
    [block] = await coach.calendar({"_id": about["customerId"]}, DAYS[0], DAYS[0])
    squat, press = (item["_id"] for item in block["items"])

    changes = [
        {"action": "change", "itemId": squat, "text": "5x5 @70kg"},
        {"action": "change", "itemId": press, "text": "zercher squats: 3x12"},
    ]
    line = tool_change(await mcp.call("update_workout_items", **about, changes=changes))["summary"]
    assert line.endswith(
        ": changed «Zercher squat» 4x8 @60kg → 5x5 @70kg; changed «Larsen press» 3x10 → «Zercher squat» 3x12. "
        "Read «zercher squats» as «Zercher squat»."
    )

    wrong = [
        {"action": "change", "itemId": "0" * 24, "text": "five by five"},
        {"action": "remove", "itemId": "1" * 24},
        {"action": "add", "text": "xyzzy: 3x8"},
    ]
    tool_error(
        await mcp.call("update_workout_items", **about, changes=wrong),
        *("changes.0.text", "changes.0.itemId is not an item", "changes.1.itemId is not an item", "changes.2.text"),
    )
    gone = [{"action": "remove", "itemId": digit * 24} for digit in "23"]
    tool_error(
        await mcp.call("update_workout_items", **about, changes=gone),
        *("changes.0.itemId: Workout item not found", "changes.1.itemId: Workout item not found"),
    )


async def test_notes_labels_times_and_rounds_are_stated_before_and_after(
    mcp: McpHttpClient, coach: CoachClient
) -> None:
    about = {"customerId": (await coach.create_customer())["_id"]}
    for name in ("Zercher squat", "Larsen press"):
        await coach.create_exercise(name)
    days = [{"date": DAYS[0], "name": "A", "text": NOTES}]
    created = tool_proposal(await mcp.call("create_workout", **about, days=days), "CONTACT")
    about["workoutId"] = (await approve(coach, created))["workoutId"]
    [block] = await coach.calendar({"_id": about["customerId"]}, DAYS[0], DAYS[0])
    circuit = "circuit Fin, {} rounds:\n- Larsen press: 1x10 | {}\n- Zercher squat: 1x30s"
    sets = "«Larsen press» 1x10, «Zercher squat» 1x30s"
    for index, text, line in (
        (0, "4x8 @60kg | fast", "«Zercher squat» 4x8 @60kg | «slow» → 4x8 @60kg | «fast»"),
        (0, "5x8 @60kg", "«Zercher squat» 4x8 @60kg → 5x8 @60kg"),
        (0, "5x8 @60kg |", "«Zercher squat» 5x8 @60kg | «fast» → 5x8 @60kg"),
        (1, "A1) Larsen press: 3x10", "«Larsen press» 3x10, superset none → A"),
        (2, "A2) Zercher squat: 2x6", "«Zercher squat» 2x5 → 2x6, superset none → A"),
        (1, "-) Larsen press: 3x10", "«Larsen press» 3x10, superset A → none"),
        (3, circuit.format(5, "fast"), f"«Fin», 3 rounds ({sets}) → 5 rounds ({sets})"),
        (
            3,
            circuit.format(5, "slow"),
            f"«Fin», 5 rounds ({sets.replace('10', '10 | «fast»')}) → 5 rounds ({sets.replace('10', '10 | «slow»')})",
        ),
        (4, "task: Walk | 30 minutes", "«Walk» | «20 minutes» → | «30 minutes»"),
        (4, "task: Walk", "«Walk» | «30 minutes» → «Walk»"),
        (5, "reminder 11:00: hey", "10:00 «hey» → 11:00 «hey»"),
    ):
        changes = [{"action": "change", "itemId": block["items"][index]["_id"], "text": text}]
        result = await mcp.call("update_workout_items", **about, changes=changes)
        asks = text.startswith("reminder")
        changed = tool_proposal(result, "CONTACT") if asks else tool_change(result)
        assert changed["summary"].endswith(f": change{'' if asks else 'd'} {line}."), changed


async def test_a_program_and_check_ins_are_stated_before_and_after(mcp: McpHttpClient, coach: CoachClient) -> None:
    program = tool_change(await mcp.call("save_program", name="Base", days=[{"day": 1, "name": "A"}]))
    known = {"programId": program["programId"]}
    line = tool_change(await mcp.call("save_program", **known, name="Better"))["summary"]
    assert line == "Changed the program «Base» → «Better»: 0 days with workouts."
    for description, change in (("Four weeks", "none → «Four weeks»"), ("Six weeks", "«Four weeks» → «Six weeks»")):
        line = tool_change(await mcp.call("save_program", **known, description=description))["summary"]
        assert line == f"Changed the program «Better»: description {change}, 0 days with workouts."

    client = await coach.create_customer()
    daily = {"taskFields": {"title": "Weigh yourself", "description": None}, "everyDays": 2, "startDate": DAYS[1]}
    (await coach.post(f"/coach/customers/{client['_id']}/check-ins", daily)).ok(201)
    ill = {"customerId": client["_id"], "kind": "ill"}
    both = f"«Weigh yourself» on {named(DAYS[1])}, «Weigh yourself» on {named(DAYS[3])}"
    line = tool_change(await mcp.call("set_availability", **ill, startDate=DAYS[0], until=DAYS[3]))["summary"]
    assert f". 2 check-ins removed: {both}. Nothing" in line
    line = tool_change(await mcp.call("set_availability", **ill, startDate=DAYS[0], until=DAYS[2]))["summary"]
    assert f". 1 check-in added: «Weigh yourself» on {named(DAYS[3])}. Nothing" in line


async def test_repetitions_and_changes_of_several_clients_are_stated(mcp: McpHttpClient, coach: CoachClient) -> None:
    for name in ("Zercher squat", "Larsen press"):
        await coach.create_exercise(name)
    ana, bo = [await coach.create_customer(name, groups=["Team"]) for name in ("Ana", "Bo")]
    for client, load in ((ana, 60), (bo, 80)):
        text = f"Zercher squat: 1x5 @40kg warmup, 3x8-10 @{load}kg\nLarsen press: 2x10, 1x30s"
        days = [{"date": day, "name": "A", "text": text} for day in DAYS[:2]]
        tool_change(await mcp.call("create_workout", customerId=client["_id"], days=days))
    about = {"startDate": DAYS[0], "endDate": DAYS[1]}
    line = tool_change(await mcp.call("adjust_schedule", customerId=ana["_id"], **about, addReps=-8))["summary"]
    assert line.endswith("repetitions -8; «Zercher squat» 5 → 1 reps, 8-10 → 1-2 reps, «Larsen press» 10 → 2 reps.")
    line = tool_proposal(await mcp.call("adjust_schedule", groups=["Team"], **about, addLoad=2.5), "MANY_CLIENTS")[
        "summary"
    ]
    assert line.endswith(
        ": «Ana» 2 workouts; «Bo» 2 workouts; «Zercher squat» 40 → 42.5 kg, 60 → 62.5 kg, 80 → 82.5 kg."
    )
    copy = {**about, "targetDate": DAYS[2], "addReps": 1}
    line = tool_proposal(await mcp.call("copy_schedule", groups=["Team"], **copy), "MANY_CLIENTS")["summary"]
    assert line.endswith(
        "; «Zercher squat» 1 → 2 reps, 1-2 → 2-3 reps, 5 → 6 reps, 8-10 → 9-11 reps, "
        "«Larsen press» 2 → 3 reps, 10 → 11 reps."
    )
