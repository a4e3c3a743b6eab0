"""Absences of clients, and the return from one, for assistants."""

from __future__ import annotations

from tests.support.check_ins import day
from tests.support.client import CoachClient
from tests.support.mcp_client import McpHttpClient, approve, named, tool_change, tool_error, tool_proposal
from tests.support.schedules import EVER
from tests.support.training import Json, block_with, client_path, task


async def calendar(coach: CoachClient, customer: Json) -> list[tuple[str, str]]:
    return [(block["date"], block["name"]) for block in await coach.calendar(customer, *EVER)]


async def test_assistant_enters_a_week_of_illness_and_the_return(coach: CoachClient, mcp: McpHttpClient) -> None:
    """Two calls; a note is confirmed, because it is worded as if a person wrote to the client."""
    ana = await coach.create_customer()
    await block_with(coach, ana, task(), date=day(coach, 2), name="Legs")
    about = {"customerId": ana["_id"]}
    noted = await mcp.call("set_availability", **about, kind="ill", until=day(coach, 6), note="Flu.")
    ill = await approve(coach, tool_proposal(noted, "CONTACT"))
    assert ill["summary"] == (
        f"Set «Ana» ill {day(coach, 0)} to {day(coach, 6)} «Flu.». 1 workout planned in it: «Legs» on {named(day(coach, 2))}. "
        "With back, shift or drop them."
    )
    shown = (await mcp.call("get_workouts", **about, startDate=day(coach, 0), endDate=day(coach, 9)))[
        "structuredContent"
    ]
    assert shown["availability"]["kind"] == "ill"
    back = {"kind": "back", "startDate": day(coach, 4), "planned": "shift"}
    returned = tool_change(await mcp.call("set_availability", **about, **back))
    assert returned["summary"] == (
        f"Set «Ana» back from {named(day(coach, 4))}: ill {day(coach, 0)} to {day(coach, 3)} «Flu.»; moved 1 workout by 4 days, "
        f"to {named(day(coach, 6))}."
    )
    assert await calendar(coach, ana) == [(day(coach, 6), "Legs")]
    tool_change(await mcp.call("undo", changeId=returned["changeId"]))
    assert await calendar(coach, ana) == [(day(coach, 2), "Legs")]
    dropped = tool_change(
        await mcp.call("set_availability", **about, kind="back", startDate=day(coach, 4), planned="drop")
    )
    assert dropped["summary"].endswith("; removed 1 workout.")
    assert await calendar(coach, ana) == []


async def test_assistant_changes_a_period(coach: CoachClient, mcp: McpHttpClient) -> None:
    ana = await coach.create_customer()
    about = {"customerId": ana["_id"]}
    body = {"kind": "ill", "from": day(coach, -1), "until": day(coach, 2)}
    (await coach.post(client_path(ana, "availability"), body)).ok(201)
    longer = tool_change(await mcp.call("set_availability", **about, kind="injured", until=day(coach, 5)))
    assert longer["summary"] == (
        f"Set «Ana» ill {day(coach, -1)} to {day(coach, 2)} → injured {day(coach, -1)} to {day(coach, 5)}. "
        "Nothing is planned in it."
    )
    [period] = (await coach.get(client_path(ana, "availability"))).ok()
    assert (period["kind"], period["from"], period["until"]) == ("injured", day(coach, -1), day(coach, 5))
    tool_proposal(await mcp.call("set_availability", **about, kind="injured"), "MANY_DAYS")
    wrong = await mcp.call("set_availability", **about, kind="back", until=day(coach, 1))
    tool_error(wrong, "until must not be combined with kind back")
    text = (await mcp.call("get_customer", **about))["content"][0]["text"]
    assert f"Availability: injured {day(coach, -1)} to {day(coach, 5)}" in text


async def test_assistant_does_not_replace_another_period(coach: CoachClient, mcp: McpHttpClient) -> None:
    """Neither what was before, nor what is to come."""
    ana = await coach.create_customer()
    path, about = client_path(ana, "availability"), {"customerId": ana["_id"]}
    for kind, first, until in (("limited", -3, 2), ("away", 20, 25)):
        (await coach.post(path, {"kind": kind, "from": day(coach, first), "until": day(coach, until)})).ok(201)
    before = (await coach.get(path)).ok()
    for period in (
        {"kind": "ill", "until": day(coach, 4)},
        {"kind": "ill", "startDate": day(coach, 1), "until": day(coach, 4)},
        {"kind": "injured", "startDate": day(coach, 18), "until": day(coach, 22)},
        {"kind": "away", "startDate": day(coach, 5)},
    ):
        tool_error(await mcp.call("set_availability", **about, **period), "periods must not overlap")
    assert (await coach.get(path)).ok() == before
    tool_change(await mcp.call("set_availability", **about, kind="limited", until=day(coach, -1)))
    tool_change(await mcp.call("set_availability", **about, kind="ill", until=day(coach, 4)))
    tool_change(
        await mcp.call("set_availability", **about, kind="away", startDate=day(coach, 19), until=day(coach, 22))
    )
    listed = [(each["kind"], each["from"], each["until"]) for each in (await coach.get(path)).ok()]
    assert listed == [
        ("limited", day(coach, -3), day(coach, -1)),
        ("ill", day(coach, 0), day(coach, 4)),
        ("away", day(coach, 19), day(coach, 22)),
    ]
