"""Tools about a client who has chosen another unit of load than the company's."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest

from tests.integrations.test_load_unit import convert
from tests.support.client import CoachClient
from tests.support.fixed_clock import TODAY
from tests.support.mcp_client import McpHttpClient, tool_change, tool_proposal, tool_result
from tests.support.results import train

pytestmark = pytest.mark.usefixtures("wednesday")
DAYS = [str(TODAY + timedelta(days=number)) for number in range(40)]
Json = dict[str, Any]


@pytest.fixture
async def ana(coach: CoachClient) -> Json:
    """A client who has chosen pounds; the company has kilograms."""
    client = await coach.create_customer("Ana")
    (await (await coach.as_client(client)).patch("/customer/me", {"loadUnit": "lb"})).ok()
    return client


async def planned_loads(coach: CoachClient, client: Json, first: str, last: str) -> list[list[float]]:
    """The stored loads of the planned sets of each day."""
    return [
        [each["load"] for item in block["items"] for each in item["exerciseSets"]]
        for block in await coach.calendar(client, first, last)
    ]


async def test_loads_change_in_the_unit_of_the_client(mcp: McpHttpClient, coach: CoachClient, ana: Json) -> None:
    """Added, rounded and named in pounds; stored in the company's kilograms."""
    await coach.create_exercise("Squat")
    await coach.create_exercise("Row")
    about = {"customerId": ana["_id"]}
    day = {"date": DAYS[0], "name": "Legs", "text": "Squat: 1x5 @220, 1x5 @101.5"}
    tool_change(await mcp.call("create_workout", **about, days=[day]))
    assert await planned_loads(coach, ana, DAYS[0], DAYS[0]) == [[99.79, 46.04]]

    copy = {**about, "startDate": DAYS[0], "endDate": DAYS[0], "targetDate": DAYS[1]}
    copied = tool_change(await mcp.call("copy_schedule", **copy, repeat=2, addLoad=5))
    assert copied["summary"].endswith("load +5; «Squat» 101.5 → 105 lb, 101.5 → 110 lb, 220 → 225 lb, 220 → 230 lb.")
    assert await planned_loads(coach, ana, DAYS[1], DAYS[2]) == [[102.06, 47.63], [104.33, 49.9]]

    adjust = {**about, "startDate": DAYS[1], "endDate": DAYS[1]}
    adjusted = tool_change(await mcp.call("adjust_schedule", **adjust, addPercent=10))
    assert adjusted["summary"].endswith("load +10%; «Squat» 105 → 115 lb, 225 → 250 lb.")
    adjusted = tool_change(await mcp.call("adjust_schedule", **adjust, addLoad=-7, rounding=0))
    assert adjusted["summary"].endswith("115 → 108 lb, 250 → 243 lb.")
    adjusted = tool_change(await mcp.call("adjust_schedule", **adjust, addLoad=20, rounding=10))
    assert adjusted["summary"].endswith("108 → 130 lb, 243 → 260 lb.")
    assert await planned_loads(coach, ana, DAYS[1], DAYS[1]) == [[117.93, 58.97]]

    in_kilograms = {"startDate": DAYS[1], "endDate": DAYS[1], "progression": {"load": {"add": 2.5}}}
    changed = (await coach.post(f"/coach/customers/{ana['_id']}/schedule/adjust", in_kilograms)).ok()
    assert [each["after"] for each in changed["loadChanges"]] == [62.5, 120]


async def test_load_that_does_not_change_keeps_its_decimals(mcp: McpHttpClient, coach: CoachClient, ana: Json) -> None:
    await coach.create_exercise("Squat")
    bo, known = await coach.create_customer("Bo"), {"startDate": DAYS[0], "endDate": DAYS[0]}
    for client in (ana, bo):
        day = {"date": DAYS[0], "name": "Legs", "text": "Squat: 1x5 @62.53kg"}
        tool_change(await mcp.call("create_workout", customerId=client["_id"], days=[day]))
        tool_change(await mcp.call("adjust_schedule", customerId=client["_id"], **known, addLoad=0, addReps=1))
        assert await planned_loads(coach, client, DAYS[0], DAYS[0]) == [[62.53]]


async def test_figures_and_records_are_shown_in_the_unit_of_the_client(
    mcp: McpHttpClient, coach: CoachClient, ana: Json
) -> None:
    """Of all clients together, records are in the company's unit; other figures of entries are as they are."""
    squat = await coach.create_exercise("Squat")
    await train(coach, ana, squat, (5, 100), date=DAYS[0])
    days = {"startDate": DAYS[0], "endDate": DAYS[0]}
    load = await mcp.call("get_training_load", customerId=ana["_id"], **days)
    assert "loads in lb" in str(load) and "volume load 1102.3" in str(load)

    own = tool_result(await mcp.call("get_activity", customerId=ana["_id"]))
    assert records_of(own) == {
        "heaviest_load": (220.5, "lb"),
        "estimated_1rm": (257.2, "lb"),
        "most_reps": (5, "count"),
    }
    everyone = tool_result(await mcp.call("get_activity"))
    assert records_of(everyone)["heaviest_load"] == (100, "kg")
    assert "220.5 lb" in str(await mcp.call("get_activity", customerId=ana["_id"]))


def records_of(activity: Json) -> dict[str, tuple[float, str]]:
    """The values of the records among the entries, by type."""
    found = re.findall(r"(heaviest_load|estimated_1rm|most_reps) ([\d.]+)(?: (kg|lb))?", str(activity["docs"]))
    return {name: (float(value), unit or "count") for name, value, unit in found}


async def test_proposal_is_stale_in_another_unit(mcp: McpHttpClient, coach: CoachClient, ana: Json) -> None:
    """Neither of the client nor of the company: the loads of the call would mean something else."""
    await coach.create_exercise("Squat")
    bo = await coach.create_customer("Bo")
    for client in (ana, bo):
        days = [{"date": DAYS[0], "name": "Legs", "text": "Squat: 1x5"}]
        tool_change(await mcp.call("create_workout", customerId=client["_id"], days=days))
    call = {"startDate": DAYS[0], "endDate": DAYS[0], "targetDate": DAYS[1], "repeat": 9, "addLoad": 5}
    of_ana, of_bo = ({**call, "customerId": client["_id"]} for client in (ana, bo))
    asked = [tool_proposal(await mcp.call("copy_schedule", **sent), "MANY_DAYS") for sent in (of_ana, of_bo)]
    session = await coach.interactive()

    async def require_stale(proposal: Json) -> None:
        (await session.post(f"/coach/proposals/{proposal['proposalId']}/approve")).refused(409, "have changed")

    (await (await coach.as_client(ana)).patch("/customer/me", {"loadUnit": None})).ok()
    await require_stale(asked[0])
    refused = tool_proposal(await mcp.call("copy_schedule", **of_ana), "MANY_DAYS")
    await train(coach, ana, await coach.create_exercise("Row"), (5, 100), date=DAYS[30])
    await convert(coach, "lb")
    for proposal in (refused, asked[1]):
        await require_stale(proposal)
    assert await coach.calendar(bo, DAYS[1], DAYS[20]) == []

    again = tool_proposal(await mcp.call("copy_schedule", **of_bo), "MANY_DAYS")
    await convert(coach, "kg")
    await convert(coach, "lb")
    await require_stale(again)
