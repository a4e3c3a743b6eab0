"""The conversation of a client with the coaches of the company.

Any coach in scope reads and writes it; what one coach has read counts as read for the company.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Literal, cast

from coaching_service.core.auth import CUSTOMERS, MESSAGES_SCOPES, coach, customer
from coaching_service.core.changes.undo import DocumentsRestored, RestorationPlanned
from coaching_service.core.database import files
from coaching_service.core.database.context import Context, Services, gather_reads, transactional
from coaching_service.core.database.documents import Filter, now
from coaching_service.core.database.files import StoredFile
from coaching_service.core.database.recording import Actor, Interface, actor_of, interface_of
from coaching_service.core.errors import Conflict, Forbidden, NotFound, invalid_field, require_found
from coaching_service.core.fields import input_of, names_of, take
from coaching_service.core.http.routes import MultipartBody, Routes
from coaching_service.core.ids import ObjectId
from coaching_service.core.jobs import queue
from coaching_service.core.jobs.mail import subject_with
from coaching_service.core.jobs.queue import Job, RunAgain
from coaching_service.core.list_selection import CursorPage, ListPart, cursor_page_of
from coaching_service.core.validation import patch_of
from coaching_service.library import message_templates
from coaching_service.library.message_templates import MAX_TEXT_LENGTH
from coaching_service.people import account, api_keys, jobs, notifications, team
from coaching_service.people.customers import bulk, derived_figures
from coaching_service.people.customers import service as customers
from coaching_service.people.customers.models import CustomersDeleted
from coaching_service.progress.conversation import messages
from coaching_service.training import visibility
from coaching_service.training.workouts.blocks import service as workouts
from coaching_service.training.workouts.blocks.service import ClientCalendar, block_not_found
from coaching_service.training.workouts.items import service as items


async def _store_message(
    ctx: Context, customer_id: ObjectId, message_id: ObjectId, content: messages.Content
) -> messages.StoredMessage:
    """Add a message to a client's conversation; the client is locked in the transaction of `ctx`."""
    unread_by: messages.Side = "client" if ctx.caller.is_coach else "company"
    state = {"editedAt": None, "readAt": None, "unreadBy": unread_by}
    message = await messages.delivered.insert(ctx, {"_id": message_id, "customerId": customer_id, **content, **state})
    await messages.add_to_conversation(ctx, message, unread_by)
    if unread_by == "company":
        await derived_figures.mark_due(ctx, [customer_id])
    await ctx.publish(messages.MessageCreated(customer_id, message["_id"], unread_by))
    return message


async def _remove_message(ctx: Context, customer_id: ObjectId, message: messages.MessageContent) -> None:
    """Remove text and files of a message, which keeps its place; if it was unread, it is not any more."""
    change = {"$set": {"text": None, "attachments": []}, "$unset": {"unreadBy": ""}}
    await messages.delivered.update(ctx, {"customerId": customer_id, "_id": message["_id"]}, change)
    await files.discard(ctx, [file_id for file in message["attachments"] for file_id in messages.file_ids(file)])
    conversation = await messages.conversations.find_one(ctx, {"customerId": customer_id})
    if conversation is not None and (side := message.get("unreadBy")) is not None:
        await _set_unread(ctx, customer_id, side, conversation["unread"][side] - 1)


async def _set_unread(ctx: Context, customer_id: ObjectId, side: messages.Side, remaining: int) -> None:
    """Store how many messages one side has not read any more; those of the company are a reason for attention."""
    await messages.set_unread(ctx, customer_id, side, remaining)
    if side == "company":
        await derived_figures.mark_due(ctx, [customer_id])
    if not remaining:
        await ctx.publish(messages.MessagesRead(customer_id, side))


# --- Messages that are delivered later, and until then can be recalled: an assistant's after a minute, others as asked
# A waiting message is a document of its own, so that nothing that reads a conversation for the client, counts it or
# reports it knows about the message before it is delivered.


DELIVER = "deliver_message"
RECALL_PERIOD = timedelta(seconds=60)


