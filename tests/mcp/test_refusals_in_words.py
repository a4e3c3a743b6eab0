"""What tools refuse, leave out or do not change, they say in words that are true."""

from __future__ import annotations

from datetime import date, timedelta
from typing import Any

from coaching_service.core.dates import name_period
from tests.support.client import CoachClient
from tests.support.mcp_client import (
    TODAY,
    McpHttpClient,
    approve,
    named,
    tool_change,
    tool_error,
    tool_proposal,
    tool_result,
)
from tests.support.training import client_path, exercise_of, log

TOMORROW = str(date.fromisoformat(TODAY) + timedelta(days=1))


async def plan(mcp: McpHttpClient, client: dict[str, Any], *days: str) -> None:
    sent = [{"date": day, "name": "Swim", "text": "task: Swim"} for day in days]
    tool_change(await mcp.call("create_workout", customerId=client["_id"], days=sent))


async def program_of(coach: CoachClient, *days: int) -> dict[str, Any]:
    program: dict[str, Any] = (await coach.post("/coach/programs", {"name": "Base"})).ok(201)
    for day in days:
        (await coach.post(f"/coach/programs/{program['_id']}/wblocks", {"name": f"Day {day}", "day": day})).ok(201)
    return program


async def test_program_is_not_assigned_to_a_client_whose_days_are_all_taken(
    mcp: McpHttpClient, coach: CoachClient
) -> None:
    ana, bo = await coach.create_customer("Ana"), await coach.create_customer("Bo")
    program = await program_of(coach, 1, 2)
    await plan(mcp, ana, TODAY, TOMORROW)
    assign = {"programId": program["_id"], "startDate": TODAY, "onConflict": "skip"}
    words = "onConflict leaves nothing to add for «Ana»: every day of the program has workouts"
    tool_error(await mcp.call("assign_program", **assign, customerId=ana["_id"]), words)
    tool_error(await mcp.call("assign_program", **assign, customerIds=[bo["_id"], ana["_id"]]), words)
    assert (await coach.get(client_path(ana, "programs"))).ok() == []
    added = tool_change(await mcp.call("assign_program", **assign | {"startDate": TOMORROW}, customerId=ana["_id"]))
    assert added["workoutsAdded"] == 1


async def test_copy_with_exercises_and_a_change_is_right(mcp: McpHttpClient, coach: CoachClient) -> None:
    ana = await coach.create_customer("Ana")
    await coach.create_exercise("Back squat")
    days = [{"date": TODAY, "name": "Legs", "text": "Back squat: 3x5 @60kg"}]
    tool_change(await mcp.call("create_workout", customerId=ana["_id"], days=days))
    copy = {"customerId": ana["_id"], "startDate": TODAY, "endDate": TODAY, "targetDate": TOMORROW}
    for ignored in ({"exercises": ["back squat"]}, {"rounding": 1}, {"rounding": 1, "addReps": 1}):
        tool_error(await mcp.call("copy_schedule", **copy, **ignored), f"{next(iter(ignored))} needs a change")
    assert len(await coach.calendar(ana, TODAY, TOMORROW)) == 1
    copied = tool_change(await mcp.call("copy_schedule", **copy, exercises=["back squat"], addLoad=5, rounding=1))
    assert "«Back squat» 60 → 65 kg" in copied["summary"]


async def test_undone_changes_of_several_clients_are_said_to_be_undone(mcp: McpHttpClient, coach: CoachClient) -> None:
    ids = [(await coach.create_customer(name))["_id"] for name in ("Ana", "Bo")]
    program = await program_of(coach, 1)
    assign = {"programId": program["_id"], "startDate": TODAY, "customerIds": ids}
    change = (await approve(coach, (await mcp.call("assign_program", **assign))["structuredContent"]))["changeId"]
    await approve(coach, tool_proposal(await mcp.call("undo", changeId=change), "MANY_CLIENTS"))
    tool_error(await mcp.call("undo", changeId=change), "This change has been undone already")


