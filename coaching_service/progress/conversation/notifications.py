"""Notifications about unread messages: on devices at once, by mail after ten minutes, at most one an hour to each side.

They go to the client, or to the client's trainer, else to the owner, and contain no part of the messages.
"""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta

from coaching_service.core.auth.permissions import CUSTOMERS
from coaching_service.core.database.context import Context, Services
from coaching_service.core.database.documents import now
from coaching_service.core.database.transactions import transactional
from coaching_service.core.errors import NotFound
from coaching_service.core.ids import ObjectId
from coaching_service.core.jobs.mail_body import subject_with
from coaching_service.core.jobs.queue import Job
from coaching_service.people.account import service as account
from coaching_service.people.customers import service as customers
from coaching_service.people.notifications import service as notifications
from coaching_service.people.notifications.models import DueNotification, Later, Message, Notification, Recipient
from coaching_service.people.team import service as team
from coaching_service.progress.conversation import store
from coaching_service.progress.conversation.events import MessageCreated, MessagesRead
from coaching_service.progress.conversation.models import Side

# The job that sent mail in version 0.2.
EARLIER_JOB = "mail_unread_messages"
UNREAD_FOR = timedelta(minutes=10)
INTERVAL = timedelta(hours=1)
_FIELDS = (*customers.SCOPE_FIELDS, "name", "surname")


async def make_due(ctx: Context, event: MessageCreated) -> None:
    """Make notifications about an unread message due, unless they are for this side of the conversation."""
    await _make_due(ctx, event.customer_id, event.unread_by)


async def _make_due(ctx: Context, customer_id: ObjectId, side: Side) -> None:
    recipient: Recipient = {"type": "client", "_id": customer_id}
    if side == "company":
        recipient = await _find_coach(ctx, customer_id)
    for_devices, by_mail = _keys(customer_id, side)
    await notifications.make_due(
        ctx,
        [
            DueNotification(
                for_devices, "messages", recipient, now(), customer_id, channels=("push",), interval=timedelta(0)
            ),
            DueNotification(
                by_mail, "messages", recipient, now() + UNREAD_FOR, customer_id, channels=("mail",), interval=INTERVAL
            ),
        ],
    )


async def withdraw(ctx: Context, event: MessagesRead) -> None:
    """Withdraw the notifications to a side that has no unread messages any more."""
    await notifications.withdraw(ctx, _keys(event.customer_id, event.read_by))


def _keys(customer_id: ObjectId, side: Side) -> tuple[str, str]:
    return f"messages:{customer_id}:{side}:push", f"messages:{customer_id}:{side}:mail"


async def _find_coach(ctx: Context, customer_id: ObjectId) -> Recipient:
    """Return who receives what is sent about messages of a client: the trainer, else the owner."""
    customer = await customers.get_visible(ctx, customer_id)
    trainer = customer["customerRoleData"]["assignedTo"]
    return {"type": "coach", "_id": trainer or (await team.get_owner(ctx.services, ctx.company_id)).id}


async def write_message(ctx: Context, notification: Notification) -> Message | Later | None:
    """Return what to send about unread messages; None if there are none any more.

    A mail waits until the oldest of them has been unread for ten minutes.
    """
    customer_id, recipient = notification["customerId"], notification["recipient"]
    if customer_id is None:
        return None
    side: Side = "client" if recipient["type"] == "client" else "company"
    unread_since = await store.find_oldest_unread_time(ctx, customer_id, side)
    if unread_since is None:
        return None
    if notification["channels"] == ["mail"] and unread_since + UNREAD_FOR > now():
        return Later(unread_since + UNREAD_FOR)
    if side == "client":
        return _to_client(ctx)
    if notification["channels"] == ["mail"] and not (await account.get(ctx))["notifications"]["messages"]:
        return None  # the company has turned it off for all coaches
    return await _to_coach(ctx, customer_id, recipient)


def _to_client(ctx: Context) -> Message:
    company = ctx.caller.company.name
    return Message(
        subject=subject_with(company, "Unread messages from {}", "You have unread messages"),
        paragraphs=[f"{company} has written to you."],
        button="Read your messages",
        path="/train/messages",
        reason=f"You receive this mail because you train with {company} and have unread messages.",
        title="New message",
        text="Your coach has written to you",
    )


async def _to_coach(ctx: Context, customer_id: ObjectId, recipient: Recipient) -> Message | None:
    """Return what to send to a coach; None if the client has another trainer now, or the coach may not view clients."""
    if await _find_coach(ctx, customer_id) != recipient:
        return None
    if CUSTOMERS.VIEW not in (await team.load_principal(ctx, recipient["_id"])).permissions:
        return None
    customer = await customers.get_visible(ctx, customer_id, _FIELDS)
    return Message(
        subject="Unread messages from a client",
        paragraphs=[f"{customers.full_name(customer)} has written to you."],
        button="Read the messages",
        path=f"/app/customers/{customer_id}/messages",
        reason=f"You receive this mail because you coach this client at {ctx.caller.company.name}.",
        title="New message",
        text="A client has written to you",
        details=f"{customers.full_name(customer)} has written to you",
    )


async def follow_earlier_job(services: Services, job: Job) -> None:
    """Make due what version 0.2 has scheduled to be sent."""
    with suppress(NotFound):  # the company or the client is deleted
        owner = await team.get_owner(services, job.arguments["companyId"])
        ctx = Context(services, owner, interface="system", operation=EARLIER_JOB)
        await _follow_earlier_job(ctx, job.arguments["customerId"], job.arguments["side"])


@transactional
async def _follow_earlier_job(ctx: Context, customer_id: ObjectId, side: Side) -> None:
    await _make_due(ctx, customer_id, side)
