"""Mail about unread messages: after ten minutes, at most one an hour to each side, without the text."""

from __future__ import annotations

from datetime import timedelta
from email.message import EmailMessage
from pathlib import Path
from typing import Any, cast
from urllib.parse import parse_qs

import aiohttp
import pytest

from coaching_service.core.database.documents import now
from coaching_service.core.ids import ObjectId
from coaching_service.people import notifications, team
from coaching_service.people.notifications import Message, Recipient
from coaching_service.progress.conversation.service import write_message
from coaching_service.settings import Settings
from tests.support.client import CoachClient
from tests.support.mails import mails_once_sent, part_of, read_mail, unsubscribe_link
from tests.support.notifications import count_pending, send_due
from tests.support.training import Json, client_path, employee_key

OWN = "/customer/messages"


class Mailbox:
    """The mail that the service has sent."""

    def __init__(self, coach: CoachClient, folder: Path) -> None:
        self._coach, self._folder = coach, folder

    async def after(self, customer: Json, minutes: int) -> list[EmailMessage]:
        """The mails about a client's messages that have been sent so many minutes from now, oldest first."""
        await send_due(self._coach.ctx, after=timedelta(minutes=minutes))
        return await self.sent(customer)

    async def sent(self, customer: Json) -> list[EmailMessage]:
        """The mails about a client's messages that have been sent, oldest first, after those that wait are sent."""
        mails = await mails_once_sent(self._coach.ctx.services, self._folder, about=ObjectId(customer["_id"]))
        return [each for each in mails if customer["_id"] in part_of(each, "plain") or each["To"] == customer["email"]]


@pytest.fixture
def mailbox(coach: CoachClient, settings: Settings) -> Mailbox:
    return Mailbox(coach, settings.data_dir / "mail")


@pytest.fixture
async def ana(coach: CoachClient) -> Json:
    return await coach.create_customer("Ana", email=f"ana-{ObjectId()}@example.com", sendInvitation=False)


async def send(coach: CoachClient, customer: Json) -> None:
    (await coach.post(client_path(customer, "messages"), {"text": "Secret words"})).ok(201)


async def post_form(anonymous: CoachClient, path: str, value: tuple[str, str], encoding: str) -> int:
    """Send a form of one field without cookies, as mail programs do; returns the status."""
    form = aiohttp.FormData([value], default_to_multipart=encoding == "multipart")
    return (await anonymous.send("POST", path, data=form)).status


async def send_own(client: CoachClient) -> None:
    (await client.post(OWN, {"text": "Secret words"})).ok(201)


async def test_client_gets_one_mail_for_several_unread_messages(
    coach: CoachClient, ana: Json, mailbox: Mailbox
) -> None:
    for _ in range(3):
        await send(coach, ana)
    assert await mailbox.after(ana, 9) == []

    [content] = await mailbox.after(ana, 11)

    assert content["To"] == ana["email"]
    assert coach.ctx.caller.company.name in content["Subject"]
    parts = read_mail(content, coach.ctx.services.base_url)
    assert "Secret words" not in parts.text + parts.html
    pages = ("messages", "settings/notifications")
    messages, settings = (f"{coach.ctx.services.base_url}/train/{page}" for page in pages)
    link, own_settings = parts.links
    assert own_settings == settings
    address, _, query = link.partition("?")
    sealed = parse_qs(query)["company"][0]
    assert (address, coach.ctx.services.vault.open_value("company", sealed)) == (
        messages,
        coach.ctx.caller.company.name,
    ), "a device without a session shows the name"
    assert unsubscribe_link(content, coach.ctx.services.base_url).startswith(f"{settings}/off?token=")
    await send(coach, ana)
    assert len(await mailbox.after(ana, 69)) == 1, "at most one an hour"
    assert len(await mailbox.after(ana, 73)) == 2


async def test_one_click_turns_these_mails_off_without_a_session(
    coach: CoachClient, ana: Json, mailbox: Mailbox, anonymous: CoachClient
) -> None:
    """RFC 8058: a POST of the mail program to the address of the header, without a cookie or page."""
    bea = await coach.create_customer("Bea", email=f"bea-{ObjectId()}@example.com", sendInvitation=False)
    for customer in (ana, bea):
        await send(coach, customer)
    [content] = await mailbox.after(ana, 11)
    path = unsubscribe_link(content, coach.ctx.services.base_url).removeprefix(coach.ctx.services.base_url)
    value = ("List-Unsubscribe", "One-Click")

    refused = await post_form(anonymous, path.replace("token=", "token=0"), value, "multipart")
    answers = [await post_form(anonymous, path, value, encoding) for encoding in ("multipart", "urlencoded")]

    assert (refused, answers) == (404, [200, 200]), "programs repeat it"
    client = await coach.as_client(ana)
    settings = (await client.get("/customer/me")).ok()["notifications"]
    assert settings["messages"] == {"mail": False, "push": True}
    assert settings["checkIns"] == {"mail": True, "push": True}
    for customer in (ana, bea):
        await send(coach, customer)
    assert len(await mailbox.after(ana, 133)) == 1, "no more mails"
    assert len(await mailbox.sent(bea)) == 2, "the other client still gets them"