async def deliver_waiting(services: Services, job: Job) -> RunAgain | None:
    """Deliver a message, unless it has been recalled or delivered, or the client or the company is deleted.

    One to an archived client, and one whose author may not write to the client any more, is not sent.
    """
    with suppress(NotFound):
        ctx = Context(services, await team.get_owner(services, job.arguments["companyId"]), operation=DELIVER)
        message = await _find_waiting(ctx, job.arguments["customerId"], job.arguments["messageId"])
        if message is None or "notDelivered" in message:
            return None
        if (remaining := message["deliverAt"] - now()) > timedelta(0):
            return RunAgain(remaining)
        acting = await _as_author(ctx, message)
        await _deliver_now(acting or ctx, message, may_write=acting is not None)
    return None


async def _as_author(ctx: Context, message: messages.WaitingMessage) -> Context | None:
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
async def _deliver_now(ctx: Context, message: messages.WaitingMessage, *, may_write: bool) -> None:
    """Deliver a message that waits, exactly once. Raises NotFound if the client is deleted."""
    customer_id = message["customerId"]
    waits = {"customerId": customer_id, "isWaiting": True, "_id": message["_id"]}
    obstacle: messages.Obstacle | None = None if may_write else "AUTHOR_NOT_ALLOWED"
    try:
        if await customers.is_archived(ctx, customer_id):
            obstacle = "CLIENT_ARCHIVED"
    except Forbidden:
        obstacle = "AUTHOR_NOT_ALLOWED"
    await customers.lock_and_mark_figures(ctx, customer_id)
    if obstacle is not None:
        await messages.waiting_messages.set_derived(ctx, waits, {"$set": {"notDelivered": obstacle}})
        return
    end = {"$unset": {"isWaiting": ""}, "$set": {"text": "", "attachments": []}}  # its version stays
    if await messages.waiting_messages.set_derived(ctx, waits, end):
        content = take(messages.Content, {"attachments": [], **message})
        await _store_message(ctx, customer_id, message["_id"], content)


async def _list_waiting(ctx: Context, where: Filter, limit: int) -> list[messages.ShownMessage]:
    """Return messages that wait and meet a condition, newest first, as coaches see them; clients see none."""
    if not ctx.caller.is_coach:
        return []
    where = {**where, "isWaiting": True}
    stored = await messages.waiting_messages.find(ctx, where, sort=messages.MESSAGE_ORDER, limit=limit)
    return [_as_message(message) for message in stored]


def _as_message(message: messages.WaitingMessage) -> messages.ShownMessage:
    """Return a message that waits with the fields of one that has been delivered."""
    shown = {"attachments": [], "editedAt": None, "readAt": None, **message}
    return take(messages.ShownMessage, shown)


async def _find_waiting(ctx: Context, customer_id: ObjectId, message_id: ObjectId) -> messages.WaitingMessage | None:
    """Return a message to a client that waits, or None; a client sees none."""
    if not ctx.caller.is_coach:
        return None
    where = {"customerId": customer_id, "isWaiting": True, "_id": message_id}
    return await messages.waiting_messages.find_one(ctx, where, names_of(messages.WaitingMessage))


async def _discard_files(ctx: Context, message: messages.WaitingMessage) -> None:
    attached = message.get("attachments", ())
    await files.discard(ctx, [file_id for file in attached for file_id in messages.file_ids(file)])


async def _publish_recall(ctx: Context, change_id: ObjectId) -> None:
    """Publish that all messages of a change are recalled, if they are."""
    if not await messages.waiting_messages.count(ctx, {"changeId": change_id}):
        await ctx.publish(messages.MessagesRecalled(change_id))


