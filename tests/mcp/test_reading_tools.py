"""Reads that answer a coach's question in one call, and the same over REST."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from aiohttp.test_utils import TestServer

from tests.mcp.test_access_to_proposals import hire
from tests.support.attention import renew
from tests.support.client import CoachClient
from tests.support.mcp_client import (
    TODAY,
    McpHttpClient,
    approve,
    text_of,
    tool_change,
    tool_error,
    tool_proposal,
    tool_result,
)
from tests.support.results import train
from tests.support.training import block_with, client_path, form_of, log, own_log, task


async def test_reasons_quote_their_cause(mcp: McpHttpClient, coach: CoachClient) -> None:
    """As the client or a coach has written it, in 120 characters; over REST and for assistants."""
    ana, today = await coach.create_customer("Ana"), coach.ctx.caller.today()
    yesterday = str(today - timedelta(days=1))
    long = "Left knee hurts on stairs. " * 10
    (await coach.post(client_path(ana, "notes"), {"content": long, "isHealth": True})).ok(201)
    own = await coach.as_client(ana)
    (await own.post("/customer/messages", {"text": "Can I\ntrain on Friday?"})).ok(201)
    answered = await block_with(coach, ana, form_of({"label": "How was it?", "type": "text"}), date=yesterday)
    item = answered["items"][0]
    answers = [{"questionId": item["form"]["questions"][0]["_id"], "value": "Hard"}]
    (await own_log(own, answered, item, isCompleted=True, answers=answers)).ok()
    await block_with(coach, ana, form_of(), date=yesterday)
    await block_with(coach, ana, task(), date=yesterday, name="Legs")
    squat = await coach.create_exercise("Squat")
    for days, load in ((3, 100), (2, 110)):
        await train(coach, ana, squat, (5, load), date=str(today - timedelta(days=days)))
    await renew(coach)

    (entry,) = (await coach.get("/coach/attention")).ok()["docs"]
    quotes = {reason["type"]: reason["quote"] for reason in entry["reasons"]}
    assert quotes["health_note"] == f"{long[:119]}…"
    assert quotes["unread_message"] == "Can I train on Friday?"
    assert quotes["check_in_to_review"] == "Check-in: Hard"
    assert quotes["check_in_overdue"] == f"Check-in of {yesterday}"
    assert quotes["missed_workout"] == f"Legs of {yesterday}"
    assert quotes["personal_record"].startswith("Squat: ")
    assert quotes["nothing_scheduled"] == f"Last scheduled on {yesterday}"
    text = await text_of(mcp, "get_attention")
    assert "«Can I train on Friday?»" in text and f"«Legs of {yesterday}»" in text


async def test_reasons_and_notes_have_the_dates_of_the_client(mcp: McpHttpClient, coach: CoachClient) -> None:
    """The beginning of a day of a client is on the day before in UTC, or after it."""
    zones = {"Ana": "Pacific/Kiritimati", "Bo": None}
    (await coach.patch("/coach/account", {"timezone": "Pacific/Pago_Pago"})).ok()
    clients = {name: await coach.create_customer(name, timezone=zone) for name, zone in zones.items()}
    today = {name: coach.ctx.caller.today(zone or "Pacific/Pago_Pago") for name, zone in zones.items()}
    for name, client in clients.items():
        await block_with(coach, client, task(), date=str(today[name] - timedelta(days=2)))
        (await coach.post(client_path(client, "notes"), {"content": "Knee", "isHealth": True})).ok(201)
    await renew(coach)
    lines = (await text_of(mcp, "get_attention")).splitlines()
    for name, client in clients.items():
        [line] = [each for each in lines if f"«{name}»" in each]
        assert f"missed_workout since {today[name] - timedelta(days=2)}" in line
        assert f"health_note newest {today[name]}" in line
        brief = await text_of(mcp, "get_customer", customerId=client["_id"], detail="brief")
        assert f"{today[name]} health: «Knee»" in brief


async def test_clients_without_a_session_in_some_days(mcp: McpHttpClient, coach: CoachClient) -> None:
    """In any number of days, whatever the company's setting is: more and fewer than that."""
    today = coach.ctx.caller.today()
    for name, days in (("Two", 2), ("Five", 5), ("Nine", 9), ("Twelve", 12)):
        client = await coach.create_customer(name)
        block = await block_with(coach, client, task(), date=str(today - timedelta(days=days)))
        (await log(coach, block, block["items"][0], isCompleted=True)).ok()
    await coach.create_customer("New")
    await renew(coach)
    for days, expected in ((10, {"Twelve"}), (9, {"Nine", "Twelve"}), (4, {"Five", "Nine", "Twelve"}), (60, set())):
        found = (await coach.get("/coach/attention", inactiveDays=days)).ok()["docs"]
        assert {each["customer"]["name"] for each in found} == expected
        text = await text_of(mcp, "get_attention", inactiveDays=days)
        assert {name for name in ("Two", "Five", "Nine", "Twelve", "New") if f"«{name}»" in text} == expected
    first = (await coach.get("/coach/attention", inactiveDays=4, limit=1)).ok()
    rest = (await coach.get("/coach/attention", inactiveDays=4, limit=5, after=first["nextCursor"])).ok()
    assert len({each["customer"]["_id"] for each in (*first["docs"], *rest["docs"])}) == 3
    (await coach.get("/coach/attention", inactiveDays=0)).refused(400)
    uncomputed = {"companyId": coach.ctx.company_id, "name": {"$in": ["Nine", "Twelve"]}}
    await coach.ctx.db["customers"].update_many(uncomputed, {"$unset": {"attention": ""}})
    names: list[str] = []
    page: dict[str, Any] = {"nextCursor": None, "hasMore": True}
    while page["hasMore"]:
        after = {"after": page["nextCursor"]} if page["nextCursor"] else {}
        page = (await coach.get("/coach/attention", inactiveDays=4, limit=1, **after)).ok()
        names += [each["customer"]["name"] for each in page["docs"]]
    assert names == ["Five", "Nine", "Twelve"], "those whose reasons are not computed yet are the last"


