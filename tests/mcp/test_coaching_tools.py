"""Tools with which an assistant finds clients, and finds out and tells what happens with them."""

from __future__ import annotations

import re
from datetime import timedelta

from aiohttp.test_utils import TestServer

from coaching_service.core.auth import CUSTOMERS, FORMS
from coaching_service.people import team
from tests.support.assistants import authorize_assistant
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
from tests.support.training import block_with, client_path, form_of, log, own_log, task


async def test_clients_are_found_by_words_in_any_order(mcp: McpHttpClient, coach: CoachClient) -> None:
    ana = await coach.create_customer(name="Ana María", surname="García", groups=["Team A"])
    sean = await coach.create_customer(name="Sean", surname="O’Neil", groups=["Coach’s choice"])
    gone = await coach.create_customer(name="Bea", surname="Old")
    (await coach.put("/coach/customers/archive", {"id": gone["_id"]})).ok()

    for search in ("garcia ana", "maria garc", "ana@", "García"):
        matches = tool_result(await mcp.call("list_customers", search=search))["docs"]
        assert [each["_id"] for each in matches] == ([] if search == "ana@" else [ana["_id"]]), search
    for search in ("o'neil", "O’Neil sean", "Oʼneil"):
        matches = tool_result(await mcp.call("list_customers", search=search))["docs"]
        assert [each["_id"] for each in matches] == [sean["_id"]], search
    for group in ("team a", "TEAM A"):
        assert tool_result(await mcp.call("list_customers", groups=[group]))["totalDocs"] == 1
    assert tool_result(await mcp.call("list_customers", groups=["coach's CHOICE"]))["totalDocs"] == 1

    missed = await text_of(mcp, "list_customers", search="Anna Garzia")
    assert f"The nearest names: «Ana María García» [{ana['_id']}]" in missed
    assert f"«Bea Old» [{gone['_id']}] (archived)" in await text_of(mcp, "list_customers", search="bea old")
    unknown = await text_of(mcp, "list_customers", groups=["Team B"])
    assert "There is no group «Team B». The nearest: «Team A»" in unknown


async def test_notes_are_added_and_listed(mcp: McpHttpClient, coach: CoachClient) -> None:
    ana = await coach.create_customer()
    added = tool_change(
        await mcp.call("add_note", customerId=ana["_id"], text="Knee hurts <after>\nsquats", isHealth=True)
    )
    assert added["summary"] == "Added a health note on «Ana»: «Knee hurts <after> squats»."
    (note,) = (await coach.get(client_path(ana, "notes"))).ok()
    assert (note["_id"], note["isHealth"]) == (added["noteId"], True)
    assert note["content"] == "Knee hurts &lt;after&gt;<br>squats"
    assert "health: «Knee hurts <after> squats»" in await text_of(mcp, "list_notes", customerId=ana["_id"])
    tool_change(await mcp.call("undo", changeId=added["changeId"]))
    assert (await coach.get(client_path(ana, "notes"))).ok() == []


async def test_messages_are_read_without_marking_and_sent_after_confirmation(
    mcp: McpHttpClient, coach: CoachClient
) -> None:
    ana = await coach.create_customer()
    assert await text_of(mcp, "list_messages") == "Clients with unread messages: none"
    own = await coach.as_client(ana)
    (await own.post("/customer/messages", {"text": "Can I train on Friday?"})).ok(201)
    for _ in range(2):
        unread = await text_of(mcp, "list_messages")
        assert f"«Ana» [{ana['_id']}]: 1 unread" in unread and "«Can I train on Friday?»" in unread

    sent = {"customerId": ana["_id"], "text": "Yes,\nof course"}
    proposal = tool_proposal(await mcp.call("send_message", **sent), "CONTACT")
    assert proposal["summary"] == "Send to «Ana», delivered in a minute: «Yes, of course»."
    assert len((await coach.get(client_path(ana, "messages"))).ok()["docs"]) == 1
    await approve(coach, proposal)
    newest, _ = (await coach.get(client_path(ana, "messages"))).ok()["docs"]
    assert (newest["text"], newest["author"]["type"]) == ("Yes,\nof course", "assistant")
    page = tool_result(await mcp.call("list_messages", customerId=ana["_id"], limit=1))
    older = tool_result(await mcp.call("list_messages", customerId=ana["_id"], limit=1, after=page["nextCursor"]))
    lines = [each["line"].split(": ")[-1] for each in (*page["docs"], *older["docs"])]
    assert lines == ["«Yes, of course", "«Can I train on Friday?"]
    tool_error(await mcp.call("list_messages", after=page["nextCursor"]), "after must be the nextCursor of this list")


