"""What reaches people, by whichever tool and interface: permission, confirmation and limits (contract, section 18)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime, timedelta
from typing import Any
from zlib import crc32

import pytest
import time_machine

from coaching_service import features
from coaching_service.core.auth import CUSTOMERS
from coaching_service.core.auth import coach as coaches
from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import now
from coaching_service.core.dates import at_local_time
from coaching_service.core.ids import ObjectId
from coaching_service.core.jobs.mail import MailBody, NewMail, enqueue_mail
from coaching_service.core.jobs.worker import run_due
from coaching_service.core.mcp import CustomerArgument, OutreachDenied, Tools, Written, tools_of
from coaching_service.integrations.proposals.tool_calls import Call, Unconfirmed, carry_out
from coaching_service.progress import reminders
from coaching_service.progress.conversation import service as conversation
from coaching_service.settings import Settings
from coaching_service.training.workouts.blocks import batches
from coaching_service.training.workouts.blocks.service import ClientCalendar
from tests.mcp.hostile_world import create_world
from tests.support.client import CoachClient
from tests.support.figures import renew_figures
from tests.support.fixed_clock import TODAY
from tests.support.mails import mails_once_sent
from tests.support.mcp_client import McpHttpClient, approve, tool_change, tool_error, tool_proposal
from tests.support.notifications import send_due
from tests.support.own_application import running_application
from tests.support.push_service import push_service
from tests.support.sampled import MORE
from tests.support.training import Json, block_with, reminder, task

pytestmark = pytest.mark.usefixtures("wednesday")
DAYS = [str(TODAY + timedelta(days=number)) for number in range(10)]
LURES = ("win", "reminder 12:00: win", "Push-Up: 3x10\nreminder 12:00: win", "form: Weekly", "metrics: Body")


# Optional arguments without which a call is refused, or sends nothing.
OPTIONAL: Mapping[str, tuple[str, ...]] = {
    "create_customer": ("email", "sendInvitation"),
    "schedule_check_in": ("weekday", "until"),
    "set_availability": ("until",),
    "log_workout": ("workoutId",),
    "save_program": ("name",),
    "send_message": ("customerId",),
    "assign_program": ("customerId", "startDate"),
    **dict.fromkeys(("copy_schedule", "adjust_schedule", "replace_exercise", "clear_schedule"), ("customerId",)),
}


async def ways_to_contact(coach: CoachClient) -> list[tuple[str, Json]]:
    """Calls by which a client is reminded, asked or written to."""
    ana = await coach.create_customer("Ana")
    about = {"customerId": ana["_id"]}
    (await coach.post("/coach/forms", {"name": "Weekly", "questions": [{"label": "How?", "type": "text"}]})).ok(201)
    planned = await block_with(coach, ana, task(), date=DAYS[1])
    reminding = await block_with(coach, ana, reminder(), date=DAYS[2])
    program = (await coach.post("/coach/programs", {"name": "Base"})).ok(201)
    day = {"name": "Day", "day": 1, "items": [reminder()]}
    (await coach.post(f"/coach/programs/{program['_id']}/wblocks", day)).ok(201)
    text = "reminder 12:00: win"
    item = reminding["items"][0]["_id"]
    other_text = {"action": "change", "itemId": item, "text": text}
    return [
        ("create_workout", {**about, "days": [{"date": DAYS[3], "name": "Legs", "text": text}]}),
        ("create_workout", {**about, "days": [{"date": DAYS[3], "name": "Legs", "text": "form: Weekly"}]}),
        ("update_workout_items", {**about, "workoutId": planned["_id"], "changes": [{"action": "add", "text": text}]}),
        ("update_workout_items", {**about, "workoutId": reminding["_id"], "changes": [other_text]}),
        ("save_program", {"name": "New", "days": [{"day": 1, "name": "Day", "text": text}]}),
        ("assign_program", {**about, "programId": program["_id"], "startDate": DAYS[5]}),
        ("copy_schedule", {**about, "startDate": DAYS[2], "endDate": DAYS[2], "targetDate": DAYS[6]}),
        ("schedule_check_in", {**about, "task": "Send all your money", "everyDays": 1, "until": DAYS[3]}),
        ("schedule_check_in", {**about, "form": "Weekly", "everyDays": 1, "until": DAYS[3]}),
        (
            "set_availability",
            {**about, "kind": "away", "startDate": DAYS[7], "until": DAYS[7], "note": "You are fired"},
        ),
        ("create_customer", {"name": "Bo", "email": "bo@example.com", "sendInvitation": True}),
    ]


async def test_each_way_to_contact_people_needs_the_permission_and_a_confirmation(
    mcp: McpHttpClient, with_key: Any, coach: CoachClient
) -> None:
    without = await with_key(outreach=False)
    for tool, arguments in await ways_to_contact(coach):
        tool_error(await without.call(tool, **arguments), "may not send mail or messages", "allows it")
        proposal = tool_proposal(await mcp.call(tool, **arguments), "CONTACT")
        if tool != "create_customer":
            await approve(coach, proposal)


async def test_what_stays_or_moves_ahead_is_no_contact(with_key: Any, coach: CoachClient) -> None:
    without, ana = await with_key(), await coach.create_customer("Ana")
    about = {"customerId": ana["_id"]}
    today = await block_with(coach, ana, reminder(), task(), date=str(coach.ctx.caller.today()))
    ahead = await block_with(coach, ana, reminder(), date=DAYS[3])
    known = {**about, "workoutId": today["_id"]}
    tool_change(await without.call("update_workout_items", **known, changes=[{"action": "add", "text": "task: Run"}]))
    tool_change(await without.call("update_workout", **about, workoutId=ahead["_id"], date=DAYS[4]))
    earlier = await without.call("update_workout", **about, workoutId=ahead["_id"], date=DAYS[1])
    tool_error(earlier, "may not send mail or messages")
    other = await block_with(coach, ana, task(), date=DAYS[-1])
    for workout, to, is_allowed in ((ahead, today, False), (ahead, other, True)):
        move = {"action": "move", "itemId": workout["items"][0]["_id"], "toWorkoutId": to["_id"]}
        moved = await without.call("update_workout_items", **about, workoutId=workout["_id"], changes=[move])
        tool_change(moved) if is_allowed else tool_error(moved, "may not send mail or messages")
    removed = tool_change(await without.call("remove_workout", **about, workoutId=ahead["_id"]))
    tool_change(await without.call("undo", changeId=removed["changeId"]))
    # It may have been sent already.
    tool_error(await without.call("update_workout", **known, date=DAYS[5]), "may not send mail")
    period = {"kind": "away", "startDate": DAYS[7], "until": DAYS[7]}
    tool_change(await without.call("set_availability", **about, **period))


async def test_names_that_an_assistant_gives_are_not_on_devices(
    mcp: McpHttpClient, with_key: Any, coach: CoachClient
) -> None:
    """Of workouts and check-ins of the day, where the client wants names: those of people, and approved ones, are."""
    without, ana = await with_key(), await coach.create_customer("Ana")
    own, about = await coach.as_client(ana), {"customerId": ana["_id"]}
    wanted = {"workoutTime": "12:00", "showDetails": True}
    (await own.patch("/customer/me", {"notifications": wanted})).ok()
    notification: Any = {"recipient": {"type": "client", "_id": ObjectId(ana["_id"])}, "subject": {"date": DAYS[1]}}

    async def shown(write: Any = reminders.write_workout) -> str | None:
        details: str | None = (await write(coach.ctx, notification)).details
        return details

    tool_change(
        await without.call("create_workout", **about, days=[{"date": DAYS[1], "name": "Call 555", "text": "task: Run"}])
    )
    assert await shown() is None
    planned = await block_with(coach, ana, task(), name="Deadlift day", date=DAYS[1])
    assert await shown() == "Deadlift day"
    tool_change(await without.call("update_workout", **about, workoutId=planned["_id"], name="win"))
    assert await shown() is None
    (await coach.patch(f"/coach/customers/{ana['_id']}/wblocks/{planned['_id']}", {"name": "Legs"})).ok()
    day = {"date": DAYS[1], "name": "Arms", "text": "task: Row\nreminder 12:00: go"}
    await approve(coach, tool_proposal(await mcp.call("create_workout", **about, days=[day]), "CONTACT"))
    assert await shown() == "Legs, Arms"

    check = {"taskFields": {"title": "Weigh in"}, "everyDays": 1, "startDate": DAYS[1], "until": DAYS[1]}
    (await coach.post(f"/coach/customers/{ana['_id']}/check-ins", check)).ok(201)
    name = await shown(reminders.write_check_ins)
    [block] = [each for each in await coach.calendar(ana, DAYS[1], DAYS[1]) if each["checkInId"]]
    assert name == block["name"]


async def test_check_ins_that_are_scheduled_are_contact_when_they_change(
    mcp: McpHttpClient, with_key: Any, coach: CoachClient
) -> None:
    """Their name, their task, and an earlier day; not a later day, and not what an absence removes."""
    without, ana = await with_key(), await coach.create_customer("Ana")
    about = {"customerId": ana["_id"]}
    check = {"taskFields": {"title": "Weigh in"}, "everyDays": 5, "startDate": DAYS[2], "until": DAYS[7]}
    (await coach.post(f"/coach/customers/{ana['_id']}/check-ins", check)).ok(201)
    first, second = await coach.calendar(ana, DAYS[2], DAYS[7])
    known = {**about, "workoutId": first["_id"]}
    task_item = {"action": "change", "itemId": first["items"][0]["_id"], "text": "task: Send money"}
    for tool, change in (
        ("update_workout", {"name": "win"}),
        ("update_workout", {"date": DAYS[1]}),
        ("update_workout_items", {"changes": [task_item]}),
    ):
        tool_error(await without.call(tool, **known, **change), "may not send mail or messages")
        tool_proposal(await mcp.call(tool, **known, **change), "CONTACT")
    tool_change(await without.call("update_workout", **known, date=DAYS[3]))
    period = {"kind": "away", "startDate": DAYS[7], "until": DAYS[7]}
    away = tool_change(await without.call("set_availability", **about, **period))
    assert [each["date"] for each in await coach.calendar(ana, DAYS[2], DAYS[7])] == [DAYS[3]]
    tool_change(await without.call("undo", changeId=away["changeId"]))
    assert [each["name"] for each in await coach.calendar(ana, DAYS[7], DAYS[7])] == [second["name"]]


# --- tools of tomorrow -----------------------------------------------------------------------------------------------

_tomorrow = Tools()
_BODY: MailBody = {
    "company": "Gym",
    "name": "Ana",
    "paragraphs": ["win"],
    "button": "Open",
    "link": "https://example.com",
    "notes": [],
    "reason": "None.",
    "settings": None,
}


@_tomorrow.tool("Remind", access=coaches(CUSTOMERS.EDIT), takes=CustomerArgument(), writes=True)
async def remind_tomorrow(ctx: Context, customer_id: ObjectId) -> Written:
    """Store a reminder by the service of workouts, and say nothing of it."""
    item: Any = {"type": "REMINDER", "reminderFields": {"scheduledTime": "12:00", "message": "win"}}
    block: Any = {"name": "Legs", "date": DAYS[1], "isRest": False, "items": [item]}
    await batches.create_block(ctx, ClientCalendar(customer_id), block)
    return Written("Set a reminder.")


@_tomorrow.tool("Mail", access=coaches(CUSTOMERS.EDIT), takes=CustomerArgument(), writes=True)
async def mail_tomorrow(ctx: Context, customer_id: ObjectId) -> Written:
    """Queue a mail, and say nothing of it."""
    await enqueue_mail(ctx, NewMail("ana@example.com", "win", _BODY, about=customer_id))
    return Written("Sent it.")


async def test_a_tool_that_says_nothing_of_it_cannot_contact_people_either(coach: CoachClient) -> None:
    ana = ObjectId((await coach.create_customer("Ana"))["_id"])
    for tool in _tomorrow.declared:
        for may_reach_out, refusal in ((True, Unconfirmed), (False, OutreachDenied)):
            caller = replace(coach.ctx.caller, may_reach_out=may_reach_out)
            ctx = replace(coach.ctx, principal=caller, interface="assistant", operation=tool.name)
            with pytest.raises(refusal) as raised:
                await carry_out(ctx, Call(tool, {"customerId": ana}, {"customerId": str(ana)}))
            if isinstance(raised.value, Unconfirmed):
                assert [reason.name for reason in raised.value.reasons] == ["CONTACT"]


# --- every tool ------------------------------------------------------------------------------------------------------


def list_texts(schema: Json, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The path of every argument that is a text."""
    for name, about in schema["properties"].items():
        inner = about.get("items", about)
        if inner.get("type") == "object":
            yield from list_texts(inner, (*path, name))
        elif inner.get("type") == "string" and "enum" not in inner and name != "idempotencyKey":
            yield (*path, name)


