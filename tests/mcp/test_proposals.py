"""Proposals: what an assistant may not decide alone waits for its coach."""

from __future__ import annotations

import asyncio
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest

from coaching_service.core import auth
from coaching_service.core.database.context import Context
from coaching_service.core.ids import ObjectId
from coaching_service.core.jobs.queue import Job
from coaching_service.core.mcp import Tools, Written
from coaching_service.core.validation import Input
from coaching_service.integrations.proposals import service as proposals
from coaching_service.integrations.proposals import tool_calls
from coaching_service.training.workouts import store as workouts
from tests.support.client import CoachClient
from tests.support.mcp_client import (
    TODAY,
    McpHttpClient,
    approve,
    invitation,
    named,
    propose_invitation,
    tool_change,
    tool_error,
    tool_proposal,
    tool_result,
)
from tests.support.service_process import until
from tests.support.training import client_path, task

Json = dict[str, Any]


async def test_call_that_needs_confirmation_waits_for_its_coach(
    mcp: McpHttpClient, coach: CoachClient, session: CoachClient
) -> None:
    ana = {**invitation(coach), "idempotencyKey": "once"}
    proposed = await mcp.call("create_customer", **ana)
    content = tool_proposal(proposed, "CONTACT")
    assert "oken" not in str(proposed["content"]) + str(content)
    assert await mcp.call("create_customer", **ana) == proposed
    assert await mcp.call("create_customer", **invitation(coach)) == proposed
    assert await coach.names() == []

    listed = (await session.get("/coach/proposals?status=pending")).ok()
    [proposal] = listed["docs"]
    assert proposal["_id"] == content["proposalId"]
    assert proposal["tool"] == "create_customer"
    assert proposal["summary"] == "Create the client «Ana» and invite them by e-mail."
    assert proposal["reasons"] == ["CONTACT"]
    assert (proposal["status"], proposal["result"], proposal["decidedBy"]) == ("pending", None, None)
    assert proposal["assistant"]["name"] == "Test"
    assert proposal.keys() == {
        *("_id", "createdAt", "updatedAt", "version", "expiresAt", "status", "tool", "summary", "reasons", "changes"),
        *("assistant", "coachId", "decidedAt", "decidedBy", "decidedIn", "note", "result"),
    }
    waiting = tool_result(await mcp.call("get_proposal", proposalId=proposal["_id"]))
    assert (waiting["status"], waiting.get("result")) == ("pending", None)

    result = await approve(coach, content)
    approved = (await session.get(f"/coach/proposals/{proposal['_id']}")).ok()
    assert approved["decidedBy"]["_id"] == str(coach.ctx.caller.id) and approved["decidedIn"] == "api"
    assert approved["result"] == result
    assert await coach.names() == ["Ana"]
    done = await mcp.call("get_proposal", proposalId=proposal["_id"])
    assert "changeId: " in done["content"][0]["text"]
    assert done["structuredContent"]["status"] == "executed"
    assert done["structuredContent"]["result"] == approved["result"]
    # The idempotency key of the call is honoured.
    again = tool_change(await mcp.call("create_customer", **ana))
    assert again["changeId"] == approved["result"]["changeId"]
    assert await coach.names() == ["Ana"]


async def test_decision_is_final_and_done_once(mcp: McpHttpClient, coach: CoachClient, session: CoachClient) -> None:
    first = tool_proposal(await mcp.call("create_customer", **invitation(coach)), "CONTACT")
    path = f"/coach/proposals/{first['proposalId']}"
    replies = await asyncio.gather(*(session.post(f"{path}/approve") for _ in range(4)))
    assert sorted(reply.status for reply in replies) == [200, 409, 409, 409]
    assert {reply.json["code"] for reply in replies if reply.status == 409} == {"PROPOSAL_CLOSED"}
    assert await coach.names() == ["Ana"]
    (await session.post(f"{path}/reject")).refused(409, "decided")

    second = tool_proposal(await mcp.call("create_customer", **invitation(coach, "Bo")), "CONTACT")
    path = f"/coach/proposals/{second['proposalId']}"
    rejected = (await session.post(f"{path}/reject")).ok()
    assert (rejected["status"], rejected["result"]) == ("rejected", None)
    (await session.post(f"{path}/approve")).refused(409, "decided")
    answer = await mcp.call("get_proposal", proposalId=second["proposalId"])
    assert "rejected" in answer["content"][0]["text"]
    assert await coach.names() == ["Ana"]


