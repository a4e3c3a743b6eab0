"""What a caller may not view, no error of a tool names; and what an access without outreach reads."""

from __future__ import annotations

from typing import Any

from coaching_service.core.auth import ALL_PERMISSIONS, CUSTOMERS, EXERCISES, FORMS, METRICS
from tests.support.check_ins import form
from tests.support.client import CoachClient
from tests.support.mcp_client import TODAY, McpHttpClient, approve, tool_change, tool_error, tool_proposal
from tests.support.training import block_with, exercise_of, metric_set

NAMES = ("Weekly review", "Body girths", "Zercher squat", "Zottman curl", "Zebras")


def day(text: str) -> dict[str, Any]:
    return {"days": [{"date": TODAY, "name": "A", "text": text}]}


CALLS: list[tuple[str, str, dict[str, Any]]] = [
    (FORMS.VIEW, "create_workout", day("form: weekly")),
    (FORMS.VIEW, "schedule_check_in", {"form": "weekly", "weekday": 1}),
    (METRICS.VIEW, "create_workout", day("metrics: girths")),
    (METRICS.VIEW, "schedule_check_in", {"metrics": "girths", "weekday": 1}),
    (EXERCISES.VIEW, "create_workout", day("zzercher: 3x8")),
    (EXERCISES.VIEW, "set_training_max", {"exercise": "zottmann", "value": 60}),
    (EXERCISES.VIEW, "get_exercise_history", {"exercise": "zercher sqat low"}),
    (CUSTOMERS.VIEW, "send_message", {"groups": ["zebra"], "text": "Hi"}),
    (CUSTOMERS.VIEW, "assign_program", {"groups": ["Zebras"], "startDate": TODAY}),
    (CUSTOMERS.VIEW, "adjust_schedule", {"groups": ["zebra"], "startDate": TODAY, "endDate": TODAY, "addReps": 1}),
]


async def test_errors_name_nothing_that_may_not_be_seen(with_key: Any, coach: CoachClient) -> None:
    ana = await coach.create_customer("Ana", groups=["Zebras"])
    for name in ("Zercher squat", "Zottman curl"):
        await coach.create_exercise(name)
    await form(coach, "Weekly review")
    await metric_set(coach, "Waist", name="Body girths")
    program = (await coach.post("/coach/programs", {"name": "Base"})).ok(201)
    sees = await with_key(permissions=sorted(ALL_PERMISSIONS), outreach=True)
    for missing, tool, sent in CALLS:
        about = {} if "groups" in sent else {"customerId": ana["_id"]}
        if tool == "assign_program":
            about = {"programId": program["_id"]}
        else:
            named = tool_error(await sees.call(tool, **about, **sent))
            assert any(name in named for name in NAMES), named
        mcp = await with_key(permissions=sorted(ALL_PERMISSIONS - {missing}), outreach=True)
        text = tool_error(await mcp.call(tool, **about, **sent), missing)
        assert not any(name in text for name in (*NAMES, "Ana")), (missing, tool)


async def test_exact_name_is_read_without_the_permission_to_list_names(with_key: Any, coach: CoachClient) -> None:
    ana = await coach.create_customer()
    await form(coach, "Weekly review")
    mcp = await with_key(permissions=[CUSTOMERS.VIEW, CUSTOMERS.EDIT], outreach=True)
    proposed = await mcp.call("create_workout", customerId=ana["_id"], **day("form: weekly review"))
    created = await approve(coach, tool_proposal(proposed, "CONTACT"))
    [workout] = await coach.calendar(ana, TODAY, TODAY)
    assert (workout["_id"], workout["items"][0]["form"]["name"]) == (created["workoutId"], "Weekly review")


async def test_access_without_outreach_reads_how_to_get_it(
    with_key: Any, mcp: McpHttpClient, coach: CoachClient
) -> None:
    squat, clients = await coach.create_exercise(), [await coach.create_customer(name) for name in ("Ana", "Bo")]
    for client in clients:
        await block_with(coach, client, exercise_of(squat, {"type": "reps", "minPlannedReps": 8}), date=TODAY)
    ids = [client["_id"] for client in clients]
    sent = [{"name": "Cy"}, {"name": "Di"}]
    days = {"startDate": TODAY, "endDate": TODAY}
    narrow = await with_key()
    calls: list[tuple[str, dict[str, Any]]] = [
        ("create_customers", {"customers": sent}),
        ("create_customer", {"name": "Cy", "email": f"cy@{coach.ctx.company_id}.test", "sendInvitation": True}),
        ("clear_schedule", {"customerIds": ids, **days}),
        ("adjust_schedule", {"customerIds": ids, **days, "addReps": 1}),
        ("send_message", {"customerId": ids[0], "text": "Hi"}),
    ]
    for tool, arguments in calls:
        text = tool_error(
            await narrow.call(tool, **arguments), "may not send mail", "an API key that may contact people"
        )
        assert "list_customers" not in text
    dry = tool_change(await narrow.call("create_customers", customers=sent, dryRun=True))
    assert "«Cy», «Di»" in dry["summary"] and "would be refused: This access may not" in dry["summary"]
    allowed = tool_change(await narrow.call("create_customers", customers=sent[:1], dryRun=True))
    assert "refused" not in allowed["summary"]
    assert "refused" not in tool_change(await mcp.call("create_customers", customers=sent, dryRun=True))["summary"]