async def test_compliance_below_a_percentage_between_dates(mcp: McpHttpClient, coach: CoachClient) -> None:
    yesterday = str(coach.ctx.caller.today() - timedelta(days=1))
    for name, done in (("Ana", (True, True)), ("Bo", (True, False)), ("Cy", (False, False)), ("Di", ())):
        client = await coach.create_customer(name)
        for number, completed in enumerate(done):
            day = str(coach.ctx.caller.today() - timedelta(days=number + 1))
            block = await block_with(coach, client, task(), date=day)
            if completed:
                (await log(coach, block, block["items"][0], isCompleted=True)).ok()
    first = str(coach.ctx.caller.today() - timedelta(days=6))
    dates = {"from": first, "to": yesterday, "below": 60}
    assert [each["name"] for each in (await coach.get("/coach/compliance", **dates)).ok()["docs"]] == ["Bo", "Cy"]
    part = (await coach.get("/coach/compliance", **dates, limit=1)).ok()
    rest = (await coach.get("/coach/compliance", **dates, after=part["nextCursor"])).ok()
    assert [each["name"] for each in (*part["docs"], *rest["docs"])] == ["Bo", "Cy"]
    text = await text_of(mcp, "get_compliance", startDate=first, endDate=yesterday, below=60)
    assert text.startswith(f"Compliance from {first} to {yesterday}, below 60%: 2\n«Bo»")