async def test_decision_is_made_once_for_each_key(mcp: McpHttpClient, coach: CoachClient, session: CoachClient) -> None:
    key = {"Idempotency-Key": "decide"}
    ana = await coach.create_customer()
    for decision in ("approve", "reject"):
        call = {"customerId": ana["_id"], "text": "Hello", "idempotencyKey": decision}
        proposal = tool_proposal(await mcp.call("send_message", **call), "CONTACT")
        path = f"/coach/proposals/{proposal['proposalId']}/{decision}"
        first, second = [await session.post(path, headers=key) for _ in range(2)]
        assert (second.ok(), second.headers["Idempotent-Replayed"]) == (first.ok(), "true")
        assert second.headers["X-Change-Id"] == first.headers["X-Change-Id"]
        # The process ended before the response was stored: only the decision is.
        about = {"companyId": coach.ctx.company_id, "about": ObjectId(proposal["proposalId"])}
        if decision == "approve":
            assert (await coach.ctx.db["replays"].delete_one(about)).deleted_count == 1
            assert (await session.post(path, headers=key)).ok() == first.json
        (await session.post(path, headers={"Idempotency-Key": "other"})).refused(409, "decided")
    (await coach.delete(f"/coach/customers/{ana['_id']}")).ok(204)
    assert await coach.ctx.db["replays"].count_documents(about) == 0, "what it says of an erased client"


async def test_approval_is_refused_if_the_records_have_changed(
    mcp: McpHttpClient, coach: CoachClient, session: CoachClient
) -> None:
    client = await coach.create_customer()
    known = {"customerId": client["_id"]}
    created = tool_change(await mcp.call("create_workout", **known, days=[{"date": TODAY, "name": "Legs"}]))
    text = "task: Walk"
    edit = [{"action": "add", "text": text}]
    item = tool_change(await mcp.call("update_workout_items", **known, workoutId=created["workoutId"], changes=edit))
    [item_id] = item["itemIds"]
    path = f"{client_path(client, 'wblocks')}/{created['workoutId']}"
    (await coach.put(f"{path}/witems/{item_id}/log", {"isCompleted": True})).ok()
    call = {**known, "workoutId": created["workoutId"]}
    first = tool_proposal(await mcp.call("remove_workout", **call), "DONE_WORK")
    (await coach.patch(path, {"name": "Arms"})).ok()

    stale = (await session.post(f"/coach/proposals/{first['proposalId']}/approve")).refused(409)
    assert stale["code"] == "PROPOSAL_STALE"
    assert (await session.get(f"/coach/proposals/{first['proposalId']}")).ok()["status"] == "stale"
    second = tool_proposal(await mcp.call("remove_workout", **call), "DONE_WORK")
    assert second["proposalId"] != first["proposalId"]
    [replaced] = (await session.get("/coach/proposals?status=stale")).ok()["docs"]
    assert replaced["_id"] == first["proposalId"]
    (await coach.delete(path)).ok(204)
    gone = (await session.post(f"/coach/proposals/{second['proposalId']}/approve")).refused(409)
    assert gone["code"] == "PROPOSAL_STALE"