def fill(schema: Json, known: Mapping[str, Any], path: tuple[str, ...], lure: str) -> Json:
    """Valid arguments, as far as they are known, with a text at a path."""
    filled: Json = {}
    for name, about in schema["properties"].items():
        inner, on_path = about.get("items", about), path[:1] == (name,)
        if inner.get("type") == "object" and (on_path or name in schema.get("required", ())):
            value: Any = fill(inner, known, path[1:] if on_path else (), lure)
        elif on_path:
            value = lure
        elif name in known and (name in schema.get("required", ()) or name in known["optional"]):
            value = known[name]
        else:
            continue
        filled[name] = [value] if about.get("type") == "array" and not isinstance(value, list) else value
    return filled


def lures_of(tool: str, path: tuple[str, ...]) -> Sequence[str]:
    """What the text at a path is: each of the lures in the text of workouts; in others one, by its name."""
    first = crc32(".".join((tool, *path)).encode()) % len(LURES)
    return ("",) if not path else LURES if path[-1] == "text" or MORE > 1 else LURES[first : first + 1]


async def test_no_text_of_any_tool_reaches_a_client(settings: Settings, password_hash: str) -> None:
    async with running_application(settings, "contact", password_hash) as application, push_service() as phones:
        coach = await application.new_coach()
        world = await create_world(coach)
        (await coach.post("/coach/forms", {"name": "Weekly", "questions": [{"label": "?", "type": "text"}]})).ok(201)
        client = await coach.as_client({"_id": world.clients[0]})
        phone = phones.new_device((await client.get("/push-public-key")).ok()["key"])
        (await client.post("/customer/push-subscriptions", {**phone.subscription, "userAgent": "Phone"})).ok(201)
        (_, workout), about = world.planned[0], ObjectId(world.clients[0])
        email = f"ana-{coach.ctx.company_id}@example.com"
        (await coach.patch(f"/coach/customers/{about}", {"email": email})).ok()
        known: Json = {
            "customerId": str(about),
            "workoutId": workout,
            "programId": world.program,
            "responseId": world.response,
            "name": "Legs",
            "day": 1,
            "date": DAYS[1],
            "startDate": DAYS[6],
            "endDate": DAYS[6],
            "targetDate": DAYS[4],
            "from": DAYS[6],
            "until": DAYS[6],
            "exercise": "Squat",
            "withExercise": "Squat",
            "kind": "away",
            "action": "add",
            "weekday": 1,
            "sendInvitation": True,
            "value": 20,
            "email": "win@example.com",
            "isReviewed": True,
            "mode": "drop",
            **world.metric,
        }
        called: dict[str, list[bool]] = {}
        async with McpHttpClient(application.server, {"X-API-Key": coach.key or ""}) as mcp:
            for tool in tools_of(features.TOOLS):
                schema, given = tool.input_schema, {**known, "optional": OPTIONAL.get(tool.name, ())}
                for path in ((), *list_texts(schema)) if tool.writes else ():
                    for lure in lures_of(tool.name, path):
                        arguments = fill(schema, given, path, lure)
                        result = await mcp.call(tool.name, **arguments)
                        called.setdefault(tool.name, []).append(not result.get("isError"))
                        for counted in ("assistantSpending", "proposals"):
                            await coach.ctx.db[counted].delete_many({"companyId": coach.ctx.company_id})
            assert {name for name, some in called.items() if not any(some)} <= {
                "undo",
                "import_rows",
                "log_workout",
                "adjust_schedule",
                "record_metric",
                "replace_exercise",
            }

            noon = at_local_time(date.fromisoformat(DAYS[1]), "12:00", coach.ctx.caller.company.timezone)

            async def received() -> list[str]:
                await renew_figures(coach.ctx)
                with time_machine.travel(datetime.now().astimezone() + timedelta(seconds=61)):
                    await run_due(coach.ctx.services, {conversation.DELIVER: conversation.deliver_waiting}, at=now())
                await send_due(coach.ctx, after=noon - now() + timedelta(seconds=10))
                mails = await mails_once_sent(coach.ctx.services, settings.data_dir / "mail", about=about)
                return [str(mail["Subject"]) for mail in mails if email in str(mail["To"])] + [
                    each["title"] for each in phone.contents
                ]

            for period in (await coach.get(f"/coach/customers/{about}/availability")).ok():  # which has no reminders
                (await coach.delete(f"/coach/customers/{about}/availability/{period['_id']}")).ok(204)
            assert await received() == []
            arguments = {"customerId": str(about), "days": [{"date": DAYS[1], "name": "Arms", "text": LURES[1]}]}
            await approve(coach, tool_proposal(await mcp.call("create_workout", **arguments), "CONTACT"))
            assert await received() != []
        await coach.close()
