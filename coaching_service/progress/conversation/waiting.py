"""Messages that are delivered later, and until then can be recalled: an assistant's after a minute, others as asked.

A waiting message is a document of its own, so that nothing that reads a conversation for the client, counts it or
reports it knows about the message before it is delivered.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from typing import Literal, cast

from coaching_service.core.auth import CUSTOMERS
from coaching_service.core.changes.undo import DocumentsRestored, RestorationPlanned
from coaching_service.core.database import files
from coaching_service.core.database.context import Context, Services, transactional
from coaching_service.core.database.documents import Filter, now
from coaching_service.core.database.recording import Interface, actor_of
from coaching_service.core.errors import Conflict, Forbidden, NotFound
from coaching_service.core.fields import names_of, take
from coaching_service.core.ids import ObjectId
from coaching_service.core.jobs import queue
from coaching_service.core.jobs.mail import subject_with
from coaching_service.core.jobs.queue import Job, RunAgain
from coaching_service.people import account, api_keys, jobs, notifications, team
from coaching_service.people.customers import service as customers
from coaching_service.progress.conversation import _delivery, attachments, store
from coaching_service.progress.conversation import models as conversation_models
from coaching_service.progress.conversation.store import MESSAGE_ORDER, waiting_messages

DELIVER = "deliver_message"
RECALL_PERIOD = timedelta(seconds=60)


async def hold(
    ctx: Context,
    customer_id: ObjectId,
    text: str,
    about: conversation_models.MessageSubject | None,
    attached: Sequence[conversation_models.AttachedFile],
    deliver_at: datetime,
) -> conversation_models.WaitingMessage:
    """Store a message in the transaction of `ctx`, to be delivered at a time (UTC), and return it."""
    message = await waiting_messages.insert(
        ctx,
        {
            "customerId": customer_id,
            "author": actor_of(ctx),
            "text": text,
            "about": about,
            "attachments": list(attached),
            "deliverAt": deliver_at,
            "isWaiting": True,
            "changeId": ctx.batch_id or ctx.changes.id,
            "via": ctx.caller.via,
            "credentialId": ctx.caller.credential_id,
        },
    )
    arguments = {"companyId": ctx.company_id, "customerId": customer_id, "messageId": message["_id"]}
    after = max(deliver_at - now(), timedelta(0))
    await queue.enqueue(ctx, DELIVER, arguments, after=after, about=customer_id, identifier=message["_id"])
    return message


async def deliver(services: Services, job: Job) -> RunAgain | None:
    """Deliver a message, unless it has been recalled or delivered, or the client or the company is deleted.

    One to an archived client, and one whose author may not write to the client any more, is not sent.
    """
    with suppress(NotFound):
        owner = await team.get_owner(services, job.arguments["companyId"])
        return await _deliver(Context(services, owner), job.arguments["customerId"], job.arguments["messageId"])
    return None


async def _deliver(ctx: Context, customer_id: ObjectId, message_id: ObjectId) -> RunAgain | None:
    message = await _find(ctx, customer_id, message_id)
    if message is None or "notDelivered" in message:
        return None
    if (remaining := message["deliverAt"] - now()) > timedelta(0):
        return RunAgain(remaining)
    ctx = replace(ctx, operation=DELIVER)
    acting = await _as_author(ctx, message)
    await _deliver_now(acting or ctx, message, may_write=acting is not None)
    return None


async def _as_author(ctx: Context, message: conversation_models.WaitingMessage) -> Context | None:
    """Return the context of who wrote a message; None if the coach is gone, or may not change clients any more.

    Likewise if the API key is deleted, or the assistant has been disconnected.
    """
    author_id, via, credential_id = message["author"]["_id"] or ctx.caller.id, message["via"], message["credentialId"]
    coach = await api_keys.load_actor(ctx.services, author_id, via, credential_id)
    if coach is None or coach.company.id != ctx.company_id or CUSTOMERS.EDIT not in coach.permissions:
        return None
    if not await jobs.is_credential_usable(ctx, via, credential_id):
        return None
    interface: Interface | None = "assistant" if message["author"]["type"] == "assistant" else None
    return replace(ctx, interface=interface, principal=replace(coach, via=via, credential_id=credential_id))


@transactional
async def _deliver_now(ctx: Context, message: conversation_models.WaitingMessage, *, may_write: bool) -> None:
    """Deliver a message that waits, exactly once. Raises NotFound if the client is deleted."""
    customer_id, waits = message["customerId"], _of(message["customerId"], _id=message["_id"])
    obstacle: conversation_models.Obstacle | None = None if may_write else "AUTHOR_NOT_ALLOWED"
    try:
        if await customers.is_archived(ctx, customer_id):
            obstacle = "CLIENT_ARCHIVED"
    except Forbidden:
        obstacle = "AUTHOR_NOT_ALLOWED"
    await customers.lock_and_mark_figures(ctx, customer_id)
    if obstacle is not None:
        await waiting_messages.set_derived(ctx, waits, {"$set": {"notDelivered": obstacle}})
        return
    end = {"$unset": {"isWaiting": ""}, "$set": {"text": "", "attachments": []}}  # its version stays
    if await waiting_messages.set_derived(ctx, waits, end):
        content = message["author"], message["text"], message["about"]
        attached = message.get("attachments", [])
        await _delivery.deliver(ctx, customer_id, *content, attached=attached, message_id=message["_id"])


async def list_newest(ctx: Context, where: Filter, limit: int) -> list[conversation_models.ShownMessage]:
    """Return messages that wait and meet a condition, newest first, as coaches see them; clients see none."""
    if not ctx.caller.is_coach:
        return []
    stored = await waiting_messages.find(ctx, {**where, "isWaiting": True}, sort=MESSAGE_ORDER, limit=limit)
    return [as_message(message) for message in stored]


def as_message(message: conversation_models.WaitingMessage) -> conversation_models.ShownMessage:
    """Return a message that waits with the fields of one that has been delivered."""
    shown = {"attachments": [], "editedAt": None, "readAt": None, **message}
    return take(conversation_models.ShownMessage, shown)


async def find_one(
    ctx: Context, customer_id: ObjectId, message_id: ObjectId
) -> conversation_models.WaitingMessage | None:
    """Return a message to a client that waits, or None; a client sees none."""
    return await _find(ctx, customer_id, message_id) if ctx.caller.is_coach else None


async def _find(ctx: Context, customer_id: ObjectId, message_id: ObjectId) -> conversation_models.WaitingMessage | None:
    where = _of(customer_id, _id=message_id)
    return await waiting_messages.find_one(ctx, where, names_of(conversation_models.WaitingMessage))


def _of(customer_id: ObjectId, **where: ObjectId) -> Filter:
    """Return the filter of the messages to a client that wait."""
    return {"customerId": customer_id, "isWaiting": True, **where}


async def recall(ctx: Context, message: conversation_models.WaitingMessage) -> None:
    """Delete a message that waits, in the transaction of `ctx`, in which the client is locked."""
    await waiting_messages.delete(ctx, _of(message["customerId"], _id=message["_id"]))
    await _discard_files(ctx, message)
    await queue.cancel(ctx, message["_id"])
    await _publish_recall(ctx, message["changeId"])


async def _discard_files(ctx: Context, message: conversation_models.WaitingMessage) -> None:
    attached = message.get("attachments", ())
    await files.discard(ctx, [file_id for file in attached for file_id in attachments.file_ids(file)])


async def _publish_recall(ctx: Context, change_id: ObjectId) -> None:
    """Publish that all messages of a change are recalled, if they are."""
    if not await waiting_messages.count(ctx, {"changeId": change_id}):
        await ctx.publish(conversation_models.MessagesRecalled(change_id))


async def require_unread(ctx: Context, event: RestorationPlanned) -> None:
    """Raise Conflict if the client has read a message whose sending is to be undone."""
    for restored in event.documents:
        message = restored.before
        if restored.kind != "message" or message is None or restored.after is not None or message.get("isWaiting"):
            continue
        delivered = await store.find_message(ctx, message["customerId"], message["_id"])
        if delivered is not None and delivered["text"] is not None and delivered.get("unreadBy") is None:
            raise Conflict("The client has read this message", code="NOT_UNDOABLE")


async def withdraw_undone_messages(ctx: Context, event: DocumentsRestored) -> None:
    """Recall the messages whose sending was undone, or delete them: the client has not read them (`require_unread`)."""
    change_ids: set[ObjectId] = set()
    for restored in event.of_kind("message"):
        message = restored.before
        if message is None or restored.after is not None:
            continue
        customer_id, message_id = message["customerId"], message["_id"]
        if message.get("isWaiting"):
            await _discard_files(ctx, cast("conversation_models.WaitingMessage", message))
            await queue.cancel(ctx, message_id)
        else:
            await _delete_delivered(ctx, customer_id, message_id)
        change_ids.add(message["changeId"])
    for change_id in change_ids:
        await _publish_recall(ctx, change_id)


async def _delete_delivered(ctx: Context, customer_id: ObjectId, message_id: ObjectId) -> None:
    delivered = await store.find_message(ctx, customer_id, message_id)
    if delivered is not None and delivered["text"] is not None:
        await _delivery.delete(ctx, customer_id, delivered)


# --- Notifications ----------------------------------------------------------------------------------------------------
# Notifications about unread messages: on devices at once, by mail after ten minutes, at most one an hour to each side.
#
# They go to the client, or to the client's trainer, else to the owner, and contain no part of the messages.


# The job that sent mail in version 0.2.
EARLIER_JOB = "mail_unread_messages"
UNREAD_FOR = timedelta(minutes=10)
INTERVAL = timedelta(hours=1)
_FIELDS = (*customers.SCOPE_FIELDS, "name", "surname")
# What a notification to one side of a conversation is about: each has its own.
Topic = Literal["messages", "media"]


async def make_due(ctx: Context, event: conversation_models.MessageCreated) -> None:
    """Make notifications about an unread message due, unless they are for this side of the conversation."""
    await notify(ctx, "messages", event.customer_id, event.unread_by)


async def notify(
    ctx: Context,
    topic: Topic,
    customer_id: ObjectId,
    side: conversation_models.Side,
    subject: notifications.Subject | None = None,
) -> None:
    """Make notifications due about what one side of a client's conversation has not read of a topic."""
    recipient: notifications.Recipient = {"type": "client", "_id": customer_id}
    if side == "company":
        recipient = await _find_coach(ctx, customer_id)
    for_devices, by_mail = _keys(topic, customer_id, side)
    about = notifications.DueNotification(for_devices, "messages", recipient, now(), customer_id, subject or {})
    await notifications.make_due(
        ctx,
        [
            replace(about, channels=("push",), interval=timedelta(0)),
            replace(about, key=by_mail, due_at=now() + UNREAD_FOR, channels=("mail",), interval=INTERVAL),
        ],
    )