async def test_tool_that_is_not_in_the_list_of_features_is_not_carried_out(
    mcp: McpHttpClient, coach: CoachClient, session: CoachClient
) -> None:
    """Declaring it registers it nowhere: a version of the service may have had it, and its proposals remain."""

    @Tools().tool("Former tool", access=auth.coach(auth.CUSTOMERS.EDIT), takes=Input(), writes=True)
    async def former_tool(ctx: Context) -> Written:
        """Do what this version of the service does not do."""
        raise AssertionError

    proposed = tool_proposal(await mcp.call("create_customer", **invitation(coach)), "CONTACT")
    about = {"_id": ObjectId(proposed["proposalId"])}
    await coach.ctx.db["proposals"].update_one(about, {"$set": {"tool": former_tool.__name__}})
    assert "former_tool" not in coach.ctx.services.tools and "create_customer" in coach.ctx.services.tools
    stale = (await session.post(f"/coach/proposals/{proposed['proposalId']}/approve")).refused(409)
    assert stale["code"] == "PROPOSAL_STALE"


async def test_proposal_expires_after_a_day(mcp: McpHttpClient, coach: CoachClient, session: CoachClient) -> None:
    first = tool_proposal(await mcp.call("create_customer", **invitation(coach)), "CONTACT")
    path = f"/coach/proposals/{first['proposalId']}"
    created = (await session.get(path)).ok()
    lifetime = datetime.fromisoformat(created["expiresAt"]) - datetime.fromisoformat(created["createdAt"])
    assert timedelta(hours=23, minutes=59) < lifetime <= timedelta(hours=24)
    past = datetime.now(UTC) - timedelta(seconds=1)
    await coach.ctx.db["proposals"].update_one({"_id": ObjectId(first["proposalId"])}, {"$set": {"expiresAt": past}})

    assert (await session.get(path)).ok()["status"] == "expired"
    assert (await session.get("/coach/proposals?status=pending")).ok()["docs"] == []
    [listed] = (await session.get("/coach/proposals?status=expired")).ok()["docs"]
    assert listed["_id"] == first["proposalId"]
    assert (await session.post(f"{path}/approve")).refused(409)["code"] == "PROPOSAL_CLOSED"
    arguments = {"companyId": coach.ctx.company_id, "proposalId": ObjectId(first["proposalId"])}
    await proposals.expire_step(coach.ctx.services, Job(ObjectId(), arguments, 1))
    stored = await coach.ctx.db["proposals"].find_one({"_id": ObjectId(first["proposalId"])})
    assert stored is not None and stored["status"] == "expired"
    await proposals.expire_step(coach.ctx.services, Job(ObjectId(), arguments, 1))  # again: nothing
    again = tool_proposal(await mcp.call("create_customer", **invitation(coach)), "CONTACT")
    assert again["proposalId"] != first["proposalId"]

    async def decided() -> list[Json]:
        events = (await coach.get("/coach/events?types=proposal.created&types=proposal.decided")).ok()["docs"]
        return events if len(events) == 3 else []

    events = await until(decided, "the events are numbered")
    assert [(each["type"], each["actor"]["type"]) for each in events] == [
        ("proposal.created", "assistant"),
        ("proposal.decided", "system"),
        ("proposal.created", "assistant"),
    ]
    assert events[1]["data"] == {
        "proposalId": first["proposalId"],
        "tool": "create_customer",
        "assistantId": created["assistant"]["_id"],
        "status": "expired",
    }


async def test_changes_are_shown_before_and_after_in_words(
    mcp: McpHttpClient, coach: CoachClient, session: CoachClient
) -> None:
    await coach.create_exercise("Squat")
    client = await coach.create_customer()
    days = [{"date": str(day), "name": "Legs", "text": "Squat: 4x8 @60kg"} for day in range_of_days(9)]
    known = {"customerId": client["_id"]}
    for some in (days[:7], days[7:]):
        tool_change(await mcp.call("create_workout", **known, days=some))
    dates = {"startDate": days[0]["date"], "endDate": days[8]["date"]}
    proposal = tool_proposal(await mcp.call("adjust_schedule", **known, **dates, addLoad=2.5), "MANY_DAYS")
    shown = (await session.get(f"/coach/proposals/{proposal['proposalId']}")).ok()["changes"]
    assert len(shown) == 9
    day = datetime.fromisoformat(days[0]["date"])
    title = f"Legs, {day:%a} {day.day} {day:%b %Y}"
    assert shown[0] == {
        "kind": "workout",
        "customer": {"_id": client["_id"], "name": "Ana"},
        "date": days[0]["date"],
        "before": f"{title}\nSquat: 4x8 @60kg",
        "after": f"{title}\nSquat: 4x8 @62.5kg",
    }
    result = await approve(coach, proposal)
    change = (await coach.get(f"/coach/changes/{result['changeId']}")).ok()
    assert change["approvedBy"] == {"_id": str(coach.ctx.caller.id), "name": "Olga Owner"}
    assert (change["via"], change["actor"]["type"]) == ("assistant", "assistant")
    listed = (await coach.get("/coach/changes", limit=2)).ok()["docs"]
    assert [(each["operation"], each["summary"]) for each in listed] == [
        ("adjust_schedule", "9 workouts changed"),
        ("propose_change", "1 proposal created"),
    ]
    tool_change(await mcp.call("undo", changeId=tool_change(await mcp.call("add_note", **known, text="A"))["changeId"]))


