"""A proposal is about what was shown: names, dates and groups mean what they meant when it was made."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from tests.mcp.test_recall import OWN, after_a_minute, listed
from tests.support.client import CoachClient
from tests.support.fixed_clock import TODAY
from tests.support.mcp_client import McpHttpClient, approve, tool_change, tool_proposal, tool_result
from tests.support.schedules import batch

pytestmark = pytest.mark.usefixtures("wednesday")
DAYS = [str(TODAY + timedelta(days=number)) for number in range(9)]
Json = dict[str, Any]


async def plan(mcp: McpHttpClient, client: Json, text: str, days: list[str]) -> Json:
    planned = [{"date": day, "name": "Legs", "text": text} for day in days]
    return tool_change(await mcp.call("create_workout", customerId=client["_id"], days=planned))


@pytest.mark.parametrize("named", ["date", "text"])
async def test_log_is_about_the_workout_that_was_shown(mcp: McpHttpClient, coach: CoachClient, named: str) -> None:
    client = await coach.create_customer()
    await coach.create_exercise("Zercher squat")
    workout = (await plan(mcp, client, "Zercher squat: 3x8 @60kg", DAYS[:1]))["workoutId"]
    about = {"customerId": client["_id"], **({"date": DAYS[0]} if named == "date" else {"workoutId": workout})}
    tool_change(await mcp.call("log_workout", **about, text="Zercher squat: 8, 8, 8 @60kg"))
    proposed = await mcp.call("log_workout", **about, text="Zerchers: 9, 9, 9 @60kg")
    proposal = tool_proposal(proposed, "DONE_WORK")
    await batch(coach, client, {"name": "Run", "date": DAYS[0]})
    await coach.create_exercise("Zerchers")

    assert (await approve(coach, proposal))["workoutId"] == workout
    [block] = [each for each in await coach.calendar(client, DAYS[0], DAYS[0]) if each["_id"] == workout]
    assert [done["reps"] for done in block["items"][0]["customerSets"]] == [9, 9, 9]


async def test_names_and_groups_mean_what_was_shown(mcp: McpHttpClient, coach: CoachClient) -> None:
    ana, bo = [await coach.create_customer(name, groups=["Team"]) for name in ("Ana", "Bo")]
    squat, press = [await coach.create_exercise(name) for name in ("Zercher squat", "Larsen press")]
    for client in (ana, bo):
        await plan(mcp, client, "Zercher squat: 3x8", DAYS[:2])
    swap = {"exercise": "Zercher squat", "withExercise": "Larsen press", "startDate": DAYS[0]}
    replacing = tool_proposal(await mcp.call("replace_exercise", groups=["Team"], **swap), "MANY_CLIENTS")
    message = tool_proposal(await mcp.call("send_message", groups=["Team"], text="Hi"), "CONTACT", "MANY_CLIENTS")
    await coach.create_exercise("Larsen press")
    cy = await coach.create_customer("Cy", groups=["Team"])
    await plan(mcp, cy, "Zercher squat: 3x8", DAYS[:2])

    assert (await approve(coach, replacing))["exerciseId"] == press["_id"]
    meant = [(await coach.calendar(each, DAYS[0], DAYS[0]))[0]["items"][0]["exerciseId"] for each in (ana, bo, cy)]
    assert meant == [press["_id"], press["_id"], squat["_id"]]
    assert (await approve(coach, message))["customerIds"] == [ana["_id"], bo["_id"]]


async def test_form_of_a_proposal_is_the_one_that_was_shown(mcp: McpHttpClient, coach: CoachClient) -> None:
    client = await coach.create_customer()
    form = {"name": "Daily", "questions": [{"label": "Well?"}]}
    first = (await coach.post("/coach/forms", form)).ok(201)
    check_in = {"customerId": client["_id"], "form": "daily", "everyDays": 7}
    proposal = tool_proposal(await mcp.call("schedule_check_in", **check_in), "CONTACT", "MANY_DAYS")
    (await coach.post("/coach/forms", form)).ok(201)
    await approve(coach, proposal)
    [scheduled] = (await coach.get(f"/coach/customers/{client['_id']}/check-ins")).ok()
    assert scheduled["formId"] == first["_id"]


@pytest.mark.parametrize("others", [["Bo"], ["Bo", "Cy"]])
async def test_undo_of_a_bulk_message_is_approved_after_the_delivery(
    mcp: McpHttpClient, coach: CoachClient, others: list[str]
) -> None:
    """The delivery is no change of what is undone; that a client reads the message is one."""
    clients = [await coach.create_customer(name, groups=["Team"]) for name in ("Ana", *others)]
    accounts = [await coach.as_client(each) for each in clients]
    for is_read in (False, True):
        sent = tool_proposal(await mcp.call("send_message", groups=["Team"], text="Hi"), "CONTACT", "MANY_CLIENTS")
        change_id = (await approve(coach, sent))["changeId"]
        undo = tool_proposal(await mcp.call("undo", changeId=change_id), "MANY_CLIENTS")
        await after_a_minute(coach)
        if not is_read:
            assert await listed(accounts[0], OWN) == [("Hi", False)]
            await approve(coach, undo)
            assert [await listed(each, OWN) for each in accounts] == [[(None, False)]] * len(accounts)
            continue
        (await accounts[1].put(f"{OWN}/read")).ok()
        session = await coach.interactive()
        path = f"/coach/proposals/{undo['proposalId']}"
        assert (await session.post(f"{path}/approve")).refused(409)["code"] == "PROPOSAL_STALE"
        assert (await session.get(path)).ok()["status"] == "stale"
        state = await mcp.call("get_proposal", proposalId=undo["proposalId"])
        assert tool_result(state)["status"] == "stale"
        assert "The records have changed since" in state["content"][0]["text"]
        assert "Pending" not in state["content"][0]["text"]
        again = await mcp.call("undo", changeId=change_id)  # of one client it needs no approval
        summary = (tool_proposal(again, "MANY_CLIENTS") if others[1:] else tool_change(again))["summary"]
        assert "«Bo» stays" in summary