async def test_nothing_replaced_names_the_days_that_were_searched(mcp: McpHttpClient, coach: CoachClient) -> None:
    ana = await coach.create_customer("Ana")
    for name in ("Back squat", "Front squat"):
        await coach.create_exercise(name)
    swap = {"customerId": ana["_id"], "exercise": "Back squat", "withExercise": "Front squat", "startDate": TODAY}
    nothing = tool_change(await mcp.call("replace_exercise", **swap))["summary"]
    assert f"in 0 workouts of «Ana», from {named(TODAY)} on." in nothing
    some = tool_change(await mcp.call("replace_exercise", **swap, endDate=TOMORROW))["summary"]
    assert f"in 0 workouts of «Ana», {name_period(TODAY, TOMORROW, TODAY)}." in some


async def test_errors_name_the_arguments_of_the_tool(mcp: McpHttpClient, coach: CoachClient) -> None:
    about = {"customerId": (await coach.create_customer("Ana"))["_id"]}
    yesterday = str(date.fromisoformat(TODAY) - timedelta(days=3))
    absent = {**about, "kind": "ill", "until": yesterday}
    tool_error(await mcp.call("set_availability", **absent, startDate=TODAY), "until must not be before startDate")
    tool_error(await mcp.call("set_availability", **absent), "until must not be before 2")
    days = {"startDate": TODAY, "endDate": TODAY}
    for tool, sent in (("adjust_schedule", {"addReps": 1}), ("copy_schedule", {"targetDate": TODAY})):
        text = tool_error(await mcp.call(tool, **days, **sent), "customerId is required")
        assert "groups" not in text
        assert "groups" not in tool_error(await mcp.call(tool, **about, **days, **sent, zork=1), "the known ones are")
    day = {"date": TODAY, "name": "A", "text": ""}
    both = await mcp.call("create_workout", **about, days=[day], name="A")
    tool_error(both, "days must not be combined with date, name or exercises")


async def test_summary_of_a_program_does_not_count_what_is_completed(mcp: McpHttpClient, coach: CoachClient) -> None:
    day = {"day": 1, "name": "Legs", "text": "task: Walk\ntask: Swim"}
    saved = tool_change(await mcp.call("save_program", name="Base", days=[day]))
    read = tool_result(await mcp.call("get_program", programId=saved["programId"], detail="summary"))
    assert read["docs"][0]["lines"].endswith("Swim")
    ana = await coach.create_customer("Ana")
    tool_change(await mcp.call("assign_program", customerId=ana["_id"], programId=saved["programId"], startDate=TODAY))
    of_client = await mcp.call("get_workouts", customerId=ana["_id"], startDate=TODAY, endDate=TODAY, detail="summary")
    assert tool_result(of_client)["docs"][0]["lines"].endswith("(0 of 2 completed)")


async def test_brief_says_what_waits_and_which_records_are_left_out(mcp: McpHttpClient, coach: CoachClient) -> None:
    ana, squat = await coach.create_customer("Ana"), await coach.create_exercise("Back squat")
    workout = (await coach.schedule(ana, TODAY)) | {"customerId": ana["_id"]}
    item = (await coach.post(f"{client_path(ana)}/wblocks/{workout['_id']}/witems", exercise_of(squat))).ok(201)
    (await log(coach, workout, item, customerSets=[{"index": 1, "reps": 5, "load": 60, "isCompleted": True}])).ok()
    sent = tool_proposal(await mcp.call("send_message", customerId=ana["_id"], text="See you"), "CONTACT")
    await approve(coach, sent)
    assert (await coach.get(client_path(ana, "personal-records"))).ok()
    lines = tool_result(await mcp.call("get_customer", customerId=ana["_id"], detail="brief"))["lines"]
    assert "Records of 90 days, without imported and first results: none" in lines
    assert "waiting to be sent: «See you" in lines


async def test_rows_of_tomorrow_are_left_out(mcp: McpHttpClient, coach: CoachClient) -> None:
    ana = await coach.create_customer("Ana", timezone="Pacific/Kiritimati")
    today = coach.ctx.caller.today("Pacific/Kiritimati")
    rows = [{"date": str(today + timedelta(days=days)), "exercise": "Plank", "seconds": 60} for days in (0, 1)]
    shown = tool_change(await mcp.call("import_rows", customerId=ana["_id"], rows=rows, dryRun=True))
    assert (shown["imported"], shown["reported"]) == (1, 1)
    assert "row 2: date is after the client's today" in shown["summary"]