async def test_changes_have_the_lines_that_differ_uncut(
    mcp: McpHttpClient, coach: CoachClient, session: CoachClient
) -> None:
    for name in ("Back squat", "Bench press", "Dumbbell press"):
        await coach.create_exercise(name)
    known = {"customerId": (await coach.create_customer())["_id"]}
    dates = [str(each) for each in range_of_days(9)]
    many = "\n".join(f"Dumbbell press: 1x{count} @20kg | {'note ' * 70}{count}" for count in range(1, 46))
    text = f"A1) Bench press: 3x10 @40kg, 1x5 @70%\nA2) Back squat: 4x8 @60kg\n{many}\nBench press: 1x5"
    tool_change(await mcp.call("create_workout", **known, days=[{"date": dates[0], "name": "Legs", "text": text}]))

    async def shown(tool: str, *reasons: str, **arguments: Any) -> tuple[str, list[list[list[str] | None]]]:
        """The summary of a proposal, and the lines of each change without the name of the workout."""
        proposal = tool_proposal(await mcp.call(tool, **known, **arguments), *reasons)
        found = (await session.get(f"/coach/proposals/{proposal['proposalId']}")).ok()
        assert found["summary"] == proposal["summary"]
        sides = [(each["before"], each["after"]) for each in found["changes"]]
        return found["summary"], [[side and side.split("\n")[1:] for side in both] for both in sides]

    swap = {"exercise": "Bench press", "withExercise": "Dumbbell press", "startDate": dates[0], "endDate": dates[8]}
    summary, changes = await shown("replace_exercise", "MANY_DAYS", **swap, load="keep")
    assert summary.startswith("Replace «Bench press» by «Dumbbell press» in 1 workout (2 items) of «Ana», ")
    before = ["A1) Bench press: 3x10 @40kg, 1x5 @70%", "Bench press: 1x5"]
    assert changes == [[before, [line.replace("Bench press", "Dumbbell press") for line in before]]]

    summary, changes = await shown("clear_schedule", "MANY_DAYS", startDate=dates[0], endDate=dates[8])
    assert summary == f"Remove 1 workout of «Ana», {named(dates[0])}: «Legs» on {named(dates[0])}."
    assert changes == [[text.split("\n"), None]]

    day = {"date": TODAY, "name": "Now", "text": "Back squat: 4x8 @60kg\nBench press: 3x10\nBench press: 1x5"}
    now_there = {"workoutId": tool_change(await mcp.call("create_workout", **known, days=[day]))["workoutId"]}
    tool_change(await mcp.call("log_workout", **known, **now_there, text="Back squat: 8, 7 @60kg"))
    _, changes = await shown("log_workout", "DONE_WORK", **now_there, text="Back squat: 8, 8 @60kg")
    squat = ["Back squat: 4x8 @60kg", "  done: 8, 7 @60kg"]
    assert changes == [[squat, [squat[0], "  done: 8, 8 @60kg"]]]

    items = [each["_id"] for each in (await coach.calendar({"_id": known["customerId"]}, TODAY, TODAY))[0]["items"]]
    edits = [
        {"action": "move", "itemId": items[2], "index": 0},
        {"action": "add", "text": "Bench press: 1x1 @600kg"},
    ]
    _, changes = await shown("update_workout_items", "UNUSUAL_AMOUNT", **now_there, changes=edits)
    others = ["Bench press: 3x10", "Bench press: 1x5"]
    assert changes == [[[*squat, *others], [others[1], *squat, others[0], "Bench press: 1x1 @600kg"]]]


