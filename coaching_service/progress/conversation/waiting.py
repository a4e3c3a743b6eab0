"""Messages of assistants: they are delivered after a minute, and until then can be recalled.

A waiting message is a document of its own, so that nothing that reads a conversation for the client, counts it or
reports it knows about the message before it is delivered.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from datetime import timedelta

from coaching_service.core.auth import CUSTOMERS
from coaching_service.core.changes.log import actor_of
from coaching_service.core.changes.undo import DocumentsRestored, RestorationPlanned
from coaching_service.core.database.context import Context, Services
from coaching_service.core.database.documents import Filter, now
from coaching_service.core.database.transactions import transactional
from coaching_service.core.errors import CompanySuspended, Conflict, NotFound
from coaching_service.core.fields import names_of, take
from coaching_service.core.ids import ObjectId
from coaching_service.core.jobs import queue
from coaching_service.core.jobs.mail import subject_with
from coaching_service.core.jobs.queue import Job, RunAgain
from coaching_service.people import notifications
from coaching_service.people.account import service as account
from coaching_service.people.customers import service as customers
from coaching_service.people.team import service as team
from coaching_service.progress.conversation import _delivery, store
from coaching_service.progress.conversation import models as conversation_models
from coaching_service.progress.conversation.store import MESSAGE_ORDER, waiting_messages

DELIVER = "deliver_message"
RECALL_PERIOD = timedelta(seconds=60)


async def hold(
    ctx: Context, customer_id: ObjectId, text: str, about: conversation_models.MessageSubject | None
) -> conversation_models.WaitingMessage:
    """Store a message of an assistant in the transaction of `ctx`, to be delivered after a minute, and return it."""
    message = await waiting_messages.insert(
        ctx,
        {
            "customerId": customer_id,
            "author": actor_of(ctx),
            "text": text,
            "about": about,
            "deliverAt": now() + RECALL_PERIOD,
            "isWaiting": True,
            "changeId": ctx.batch_id or ctx.changes.id,
            "via": ctx.caller.via,
            "credentialId": ctx.caller.credential_id,
        },
    )
    arguments = {"companyId": ctx.company_id, "customerId": customer_id, "messageId": message["_id"]}
    await queue.enqueue(ctx, DELIVER, arguments, after=RECALL_PERIOD, about=customer_id, identifier=message["_id"])
    return message


async def deliver(services: Services, job: Job) -> RunAgain | None:
    """Deliver a message, unless it has been recalled or delivered, or the client or the company is deleted."""
    with suppress(NotFound):
        owner = await team.get_owner(services, job.arguments["companyId"])
        return await _deliver(Context(services, owner), job.arguments["customerId"], job.arguments["messageId"])
    return None


async def _deliver(ctx: Context, customer_id: ObjectId, message_id: ObjectId) -> RunAgain | None:
    message = await _find(ctx, customer_id, message_id)
    if message is None:
        return None
    if (remaining := message["deliverAt"] - now()) > timedelta(0):
        return RunAgain(remaining)
    await _deliver_now(await _as_author(ctx, message), message)
    return None


async def _as_author(ctx: Context, message: conversation_models.WaitingMessage) -> Context:
    """Return the context of the assistant that wrote a message; the owner's if its coach is gone."""
    ctx = replace(ctx, operation=DELIVER, interface="assistant")
    with suppress(CompanySuspended):
        coach = await team.get_principal(ctx.services, message["author"]["_id"] or ctx.caller.id)
        if coach is not None and coach.company.id == ctx.company_id:
            via, credential_id = message["via"], message["credentialId"]
            return replace(ctx, principal=replace(coach, via=via, credential_id=credential_id, customers_scope="all"))
    return ctx


@transactional
async def _deliver_now(ctx: Context, message: conversation_models.WaitingMessage) -> None:
    """Deliver a message that waits, exactly once. Raises NotFound if the client is deleted."""
    customer_id = message["customerId"]
    await customers.lock_and_mark_figures(ctx, customer_id)
    end = {"$unset": {"isWaiting": ""}, "$set": {"text": ""}}  # its version stays
    if await waiting_messages.set_derived(ctx, _of(customer_id, _id=message["_id"]), end):
        content = message["author"], message["text"], message["about"]
        await _delivery.deliver(ctx, customer_id, *content, message_id=message["_id"])


async def list_newest(ctx: Context, where: Filter, limit: int) -> list[conversation_models.ShownMessage]:
    """Return messages that wait and meet a condition, newest first, as coaches see them; clients see none."""
    if not ctx.caller.is_coach:
        return []
    stored = await waiting_messages.find(ctx, {**where, "isWaiting": True}, sort=MESSAGE_ORDER, limit=limit)
    return [as_message(message) for message in stored]