async def withdraw(ctx: Context, event: conversation_models.MessagesRead) -> None:
    """Withdraw the notifications to a side that has no unread messages any more."""
    await notifications.withdraw(ctx, _keys("messages", event.customer_id, event.read_by))


def _keys(topic: Topic, customer_id: ObjectId, side: conversation_models.Side) -> tuple[str, str]:
    return f"{topic}:{customer_id}:{side}:push", f"{topic}:{customer_id}:{side}:mail"


async def _find_coach(ctx: Context, customer_id: ObjectId) -> notifications.Recipient:
    """Return who receives what is sent about messages of a client: the trainer, else the owner."""
    customer = await customers.get_visible(ctx, customer_id)
    trainer = customer["customerRoleData"]["assignedTo"]
    return {"type": "coach", "_id": trainer or (await team.get_owner(ctx.services, ctx.company_id)).id}


async def write_message(
    ctx: Context, notification: notifications.Notification
) -> notifications.Message | notifications.Later | None:
    """Return what to send about unread messages; None if there are none any more."""
    customer_id = notification["customerId"]
    if customer_id is None:
        return None
    side: conversation_models.Side = "client" if notification["recipient"]["type"] == "client" else "company"
    unread_since = await store.find_oldest_unread_time(ctx, customer_id, side)
    if side == "client":
        return await write_to(ctx, notification, unread_since, _to_client)
    return await write_to(ctx, notification, unread_since, partial(_to_coach, customer_id=customer_id))