async def test_brief_is_a_client_on_one_page(mcp: McpHttpClient, coach: CoachClient) -> None:
    ana, today = await coach.create_customer("Ana"), coach.ctx.caller.today()
    for content, flags in (
        ("Run 10 km by May", {"isPinned": True}),
        ("Knee", {"isHealth": True}),
        ("Likes rowing", {}),
    ):
        (await coach.post(client_path(ana, "notes"), {"content": content, **flags})).ok(201)
    (await (await coach.as_client(ana)).post("/customer/messages", {"text": "Hello"})).ok(201)
    squat = await coach.create_exercise("Squat")
    for days, load in ((3, 100), (2, 110)):
        await train(coach, ana, squat, (5, load), date=str(today - timedelta(days=days)))
    program = (await coach.post("/coach/programs", {"name": "Base"})).ok(201)
    (await coach.post(f"/coach/programs/{program['_id']}/wblocks", {"name": "Legs", "day": 1})).ok(201)
    tool_change(await mcp.call("assign_program", customerId=ana["_id"], programId=program["_id"], startDate=TODAY))

    text = await text_of(mcp, "get_customer", customerId=ana["_id"], detail="brief")
    assert f"Program:\n  «Base» [{program['_id']}] current, {TODAY} to {TODAY}" in text
    assert f"Goals and pinned notes:\n  {TODAY}: «Run 10 km by May»" in text
    assert f"Health:\n  {TODAY} health: «Knee»" in text
    assert "«Likes rowing»" in text and "client «Ana»; not read yet: «Hello»" in text
    assert f"{today - timedelta(days=2)} «Squat» heaviest_load 110 kg" in text
    assert "completed 100 / 100 / 100% in 7/30/90 days" in text
    assert len(text) < 2_000
    assert "Goals" not in await text_of(mcp, "get_customer", customerId=ana["_id"])


async def test_activity_of_some_types_and_of_own_changes(mcp: McpHttpClient, coach: CoachClient) -> None:
    session = await coach.interactive()
    ana = await coach.create_customer("Ana")
    by_rest = await session.post(client_path(ana, "notes"), {"content": "By the coach"})
    renamed = await session.patch(client_path(ana), {"phone": "1"})
    noted = tool_change(await mcp.call("add_note", customerId=ana["_id"], text="By the assistant"))
    day = [{"date": TODAY, "name": "Legs", "text": "task: Walk"}]
    planned = tool_change(await mcp.call("create_workout", customerId=ana["_id"], days=day))
    await coach.wait_until_numbered(planned["changeId"])

    async def changes(**arguments: Any) -> set[str]:
        docs = tool_result(await mcp.call("get_activity", **arguments))["docs"]
        return {doc["line"].split("changeId ")[1][:24] for doc in docs}

    rest_note, rest_change = by_rest.headers["X-Change-Id"], renamed.headers["X-Change-Id"]
    assert await changes(types=["note_added"]) == {noted["changeId"], rest_note}
    assert await changes(types=["personal_record"]) == set()
    others = await changes(types=["change"])
    assert {rest_change, planned["changeId"]} <= others and not {noted["changeId"], rest_note} & others
    both = await changes(types=["note_added", "change"])
    assert both == others | {noted["changeId"], rest_note}
    assert await changes(mine=True, types=["note_added"]) == {noted["changeId"]}
    own = await changes(mine=True)
    assert own >= {noted["changeId"], planned["changeId"]} and not own & {rest_note, rest_change}

    for client, text in ((coach, "By the assistant"), (session, "By the coach")):
        feed = (await client.get("/coach/activity-feed", mine="true")).ok()["docs"]
        assert [each["data"]["text"] for each in feed] == [text]
    history = (await session.get("/coach/changes", mine="true")).ok()["docs"]
    assert {each["_id"] for each in history} == {rest_note, rest_change}