def as_message(message: conversation_models.WaitingMessage) -> conversation_models.ShownMessage:
    """Return a message that waits with the fields of one that has been delivered."""
    return {**take(conversation_models.ShownMessage, message), "attachments": [], "editedAt": None, "readAt": None}


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
    await queue.cancel(ctx, message["_id"])
    await _publish_recall(ctx, message["changeId"])


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


async def make_due(ctx: Context, event: conversation_models.MessageCreated) -> None:
    """Make notifications about an unread message due, unless they are for this side of the conversation."""
    await _make_due(ctx, event.customer_id, event.unread_by)


async def _make_due(ctx: Context, customer_id: ObjectId, side: conversation_models.Side) -> None:
    recipient: notifications.Recipient = {"type": "client", "_id": customer_id}
    if side == "company":
        recipient = await _find_coach(ctx, customer_id)
    for_devices, by_mail = _keys(customer_id, side)
    await notifications.make_due(
        ctx,
        [
            notifications.DueNotification(
                for_devices, "messages", recipient, now(), customer_id, channels=("push",), interval=timedelta(0)
            ),
            notifications.DueNotification(
                by_mail, "messages", recipient, now() + UNREAD_FOR, customer_id, channels=("mail",), interval=INTERVAL
            ),
        ],
    )


async def withdraw(ctx: Context, event: conversation_models.MessagesRead) -> None:
    """Withdraw the notifications to a side that has no unread messages any more."""
    await notifications.withdraw(ctx, _keys(event.customer_id, event.read_by))


def _keys(customer_id: ObjectId, side: conversation_models.Side) -> tuple[str, str]:
    return f"messages:{customer_id}:{side}:push", f"messages:{customer_id}:{side}:mail"


async def _find_coach(ctx: Context, customer_id: ObjectId) -> notifications.Recipient:
    """Return who receives what is sent about messages of a client: the trainer, else the owner."""
    customer = await customers.get_visible(ctx, customer_id)
    trainer = customer["customerRoleData"]["assignedTo"]
    return {"type": "coach", "_id": trainer or (await team.get_owner(ctx.services, ctx.company_id)).id}


async def write_message(
    ctx: Context, notification: notifications.Notification
) -> notifications.Message | notifications.Later | None:
    """Return what to send about unread messages; None if there are none any more.

    A mail waits until the oldest of them has been unread for ten minutes.
    """
    customer_id, recipient = notification["customerId"], notification["recipient"]
    if customer_id is None:
        return None
    side: conversation_models.Side = "client" if recipient["type"] == "client" else "company"
    unread_since = await store.find_oldest_unread_time(ctx, customer_id, side)
    if unread_since is None:
        return None
    if notification["channels"] == ["mail"] and unread_since + UNREAD_FOR > now():
        return notifications.Later(unread_since + UNREAD_FOR)
    if side == "client":
        return _to_client(ctx)
    if notification["channels"] == ["mail"] and not (await account.get(ctx))["notifications"]["messages"]:
        return None  # the company has turned it off for all coaches
    return await _to_coach(ctx, customer_id, recipient)


def _to_client(ctx: Context) -> notifications.Message:
    company = ctx.caller.company.name
    return notifications.Message(
        subject=subject_with(company, "Unread messages from {}", "You have unread messages"),
        paragraphs=[f"{company} has written to you."],
        button="Read your messages",
        path="/train/messages",
        reason=f"You receive this mail because you train with {company} and have unread messages.",
        title="New message",
        text="Your coach has written to you",
    )


async def _to_coach(
    ctx: Context, customer_id: ObjectId, recipient: notifications.Recipient
) -> notifications.Message | None:
    """Return what to send to a coach; None if the client has another trainer now, or the coach may not view clients."""
    if await _find_coach(ctx, customer_id) != recipient:
        return None
    if CUSTOMERS.VIEW not in (await team.load_principal(ctx, recipient["_id"])).permissions:
        return None
    customer = await customers.get_visible(ctx, customer_id, _FIELDS)
    return notifications.Message(
        subject="Unread messages from a client",
        paragraphs=[f"{customers.full_name(customer)} has written to you."],
        button="Read the messages",
        path=f"/app/customers/{customer_id}/messages",
        reason=f"You receive this mail because you coach this client at {ctx.caller.company.name}.",
        title="New message",
        text="A client has written to you",
        details=f"{customers.full_name(customer)} has written to you",
    )


async def make_earlier_job_due(services: Services, job: Job) -> None:
    """Make due what version 0.2 has scheduled to be sent."""
    with suppress(NotFound):  # the company or the client is deleted
        owner = await team.get_owner(services, job.arguments["companyId"])
        ctx = Context(services, owner, interface="system", operation=EARLIER_JOB)
        await _make_earlier_job_due(ctx, job.arguments["customerId"], job.arguments["side"])


@transactional
async def _make_earlier_job_due(ctx: Context, customer_id: ObjectId, side: conversation_models.Side) -> None:
    await _make_due(ctx, customer_id, side)