async def test_one_click_of_a_coach_changes_no_colleague(coach: CoachClient, anonymous: CoachClient) -> None:
    """In a suspended company too."""
    emil = await team.create(coach.ctx, "Emil", f"emil-{ObjectId()}@example.com", [], "all", "no hash")
    page, emils = "/app/settings/notifications", {"type": "coach", "_id": emil["_id"]}
    path = notifications.make_link(coach.ctx, cast("Recipient", emils), "digest", page)
    path = path.removeprefix(coach.ctx.services.base_url)
    companies, where = coach.ctx.db["companies"], {"_id": coach.ctx.company_id}
    await companies.update_one(where, {"$set": {"suspension": {"at": now()}}})
    assert await post_form(anonymous, path, ("List-Unsubscribe", "One-Click"), "urlencoded") == 200
    await companies.update_one(where, {"$unset": {"suspension": 1}})
    settings = [await team.get_notifications(coach.ctx, each) for each in (emil["_id"], coach.ctx.caller.id)]
    assert [each["digest"] for each in settings] == [{"mail": False, "push": True}, {"mail": True, "push": True}]


async def test_read_message_causes_no_mail(coach: CoachClient, ana: Json, mailbox: Mailbox) -> None:
    client = await coach.as_client(ana)
    await send(coach, ana)
    (await client.put(f"{OWN}/read")).ok()
    assert await count_pending(coach.ctx, ana["_id"]) == 0
    assert await mailbox.after(ana, 11) == []
    await send(coach, ana)
    assert len(await mailbox.after(ana, 11)) == 1


async def test_deleted_message_causes_no_mail(coach: CoachClient, ana: Json, mailbox: Mailbox) -> None:
    message = (await coach.post(client_path(ana, "messages"), {"text": "Secret words"})).ok(201)
    assert await count_pending(coach.ctx, ana["_id"]) >= 1
    (await coach.delete(client_path(ana, "messages", message["_id"]))).ok(204)
    assert await count_pending(coach.ctx, ana["_id"]) == 0
    assert await mailbox.after(ana, 11) == []


@pytest.mark.parametrize("side", ["client", "coach"])
async def test_mail_waits_until_the_oldest_message_left_is_unread_for_ten_minutes(
    coach: CoachClient, ana: Json, mailbox: Mailbox, side: str
) -> None:
    """It was due for an earlier message, which has been deleted; it is due again later."""
    path, sender = (OWN, await coach.as_client(ana)) if side == "client" else (client_path(ana, "messages"), coach)
    first = (await sender.post(path, {"text": "Secret words"})).ok(201)
    await sender.post(path, {"text": "More words"})
    second = await coach.ctx.db["messages"].find_one({"customerId": ObjectId(ana["_id"]), "text": "More words"})
    assert second is not None
    later = second["createdAt"] + timedelta(minutes=7)
    await coach.ctx.db["messages"].update_one({"_id": second["_id"]}, {"$set": {"createdAt": later}})
    (await sender.delete(f"{path}/{first['_id']}")).ok(204)

    assert await mailbox.after(ana, 11) == []
    assert len(await mailbox.after(ana, 18)) == 1
    assert len(await mailbox.after(ana, 19)) == 1, "only once"


async def test_mail_about_a_message_of_the_client_goes_to_the_trainer_else_to_the_owner(
    coach: CoachClient, ana: Json, mailbox: Mailbox
) -> None:
    client = await coach.as_client(ana)
    await send_own(client)
    [to_owner] = await mailbox.after(ana, 11)
    assert to_owner["To"] == coach.ctx.caller.email
    parts, base_url = read_mail(to_owner, coach.ctx.services.base_url), coach.ctx.services.base_url
    assert "Secret words" not in parts.text + parts.html
    assert list(parts.links) == [
        f"{base_url}/app/customers/{ana['_id']}/messages",
        f"{base_url}/app/settings/notifications",
    ]
    assert unsubscribe_link(to_owner, base_url).startswith(f"{base_url}/app/settings/notifications/off?token=")
    assert "Ana" not in to_owner["Subject"]

    bo = await coach.create_customer("Bo")
    await employee_key(coach, "customers.view")
    employee = await coach.ctx.db["coaches"].find_one({"companyId": coach.ctx.company_id, "role": "EMPLOYEE"})
    assert employee is not None
    (await coach.patch(f"/coach/customers/{bo['_id']}", {"assignedTo": str(employee["_id"])})).ok()
    await send_own(await coach.as_client(bo))
    [to_trainer] = await mailbox.after(bo, 11)
    assert to_trainer["To"] == employee["email"]
    assert unsubscribe_link(to_trainer, base_url).startswith(f"{base_url}/app/settings/notifications/off?token=")
    links = [f"{base_url}/app/customers/{bo['_id']}/messages", f"{base_url}/app/settings/notifications"]
    assert list(read_mail(to_trainer, base_url).links) == links


