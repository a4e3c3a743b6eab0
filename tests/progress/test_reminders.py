"""What clients are reminded of: sent once at its local time, and only if it is still to be done."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import UTC, date, datetime, timedelta, timezone
from email.message import EmailMessage
from typing import Any

import pytest
import time_machine

from coaching_service import features
from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import now
from coaching_service.core.dates import at_local_time
from coaching_service.core.ids import ObjectId
from coaching_service.people import notification_settings, notifications
from coaching_service.people.notifications import PushMessage
from coaching_service.progress import reminders
from coaching_service.progress.reminders import ClientDay
from coaching_service.settings import Settings
from tests.support.check_ins import check_in, form
from tests.support.client import CoachClient
from tests.support.figures import renew_figures
from tests.support.mails import first_page, mails_once_sent, part_of, read_mail
from tests.support.notifications import count_pending, send_due
from tests.support.service_process import until
from tests.support.training import Json, block_with, client_path, form_of, path_of, task

ZONE = "America/New_York"


class Client:
    """A client in New York, and the mail that the client receives."""

    def __init__(self, coach: CoachClient, customer: Json, session: CoachClient, settings: Settings) -> None:
        self.coach, self.customer, self.session = coach, customer, session
        self._folder = settings.data_dir / "mail"
        self.today: date = coach.ctx.caller.today(ZONE)
        self.tomorrow = self.today + timedelta(days=1)

    @property
    def id(self) -> ObjectId:
        return ObjectId(self.customer["_id"])

    async def plan(self, *items: Json, day: date | None = None) -> Json:
        """Plan a block with these items, by default tomorrow."""
        return await block_with(self.coach, self.customer, *items, date=str(day or self.tomorrow))

    async def choose(self, **settings: Any) -> None:
        """Change which notifications the client wants."""
        (await self.session.patch("/customer/me", {"notifications": settings})).ok()

    async def at(self, clock: str, *, day: date | None = None, minutes: int = 0) -> list[EmailMessage]:
        """The mails that the client has received until so many minutes after a local time, by default of tomorrow."""
        await renew_figures(self.coach.ctx)
        moment = at_local_time(day or self.tomorrow, clock, ZONE) + timedelta(minutes=minutes, seconds=10)
        await send_due(self.coach.ctx, after=moment - now())
        return await self.received()

    async def received(self) -> list[EmailMessage]:
        """The mails that the client has received, oldest first."""
        mails = await mails_once_sent(self.coach.ctx.services, self._folder, about=self.id)
        return [each for each in mails if each["To"] == self.customer["email"]]

    async def kinds(self) -> list[str]:
        """The kinds of the events `reminder.sent` about the client, oldest first."""
        changes = self.coach.ctx.db["changes"].find({"companyId": self.coach.ctx.company_id}).sort("_id", 1)
        events = [event async for change in changes for event in change["events"] if event["type"] == "reminder.sent"]
        return [event["data"]["kind"] for event in events if event["customerId"] == self.id]


async def new_client(coach: CoachClient, settings: Settings) -> Client:
    email = f"ana-{ObjectId()}@example.com"
    customer = await coach.create_customer("Ana", email=email, timezone=ZONE, sendInvitation=False)
    return Client(coach, customer, await coach.as_client(customer), settings)


@pytest.fixture
async def ana(coach: CoachClient, settings: Settings) -> Client:
    return await new_client(coach, settings)


def reminder(clock: str = "12:00") -> Json:
    """A reminder to add."""
    return {"type": "REMINDER", "reminderFields": {"scheduledTime": clock, "message": "Secret words"}}


async def test_reminder_is_sent_once_at_its_time(ana: Client) -> None:
    block = await ana.plan(reminder(), reminder("2026-01-01T18:30:00"))
    assert await ana.at("11:59") == []
    [sent] = await ana.at("12:00")

    parts = read_mail(sent, ana.coach.ctx.services.base_url)
    assert "There is a reminder for 12:00 in your plan." in parts.text
    assert "Secret words" not in parts.text + parts.html
    assert "Legs" not in parts.text + parts.html
    assert first_page(parts).endswith(f"/train/workouts/{block['_id']}")

    async def numbered() -> list[Json]:
        docs: list[Json] = (await ana.coach.get("/coach/events", types="reminder.sent")).ok()["docs"]
        return docs

    [event] = await until(numbered, "the event to be numbered")
    assert (event["customerId"], event["actor"]["type"]) == (ana.customer["_id"], "system")
    item = block["items"][0]["_id"]
    expected = {"kind": "reminders", "date": str(ana.tomorrow), "wblockId": block["_id"], "witemId": item}
    assert event["data"] == expected

    await ana.plan(task())  # what is due is computed again
    assert len(await ana.at("18:29")) == 1
    assert len(await ana.at("18:30")) == 2
    assert len(await ana.at("23:59")) == 2
    assert await ana.kinds() == ["reminders"] * 2


async def log(ana: Client, block: Json) -> None:
    item = block["items"][0]["_id"]
    (await ana.session.put(f"/customer/wblocks/{block['_id']}/witems/{item}/log", {"isCompleted": True})).ok()


async def delete(ana: Client, block: Json) -> None:
    (await ana.coach.delete(path_of(block))).ok(204)


async def move(ana: Client, block: Json) -> None:
    (await ana.coach.patch(path_of(block), {"date": str(ana.tomorrow + timedelta(days=1))})).ok()


async def hide(ana: Client, _: Json) -> None:
    body = {"startDate": str(ana.tomorrow), "endDate": str(ana.tomorrow), "isVisible": False}
    (await ana.coach.put(client_path(ana.customer, "visibility"), body)).ok()


async def archive(ana: Client, _: Json) -> None:
    (await ana.coach.put("/coach/customers/archive", {"id": ana.customer["_id"]})).ok()


async def leave(ana: Client, _: Json) -> None:
    body = {"kind": "away", "from": str(ana.tomorrow), "until": str(ana.tomorrow)}
    (await ana.coach.post(client_path(ana.customer, "availability"), body)).ok(201)


async def turn_off(ana: Client, _: Json) -> None:
    await ana.choose(reminders=False)


CAUSES: tuple[Callable[[Client, Json], Awaitable[None]], ...] = (log, delete, move, hide, archive, leave, turn_off)


async def test_reminder_is_not_sent(coach: CoachClient, settings: Settings) -> None:
    """To seven clients, each with a cause; to the eighth it is."""
    clients = [await new_client(coach, settings) for _ in (*CAUSES, None)]
    blocks = [await client.plan(reminder()) for client in clients]
    await renew_figures(coach.ctx)
    for cause, client, block in zip(CAUSES, clients, blocks, strict=False):
        await cause(client, block)
    assert len(await clients[-1].at("12:00")) == 1
    for cause, client in zip(CAUSES, clients, strict=False):
        assert (await client.received(), await client.kinds()) == ([], []), cause
        dropped = {"customerId": client.id, "outcome": "dropped"}
        assert await coach.ctx.db["notifications"].count_documents(dropped) == 1, cause


async def test_reminder_at_another_time_is_sent_only_then(ana: Client) -> None:
    block = await ana.plan(reminder())
    await renew_figures(ana.coach.ctx)
    item = f"{path_of(block)}/witems/{block['items'][0]['_id']}"
    (await ana.coach.patch(item, {"reminderFields": {"scheduledTime": "15:00", "message": "x"}})).ok()
    assert await ana.at("12:00") == []
    assert len(await ana.at("15:00")) == 1


@pytest.mark.parametrize("offset", [0, 9])
async def test_reminder_at_an_instant_is_sent_at_the_local_time_of_the_client(ana: Client, offset: int) -> None:
    zone = timezone(timedelta(hours=offset))
    instant = at_local_time(ana.tomorrow, "12:00", ZONE).replace(tzinfo=UTC).astimezone(zone)
    await ana.plan(reminder(instant.isoformat()))

    assert await ana.at("11:59") == []
    [sent] = await ana.at("12:00")
    assert "There is a reminder for 12:00" in read_mail(sent, ana.coach.ctx.services.base_url).text


@pytest.mark.usefixtures("wednesday")  # at other times it is another date there, and what is due follows at midnight
async def test_time_zone_of_the_client_moves_what_is_due(ana: Client) -> None:
    await ana.plan(reminder())
    await renew_figures(ana.coach.ctx)
    (await ana.session.patch("/customer/me", {"timezone": "America/Chicago"})).ok()
    assert await ana.at("12:00") == []
    assert len(await ana.at("13:00")) == 1


async def test_time_that_has_passed_in_the_new_time_zone_is_too_late(ana: Client) -> None:
    """It is neither sent at the time of the time zone that the client has left."""
    await ana.plan(reminder("12:00"))
    await ana.choose(workoutTime="12:30")
    await ana.plan(task())
    await renew_figures(ana.coach.ctx)
    with time_machine.travel(at_local_time(ana.tomorrow, "09:00", ZONE).replace(tzinfo=UTC)):
        client = await ana.coach.as_client(ana.customer)
        (await client.patch("/customer/me", {"timezone": "Europe/Berlin"})).ok()
        await renew_figures(ana.coach.ctx)
    assert await ana.at("12:00") == []
    assert await ana.at("12:30") == []


async def test_check_in_is_announced_once_also_if_the_client_travels(ana: Client) -> None:
    await ana.plan(form_of({"label": "How was it?", "type": "text"}))
    assert len(await ana.at("09:00")) == 1
    (await ana.session.patch("/customer/me", {"timezone": "America/Los_Angeles"})).ok()
    assert len(await ana.at("13:00")) == 1


async def test_event_says_only_what_was_sent(ana: Client) -> None:
    """A client who has turned mail off, and has no device, is sent nothing."""
    await ana.choose(reminders={"mail": False, "push": True})
    await ana.plan(reminder())
    assert await ana.at("12:00") == []
    assert await ana.kinds() == []


async def test_reminder_in_quiet_hours_is_sent_at_their_end_or_not_at_all(ana: Client) -> None:
    await ana.choose(quietFrom="22:00", quietTo="07:00")
    await ana.plan(reminder("05:30"), reminder("22:30"))
    assert await ana.at("05:30") == []
    assert await ana.at("06:59") == []
    assert len(await ana.at("07:00")) == 1
    assert len(await ana.at("22:30")) == 1
    assert len(await ana.at("07:00", day=ana.tomorrow + timedelta(days=1))) == 1


async def test_reminder_that_is_over_two_hours_late_is_not_sent(ana: Client) -> None:
    await ana.plan(reminder("12:00"), reminder("12:30"))
    [sent] = await ana.at("12:00", minutes=121)
    assert "12:30" in part_of(sent, "plain")


async def test_workout_of_the_day_is_announced_at_the_time_that_the_client_has_chosen(ana: Client) -> None:
    await ana.plan(task(), day=ana.tomorrow)
    await ana.plan(task(), day=ana.tomorrow)
    assert await ana.at("23:00", day=ana.today) == []
    await ana.choose(workoutTime="06:45")
    [sent] = await ana.at("06:45")
    assert sent["Subject"] == "Your workout of today"
    assert len(await ana.at("23:59")) == 1
    assert await ana.kinds() == ["workouts"]


async def test_workout_that_is_begun_is_not_announced(ana: Client) -> None:
    await ana.choose(workoutTime="06:45")
    block = await ana.plan(task())
    await renew_figures(ana.coach.ctx)
    await log(ana, block)
    assert await ana.at("06:45") == []


@pytest.mark.parametrize("is_recurring", [True, False])
async def test_check_in_of_the_day_is_due_in_the_morning_until_it_is_answered(ana: Client, is_recurring: bool) -> None:
    if is_recurring:
        weekly = await form(ana.coach)
        await check_in(ana.coach, ana.customer, formId=weekly["_id"], everyDays=30, startDate=str(ana.tomorrow))
    else:
        await ana.plan(form_of({"label": "How was it?", "type": "text"}))
    assert await ana.at("08:59") == []
    [sent] = await ana.at("09:00")
    assert "check-in" in sent["Subject"].lower()
    assert await ana.kinds() == ["checkIns"]


@pytest.mark.parametrize(("clock", "number"), [("10:30", 1), ("11:30", 0)])
async def test_check_in_is_announced_up_to_two_hours_late(ana: Client, clock: str, number: int) -> None:
    """It was added while no process was running, or moved to this day."""
    await ana.plan(form_of({"label": "How was it?", "type": "text"}), reminder("09:00"))
    await renew_figures(ana.coach.ctx)
    await ana.coach.ctx.db["notifications"].delete_many({"customerId": ana.id})
    with time_machine.travel(at_local_time(ana.tomorrow, clock, ZONE).replace(tzinfo=UTC)):
        await reminders.plan(ana.coach.ctx, {ana.id: ClientDay(ana.tomorrow, ZONE)})
    assert await count_pending(ana.coach.ctx, ana.customer["_id"]) == number
    assert len(await ana.at(clock)) == number


async def test_answered_check_in_is_not_due(ana: Client) -> None:
    block = await ana.plan(form_of({"label": "How was it?", "type": "text"}))
    await renew_figures(ana.coach.ctx)
    item = block["items"][0]
    answers = [{"questionId": item["form"]["questions"][0]["_id"], "value": "Good"}]
    body = {"isCompleted": True, "answers": answers}
    (await ana.session.put(f"/customer/wblocks/{block['_id']}/witems/{item['_id']}/log", body)).ok()
    assert await ana.at("09:00") == []


async def test_erased_client_leaves_nothing_that_is_due(ana: Client) -> None:
    await ana.plan(reminder())
    await renew_figures(ana.coach.ctx)
    assert await count_pending(ana.coach.ctx, ana.customer["_id"]) == 1
    (await ana.coach.delete(f"/coach/customers/{ana.customer['_id']}")).ok(204)

    async def is_erased() -> bool:
        return await ana.coach.ctx.db["notifications"].count_documents({"customerId": ana.id}) == 0

    await until(is_erased, "the erasure")


async def test_what_is_due_while_the_company_is_suspended_waits(ana: Client) -> None:
    """Also longer than the process that claims it waits; what is over by then is not sent."""
    await ana.plan(reminder("12:00"), reminder("15:00"))
    await renew_figures(ana.coach.ctx)
    companies, where = ana.coach.ctx.db["companies"], {"_id": ana.coach.ctx.company_id}
    await companies.update_one(where, {"$set": {"suspension": {"at": now()}}})
    moment = at_local_time(ana.tomorrow, "12:00", ZONE) + timedelta(seconds=10) - now()
    await send_due(ana.coach.ctx, after=moment)
    outcomes = [each["outcome"] async for each in ana.coach.ctx.db["notifications"].find({"customerId": ana.id})]
    assert outcomes == [None, None]
    await companies.update_one(where, {"$unset": {"suspension": 1}})
    assert len(await ana.at("12:00", minutes=10)) == 1
    assert await ana.kinds() == ["reminders"]


@pytest.mark.parametrize("is_wanted", [False, True])
async def test_names_are_on_devices_only_for_who_wants_them(ana: Client, is_wanted: bool) -> None:
    """Of workouts in what clients receive, of clients in what coaches receive; a new user does not."""
    ctx, shown, session = ana.coach.ctx, list[PushMessage](), await ana.coach.interactive()

    async def record(_: Context, message: PushMessage) -> int:
        if message.recipient["_id"] in (ana.id, ctx.caller.id):
            shown.append(message)
        return 1

    await ana.choose(workoutTime="12:00")
    if is_wanted:
        await ana.choose(showDetails=True)
        (await session.patch("/me", {"notifications": {"showDetails": True}})).ok()
    await block_with(ana.coach, ana.customer, task("Walk"), name="Deadlift day", date=str(ana.tomorrow))
    (await ana.session.post("/customer/messages", {"text": "Secret words"})).ok(201)
    await renew_figures(ctx)
    # The service of the tests sends it at once: afterwards it is due again at noon.
    waiting = {"companyId": ctx.company_id, "kind": "messages", "channels": "push"}

    async def is_sent() -> bool:
        return await ctx.db["notifications"].count_documents(waiting | {"sendAt": None}) == 1

    await until(is_sent, "the notification of the message is sent")
    noon = at_local_time(ana.tomorrow, "12:00", ZONE)

    async def both_are_shown() -> bool:
        # The service of the tests may have sent one of them at noon.
        due = {"companyId": ctx.company_id, "kind": {"$in": ["messages", "workouts"]}}
        await ctx.db["notifications"].update_many(due, {"$set": {"sendAt": noon, "outcome": None}})
        while await notifications.send_next(ctx.services, features.NOTIFICATIONS, record):
            pass
        return {message.recipient["type"] for message in shown} == {"client", "coach"}

    with time_machine.travel(noon.replace(tzinfo=UTC) + timedelta(seconds=10)):
        await until(both_are_shown, "a notification of the client and one of the coach")
    said = " ".join(f"{message.title} {message.text}" for message in shown)
    assert ("Deadlift" in said, "Ana" in said) == (is_wanted, is_wanted), said
    assert "Secret" not in said


def test_what_is_over_at_its_time_is_not_sent() -> None:
    """It is pointless from `validUntil` on, that instant included."""
    noon, settings = datetime(2029, 1, 1, 12, tzinfo=UTC), notification_settings.complete(None)
    after = noon + timedelta(microseconds=1)
    assert notifications.find_time("reminders", noon, noon, noon, settings, ZONE) is None
    assert notifications.find_time("reminders", noon, after, noon, settings, ZONE) == noon