async def test_check_ins_are_listed_and_reviewed(mcp: McpHttpClient, coach: CoachClient) -> None:
    ana, bo = await coach.create_customer("Ana"), await coach.create_customer("Bo")
    yesterday = str(coach.ctx.caller.today() - timedelta(days=1))
    answered = await block_with(coach, ana, form_of({"label": "How was it?", "type": "text"}), date=yesterday)
    await block_with(coach, bo, form_of(), date=yesterday)
    item = answered["items"][0]
    answers = [{"questionId": item["form"]["questions"][0]["_id"], "value": "Hard, knee hurts"}]
    (await own_log(await coach.as_client(ana), answered, item, isCompleted=True, answers=answers)).ok()

    both = await text_of(mcp, "list_check_ins")
    assert "Check-ins to review: 1" in both and "«How was it?»: «Hard, knee hurts»" in both
    assert f"{yesterday} overdue: «Bo» [{bo['_id']}] «Check-in»" in both
    (response,) = tool_result(await mcp.call("list_check_ins", status="to_review"))["docs"]
    response_id = re.findall("responseId ([0-9a-f]{24})", response["line"])[0]
    assert tool_result(await mcp.call("list_check_ins", customerId=ana["_id"], status="pending"))["docs"] == []

    review = {"responseId": response_id, "reply": "Rest for a day"}
    proposal = tool_proposal(await mcp.call("review_check_in", **review), "CONTACT")
    assert response_id in str(tool_result(await mcp.call("list_check_ins"))["docs"])
    await approve(coach, proposal)
    assert tool_result(await mcp.call("list_check_ins", status="to_review"))["docs"] == []
    [*_, last] = tool_result(await mcp.call("list_check_ins", customerId=ana["_id"]))["docs"]
    assert last["line"].startswith("Last answered, reviewed: ") and response_id in last["line"]
    assert last["line"] in await text_of(mcp, "list_check_ins", customerId=ana["_id"])
    assert (await coach.get(client_path(ana, "messages"))).ok()["docs"][0]["text"] == "Rest for a day"
    again = tool_change(await mcp.call("review_check_in", responseId=response_id, isReviewed=False))
    assert "to be reviewed" in again["summary"]
    again = tool_change(await mcp.call("review_check_in", responseId=response_id, isReviewed=False))
    assert again["changeId"] is None and again["summary"].startswith("Nothing changed: ")
    replying = tool_proposal(await mcp.call("review_check_in", **review, isReviewed=False), "CONTACT")
    assert replying["summary"].startswith("Send to «Ana», ") and replying["summary"].endswith("to be reviewed already.")


async def test_attention_and_compliance_of_all_clients(mcp: McpHttpClient, coach: CoachClient) -> None:
    ana, bo = await coach.create_customer("Ana", groups=["Team A"]), await coach.create_customer("Bo")
    for days, client, done in ((1, ana, False), (2, ana, True), (1, bo, True)):
        day = str(coach.ctx.caller.today() - timedelta(days=days))
        block = await block_with(coach, client, task(), date=day)
        if done:
            (await log(coach, block, block["items"][0], isCompleted=True)).ok()
    await renew(coach)

    listed = await text_of(mcp, "get_attention", reasons=["missed_workout"], groups=["TEAM a"])
    assert "Clients who need attention: 1" in listed and f"«Ana» [{ana['_id']}]: score" in listed
    assert "missed_workout since" in listed

    low = await text_of(mcp, "get_compliance", below=60)
    assert low == f"Compliance of the last 30 days, below 60%: 1\n«Ana» [{ana['_id']}]: 50% (1 of 2 workout days)"
    dates = {"startDate": str(coach.ctx.caller.today() - timedelta(days=2)), "endDate": TODAY}
    by_name = tool_result(await mcp.call("get_compliance", **dates))["docs"]
    assert [each["line"] for each in by_name] == [
        "Ana»: 50% (1 of 2 workout days)",
        "Bo»: 100% (1 of 1 workout days)",
    ]
    for wrong in ({"period": 8}, {"period": 7, **dates}, {"period": 7, "customerId": ana["_id"]}):
        tool_error(await mcp.call("get_compliance", **wrong), "period")


async def test_attention_says_how_many_there_are_and_groups_who_has_the_same_reason(
    mcp: McpHttpClient, coach: CoachClient
) -> None:
    new = [await coach.create_customer(name) for name in ("Ana", "Bo", "Cy")]
    hurt = await coach.create_customer("Dee")
    (await coach.post(client_path(hurt, "notes"), {"content": "Left knee", "isHealth": True})).ok(201)
    await renew(coach)

    first, about_dee, about_the_others = (await text_of(mcp, "get_attention")).splitlines()
    assert first == "Clients who need attention: 4"
    assert about_dee.startswith(f"«Dee» [{hurt['_id']}]: score ") and "health_note newest" in about_dee
    named = ", ".join(f"«{each['name']}» [{each['_id']}]" for each in new)
    assert about_the_others.startswith(f"{named}: score ")
    assert about_the_others.endswith("; nothing_scheduled «Nothing was ever scheduled»; trained never")
    assert "nothing_scheduled «Nothing was ever scheduled»" in about_dee, "it has no date"
    part = tool_result(await mcp.call("get_attention", limit=2))
    assert (part["totalDocs"], len(part["docs"])) == (4, 2)
    assert (await text_of(mcp, "get_attention", limit=2)).startswith(
        "Clients who need attention: 4; shown 2; more with after "
    )
    away = await text_of(mcp, "get_attention", inactiveDays=1)
    assert away.startswith("Clients without a session in 1 days: none"), "they were created today"


