"""What an assistant may do without a confirmation in any ten minutes, over all of its calls (contract, section 18)."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest
from aiohttp.test_utils import TestServer

from tests.support.assistants import authorize_assistant
from tests.support.client import CoachClient
from tests.support.fixed_clock import TODAY
from tests.support.mcp_client import McpHttpClient, approve, tool_change, tool_proposal, tool_result
from tests.support.training import Json, block_with, blocks_with, client_path, exercise_of, log, metric_set, task

pytestmark = pytest.mark.usefixtures("wednesday")
DAYS = [str(TODAY + timedelta(days=number)) for number in range(60)]


async def let_ten_minutes_pass(coach: CoachClient) -> None:
    """Make what assistants have done older than ten minutes."""
    earlier = {"$set": {"createdAt": {"$subtract": ["$createdAt", 600_001]}}}
    await coach.ctx.db["assistantSpending"].update_many({"companyId": coach.ctx.company_id}, [earlier])


def is_done(result: Json) -> bool:
    assert not result.get("isError"), result
    return bool(result["structuredContent"].get("executed", True))


async def loads(coach: CoachClient, block: Json) -> list[float]:
    items = (await coach.get(f"/coach/customers/{block['customerId']}/wblocks/{block['_id']}")).ok()["items"]
    return [planned["load"] for item in items for planned in item["exerciseSets"]]


async def test_more_than_thirty_changes_have_to_be_confirmed(
    mcp: McpHttpClient, coach: CoachClient, public_server: TestServer
) -> None:
    ana = await coach.create_customer("Ana")
    for number in range(30):
        tool_change(await mcp.call("add_note", customerId=ana["_id"], text=f"Note {number}"))
    more = {"customerId": ana["_id"], "text": "One more"}
    proposal = tool_proposal(await mcp.call("add_note", **more), "MANY_CHANGES")
    program = tool_proposal(await mcp.call("save_program", name="Base", days=[{"day": 1, "name": "A"}]), "MANY_CHANGES")
    assert len((await coach.get(client_path(ana, "notes"))).ok()) == 30

    grant = await authorize_assistant(coach.ctx)
    async with McpHttpClient(public_server, {"Authorization": f"Bearer {grant.tokens.access}"}) as other:
        tool_change(await other.call("add_note", customerId=ana["_id"], text="Of another assistant"))
    await approve(coach, proposal)
    assert program["summary"].startswith("Create the program «Base»")
    tool_proposal(await mcp.call("add_note", **more, idempotencyKey="again"), "MANY_CHANGES")
    await let_ten_minutes_pass(coach)
    tool_change(await mcp.call("add_note", **more, idempotencyKey="again"))


async def test_calls_at_the_same_time_share_one_budget(mcp: McpHttpClient, coach: CoachClient) -> None:
    ana = await coach.create_customer("Ana")
    calls = [mcp.call("add_note", customerId=ana["_id"], text=f"Note {number}") for number in range(34)]
    done = [is_done(result) for result in await asyncio.gather(*calls)]
    stored = len((await coach.get(client_path(ana, "notes"))).ok())
    assert stored == sum(done) <= 30


async def test_what_a_coach_approves_does_not_use_up_the_budget(mcp: McpHttpClient, coach: CoachClient) -> None:
    ana = await coach.create_customer("Ana")
    about = {"customerId": ana["_id"]}
    for week in range(2):
        days = [{"date": DAYS[20 * week + number], "name": "Legs"} for number in range(10)]
        await approve(coach, tool_proposal(await mcp.call("create_workout", **about, days=days), "MANY_DAYS"))
    tool_change(await mcp.call("create_workout", **about, days=[{"date": DAYS[40], "name": "Legs"}]))


async def test_more_than_fourteen_client_days_have_to_be_confirmed(mcp: McpHttpClient, coach: CoachClient) -> None:
    clients = [{"customerId": (await coach.create_customer(name))["_id"]} for name in ("Ana", "Ben")]
    for client in clients:
        await blocks_with(coach, {"_id": client["customerId"]}, dates=DAYS[:7])
    weeks = [[{"date": DAYS[7 * week + number], "name": "Legs"} for number in range(7)] for week in range(2)]
    created = [tool_change(await mcp.call("create_workout", **client, days=weeks[0])) for client in clients]
    for number in range(3):  # the same days again are no further days
        tool_change(
            await mcp.call("update_workout", **clients[0], workoutId=created[0]["workoutIds"][0], name=f"{number}")
        )
    one_more = {**clients[1], "days": weeks[1][:1]}
    tool_proposal(await mcp.call("create_workout", **one_more), "MANY_CLIENT_DAYS")
    week = {"startDate": DAYS[0], "endDate": DAYS[0], "targetDate": DAYS[30]}
    tool_proposal(await mcp.call("copy_schedule", **clients[0], **week), "MANY_CLIENT_DAYS")
    tool_change(await mcp.call("add_note", customerId=clients[0]["customerId"], text="No schedule"))

    # Own changes of one client and up to seven days are undone without a confirmation.
    tool_change(await mcp.call("undo", changeId=created[1]["changeId"]))
    await let_ten_minutes_pass(coach)
    tool_change(await mcp.call("create_workout", **one_more))


async def test_a_week_of_empty_days_counts_as_one_day(mcp: McpHttpClient, coach: CoachClient) -> None:
    """A week for each of 14 clients is planned without a confirmation; days that have a workout count one by one."""
    week = [{"date": day, "name": "Legs"} for day in DAYS[:7]]
    new = [{"name": f"Client {number}"} for number in range(15)]
    saved = (await coach.post("/coach/customers/batch", {"customers": new})).ok()["results"]
    clients = [{"customerId": each["_id"]} for each in saved]
    for client in clients[:14]:
        tool_change(await mcp.call("create_workout", **client, days=week))
    tool_proposal(await mcp.call("create_workout", **clients[14], days=week), "MANY_CLIENT_DAYS")
    await let_ten_minutes_pass(coach)
    for number in range(2):
        tool_change(await mcp.call("create_workout", **clients[number], days=week))
    tool_proposal(await mcp.call("create_workout", **clients[2], days=week[:1]), "MANY_CLIENT_DAYS")


async def test_logs_are_no_changes_of_the_schedule(mcp: McpHttpClient, coach: CoachClient) -> None:
    ana, squat = await coach.create_customer("Ana"), await coach.create_exercise("Squat")
    past = [str(TODAY - timedelta(days=number)) for number in range(1, 16)]
    for block in await blocks_with(coach, ana, exercise_of(squat), dates=past):
        tool_change(await mcp.call("log_workout", customerId=ana["_id"], workoutId=block["_id"], text="Squat: 8, 8, 8"))


async def test_more_than_three_removed_workouts_have_to_be_confirmed(mcp: McpHttpClient, coach: CoachClient) -> None:
    ana = await coach.create_customer("Ana")
    about = {"customerId": ana["_id"]}
    blocks = await blocks_with(coach, ana, dates=DAYS[:6])
    days = {"startDate": DAYS[0], "endDate": DAYS[3]}
    tool_proposal(await mcp.call("clear_schedule", **about, **days), "MANY_REMOVED")
    removed = [tool_change(await mcp.call("remove_workout", **about, workoutId=block["_id"])) for block in blocks[:3]]
    proposal = tool_proposal(await mcp.call("remove_workout", **about, workoutId=blocks[3]["_id"]), "MANY_REMOVED")
    day = {"startDate": DAYS[5], "endDate": DAYS[5], "targetDate": DAYS[4], "onConflict": "replace"}
    tool_proposal(await mcp.call("copy_schedule", **about, **day), "MANY_REMOVED")
    tool_change(await mcp.call("undo", changeId=removed[0]["changeId"]))
    await approve(coach, proposal)
    left = (await coach.get(client_path(ana, "wblock"), startDate=DAYS[0], endDate=DAYS[5])).ok()
    assert len(left) == 3


async def test_a_workout_whose_last_item_is_removed_counts_as_removed(mcp: McpHttpClient, coach: CoachClient) -> None:
    about = {"customerId": (await coach.create_customer("Ana"))["_id"]}
    blocks = await blocks_with(coach, {"_id": about["customerId"]}, task("A"), task("B"), dates=DAYS[:6])

    def edit(number: int, *items: int, **action: str) -> dict[str, Any]:
        ids = [blocks[number]["items"][each]["_id"] for each in items]
        changes = [{"action": "remove", **action, "itemId": each} for each in ids]
        return {**about, "workoutId": blocks[number]["_id"], "changes": changes}

    async def change(edits: dict[str, Any]) -> dict[str, Any]:
        return await mcp.call("update_workout_items", **edits)

    for number in (0, 1):
        tool_change(await change(edit(number, 0, 1)))
    tool_change(await change(edit(2, 0)))  # one item is left
    tool_change(await change(edit(3, 0, 1, action="move", toWorkoutId=blocks[4]["_id"])))
    tool_proposal(await mcp.call("remove_workout", **about, workoutId=blocks[4]["_id"]), "MANY_REMOVED")
    tool_proposal(await change(edit(2, 1)), "MANY_REMOVED")
    tool_proposal(await change(edit(5, 0, 1)), "MANY_REMOVED")
    rest = {**about, "workoutId": blocks[5]["_id"], "isRest": True}
    tool_proposal(await mcp.call("update_workout", **rest), "MANY_REMOVED")
    tool_change(await change(edit(5, 0)))


async def test_a_workout_all_of_whose_exercises_become_others_counts_as_removed(
    mcp: McpHttpClient, coach: CoachClient
) -> None:
    ana, squat = await coach.create_customer("Ana"), await coach.create_exercise("Zercher squat")
    await coach.create_exercise("Larsen press")
    blocks = await blocks_with(coach, ana, exercise_of(squat), exercise_of(squat), dates=DAYS[:5])

    async def change(number: int, *texts: str) -> Json:
        edits = [
            {"action": "change", "itemId": item["_id"], "text": text}
            for item, text in zip(blocks[number]["items"], texts, strict=False)
        ]
        about = {"customerId": ana["_id"], "workoutId": blocks[number]["_id"]}
        return await mcp.call("update_workout_items", **about, changes=edits)

    for number in (0, 1):
        tool_change(await change(number, "Larsen press: 3x10", "Larsen press: 3x10"))
    tool_change(await change(3, "Larsen press: 3x10", "3x5 @60kg"))  # one stays what it is
    tool_change(await change(4, "3x5 @60kg", "3x6 @55kg"))
    day = {"startDate": DAYS[2], "endDate": DAYS[2]}
    swap = {"exercise": "Zercher squat", "withExercise": "Larsen press", "load": "keep"}
    tool_change(await mcp.call("replace_exercise", customerId=ana["_id"], **swap, **day))
    tool_proposal(await change(4, "Larsen press: 3x10", "Larsen press: 3x10"), "MANY_REMOVED")


async def test_a_workout_that_is_emptied_by_effect_counts_as_removed(mcp: McpHttpClient, coach: CoachClient) -> None:
    """Less than half of its sets and loads is left, in one call or several, whatever the tools are called."""
    squat, curl = await coach.create_exercise("Squat"), await coach.create_exercise("Curl")

    async def four_days(name: str) -> Json:
        client = await coach.create_customer(name)
        await blocks_with(coach, client, exercise_of(squat), exercise_of(curl), dates=DAYS[:4])
        await coach.ctx.db["assistantSpending"].delete_many({"companyId": coach.ctx.company_id})
        return {"customerId": client["_id"]}

    week, about = {"startDate": DAYS[0], "endDate": DAYS[6]}, await four_days("Ana")
    for change in ({"addPercent": -100}, {"addPercent": -55}, {"addLoad": -32.5}, {"setsPercent": -60}):
        tool_proposal(await mcp.call("adjust_schedule", **about, **week, **change), "MANY_REMOVED")
    for change in ({"addPercent": -50}, {"addLoad": -30}, {"setsPercent": -30}):
        tool_change(await mcp.call("adjust_schedule", **await four_days("Ben"), **week, **change))
    # In steps, and by other tools.
    about = await four_days("Cleo")
    tool_change(await mcp.call("adjust_schedule", **about, **week, addPercent=-35))
    tool_proposal(await mcp.call("adjust_schedule", **about, **week, addPercent=-35), "MANY_REMOVED")
    tool_change(await mcp.call("adjust_schedule", **about, **week, addPercent=-35, exercises=["Squat"]))
    await let_ten_minutes_pass(coach)
    tool_change(await mcp.call("adjust_schedule", **about, **week, addPercent=-35))
    about = await four_days("Dan")
    swap = {"exercise": "Curl", "withExercise": "Curl, hammer", "startDate": DAYS[0]}
    await coach.create_exercise("Curl, hammer")
    tool_change(await mcp.call("adjust_schedule", **about, **week, addPercent=-20, exercises=["Squat"]))
    tool_proposal(await mcp.call("replace_exercise", **about, **swap, load="clear"), "MANY_REMOVED")


async def test_workouts_that_are_moved_far_count_as_removed(mcp: McpHttpClient, coach: CoachClient) -> None:
    ana = await coach.create_customer("Ana")
    blocks = await blocks_with(coach, ana, dates=DAYS[:5])

    async def move(number: int, ahead: int) -> Json:
        day = str(TODAY + timedelta(days=number + ahead))
        about = {"customerId": ana["_id"], "workoutId": blocks[number]["_id"]}
        return await mcp.call("update_workout", **about, date=day)

    for number in range(3):
        tool_change(await move(number, 29))
    tool_proposal(await move(3, 29), "MANY_REMOVED")
    tool_change(await move(3, 28))
    tool_proposal(await move(3, 29), "MANY_REMOVED")  # together


async def test_a_load_rises_by_half_or_20_kg_at_most_in_ten_minutes(mcp: McpHttpClient, coach: CoachClient) -> None:
    ana, squat, curl = (
        await coach.create_customer("Ana"),
        *[await coach.create_exercise(name) for name in ("Squat", "Curl")],
    )
    heavy = {"type": "reps_load", "minPlannedReps": 5, "load": 100}
    block = await block_with(
        coach, ana, exercise_of(squat, heavy), exercise_of(curl, {**heavy, "load": 10}), date=DAYS[0]
    )
    days = {"customerId": ana["_id"], "startDate": DAYS[0], "endDate": DAYS[0], "rounding": 0}

    tool_proposal(await mcp.call("adjust_schedule", **days, addPercent=1000), "UNUSUAL_AMOUNT")
    tool_proposal(await mcp.call("adjust_schedule", **days, addLoad=20.5, exercises=["Squat"]), "LOAD_RAISED")
    tool_proposal(await mcp.call("adjust_schedule", **days, addPercent=51, exercises=["Curl"]), "LOAD_RAISED")
    tool_change(await mcp.call("adjust_schedule", **days, addLoad=12, exercises=["Squat"]))
    tool_change(await mcp.call("adjust_schedule", **days, addLoad=8, exercises=["Squat"]))
    assert await loads(coach, block) == [120, 10]
    tool_proposal(await mcp.call("adjust_schedule", **days, addLoad=1, exercises=["Squat"]), "LOAD_RAISED")
    # Through other tools, and after it was lowered meanwhile.
    edit = {"action": "change", "itemId": block["items"][0]["_id"], "text": "Squat: 1x5 @121kg"}
    change = {"customerId": ana["_id"], "workoutId": block["_id"], "changes": [edit]}
    tool_proposal(await mcp.call("update_workout_items", **change), "LOAD_RAISED")
    tool_change(await mcp.call("adjust_schedule", **days, addLoad=-60, exercises=["Squat"]))
    tool_change(await mcp.call("adjust_schedule", **days, addLoad=60, exercises=["Squat"]))
    assert await loads(coach, block) == [120, 10]
    tool_proposal(await mcp.call("adjust_schedule", **days, addLoad=1, exercises=["Squat"]), "LOAD_RAISED")
    # Copies go on from what they copy.
    copy = {"customerId": ana["_id"], "startDate": DAYS[0], "endDate": DAYS[0], "targetDate": DAYS[1], "addLoad": 2.5}
    tool_proposal(await mcp.call("copy_schedule", **copy), "LOAD_RAISED")
    tool_change(await mcp.call("copy_schedule", **copy, exercises=["Curl"]))

    await let_ten_minutes_pass(coach)
    tool_change(await mcp.call("adjust_schedule", **days, addLoad=20, exercises=["Squat"]))
    assert await loads(coach, block) == [140, 10]


async def test_a_load_that_is_removed_and_added_again_is_compared(mcp: McpHttpClient, coach: CoachClient) -> None:
    ana, squat = await coach.create_customer("Ana"), await coach.create_exercise("Squat")
    about = {"customerId": ana["_id"]}
    heavy = {"type": "reps_load", "minPlannedReps": 5, "load": 100}
    blocks = await blocks_with(coach, ana, exercise_of(squat, heavy), task(), dates=DAYS[:4])

    def create(day: str, load: int) -> dict[str, Any]:
        return {**about, "days": [{"date": day, "name": "Legs", "text": f"Squat: 3x5 @{load}kg"}]}

    # A workout is removed, and created in the next call; and through smaller steps.
    tool_change(await mcp.call("remove_workout", **about, workoutId=blocks[0]["_id"]))
    tool_proposal(await mcp.call("create_workout", **create(DAYS[0], 140)), "LOAD_RAISED")
    created = tool_change(await mcp.call("create_workout", **create(DAYS[0], 115)))
    days = {**about, "startDate": DAYS[0], "endDate": DAYS[0], "rounding": 0}
    tool_proposal(await mcp.call("adjust_schedule", **days, addLoad=6), "LOAD_RAISED")
    tool_change(await mcp.call("remove_workout", **about, workoutId=created["workoutId"]))
    tool_proposal(await mcp.call("create_workout", **create(DAYS[0], 130)), "LOAD_RAISED")
    tool_change(await mcp.call("create_workout", **create(DAYS[5], 145)))  # a day that had none

    tool_change(await mcp.call("clear_schedule", **about, startDate=DAYS[1], endDate=DAYS[1]))
    tool_proposal(await mcp.call("create_workout", **create(DAYS[1], 121)), "LOAD_RAISED")
    # An item is removed in one call, and added in the next; or added first.
    known = {**about, "workoutId": blocks[2]["_id"]}
    remove = {"action": "remove", "itemId": blocks[2]["items"][0]["_id"]}
    tool_change(await mcp.call("update_workout_items", **known, changes=[remove]))
    add = {"action": "add", "text": "Squat: 3x5 @145kg"}
    tool_proposal(await mcp.call("update_workout_items", **known, changes=[add]), "LOAD_RAISED")
    known, remove = {**about, "workoutId": blocks[3]["_id"]}, {**remove, "itemId": blocks[3]["items"][0]["_id"]}
    tool_change(await mcp.call("update_workout_items", **known, changes=[add]))
    tool_proposal(await mcp.call("update_workout_items", **known, changes=[remove]), "LOAD_RAISED")

    await let_ten_minutes_pass(coach)
    tool_change(await mcp.call("create_workout", **create(DAYS[1], 121)))


async def test_percentages_and_training_maximums_rise_by_half_at_most(mcp: McpHttpClient, coach: CoachClient) -> None:
    ana, squat = await coach.create_customer("Ana"), await coach.create_exercise("Squat")
    percent = {"type": "reps_load", "minPlannedReps": 5, "loadPercent": 60}
    block = await block_with(coach, ana, exercise_of(squat, percent), date=DAYS[0])
    (item,) = block["items"]
    for value, is_too_much in ((90, False), (91, True), (60, False)):
        edit = {"action": "change", "itemId": item["_id"], "text": f"Squat: 1x5 @{value}%"}
        known = {"customerId": ana["_id"], "workoutId": block["_id"], "changes": [edit]}
        assert is_done(await mcp.call("update_workout_items", **known)) is not is_too_much, value
    for load, is_too_much in ((40, False), (60, False), (61, True), (30, False)):
        maximum = {"customerId": ana["_id"], "exercise": "Squat", "value": load}
        assert is_done(await mcp.call("set_training_max", **maximum)) is not is_too_much, load


async def test_a_value_of_somebody_else_is_replaced_after_confirmation(
    mcp: McpHttpClient, coach: CoachClient, public_server: TestServer
) -> None:
    ana, body = await coach.create_customer("Ana"), await metric_set(coach)
    (await coach.post(client_path(ana, "metrics-sets"), {"metricsSetId": body["_id"]})).ok(201)
    known = {"customerId": ana["_id"], "metricsSetId": body["_id"], "metricId": body["metrics"][0]["_id"]}
    day = {**known, "date": str(TODAY)}
    for value in (70, 71, 71):
        tool_change(await mcp.call("record_metric", **day, value=value))
    grant = await authorize_assistant(coach.ctx)
    async with McpHttpClient(public_server, {"Authorization": f"Bearer {grant.tokens.access}"}) as other:
        tool_proposal(await other.call("record_metric", **day, value=72), "OTHERS_VALUE")
        tool_change(await other.call("record_metric", **day, value=71))
    entry = {"metricId": known["metricId"], "date": str(TODAY), "value": 73}
    own = await coach.as_client(ana)
    (await own.post(f"/customer/metrics-sets/{body['_id']}/entries", entry)).ok(201)
    await approve(coach, tool_proposal(await mcp.call("record_metric", **day, value=72), "OTHERS_VALUE"))


async def test_days_of_a_program_are_replaced_after_confirmation(mcp: McpHttpClient, coach: CoachClient) -> None:
    days = [{"day": number, "name": "Legs"} for number in range(1, 29)]
    program = tool_change(await mcp.call("save_program", name="Four weeks", days=days))
    known = {"programId": program["programId"]}
    tool_change(await mcp.call("save_program", **known, days=[{"day": 29, "name": "Legs"}]))
    tool_proposal(await mcp.call("save_program", **known, days=[{"day": 29, "name": "Arms"}]), "PROGRAM_DAYS")


@pytest.mark.parametrize("failing", [{"workoutId": "0123456789abcdef01234567"}, {"text": "?"}])
async def test_calls_that_fail_use_up_nothing(mcp: McpHttpClient, coach: CoachClient, failing: dict[str, Any]) -> None:
    ana, squat = await coach.create_customer("Ana"), await coach.create_exercise("Squat")
    block = await block_with(coach, ana, exercise_of(squat), date=str(TODAY))
    (await log(coach, block, block["items"][0], customerSets=[{"reps": 8, "load": 60}])).ok()
    known = {"customerId": ana["_id"], "workoutId": block["_id"], "text": "Squat: 8"}
    assert (await mcp.call("log_workout", **known | failing))["isError"]
    tool_proposal(await mcp.call("log_workout", **known), "DONE_WORK")
    assert await coach.ctx.db["assistantSpending"].count_documents({"companyId": coach.ctx.company_id}) == 0


async def test_dry_runs_use_up_nothing(mcp: McpHttpClient, coach: CoachClient) -> None:
    for _ in range(31):
        shown = tool_result(await mcp.call("create_customers", customers=[{"name": "Ana"}], dryRun=True))
        assert "proposalId" not in shown
    assert await coach.ctx.db["assistantSpending"].count_documents({"companyId": coach.ctx.company_id}) == 0


async def test_undo_of_what_a_program_did_with_the_key_counts(mcp: McpHttpClient, coach: CoachClient) -> None:
    """It is a change of the key, but not one of the assistant."""
    ana, squat, body = await coach.create_customer("Ana"), await coach.create_exercise("Squat"), await metric_set(coach)
    block = await block_with(coach, ana, exercise_of(squat), date=str(TODAY - timedelta(days=1)))
    done = await log(coach, block, block["items"][0], customerSets=[{"reps": 8, "load": 60}])
    logged = done.headers["X-Change-Id"]
    (await coach.post(client_path(ana, "metrics-sets"), {"metricsSetId": body["_id"]})).ok(201)
    entry = {"metricId": body["metrics"][0]["_id"], "date": str(TODAY), "value": 73}
    recorded = await coach.post(client_path(ana, f"metrics-sets/{body['_id']}/entries"), entry)
    tool_proposal(await mcp.call("undo", changeId=logged), "DONE_WORK")
    tool_proposal(await mcp.call("undo", changeId=recorded.headers["X-Change-Id"]), "OTHERS_VALUE")

    planned = [await coach.post(client_path(ana, "wblocks"), {"name": "Legs", "date": day}) for day in DAYS[:4]]
    for created in planned[:3]:
        tool_change(await mcp.call("undo", changeId=created.headers["X-Change-Id"]))
    last = planned[3].headers["X-Change-Id"]
    tool_proposal(await mcp.call("undo", changeId=last), "MANY_REMOVED")


async def test_more_than_twenty_new_clients_in_an_hour_have_to_be_confirmed(
    mcp: McpHttpClient, coach: CoachClient
) -> None:
    for number in range(20):
        tool_change(await mcp.call("create_customer", name=f"New {number}"))
    await let_ten_minutes_pass(coach)
    proposal = tool_proposal(await mcp.call("create_customer", name="One more"), "MANY_NEW_CLIENTS")
    assert "One more" not in await coach.names()
    await approve(coach, proposal)
    tool_proposal(await mcp.call("create_customer", name="Another"), "MANY_NEW_CLIENTS")
    earlier = {"$set": {"createdAt": {"$subtract": ["$createdAt", 3_600_001]}}}
    await coach.ctx.db["assistantSpending"].update_many({"companyId": coach.ctx.company_id}, [earlier])
    tool_change(await mcp.call("create_customer", name="Another", idempotencyKey="later"))