async def test_trainer_who_may_not_view_clients_gets_no_mail_about_them(
    coach: CoachClient, ana: Json, mailbox: Mailbox
) -> None:
    await employee_key(coach, "customers.view")
    employee = await coach.ctx.db["coaches"].find_one({"companyId": coach.ctx.company_id, "role": "EMPLOYEE"})
    assert employee is not None
    (await coach.patch(f"/coach/customers/{ana['_id']}", {"assignedTo": str(employee["_id"])})).ok()
    await send_own(await coach.as_client(ana))
    path = f"/coach/employees/{employee['_id']}/permissions"
    (await (await coach.interactive()).put(path, {"permissions": ["exercises.view"]})).ok()
    assert await mailbox.after(ana, 11) == []


async def test_message_written_while_a_notification_is_sent_is_due_again(coach: CoachClient, ana: Json) -> None:
    await send(coach, ana)
    where = {"companyId": coach.ctx.company_id, "key": f"messages:{ana['_id']}:client:mail"}
    before = await coach.ctx.db["notifications"].find_one(where)
    await send(coach, ana)
    after = await coach.ctx.db["notifications"].find_one(where)
    assert before is not None and after is not None
    assert after["requests"] == before["requests"] + 1, "a write, with which the transaction that sends it collides"
    assert after["dueAt"] == before["dueAt"]


async def test_each_side_can_turn_the_mail_off(coach: CoachClient, ana: Json, mailbox: Mailbox) -> None:
    client = await coach.as_client(ana)
    account = (await coach.get("/coach/account")).ok()
    profile = (await client.get("/customer/me")).ok()
    assert account["notifications"] == {"messages": True}
    assert profile["notifications"]["messages"] == {"mail": True, "push": True}
    off = {"notifications": {"messages": False}}
    assert (await coach.patch("/coach/account", off)).ok()["notifications"] == {"messages": False}
    changed = (await client.patch("/customer/me", off)).ok()["notifications"]
    assert changed["messages"] == {"mail": False, "push": False}
    await send(coach, ana)
    await send_own(client)
    assert await mailbox.after(ana, 11) == []

    (await client.patch("/customer/me", {"notifications": {"messages": True}})).ok()
    await send(coach, ana)
    assert [content["To"] for content in await mailbox.after(ana, 11)] == [ana["email"]]


async def test_no_mail_to_an_archived_client_or_one_without_an_address(
    coach: CoachClient, ana: Json, mailbox: Mailbox
) -> None:
    bo = await coach.create_customer("Bo")
    await send(coach, ana)
    await send(coach, bo)
    (await coach.put("/coach/customers/archive", {"id": ana["_id"]})).ok()
    assert await mailbox.after(ana, 11) == []
    assert await mailbox.after(bo, 11) == []
    assert await count_pending(coach.ctx) == 0


async def test_the_company_turns_off_mail_and_a_coach_the_own_mail_and_devices(
    coach: CoachClient, ana: Json, mailbox: Mailbox
) -> None:
    session = await coach.interactive()
    (await coach.patch("/coach/account", {"notifications": {"messages": False}})).ok()
    assert (await session.get("/me")).ok()["notifications"]["messages"] == {"mail": True, "push": True}
    await send_own(await coach.as_client(ana))

    for_devices: Any = {"customerId": ObjectId(ana["_id"]), "channels": ["push"]}
    notification: Any = await coach.ctx.db["notifications"].find_one(for_devices)
    assert isinstance(await write_message(coach.ctx, notification), Message), "devices follow the coach's own settings"
    assert await mailbox.after(ana, 11) == []

    (await coach.patch("/coach/account", {"notifications": {"messages": True}})).ok()
    (await session.patch("/me", {"notifications": {"messages": {"mail": False}}})).ok()
    assert (await coach.get("/coach/account")).ok()["notifications"] == {"messages": True}
    await send_own(await coach.as_client(ana))
    assert await mailbox.after(ana, 75) == []


async def test_an_empty_object_of_settings_changes_nothing(coach: CoachClient, ana: Json) -> None:
    client, session = await coach.as_client(ana), await coach.interactive()
    for caller, path in ((coach, "/coach/account"), (client, "/customer/me"), (session, "/me"), (client, "/me")):
        before = (await caller.get(path)).ok()
        assert (await caller.patch(path, {"notifications": {}})).ok() == before
    before = (await coach.get("/coach/account")).ok()
    assert (await coach.patch("/coach/account", {"notifications": {}, "attention": {}})).ok() == before


@pytest.mark.parametrize("body", [{"notifications": None}, {"notifications": {"messages": "no"}}])
async def test_notifications_are_validated(coach: CoachClient, ana: Json, body: Json) -> None:
    (await coach.patch("/coach/account", body)).refused(400, "notifications")
    (await (await coach.as_client(ana)).patch("/customer/me", body)).refused(400, "notifications")
