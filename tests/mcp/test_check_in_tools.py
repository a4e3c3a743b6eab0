"""Recurring check-ins that assistants schedule."""

from __future__ import annotations

import pytest

from tests.support.check_ins import day, form, list_check_ins
from tests.support.client import CoachClient
from tests.support.mcp_client import McpHttpClient, approve, tool_change, tool_error, tool_proposal
from tests.support.training import metric_set

TOOL = "schedule_check_in"

REMINDED = " The client is reminded on the day at 09:00."


async def test_form_is_scheduled_every_week(mcp: McpHttpClient, coach: CoachClient) -> None:
    client, weekly = await coach.create_customer(), await form(coach)
    ask = {"customerId": client["_id"], "form": "weekly", "weekday": 7}

    proposed = await mcp.call(TOOL, **ask)
    proposal = tool_proposal(proposed, "CONTACT", "MANY_DAYS")
    assert await list_check_ins(coach, client) == []
    today = day(coach, 0)
    assert proposal["summary"] == f"Schedule «Weekly» every Sunday from {today} on for «Ana».{REMINDED}"
    scheduled = await approve(coach, proposed["structuredContent"])

    [check_in] = await list_check_ins(coach, client)
    assert (check_in["_id"], check_in["formId"]) == (scheduled["checkInId"], weekly["_id"])
    assert (check_in["weekday"], check_in["startDate"], check_in["until"]) == (7, today, None)
    assert len(await coach.calendar(client, today, day(coach, 27))) == 4
    again = tool_proposal(await mcp.call(TOOL, **ask), "CONTACT", "MANY_DAYS")
    assert again["summary"].endswith(f" There was already «Weekly» every Sunday from {today} on.")
    undone = await mcp.call("undo", changeId=scheduled["changeId"])
    tool_proposal(undone, "MANY_DAYS")
    await approve(coach, undone["structuredContent"])
    assert await list_check_ins(coach, client) == []
    assert await coach.calendar(client, today, day(coach, 27)) == []


async def test_habits_and_measurements_are_scheduled_for_a_week(mcp: McpHttpClient, coach: CoachClient) -> None:
    client, body = await coach.create_customer(), await metric_set(coach, "Weight")
    dates = {"startDate": day(coach, 1), "until": day(coach, 7)}
    about = {"customerId": client["_id"], **dates}
    habit = await approve(coach, tool_proposal(await mcp.call(TOOL, **about, task="Walk", everyDays=1), "CONTACT"))
    assert (
        habit["summary"]
        == f"Scheduled «Walk» every day from {dates['startDate']} until {dates['until']} for «Ana».{REMINDED}"
    )
    weight = await approve(
        coach, tool_proposal(await mcp.call(TOOL, **about, metrics=body["_id"], everyDays=3), "CONTACT")
    )
    assert "every 3 days" in weight["summary"]
    assert len(await coach.calendar(client, day(coach, 0), day(coach, 27))) == 7 + 3
    tool_change(await mcp.call("undo", changeId=habit["changeId"]))
    assert [each["metricsSetId"] for each in await list_check_ins(coach, client)] == [body["_id"]]


@pytest.mark.parametrize(
    ("sent", "words"),
    [
        ({}, ["form is required, or metrics or task"]),
        ({"form": "A", "task": "B", "weekday": 1}, ["task must not be combined with form"]),
        ({"task": "B", "weekday": 8, "until": "soon"}, ["weekday must", "until must"]),
        ({"task": "B", "weekday": 1, "everyDays": 2}, ["everyDays must not be combined with weekday"]),
        ({"task": "B", "weekday": 1, "startDate": "2026-03-02", "until": "2026-03-01"}, ["until must not be before"]),
        ({"form": "Monthly", "weekday": 1}, ["form is unknown", "«Weekly» ["]),
        ({"metrics": "Body", "weekday": 1}, ["no metric set has this name"]),
        ({"form": "0" * 24, "weekday": 1}, ["not found"]),
    ],
)
async def test_what_cannot_be_scheduled_is_named(
    mcp: McpHttpClient, coach: CoachClient, sent: dict[str, object], words: list[str]
) -> None:
    client, _ = await coach.create_customer(), await form(coach)
    tool_error(await mcp.call(TOOL, customerId=client["_id"], **sent), *words)
    assert await list_check_ins(coach, client) == []