async def write_to(
    ctx: Context,
    notification: notifications.Notification,
    unread_since: datetime | None,
    write: Callable[[Context, str], notifications.Message],
) -> notifications.Message | notifications.Later | None:
    """Return what `write` returns, for the recipient of a notification, with the name of the company or the client.

    None without anything unread, for a coach who is not the client's trainer any more or may not view clients, and for
    mails to coaches if the company has turned them off. A mail waits until it has been unread for ten minutes.
    """
    customer_id, recipient = notification["customerId"], notification["recipient"]
    is_mail = notification["channels"] == ["mail"]
    if unread_since is None or customer_id is None:
        return None
    if is_mail and unread_since + UNREAD_FOR > now():
        return notifications.Later(unread_since + UNREAD_FOR)
    if recipient["type"] == "client":
        return write(ctx, ctx.caller.company.name)
    if is_mail and not (await account.get(ctx))["notifications"]["messages"]:
        return None
    if await _find_coach(ctx, customer_id) != recipient:
        return None
    if CUSTOMERS.VIEW not in (await team.load_principal(ctx, recipient["_id"])).permissions:
        return None
    return write(ctx, customers.full_name(await customers.get_visible(ctx, customer_id, _FIELDS)))


def _to_client(_: Context, company: str) -> notifications.Message:
    return notifications.Message(
        subject=subject_with(company, "Unread messages from {}", "You have unread messages"),
        paragraphs=[f"{company} has written to you."],
        button="Read your messages",
        path="/train/messages",
        reason=f"You receive this mail because you train with {company} and have unread messages.",
        title="New message",
        text="Your coach has written to you",
    )


def _to_coach(ctx: Context, client: str, customer_id: ObjectId) -> notifications.Message:
    return notifications.Message(
        subject="Unread messages from a client",
        paragraphs=[f"{client} has written to you."],
        button="Read the messages",
        path=f"/app/customers/{customer_id}/messages",
        reason=f"You receive this mail because you coach this client at {ctx.caller.company.name}.",
        title="New message",
        text="A client has written to you",
        details=f"{client} has written to you",
    )


async def make_earlier_job_due(services: Services, job: Job) -> None:
    """Make due what version 0.2 has scheduled to be sent."""
    with suppress(NotFound):  # the company or the client is deleted
        owner = await team.get_owner(services, job.arguments["companyId"])
        ctx = Context(services, owner, interface="system", operation=EARLIER_JOB)
        await _make_earlier_job_due(ctx, job.arguments["customerId"], job.arguments["side"])


@transactional
async def _make_earlier_job_due(ctx: Context, customer_id: ObjectId, side: conversation_models.Side) -> None:
    await notify(ctx, "messages", customer_id, side)