def range_of_days(count: int) -> list[date]:
    """So many days from tomorrow."""
    return [date.fromisoformat(TODAY) + timedelta(days=number + 1) for number in range(count)]


async def test_client_that_opens_addresses_shows_the_page_of_the_proposal(
    mcp: McpHttpClient, coach: CoachClient, session: CoachClient
) -> None:
    call = {"name": "create_customer", "arguments": invitation(coach)}
    asks: Json = {"elicitation": {"url": {}}}

    async def send(**answer: Any) -> Json:
        result: Json = (await mcp.request_modern("tools/call", {**call, **answer}, asks)).ok()["result"]
        return result

    question = await send()
    assert question["resultType"] == "input_required"
    params = question["inputRequests"]["confirm"]["params"]
    [proposal] = (await session.get("/coach/proposals")).ok()["docs"]
    assert (params["mode"], params["url"]) == ("url", f"{mcp.base_url}/app/proposals/{proposal['_id']}")
    opened = {"requestState": question["requestState"], "inputResponses": {"confirm": {"action": "accept"}}}
    assert tool_proposal(await send(**opened), "CONTACT")["proposalId"] == proposal["_id"]
    result = await approve(coach, {"proposalId": proposal["_id"]})
    assert tool_change(await send(**opened)) == result
    assert await coach.names() == ["Ana"]
    declined = {"requestState": question["requestState"], "inputResponses": {"confirm": {"action": "decline"}}}
    tool_error(await send(**declined), "declined")

    call["arguments"] = invitation(coach, "Bo")
    question = await send()
    [waiting] = (await session.get("/coach/proposals?status=pending")).ok()["docs"]
    (await session.post(f"/coach/proposals/{waiting['_id']}/reject")).ok()
    rejected = await send(requestState=question["requestState"], inputResponses={"confirm": {"action": "accept"}})
    assert rejected["structuredContent"] == {"executed": False, "status": "rejected"}
    assert rejected["content"][0]["text"].startswith("The coach has rejected it; nothing was changed.")
    assert (await session.get("/coach/proposals?status=pending")).ok()["docs"] == []


async def test_proposals_are_listed_newest_first_in_parts(
    mcp: McpHttpClient, coach: CoachClient, session: CoachClient
) -> None:
    made = [
        tool_proposal(await mcp.call("create_customer", **invitation(coach, name)), "CONTACT")["proposalId"]
        for name in ("Ana", "Bo", "Cy")
    ]
    (await session.post(f"/coach/proposals/{made[1]}/reject")).ok()
    first = (await session.get("/coach/proposals", limit=2)).ok()
    assert ([each["_id"] for each in first["docs"]], first["hasMore"]) == ([made[2], made[1]], True)
    rest = (await session.get("/coach/proposals", limit=2, after=first["nextCursor"])).ok()
    assert ([each["_id"] for each in rest["docs"]], rest["hasMore"]) == ([made[0]], False)
    for status, expected in (("pending", [made[2], made[0]]), ("rejected", [made[1]]), ("executed", [])):
        docs = (await session.get("/coach/proposals", status=status)).ok()["docs"]
        assert [each["_id"] for each in docs] == expected
    (await session.get("/coach/proposals", status="unknown")).refused(400, "status")


# --- not again, not too many, not out of date ------------------------------------------------------------------------