async def require_unread(ctx: Context, event: RestorationPlanned) -> None:
    """Raise Conflict if the client has read a message whose sending is to be undone."""
    for restored in event.documents:
        message = restored.before
        if restored.kind != "message" or message is None or restored.after is not None or message.get("isWaiting"):
            continue
        delivered = await messages.find_message(ctx, message["customerId"], message["_id"])
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
            await _discard_files(ctx, cast("messages.WaitingMessage", message))
            await queue.cancel(ctx, message_id)
        else:
            delivered = await messages.find_message(ctx, customer_id, message_id)
            if delivered is not None and delivered["text"] is not None:
                await _remove_message(ctx, customer_id, delivered)
        change_ids.add(message["changeId"])
    for change_id in change_ids:
        await _publish_recall(ctx, change_id)


# --- Notifications ----------------------------------------------------------------------------------------------------
# On devices at once, by mail after ten minutes, at most one an hour to each side: to the client, or to the client's
# trainer, else to the owner. They contain no part of the messages.


# The job that sent mail in version 0.2.
EARLIER_JOB = "mail_unread_messages"
UNREAD_FOR = timedelta(minutes=10)
INTERVAL = timedelta(hours=1)
_NAMED = (*customers.SCOPE_FIELDS, "name", "surname")
# What a notification to one side of a conversation is about: each has its own.
Topic = Literal["messages", "media"]


async def make_due(ctx: Context, event: messages.MessageCreated) -> None:
    """Make notifications about an unread message due, unless they are for this side of the conversation."""
    await notify(ctx, "messages", event.customer_id, event.unread_by)