async def test_own_acts_are_not_hidden_by_proposals_and_a_call_is_one_line(
    mcp: McpHttpClient, coach: CoachClient
) -> None:
    ana, bo, cy = [await coach.create_customer(name) for name in ("Ana", "Bo", "Cy")]
    day = [{"date": TODAY, "name": "Legs", "text": "task: Walk\ntask: Row\ntask: Ski"}]
    created = tool_change(await mcp.call("create_workout", customerId=ana["_id"], days=day))
    for number in range(25):
        tool_proposal(await mcp.call("send_message", customerId=ana["_id"], text=f"Message {number}"), "CONTACT")
    for client in (ana, bo, cy):
        tool_change(await mcp.call("create_workout", customerId=client["_id"], days=day))
    about = {"customerIds": [ana["_id"], bo["_id"], cy["_id"]], "startDate": TODAY, "endDate": TODAY}
    cleared = await approve(coach, tool_proposal(await mcp.call("clear_schedule", **about), "MANY_CLIENTS"))
    change_id = cleared["changeId"]
    note = tool_change(await mcp.call("add_note", customerId=ana["_id"], text="Cleared"))
    await coach.wait_until_numbered(note["changeId"])

    for arguments in ({"mine": True}, {"types": ["change"]}, {}):
        lines = [doc["line"] for doc in tool_result(await mcp.call("get_activity", **arguments))["docs"]]
        assert any(f"changeId {created['changeId']}" in line for line in lines), arguments
        assert sum(change_id in line for line in lines) == 1, "a line for all clients of the call"
        assert all("proposal" not in line and "items, items" not in line for line in lines)
    [line] = [line for line in lines if change_id in line]
    assert "and for 2 more clients; clear_schedule by assistant «" in line
    assert "approved by «Olga Owner» over the API; changeId" in line and line.endswith(f"changeId {change_id}")
    proposal = tool_proposal(await mcp.call("undo", changeId=change_id), "MANY_CLIENTS")
    assert "restore 4 workouts of «Ana», «Bo», «Cy»" in proposal["summary"]
    await approve(coach, proposal)
    for client in (ana, bo, cy):
        assert await coach.calendar(client, TODAY, TODAY)


async def test_who_acted_is_named_after_its_key_is_deleted(
    public_server: TestServer, mcp: McpHttpClient, coach: CoachClient
) -> None:
    """For the coach whose key it was, and the owner; to another coach it has no name."""
    session, ana = await coach.interactive(), await coach.create_customer("Ana")
    eli = await hire(coach, "Eli")
    keys = {name: (await session.post("/coach/api-keys", {"name": name})).ok(201) for name in ("Robot", "Other")}
    for key in keys.values():
        async with McpHttpClient(public_server, {"X-API-Key": key["key"]}) as acting:
            note = tool_change(await acting.call("add_note", customerId=ana["_id"], text="Knee"))
    await coach.wait_until_numbered(note["changeId"])
    (await session.delete(f"/coach/api-keys/{keys['Robot']['_id']}")).ok(204)

    text = await text_of(mcp, "get_activity", types=["note_added"])
    assert all(f"by assistant «{name}» of «Olga Owner»" in text for name in keys), text
    async with McpHttpClient(public_server, {"X-API-Key": str(eli.key.key)}) as foreign:
        text = await text_of(foreign, "get_activity", types=["note_added"])
        assert text.count("by assistant «Olga Owner»") == 2 and "Robot" not in text