async def test_a_rejected_call_is_refused_for_a_day_with_the_note_of_the_coach(
    mcp: McpHttpClient, coach: CoachClient, session: CoachClient
) -> None:
    ana = invitation(coach)
    proposed = tool_proposal(await mcp.call("create_customer", **ana), "CONTACT")
    path = f"/coach/proposals/{proposed['proposalId']}"
    rejected = (await session.post(f"{path}/reject", {"note": "She is no client"})).ok()
    assert (rejected["status"], rejected["decidedIn"], rejected["note"]) == ("rejected", "api", "She is no client")
    tool_error(await mcp.call("create_customer", **ana), "REJECTED", "«She is no client»", "Do not propose it again")
    waiting = (await mcp.call("get_proposal", proposalId=proposed["proposalId"]))["content"][0]["text"]
    assert "The coach writes: «She is no client»" in waiting
    tool_proposal(await mcp.call("create_customer", **invitation(coach, "Bo")), "CONTACT")
    earlier = {"$set": {"decidedAt": datetime.now(UTC) - timedelta(hours=24, seconds=1)}}
    await coach.ctx.db["proposals"].update_one({"_id": ObjectId(proposed["proposalId"])}, earlier)
    tool_proposal(await mcp.call("create_customer", **ana), "CONTACT")


async def test_a_rejected_call_is_refused_in_other_words(
    mcp: McpHttpClient, coach: CoachClient, session: CoachClient
) -> None:
    """Other arguments that do the same, such as a space after a text; not what does something else."""
    ana = await coach.create_customer("Ana", groups=["Team"])
    about = {"customerId": ana["_id"]}
    texts = {"send_message": "Buy now", "schedule_check_in": "Weigh in"}
    for tool, text in texts.items():
        more = {"everyDays": 1, "until": TODAY, "task": text} if tool == "schedule_check_in" else {"text": text}
        made = tool_proposal(await mcp.call(tool, **about, **more), "CONTACT")
        (await session.post(f"/coach/proposals/{made['proposalId']}/reject", {"note": "No"})).ok()
        spaced = {name: f" {text}\n" if value == text else value for name, value in more.items()}
        tool_error(await mcp.call(tool, **about, **spaced), "REJECTED", "«No»")
    for others in ({"customerIds": [ana["_id"]]}, {"groups": ["Team"]}):
        tool_error(await mcp.call("send_message", **others, text="Buy now"), "REJECTED", "«No»")
    tool_proposal(await mcp.call("send_message", **about, text="Buy tomorrow"), "CONTACT")
    both = {"ids": [made["proposalId"]], "assistantId": made["proposalId"]}
    (await session.post("/coach/proposals/reject", both)).refused(400, "assistantId")