async def notify(
    ctx: Context,
    topic: Topic,
    customer_id: ObjectId,
    side: messages.Side,
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


async def withdraw_notifications(ctx: Context, event: messages.MessagesRead) -> None:
    """Withdraw the notifications to a side that has no unread messages any more."""
    await notifications.withdraw(ctx, _keys("messages", event.customer_id, event.read_by))


def _keys(topic: Topic, customer_id: ObjectId, side: messages.Side) -> tuple[str, str]:
    return f"{topic}:{customer_id}:{side}:push", f"{topic}:{customer_id}:{side}:mail"


async def _find_coach(ctx: Context, customer_id: ObjectId) -> notifications.Recipient:
    """Return who receives what is sent about messages of a client: the trainer, else the owner."""
    customer = await customers.get_visible(ctx, customer_id)
    trainer = customer["customerRoleData"]["assignedTo"]
    return {"type": "coach", "_id": trainer or (await team.get_owner(ctx.services, ctx.company_id)).id}


async def write_message(
    ctx: Context, notification: notifications.Notification
) -> notifications.Message | datetime | None:
    """Return what to send about unread messages; None if there are none any more."""
    customer_id = notification["customerId"]
    if customer_id is None:
        return None
    side: messages.Side = "client" if notification["recipient"]["type"] == "client" else "company"
    unread_since = await messages.find_oldest_unread_time(ctx, customer_id, side)
    name = await find_sender(ctx, notification, unread_since)
    if not isinstance(name, str):
        return name
    if side == "client":
        return notifications.Message(
            subject=subject_with(name, "Unread messages from {}", "You have unread messages"),
            paragraphs=[f"{name} has written to you."],
            button="Read your messages",
            path="/train/messages",
            reason=f"You receive this mail because you train with {name} and have unread messages.",
            title="New message",
            text="Your coach has written to you",
        )
    return notifications.Message(
        subject="Unread messages from a client",
        paragraphs=[f"{name} has written to you."],
        button="Read the messages",
        path=f"/app/customers/{customer_id}/messages",
        reason=f"You receive this mail because you coach this client at {ctx.caller.company.name}.",
        title="New message",
        text="A client has written to you",
        details=f"{name} has written to you",
    )


async def find_sender(
    ctx: Context, notification: notifications.Notification, unread_since: datetime | None
) -> str | datetime | None:
    """Return the name of the company or the client whom the recipient of a notification hears from.

    None without anything unread, for a coach who is not the client's trainer any more or may not view clients, and for
    mails to coaches if the company has turned them off. A mail waits until it has been unread for ten minutes.
    """
    customer_id, recipient = notification["customerId"], notification["recipient"]
    is_mail = notification["channels"] == ["mail"]
    if unread_since is None or customer_id is None:
        return None
    if is_mail and unread_since + UNREAD_FOR > now():
        return unread_since + UNREAD_FOR
    if recipient["type"] == "client":
        return ctx.caller.company.name
    if is_mail and not (await account.get_account(ctx))["notifications"]["messages"]:
        return None
    if await _find_coach(ctx, customer_id) != recipient:
        return None
    if CUSTOMERS.VIEW not in (await team.load_principal(ctx, recipient["_id"])).permissions:
        return None
    return customers.full_name(await customers.get_visible(ctx, customer_id, _NAMED))


async def make_earlier_job_due(services: Services, job: Job) -> None:
    """Make due what version 0.2 has scheduled to be sent."""
    with suppress(NotFound):  # the company or the client is deleted
        owner = await team.get_owner(services, job.arguments["companyId"])
        ctx = Context(services, owner, interface="system", operation=EARLIER_JOB)
        await transactional(notify)(ctx, "messages", job.arguments["customerId"], job.arguments["side"])


# --- The conversation of a client with the coaches of the company -----------------------------------------------------


routes = Routes(
    "/coach/customers/{customerId}/messages",
    tag="Messages",
    scope_area=MESSAGES_SCOPES,
    locks="customer",
    path_descriptions={"messageId": "The identifier of the message."},
)
inbox_routes = Routes("/coach/conversations", tag="Messages", scope_area=MESSAGES_SCOPES)
own_routes = Routes(
    "/customer/messages", tag="The client's own", path_descriptions={"messageId": "The identifier of the message."}
)

_NEW_MESSAGE = {"text": "Good depth on the last set. Try a slower descent next time."}
_NEW_OWN_MESSAGE = {"text": "My knee was fine today."}
_CHANGE = {"text": "Good depth on the last two sets.", "version": 0}
_MESSAGE_CHANGE = patch_of(input_of(messages.MessageText), name="MessageChange")
_FILE = MultipartBody("file", messages.ATTACHMENT_TYPES, size_limit="attachment", file_required=True)

TOO_LONG = f"is longer than {MAX_TEXT_LENGTH} characters with the client's name"

# --- Reading ---------------------------------------------------------------------------------------------------------


@routes.get("", access=coach(CUSTOMERS.VIEW), returns=cursor_page_of(messages.MESSAGE))
async def list_messages(
    ctx: Context, customer_id: ObjectId, query: messages.MessageQuery
) -> CursorPage[messages.Message]:
    """List the messages of a client's conversation, newest first.

    A deleted message keeps its place, with `text` null.
    """
    limit, after, block_id = query["limit"], query["after"], query.get("wblockId")
    filters = {"customerId": customer_id, "wblockId": block_id}
    list_part = ListPart(ctx, "messages", filters, messages.MESSAGE_ORDER, size=limit, after=after)
    where: Filter = {"customerId": customer_id, **list_part.condition(), **messages.about_block(block_id)}
    _, stored, unsent = await gather_reads(
        ctx,
        customers.get_visible(ctx, customer_id),
        messages.delivered.find(ctx, where, sort=messages.MESSAGE_ORDER, limit=list_part.limit),
        _list_waiting(ctx, where, list_part.limit),
    )
    newest_first = sorted([*stored, *unsent], key=lambda each: (each["createdAt"], each["_id"]), reverse=True)
    return list_part.by_cursor(newest_first, lambda message: _to_message(ctx, message))


@routes.get("/{messageId}", access=coach(CUSTOMERS.VIEW), returns=messages.MESSAGE, operation_id="getMessage")
async def get(ctx: Context, customer_id: ObjectId, message_id: ObjectId) -> messages.Message:
    """Read a message of a client's conversation.

    `text` of a deleted message is null.
    """
    _, stored, unsent = await gather_reads(
        ctx,
        customers.get_visible(ctx, customer_id),
        messages.delivered.find_one(ctx, {"customerId": customer_id, "_id": message_id}),
        _find_waiting(ctx, customer_id, message_id),
    )
    return _to_message(ctx, require_found(stored, "message") if unsent is None else _as_message(unsent))


@inbox_routes.get("", access=coach(CUSTOMERS.VIEW))
async def list_conversations(ctx: Context, query: messages.ConversationQuery) -> CursorPage[messages.Conversation]:
    """List the conversations, the one with the newest message first.

    The conversations of the clients in the coach's scope; clients without any message are not listed.
    """
    unread, limit, after = query.get("unread"), query["limit"], query["after"]
    list_part = ListPart(ctx, "conversations", {"unread": unread}, messages.CONVERSATION_ORDER, size=limit, after=after)
    where: Filter = {"isUnread": {"$in": [True, False]} if unread is None else unread, **list_part.condition()}
    if (customer_ids := await customers.list_ids_in_scope(ctx)) is not None:
        where["customerId"] = {"$in": list(customer_ids)}
    stored = await messages.conversations.find(ctx, where, sort=messages.CONVERSATION_ORDER, limit=list_part.limit)
    part = list_part.by_cursor(stored, lambda entry: entry)
    last_messages, references = await gather_reads(
        ctx,
        _find_last_messages(ctx, part["docs"]),
        customers.find_references(ctx, [conversation["customerId"] for conversation in part["docs"]]),
    )
    docs: list[messages.Conversation] = [
        {
            "customer": references[conversation["customerId"]],
            "lastMessage": last_messages.get(conversation["lastMessageId"]),
            "unread": conversation["unread"]["company"],
        }
        for conversation in part["docs"]
        if conversation["customerId"] in references  # the client may have been erased meanwhile
    ]
    return {**part, "docs": docs}


async def _find_last_messages(
    ctx: Context, stored: Sequence[messages.StoredConversation]
) -> dict[ObjectId, messages.Message]:
    where: Filter = {"_id": {"$in": [conversation["lastMessageId"] for conversation in stored]}}
    return {each["_id"]: _to_message(ctx, each) for each in await messages.delivered.find(ctx, where)}


async def count_own_unread(ctx: Context) -> int:
    """Return how many messages of coaches the caller, a client, has not read."""
    stored = await messages.conversations.find_one(ctx, {"customerId": ctx.caller.id})
    return 0 if stored is None else stored["unread"]["client"]


count_unread = messages.count_unread
find_newest_unread_texts = messages.find_newest_unread_texts


# --- Writing ---------------------------------------------------------------------------------------------------------


@routes.post(
    "",
    access=coach(CUSTOMERS.EDIT),
    body=input_of(messages.NewCoachMessage, messages.OneText)(),
    returns=messages.MESSAGE,
    errors=(NotFound,),
    example=_NEW_MESSAGE,
    operation_id="sendMessage",
)
@transactional
async def create(
    ctx: Context, customer_id: ObjectId, body: messages.NewMessage | messages.NewCoachMessage
) -> messages.Message:
    """Send a message to a client.

    `about` makes it a comment on a workout block or item. If the client has not read it after ten minutes, a mail
    without its text is sent, at most one an hour. With `deliverAt` only coaches see it until then; it is not sent if
    the client is archived at that time, or its author may not write to the client any more (`notDelivered`).
    """
    messages.require_own_words(ctx)
    client = await customers.get_visible(ctx, customer_id, (*customers.SCOPE_FIELDS, "name", "surname"))
    await customers.record_activity(ctx, customer_id)
    text = body.get("text", "")
    if (template_id := cast("ObjectId | None", body.get("templateId"))) is not None:
        template = await message_templates.get(ctx, template_id)
        text = message_templates.fill_in(template["text"], client["name"], client["surname"])
        if len(text) > MAX_TEXT_LENGTH:
            raise invalid_field("templateId", TOO_LONG, code="TOO_LONG")
    about: messages.MessageSubject | None = None
    if (subject := body.get("about")) is not None:
        block = await workouts.get(ctx, ClientCalendar(customer_id), subject["wblockId"])
        if not await visibility.is_shown(ctx, customer_id, block["date"]):
            raise block_not_found()
        if (item_id := subject.get("witemId")) is not None:
            items.find_index(block["items"], item_id)
        about = {"wblockId": block["_id"], "witemId": item_id}
    upload = {"customerId": customer_id, "uploadedBy": ctx.caller.id}
    found = [
        await messages.pending_attachments.delete(ctx, {**upload, "_id": each}) for each in body.get("attachments", ())
    ]
    attached = [require_found(each, "attachment")["file"] for each in found]
    content = messages.Content(author=actor_of(ctx), text=text, about=about, attachments=attached)
    return await _send(ctx, customer_id, content, cast("datetime | None", body.get("deliverAt")))


@transactional
async def send_to_each(ctx: Context, texts: Mapping[ObjectId, str], *, deliver_at: datetime | None = None) -> None:
    """Send a message to each of these clients, whose access has been checked, or have it delivered later."""
    for customer_id, text in texts.items():
        await customers.lock_and_mark_figures(ctx, customer_id)
        content = messages.Content(author=actor_of(ctx), text=text, about=None, attachments=[])
        await _send(ctx, customer_id, content, deliver_at)


async def fill_in(ctx: Context, text: str, customer_ids: Sequence[ObjectId]) -> dict[ObjectId, str]:
    """Return the text of a template for each of these clients, whose access has been checked."""
    clients = await bulk.load_identities(ctx, list(customer_ids))
    return {
        each: message_templates.fill_in(text, client["name"], client["surname"]) for each, client in clients.items()
    }


async def _send(
    ctx: Context, customer_id: ObjectId, content: messages.Content, deliver_at: datetime | None
) -> messages.Message:
    """Store a message in the transaction of `ctx`, in which the client is locked; an assistant's waits for a minute."""
    if deliver_at is None and interface_of(ctx) == "assistant":
        deliver_at = now() + RECALL_PERIOD
    if deliver_at is None:
        return _to_message(ctx, await _store_message(ctx, customer_id, ObjectId(), content))
    about_change = {
        "deliverAt": deliver_at,
        "isWaiting": True,
        "changeId": ctx.batch_id or ctx.changes.id,
        "via": ctx.caller.via,
        "credentialId": ctx.caller.credential_id,
    }
    held = await messages.waiting_messages.insert(ctx, {"customerId": customer_id, **content, **about_change})
    arguments = {"companyId": ctx.company_id, "customerId": customer_id, "messageId": held["_id"]}
    after = max(deliver_at - now(), timedelta(0))
    await queue.enqueue(ctx, DELIVER, arguments, after=after, about=customer_id, identifier=held["_id"])
    return _to_message(ctx, _as_message(held))


@transactional
async def create_samples(ctx: Context, customer_id: ObjectId, samples: Sequence[messages.SampleMessage]) -> None:
    """Add messages to a client's conversation, oldest first, for sample data: no mail is sent about them."""
    for sample in samples:
        at, is_read = sample["at"], sample["isRead"]
        unread_by: messages.Side = "company" if sample["author"]["type"] == "client" else "client"
        message = await messages.delivered.insert(
            ctx,
            {
                "customerId": customer_id,
                "author": sample["author"],
                "text": sample["text"],
                "about": None,
                "attachments": [],
                "editedAt": None,
                "readAt": at if is_read else None,
                **({} if is_read else {"unreadBy": unread_by}),
            },
        )
        times = {"createdAt": at, "updatedAt": at}
        await messages.delivered.set_derived(ctx, {"_id": message["_id"]}, {"$set": times})
        await messages.add_to_conversation(ctx, {**message, "createdAt": at}, unread_by)
        if is_read:
            await messages.set_unread(ctx, customer_id, unread_by, 0)
    await derived_figures.mark_due(ctx, [customer_id])


@routes.patch(
    "/{messageId}",
    access=coach(CUSTOMERS.EDIT),
    body=_MESSAGE_CHANGE,
    returns=messages.MESSAGE,
    example=_CHANGE,
    operation_id="updateMessage",
)
@transactional
async def update(
    ctx: Context, customer_id: ObjectId, message_id: ObjectId, body: messages.MessageChange
) -> messages.Message:
    """Change the text of a message.

    Only its author may.
    """
    messages.require_own_words(ctx)
    await customers.get_visible(ctx, customer_id)
    if await _find_waiting(ctx, customer_id, message_id) is not None:
        raise Conflict("This message is not sent yet: recall it, and send another", code="MESSAGE_WAITING")
    stored = await _read_own(ctx, customer_id, message_id)
    await customers.record_activity(ctx, customer_id)
    is_changed = "text" in body and body["text"] != stored["text"]
    fields = {"text": body["text"], "editedAt": now()} if is_changed else {}
    where = {"customerId": customer_id, "_id": message_id}
    message = await messages.delivered.rewrite(ctx, where, lambda _: fields, version=body.get("version"))
    return _to_message(ctx, require_found(message, "message"))


@routes.delete("/{messageId}", access=coach(CUSTOMERS.EDIT), operation_id="deleteMessage")
@transactional
async def delete(ctx: Context, customer_id: ObjectId, message_id: ObjectId) -> None:
    """Delete a message.

    Only its author may. Its text and files are deleted; the message keeps its place in the list.
    """
    # One that waits is recalled.
    messages.require_own_words(ctx)
    await customers.get_visible(ctx, customer_id)
    if (unsent := await _find_waiting(ctx, customer_id, message_id)) is not None:
        if "notDelivered" not in unsent:  # then any coach may: its author may be gone
            _require_author(ctx, unsent["author"])
        await customers.record_activity(ctx, customer_id)
        where = {"customerId": customer_id, "isWaiting": True, "_id": message_id}
        await messages.waiting_messages.delete(ctx, where)
        await _discard_files(ctx, unsent)
        await queue.cancel(ctx, message_id)
        await _publish_recall(ctx, unsent["changeId"])
        return
    stored = await _read_own(ctx, customer_id, message_id)
    await customers.record_activity(ctx, customer_id)
    await _remove_message(ctx, customer_id, stored)


@routes.put("/read", access=coach(CUSTOMERS.EDIT), operation_id="markMessagesRead")
@transactional
async def mark_read(ctx: Context, customer_id: ObjectId, *, block_id: ObjectId | None = None) -> messages.Conversation:
    """Mark the messages of a client as read.

    They count as read for the whole company.
    """
    # With `block_id` only the comments on that workout block. An impersonation session changes nothing.
    await customers.get_visible(ctx, customer_id)
    side = _own_side(ctx)
    where: Filter = {"customerId": customer_id, "unreadBy": side, **messages.about_block(block_id)}
    change = {"$set": {"readAt": now()}, "$unset": {"unreadBy": ""}}
    marked = 0 if ctx.caller.impersonated_by else await messages.delivered.set_derived(ctx, where, change)
    conversation = await messages.conversations.find_one(ctx, {"customerId": customer_id}) if marked else None
    if conversation is not None:
        await customers.record_activity(ctx, customer_id)
        await _set_unread(ctx, customer_id, side, conversation["unread"][side] - marked if block_id else 0)
    reference, conversation = await gather_reads(
        ctx,
        customers.get_visible_reference(ctx, customer_id),
        messages.conversations.find_one(ctx, {"customerId": customer_id}),
    )
    if conversation is None:
        return {"customer": reference, "lastMessage": None, "unread": 0}
    last_message = (await _find_last_messages(ctx, [conversation])).get(conversation["lastMessageId"])
    return {"customer": reference, "lastMessage": last_message, "unread": conversation["unread"][side]}


async def delete_conversations(ctx: Context, event: CustomersDeleted) -> None:
    """Remove the conversations of deleted clients from the list at once; their messages are erased later."""
    await messages.conversations.delete_many(ctx, {"customerId": {"$in": list(event.customer_ids)}})


# --- Rules -----------------------------------------------------------------------------------------------------------


def _own_side(ctx: Context) -> messages.Side:
    return "company" if ctx.caller.is_coach else "client"


async def _read_own(ctx: Context, customer_id: ObjectId, message_id: ObjectId) -> messages.MessageContent:
    message = await messages.find_message(ctx, customer_id, message_id)
    if message is None or message["text"] is None:
        raise NotFound("message")
    _require_author(ctx, message["author"])
    return message


def _require_author(ctx: Context, author: Actor) -> None:
    if author["_id"] != ctx.caller.id:
        raise Forbidden("Only its author may change or delete a message", code="NOT_THE_AUTHOR")


def _to_message(ctx: Context, stored: messages.StoredMessage) -> messages.Message:
    """Return a message as it is sent; one that has been delivered has no time of delivery."""
    attached = [messages.present_attachment(ctx, file) for file in stored["attachments"]]
    fields = {"deliverAt": None, "notDelivered": None, **stored}
    return {**take(messages.Message, fields), "attachments": attached}


@routes.post("/attachments", access=coach(CUSTOMERS.EDIT), multipart=_FILE, request_class="database", example={})
async def upload_message_attachment(
    ctx: Context, customer_id: ObjectId, file: StoredFile | None
) -> messages.MessageAttachment:
    """Upload a file for a message.

    A picture, an MP4, QuickTime or WebM video, or a PDF. It is deleted unless a message of the same author contains it
    within a day. Metadata, such as the location, is removed from pictures.
    """
    return await messages.add_attachment(ctx, customer_id, file)


# --- Of clients over REST ---------------------------------------------------------------------------------------------


@own_routes.get("", access=customer(), returns=cursor_page_of(messages.MESSAGE))
async def list_own_messages(ctx: Context, query: messages.MessageQuery) -> CursorPage[messages.Message]:
    """List the messages of my conversation with my coaches, newest first."""
    return await list_messages(ctx, ctx.caller.id, query)


@own_routes.post(
    "", access=customer(), returns=messages.MESSAGE, errors=(Forbidden, NotFound), example=_NEW_OWN_MESSAGE
)
async def send_own_message(ctx: Context, body: messages.NewMessage) -> messages.Message:
    """Send a message to my coaches.

    Not in an impersonation session.
    """
    return await create(ctx, ctx.caller.id, body)


@own_routes.patch("/{messageId}", access=customer(), body=_MESSAGE_CHANGE, returns=messages.MESSAGE, example=_CHANGE)
async def update_own_message(ctx: Context, message_id: ObjectId, body: messages.MessageChange) -> messages.Message:
    """Change the text of a message of mine."""
    return await update(ctx, ctx.caller.id, message_id, body)


@own_routes.delete("/{messageId}", access=customer())
async def delete_own_message(ctx: Context, message_id: ObjectId) -> None:
    """Delete a message of mine.

    Its text and files are deleted; the message keeps its place in the list.
    """
    await delete(ctx, ctx.caller.id, message_id)


@own_routes.put("/read", access=customer())
async def mark_own_messages_read(ctx: Context) -> messages.Conversation:
    """Mark the messages of my coaches as read.

    In an impersonation session nothing changes.
    """
    return await mark_read(ctx, ctx.caller.id)


@own_routes.post("/attachments", access=customer(), multipart=_FILE, errors=(Forbidden,), example={})
async def upload_own_message_attachment(ctx: Context, file: StoredFile | None) -> messages.MessageAttachment:
    """Upload a file for a message of mine.

    A picture, an MP4, QuickTime or WebM video, or a PDF. It is deleted unless a message of mine contains it within a
    day. Metadata, such as the location, is removed from pictures.
    """
    return await messages.add_attachment(ctx, ctx.caller.id, file)


ATTACHMENT_TYPES = messages.ATTACHMENT_TYPES
read_attachment = messages.read_attachment
find_commented = messages.find_commented
find_turns = messages.find_turns