async def test_workouts_are_found_over_all_clients(mcp: McpHttpClient, coach: CoachClient) -> None:
    ana, bo, cy = [
        await coach.create_customer(name, groups=["Team"] if name == "Cy" else []) for name in ("Ana", "Bo", "Cy")
    ]
    tomorrow = str(coach.ctx.caller.today() + timedelta(days=1))
    texts = {
        "Ana": "Back squat: 3x8 @60kg\nPlank: 3x30s",
        "Bo": "Push-up: 2x10 | Slow tempo",
        "Cy": "Goblet squat: 2x12",
    }
    for client in (ana, bo, cy):
        days = [{"date": tomorrow, "name": "Day A", "text": texts[client["name"]]}]
        days += [{"date": TODAY, "name": "Legs", "text": "Back squat: 2x5 @70kg"}] if client is ana else []
        tool_change(await mcp.call("create_workout", customerId=client["_id"], days=days))
    tool_change(await mcp.call("log_workout", customerId=ana["_id"], date=TODAY, text="Back squat: 5, 5 @70kg"))

    async def find(**arguments: Any) -> list[str]:
        return [doc["line"] for doc in tool_result(await mcp.call("find_workouts", **arguments))["docs"]]

    squats = await find(exercise="back squat")
    assert [line.split()[0] for line in squats] == [TODAY, tomorrow] and all(ana["_id"] in line for line in squats)
    assert "«Barbell Back Squat»: 2x5 @70kg done: 5, 5 @70kg" in squats[0] and "Plank" not in squats[1]
    assert [tomorrow in line for line in await find(exercise="back squat", status="planned")] == [True]
    assert [TODAY in line for line in await find(exercise="back squat", status="done")] == [True]
    of_muscle = await find(muscle="quadriceps", **{"from": tomorrow, "to": tomorrow})
    assert ["«Ana»" in line or "«Cy»" in line for line in of_muscle] == [True, True]
    assert ["«Cy»" in line for line in await find(muscle="Quadriceps", groups=["team"])] == [True]
    assert ["«Bo»" in line for line in await find(words="slow TEMPO")] == [True]
    assert await find(words="slow", customerIds=[ana["_id"]]) == []
    first = tool_result(await mcp.call("find_workouts", exercise="back squat", pageSize=1))
    assert (len(first["docs"]), first["nextPage"]) == (1, 2)
    assert await find(exercise="back squat", pageSize=1, page=2) == squats[1:]
    tool_error(await mcp.call("find_workouts", muscle="wing"), "muscle is unknown", "Quadriceps")
    tool_error(await mcp.call("find_workouts", words="a", muscle="Chest"), "one of them")
    tool_error(await mcp.call("find_workouts", exercise="kettlebell press"), "does not mean exactly one exercise")
    late = {"from": "2026-01-01", "to": "2028-01-01"}
    tool_error(await mcp.call("find_workouts", words="a", **late), "at most 366 days")


async def test_every_setting_of_a_workout_is_changed_by_a_tool(mcp: McpHttpClient, coach: CoachClient) -> None:
    ana = await coach.create_customer("Ana")
    created = tool_change(
        await mcp.call("create_workout", customerId=ana["_id"], days=[{"date": TODAY, "name": "Off"}])
    )
    about = {"customerId": ana["_id"], "workoutId": created["workoutId"]}
    changed = tool_change(await mcp.call("update_workout", **about, isRest=True, name="Rest"))
    assert "«Off» → «Rest» of «Ana»" in changed["summary"] and "rest day no → yes" in changed["summary"]
    assert (await coach.calendar(ana, TODAY, TODAY))[0]["isRest"] is True
    again = tool_result(await mcp.call("update_workout", **about, isRest=True))
    assert again["summary"].startswith("Nothing changed")
    tool_error(await mcp.call("update_workout", **about), "must have name, date, order or isRest")


async def test_one_tool_creates_one_client_or_several(mcp: McpHttpClient, coach: CoachClient) -> None:
    await coach.create_customer("Ana")
    sent = [{"name": "Ana"}, {"name": "Bo"}, {"name": "Cy"}]
    dry = tool_result(await mcp.call("create_customer", customers=sent, dryRun=True))
    assert dry["summary"].startswith("Would create 2 clients without an invitation: «Bo», «Cy». Left out")
    await approve(coach, tool_proposal(await mcp.call("create_customer", customers=sent), "MANY_CLIENTS"))
    assert (await coach.get("/coach/customers", archived=False, pageSize=9, pageNum=1)).ok()["totalDocs"] == 3
    for wrong in ({}, {"name": "Di", "customers": sent}, {"name": "Di", "dryRun": True}):
        tool_error(await mcp.call("create_customer", **wrong), "customers")