async def test_an_assistant_has_fifty_proposals_at_most_which_are_rejected_together(
    mcp: McpHttpClient, coach: CoachClient, session: CoachClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert proposals.MAX_PENDING == 50
    monkeypatch.setattr(proposals, "MAX_PENDING", 10)
    ids = [await propose_invitation(mcp, coach, f"Client{number}") for number in range(10)]
    more = invitation(coach, "More")
    tool_error(await mcp.call("create_customer", **more), "50 proposals wait", "Ask the coach to decide")
    assert await propose_invitation(mcp, coach, "Client7") == ids[7], "the same call is the same proposal"
    many = {"ids": [*ids[:2], str(ObjectId())], "note": "No"}
    assert (await session.post("/coach/proposals/reject", many)).ok() == {"rejected": 2}
    assert (await session.get(f"/coach/proposals/{ids[0]}")).ok()["note"] == "No"
    assistant = (await session.get(f"/coach/proposals/{ids[2]}")).ok()["assistant"]["_id"]
    assert (await session.post("/coach/proposals/reject", {"assistantId": assistant})).ok() == {"rejected": 8}
    assert (await session.get("/coach/proposals?status=pending")).ok()["docs"] == []
    tool_proposal(await mcp.call("create_customer", **more), "CONTACT")


async def until_looked_at(coach: CoachClient) -> None:
    """Wait until no job is left that closes what a change has made stale."""
    jobs = {"companyId": coach.ctx.company_id, "kind": proposals.CLOSE_STALE}

    async def is_done() -> bool:
        return await coach.ctx.db["jobs"].count_documents(jobs) == 0

    await until(is_done, "stale proposals are closed")


async def test_a_proposal_whose_records_have_changed_closes_itself(
    mcp: McpHttpClient, coach: CoachClient, session: CoachClient
) -> None:
    ana = await coach.create_customer("Ana")
    blocks = [
        await coach.schedule(ana, str(date.fromisoformat(TODAY) + timedelta(days=day)), "Legs") for day in range(1, 5)
    ]
    days = {"customerId": ana["_id"], "startDate": blocks[0]["date"], "endDate": blocks[3]["date"]}
    proposed = tool_proposal(await mcp.call("clear_schedule", **days), "MANY_REMOVED")
    path = f"/coach/proposals/{proposed['proposalId']}"
    (await coach.patch(f"{client_path(ana, 'wblocks')}/{blocks[2]['_id']}", {"name": "Arms"})).ok()
    await until_looked_at(coach)
    stale = (await session.get(path)).ok()
    assert (stale["status"], stale["decidedBy"], stale["decidedIn"]) == ("stale", None, None)
    (await session.post(f"{path}/approve")).refused(409)
    assert "Make the call again" in (await mcp.call("get_proposal", proposalId=stale["_id"]))["content"][0]["text"]

    again = tool_proposal(await mcp.call("clear_schedule", **days), "MANY_REMOVED")
    added = f"{client_path(ana, 'wblocks')}/{blocks[1]['_id']}/witems"
    (await coach.post(added, task("Walk"))).ok(201)  # in a transaction on a worker thread
    await until_looked_at(coach)
    assert (await session.get(f"/coach/proposals/{again['proposalId']}")).ok()["status"] == "stale"


async def test_a_proposal_that_becomes_stale_during_its_approval_is_refused_as_stale(
    mcp: McpHttpClient, coach: CoachClient, session: CoachClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    ana = await coach.create_customer("Ana")
    days = [str(each) for each in range_of_days(4)]
    blocks = [await coach.schedule(ana, day, "Legs") for day in days]
    sent = {"customerId": ana["_id"], "startDate": days[0], "endDate": days[3]}
    proposed = tool_proposal(await mcp.call("clear_schedule", **sent), "MANY_REMOVED")
    carry_out = tool_calls.carry_out

    async def change_first(ctx: Context, call: tool_calls.Call) -> object:
        (await coach.patch(f"{client_path(ana, 'wblocks')}/{blocks[2]['_id']}", {"name": "Arms"})).ok()
        await until_looked_at(coach)
        return await carry_out(ctx, call)

    monkeypatch.setattr(tool_calls, "carry_out", change_first)
    refused = (await session.post(f"/coach/proposals/{proposed['proposalId']}/approve")).refused(409)
    assert refused["code"] == "PROPOSAL_STALE"


async def test_a_proposal_whose_source_has_changed_closes_itself(
    mcp: McpHttpClient, coach: CoachClient, session: CoachClient
) -> None:
    """What is copied is no record that changes: a week, and a program; what was done in it does not matter."""
    await coach.create_exercise("Squat")
    ana = await coach.create_customer("Ana")
    days = [str(each) for each in range_of_days(9)]
    text = {"name": "Legs", "text": "Squat: 4x8 @60kg"}
    source = tool_change(await mcp.call("create_workout", customerId=ana["_id"], days=[{"date": TODAY, **text}]))
    program = tool_change(await mcp.call("save_program", name="Base", days=[{"day": each, **text} for each in (1, 8)]))
    [day, *_] = (await coach.get(f"/coach/programs/{program['programId']}/wblock", startDay=1, endDay=9)).ok()
    [block] = await coach.calendar(ana, TODAY, TODAY)
    copied = {"startDate": TODAY, "endDate": days[0], "targetDate": days[1], "repeat": 4}
    calls: list[tuple[str, Json]] = [
        ("copy_schedule", copied),
        ("assign_program", {"programId": program["programId"], "startDate": days[1]}),
    ]
    proposed = [
        tool_proposal(await mcp.call(tool, customerId=ana["_id"], **arguments), "MANY_DAYS")["proposalId"]
        for tool, arguments in calls
    ]

    async def states() -> list[str]:
        await until_looked_at(coach)
        return [(await session.get(f"/coach/proposals/{each}")).ok()["status"] for each in proposed]

    assert await states() == ["pending", "pending"]
    tool_change(await mcp.call("log_workout", customerId=ana["_id"], workoutId=source["workoutId"], text="Squat: 8"))
    assert await states() == ["pending", "pending"]
    item = {"exerciseSets": [{"index": 1, "type": "reps_load", "reps": 8, "load": 65}]}
    path = f"/coach/programs/{program['programId']}/wblocks/{day['_id']}/witems/{day['items'][0]['_id']}"
    (await coach.patch(path, item)).ok()
    assert await states() == ["pending", "stale"]
    (await coach.post(client_path(ana, "wblocks"), {"name": "New", "date": days[0]})).ok(201)
    assert await states() == ["stale", "stale"]

    again = [tool_proposal(await mcp.call(tool, customerId=ana["_id"], **sent), "MANY_DAYS") for tool, sent in calls]
    (await coach.patch(path, {"exerciseSets": [{"index": 1, "type": "reps_load", "reps": 5, "load": 70}]})).ok()
    (await coach.delete(f"{client_path(ana, 'wblocks')}/{block['_id']}")).ok(204)
    for each in again:
        reply = await session.post(f"/coach/proposals/{each['proposalId']}/approve")
        assert reply.refused(409)["code"] == "PROPOSAL_STALE"


async def test_the_job_of_a_proposal_looks_once_and_then_when_it_expires(
    mcp: McpHttpClient, coach: CoachClient, session: CoachClient
) -> None:
    """One look covers a change that is stored at the same moment: neither transaction reads the other."""
    ana = await coach.create_customer("Ana")
    days = [str(each) for each in range_of_days(4)]
    blocks = [await coach.schedule(ana, day, "Legs") for day in days]
    sent = {"customerId": ana["_id"], "startDate": days[0], "endDate": days[3]}
    proposed = tool_proposal(await mcp.call("clear_schedule", **sent), "MANY_REMOVED")
    arguments = {"companyId": coach.ctx.company_id, "proposalId": ObjectId(proposed["proposalId"])}
    job = Job(ObjectId(), arguments, 1)
    queued = await coach.ctx.db["jobs"].find_one({"kind": proposals.EXPIRE, "arguments": arguments})
    assert queued is not None and queued["runAfter"] - queued["createdAt"] < timedelta(seconds=10)

    again = await proposals.expire_step(coach.ctx.services, job)
    assert again is not None and timedelta(hours=23) < again.after <= timedelta(hours=24)
    missed = {"_id": ObjectId(blocks[0]["_id"])}
    await coach.ctx.db[workouts.blocks.name].update_one(missed, {"$inc": {"version": 1}})
    assert await proposals.expire_step(coach.ctx.services, job) is None
    assert (await session.get(f"/coach/proposals/{proposed['proposalId']}")).ok()["status"] == "stale"


async def test_an_idempotency_key_holds_beyond_the_approval(
    mcp: McpHttpClient, coach: CoachClient, session: CoachClient
) -> None:
    ana = await coach.create_customer("Ana")
    message = {"customerId": ana["_id"], "text": "Well done", "idempotencyKey": "k1"}
    proposed = tool_proposal(await mcp.call("send_message", **message), "CONTACT")
    other = {**message, "text": "Something else"}
    tool_error(await mcp.call("send_message", **other), "This idempotencyKey was used with another call")
    done = await approve(coach, proposed)
    assert tool_change(await mcp.call("send_message", **message)) == done
    tool_error(await mcp.call("send_message", **other), "This idempotencyKey was used with another call")
    assert await coach.ctx.db["waitingMessages"].count_documents({"companyId": coach.ctx.company_id}) == 1