async def test_activity_has_plan_changes_with_their_change(mcp: McpHttpClient, coach: CoachClient) -> None:
    ana, bo = await coach.create_customer("Ana"), await coach.create_customer("Bo")
    block = await block_with(coach, ana, task(), date=TODAY)
    (await own_log(await coach.as_client(ana), block, block["items"][0], isCompleted=True)).ok()
    tomorrow = str(coach.ctx.caller.today() + timedelta(days=1))
    moved = await coach.patch(client_path(ana, "wblocks", block["_id"]), {"date": tomorrow})
    note = tool_change(await mcp.call("add_note", customerId=bo["_id"], text="Call him"))
    removed = await coach.delete(client_path(ana, "wblocks", block["_id"]))
    await coach.wait_until_numbered(removed.headers["X-Change-Id"])

    text = await text_of(mcp, "get_activity", since=TODAY)
    deleted, noted, changed, *_ = text.splitlines()[1:]
    assert f"«Ana» [{ana['_id']}] 1 workout deleted: {tomorrow} «Legs»" in deleted
    assert f"changeId {removed.headers['X-Change-Id']}" in deleted
    assert "«Bo»" in noted and "note_added «Call him»; by assistant" in noted and note["changeId"] in noted
    assert f"date «{TODAY}» -> «{tomorrow}»" in changed and f"changeId {moved.headers['X-Change-Id']}" in changed
    of_bo = tool_result(await mcp.call("get_activity", customerId=bo["_id"]))["docs"]
    assert ["note_added" in each["line"] for each in of_bo] == [True, False]
    pages: list[str] = []
    for page in (1, 2, 3, 4, 5, 6):
        part = tool_result(await mcp.call("get_activity", pageSize=2, page=page))
        pages += [each["line"] for each in part["docs"]]
        if "nextPage" not in part:
            break
    assert len(pages) == len(set(pages)) and len(pages) >= 7
    assert await text_of(mcp, "get_activity", since="2099-01-01") == "Activity since 2099-01-01: none"
    for invalid in ("yesterday", 5, True, ["2026-03-02"], {"$gt": ""}):
        tool_error(await mcp.call("get_activity", since=invalid), "since must be a time")
    tool_error(await mcp.call("get_activity", page=11, pageSize=100), "1000 entries")


async def test_employee_reads_only_assigned_clients(
    mcp: McpHttpClient, public_server: TestServer, coach: CoachClient
) -> None:
    email = f"eli-{coach.ctx.company_id}@example.com"
    permissions = [CUSTOMERS.VIEW, CUSTOMERS.EDIT, FORMS.VIEW, FORMS.EDIT]
    hired = await team.create(coach.ctx, "Eli", email, permissions, "assigned", "no hash")
    yesterday = str(coach.ctx.caller.today() - timedelta(days=1))
    for name, fields in (("Mine", {"assignedTo": str(hired["_id"])}), ("Theirs", {})):
        client = await coach.create_customer(name, **fields)
        await block_with(coach, client, form_of(), task(), date=yesterday)
        (await (await coach.as_client(client)).post("/customer/messages", {"text": f"From {name}"})).ok(201)
        (await coach.post(client_path(client, "notes"), {"content": f"About {name}", "isHealth": True})).ok(201)
    theirs = client
    await renew(coach)
    eli = await team.get_principal(coach.ctx.services, hired["_id"])
    assert eli is not None
    grant = await authorize_assistant(coach.ctx.acting_as(eli))
    async with McpHttpClient(public_server, {"Authorization": f"Bearer {grant.tokens.access}"}) as employee:
        for tool, sent in (
            ("list_customers", {}),
            ("get_attention", {}),
            ("get_compliance", {}),
            ("get_compliance", {"startDate": yesterday, "endDate": yesterday}),
            ("get_activity", {}),
            ("list_check_ins", {}),
            ("list_messages", {}),
        ):
            assert "Theirs" in await text_of(mcp, tool, **sent), tool
            text = await text_of(employee, tool, **sent)
            assert "Mine" in text and "Theirs" not in text, tool
        assert "Theirs" not in await text_of(employee, "list_customers", search="Thiers")
        for tool in ("get_activity", "get_compliance", "list_messages", "list_notes", "get_customer"):
            tool_error(await employee.call(tool, customerId=theirs["_id"]), "assigned to another coach")
