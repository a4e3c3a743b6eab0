"""Several clients that an assistant creates at once."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from coaching_service.core.ids import ObjectId
from tests.support.client import CoachClient
from tests.support.mcp_client import McpHttpClient, approve, tool_change, tool_error, tool_proposal

TOOL = "create_customers"


async def test_clients_are_created_after_one_proposal(mcp: McpHttpClient, coach: CoachClient) -> None:
    domain = f"@{coach.ctx.company_id}.test"
    cy = await coach.create_customer("Cy", email=f"cy{domain}")
    ana = await coach.create_customer("Ána", surname="Flores")
    sent: list[dict[str, Any]] = [
        {"name": "Bo", "surname": "Lind", "email": f"bo{domain}", "groups": ["Team"], "birthday": "1990-02-01"},
        {"name": "ana flores"},
        {"name": "Cyril", "email": f"CY{domain}"},
        {"name": "Di"},
        {"name": "Bob", "email": f"BO{domain}"},
    ]
    line = (
        "2 clients without an invitation: «Bo Lind», «Di». Left out, because they are there: "
        f"«ana flores» (same name as «Ána Flores» [{ana['_id']}]), "
        f"«Cyril» (same e-mail address as «Cy» [{cy['_id']}]), «Bob» (same e-mail address as an earlier entry)."
    )
    key = {"idempotencyKey": "once"}
    shown = tool_change(await mcp.call(TOOL, customers=sent, dryRun=True, **key))
    assert (shown["summary"], shown["created"], shown["leftOut"]) == (f"Would create {line}", 0, 3)
    assert shown["changeId"] is None
    assert await coach.names() == ["Ána", "Cy"]

    proposed = await mcp.call(TOOL, customers=sent, **key)
    assert tool_proposal(proposed, "MANY_CLIENTS")["summary"] == f"Create {line.replace('Left out', 'Leave out')}"
    assert await coach.names() == ["Ána", "Cy"]
    created = await approve(coach, proposed["structuredContent"])
    assert await coach.names() == ["Ána", "Bo", "Cy", "Di"]
    bo = (await coach.get(f"/coach/customers/{created['customerIds'][0]}")).ok()
    assert (bo["surname"], bo["email"], bo["birthday"]) == ("Lind", f"bo{domain}", "1990-02-01")
    assert bo["customerRoleData"]["groups"] == ["Team"]
    refused = await mcp.call("undo", changeId=created["changeId"])
    assert refused["isError"] or not refused["structuredContent"].get("executed", True)

    again = tool_change(await mcp.call(TOOL, customers=sent))
    assert again["summary"].startswith("Created 0 clients without an invitation. Left out, because they are there: «Bo")


async def test_one_client_needs_no_proposal_and_all_errors_come_at_once(mcp: McpHttpClient, coach: CoachClient) -> None:
    wrong = [{"name": ""}, {"name": "Bo", "email": "bo"}, {"surname": "Lind", "nickname": "Li"}]
    tool_error(
        await mcp.call(TOOL, customers=wrong),
        "customers.0.name should not be empty",
        "customers.1.email must be",
        "customers.2.name",
        "unknown field",
    )
    tool_error(await mcp.call(TOOL, customers=[{"name": "Bo"}] * 101), "customers must")
    assert tool_change(await mcp.call(TOOL, customers=[{"name": "Bo"}]))["summary"].endswith("invitation: «Bo».")
    assert await coach.names() == ["Bo"]


async def test_batch_of_rest_names_clients_who_may_be_the_same(coach: CoachClient) -> None:
    domain = f"@{coach.ctx.company_id}.test"
    bo = await coach.create_customer("Bo", surname="Lind", email=f"bo{domain}", externalId="crm:1")
    eva = await coach.create_customer("Eva María", surname="de la Cruz")
    entries: list[dict[str, Any]] = [
        {"name": "Bob", "email": f"bo{domain}"},
        {"name": "BO LIND"},
        {"name": "Bo", "surname": "Lund"},
        {"name": ""},
        {"name": "Bo", "surname": "Lind", "externalId": "crm:1"},
        {"name": "Eva Maria de la Cruz"},
    ]
    body = {"customers": entries, "onConflict": "update"}
    for dry_run in (True, False):
        result = (await coach.post("/coach/customers/batch", {**body, "dryRun": dry_run})).ok()
        assert (result["created"], result["updated"], result["unchanged"]) == (4, 0, 1)
        same = [{(each["_id"], each["same"]) for each in entry.get("duplicates", [])} for entry in result["results"]]
        of_bo = [{(bo["_id"], "email")}, {(bo["_id"], "name")}, set(), set(), set()]
        assert same == [*of_bo, {(eva["_id"], "name")}]


async def test_new_clients_are_deleted_by_undo_within_the_hour_unless_they_were_used(
    mcp: McpHttpClient, coach: CoachClient
) -> None:
    async def create(*names: str) -> tuple[str, list[str]]:
        proposal = tool_proposal(await mcp.call(TOOL, customers=[{"name": each} for each in names]), "MANY_CLIENTS")
        created = await approve(coach, proposal)
        return created["changeId"], created["customerIds"]

    change_id, _ = await create("Bo", "Di")
    proposal = tool_proposal(await mcp.call("undo", changeId=change_id), "MANY_CLIENTS")
    assert proposal["summary"] == "Remove 2 new clients «Bo», «Di» for good. This cannot be undone."
    assert await coach.names() == ["Bo", "Di"]
    await approve(coach, proposal)
    assert await coach.names() == []
    again = await mcp.call("undo", changeId=change_id)  # before or after the job that erases their changes
    assert again["content"][0]["text"].startswith(("Customer not found", "This change cannot be undone"))
    tool_error(again, "nothing was changed")

    used, [_, second] = await create("Bo", "Di")
    tool_change(await mcp.call("add_note", customerId=second, text="Knee"))
    tool_error(await mcp.call("undo", changeId=used), "added or changed since: «Di»; archive")
    renamed, [third, _] = await create("Ed", "Flo")
    (await coach.patch(f"/coach/customers/{third}", {"phone": "1"})).ok()
    tool_error(await mcp.call("undo", changeId=renamed), "added or changed since: «Ed»; archive")

    created = tool_change(await mcp.call("create_customer", name="Gus"))
    assert (await coach.post(f"/coach/changes/{created['changeId']}/undo")).refused(409)["code"] == "NOT_UNDOABLE"
    changed = {"_id": ObjectId(created["changeId"]), "companyId": coach.ctx.company_id}
    earlier = {"$set": {"createdAt": datetime.now(UTC) - timedelta(minutes=61)}}
    await coach.ctx.db["changes"].update_one(changed, earlier)
    tool_error(await mcp.call("undo", changeId=created["changeId"]), "within the hour; archive")
    assert await coach.names() == ["Bo", "Di", "Ed", "Flo", "Gus"]
    latest = tool_change(await mcp.call("create_customer", name="Hal"))
    done = tool_change(await mcp.call("undo", changeId=latest["changeId"]))
    assert done["summary"] == "Removed 1 new client «Hal» for good. This cannot be undone."
    assert "Hal" not in await coach.names()

    other = (await coach.post("/coach/customers", {"name": "Ida"})).headers["X-Change-Id"]
    tool_error(await mcp.call("undo", changeId=other), "cannot be undone")
