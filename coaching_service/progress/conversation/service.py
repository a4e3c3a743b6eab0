"""The conversation of a client with the coaches of the company.

Any coach in scope reads and writes it; what one coach has read counts as read for the company.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import cast

from coaching_service.core.database.context import Context, gather_reads, transactional
from coaching_service.core.database.documents import Filter, now
from coaching_service.core.database.recording import Actor, actor_of, interface_of
from coaching_service.core.errors import Conflict, Forbidden, NotFound, invalid_field, require_found
from coaching_service.core.fields import take
from coaching_service.core.ids import ObjectId
from coaching_service.core.list_selection import CursorPage, ListPart
from coaching_service.library import message_templates
from coaching_service.library.message_templates import MAX_TEXT_LENGTH
from coaching_service.people.customers import activity_dates, bulk, derived_figures
from coaching_service.people.customers import service as customers
from coaching_service.people.customers.models import CustomersDeleted
from coaching_service.progress.conversation import _delivery, attachments, store, waiting
from coaching_service.progress.conversation import models as conversation_models
from coaching_service.training import visibility
from coaching_service.training.workouts.blocks import service as workouts
from coaching_service.training.workouts.blocks.service import ClientCalendar, block_not_found
from coaching_service.training.workouts.items import service as items

TOO_LONG = f"is longer than {MAX_TEXT_LENGTH} characters with the client's name"

# --- Reading ---------------------------------------------------------------------------------------------------------


async def list_messages(
    ctx: Context, customer_id: ObjectId, *, limit: int, after: str | None = None, block_id: ObjectId | None = None
) -> CursorPage[conversation_models.Message]:
    """Return part of a client's conversation, newest first; with `block_id` only the comments on that workout block.

    Raises InvalidFields if `after` is not a cursor of this list, NotFound if the company has no such client, Forbidden
    if the client is outside the caller's scope.
    """
    filters = {"customerId": customer_id, "wblockId": block_id}
    list_part = ListPart(ctx, "messages", filters, store.MESSAGE_ORDER, size=limit, after=after)
    where: Filter = {"customerId": customer_id, **list_part.condition(), **store.about_block(block_id)}
    _, stored, unsent = await gather_reads(
        ctx,
        customers.get_visible(ctx, customer_id),
        store.messages.find(ctx, where, sort=store.MESSAGE_ORDER, limit=list_part.limit),
        waiting.list_newest(ctx, where, list_part.limit),
    )
    newest_first = sorted([*stored, *unsent], key=lambda each: (each["createdAt"], each["_id"]), reverse=True)
    return list_part.by_cursor(newest_first, lambda message: _to_message(ctx, message))


async def get(ctx: Context, customer_id: ObjectId, message_id: ObjectId) -> conversation_models.Message:
    """Return a message of a client's conversation. Raises NotFound if it has no such message, Forbidden."""
    _, stored, unsent = await gather_reads(
        ctx,
        customers.get_visible(ctx, customer_id),
        store.messages.find_one(ctx, {"customerId": customer_id, "_id": message_id}),
        waiting.find_one(ctx, customer_id, message_id),
    )
    if unsent is not None:
        return _to_message(ctx, waiting.as_message(unsent))
    return _to_message(ctx, require_found(stored, "message"))


async def list_conversations(
    ctx: Context, *, unread: bool | None, limit: int, after: str | None = None
) -> CursorPage[conversation_models.Conversation]:
    """Return part of the conversations of the clients in the coach's scope, the one with the newest message first.

    `unread`: only with unread messages of the company, or without. Raises InvalidFields if `after` is not a
    cursor of this list.
    """
    list_part = ListPart(ctx, "conversations", {"unread": unread}, store.CONVERSATION_ORDER, size=limit, after=after)
    where: Filter = {"isUnread": {"$in": [True, False]} if unread is None else unread, **list_part.condition()}
    if (customer_ids := await customers.list_ids_in_scope(ctx)) is not None:
        where["customerId"] = {"$in": list(customer_ids)}
    stored = await store.conversations.find(ctx, where, sort=store.CONVERSATION_ORDER, limit=limit + 1)
    page = stored[:limit]
    last_messages, references = await gather_reads(
        ctx,
        store.find_by_ids(ctx, [conversation["lastMessageId"] for conversation in page]),
        customers.find_references(ctx, [conversation["customerId"] for conversation in page]),
    )
    presented = list_part.by_cursor(stored, lambda entry: entry)
    docs: list[conversation_models.Conversation] = [
        {
            "customer": references[conversation["customerId"]],
            "lastMessage": _last_message(ctx, conversation, last_messages),
            "unread": conversation["unread"]["company"],
        }
        for conversation in page
        if conversation["customerId"] in references  # the client may have been erased meanwhile
    ]
    return {"docs": docs, "nextCursor": presented["nextCursor"], "hasMore": presented["hasMore"]}


async def get_conversation(ctx: Context, customer_id: ObjectId) -> conversation_models.Conversation:
    """Return a client's conversation as the caller's side sees it. Raises NotFound, Forbidden as `list_messages`."""
    reference, conversation = await gather_reads(
        ctx,
        customers.get_visible_reference(ctx, customer_id),
        store.conversations.find_one(ctx, {"customerId": customer_id}),
    )
    if conversation is None:
        return {"customer": reference, "lastMessage": None, "unread": 0}
    last_messages = await store.find_by_ids(ctx, [conversation["lastMessageId"]])
    return {
        "customer": reference,
        "lastMessage": _last_message(ctx, conversation, last_messages),
        "unread": conversation["unread"][_own_side(ctx)],
    }


async def count_own_unread(ctx: Context) -> int:
    """Return how many messages of coaches the caller, a client, has not read."""
    stored = await store.conversations.find_one(ctx, {"customerId": ctx.caller.id})
    return 0 if stored is None else stored["unread"]["client"]


count_unread = store.count_unread


async def find_newest_unread_texts(ctx: Context, customer_ids: Sequence[ObjectId]) -> dict[ObjectId, str]:
    """Return the newest message that no coach has read, of clients with any. Access is not checked."""
    return {each["_id"]: each["text"] for each in await store.find_newest_unread(ctx, customer_ids) if each["text"]}


def _last_message(
    ctx: Context,
    conversation: conversation_models.StoredConversation,
    messages: Mapping[ObjectId, conversation_models.StoredMessage],
) -> conversation_models.Message | None:
    message = messages.get(conversation["lastMessageId"])
    return None if message is None else _to_message(ctx, message)


# --- Writing ---------------------------------------------------------------------------------------------------------


@transactional
async def create(
    ctx: Context, customer_id: ObjectId, new: conversation_models.NewMessage | conversation_models.NewCoachMessage
) -> conversation_models.Message:
    """Send a message, or have it delivered later, and return it.

    Raises NotFound for its template, for what it comments on, and for attachments that its author has not uploaded for
    this conversation; InvalidFields if it is too long with the client's name; Forbidden in an impersonation session;
    and what `list_messages` raises.
    """
    _require_own_words(ctx)
    client = await customers.get_visible(ctx, customer_id, (*customers.SCOPE_FIELDS, "name", "surname"))
    await activity_dates.record_activity(ctx, customer_id)
    text = new.get("text", "")
    if (template_id := cast("ObjectId | None", new.get("templateId"))) is not None:
        template = await message_templates.get(ctx, template_id)
        text = message_templates.fill_in(template["text"], client["name"], client["surname"])
        if len(text) > MAX_TEXT_LENGTH:
            raise invalid_field("templateId", TOO_LONG, code="TOO_LONG")
    about = await _resolve_about(ctx, customer_id, new.get("about"))
    attached = await attachments.take(ctx, customer_id, new.get("attachments", ()))
    return await _send(ctx, customer_id, text, about, attached, cast("datetime | None", new.get("deliverAt")))


@transactional
async def send_to_each(ctx: Context, texts: Mapping[ObjectId, str], *, deliver_at: datetime | None = None) -> None:
    """Send a message to each of these clients, whose access has been checked, or have it delivered later."""
    for customer_id, text in texts.items():
        await customers.lock_and_mark_figures(ctx, customer_id)
        await _send(ctx, customer_id, text, None, [], deliver_at)


async def fill_in(ctx: Context, text: str, customer_ids: Sequence[ObjectId]) -> dict[ObjectId, str]:
    """Return the text of a template for each of these clients, whose access has been checked."""
    clients = await bulk.load_identities(ctx, list(customer_ids))
    return {
        each: message_templates.fill_in(text, client["name"], client["surname"]) for each, client in clients.items()
    }


async def _send(
    ctx: Context,
    customer_id: ObjectId,
    text: str,
    about: conversation_models.MessageSubject | None,
    attached: Sequence[conversation_models.AttachedFile],
    deliver_at: datetime | None = None,
) -> conversation_models.Message:
    """Store a message in the transaction of `ctx`, in which the client is locked; an assistant's waits for a minute."""
    if deliver_at is None and interface_of(ctx) == "assistant":
        deliver_at = now() + waiting.RECALL_PERIOD
    if deliver_at is not None:
        held = await waiting.hold(ctx, customer_id, text, about, attached, deliver_at)
        return _to_message(ctx, waiting.as_message(held))
    return _to_message(ctx, await _delivery.deliver(ctx, customer_id, actor_of(ctx), text, about, attached=attached))


@transactional
async def create_samples(
    ctx: Context, customer_id: ObjectId, samples: Sequence[conversation_models.SampleMessage]
) -> None:
    """Add messages to a client's conversation, oldest first, for sample data: no mail is sent about them."""
    for sample in samples:
        at, is_read = sample["at"], sample["isRead"]
        unread_by: conversation_models.Side = "company" if sample["author"]["type"] == "client" else "client"
        message = await store.messages.insert(
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
        await store.messages.set_derived(ctx, {"_id": message["_id"]}, {"$set": times})
        await store.add_to_conversation(ctx, {**message, "createdAt": at}, unread_by)
        if is_read:
            await store.set_unread(ctx, customer_id, unread_by, 0)
    await derived_figures.mark_due(ctx, [customer_id])


@transactional
async def update(
    ctx: Context, customer_id: ObjectId, message_id: ObjectId, change: conversation_models.MessageChange
) -> conversation_models.Message:
    """Change the text of a message of the caller and return it.

    Raises NotFound if there is no such message or it is deleted, Forbidden if another person wrote it, Conflict if it
    has changed since `change["version"]` or waits to be delivered, and what `list_messages` raises.
    """
    _require_own_words(ctx)
    await customers.get_visible(ctx, customer_id)
    if await waiting.find_one(ctx, customer_id, message_id) is not None:
        raise Conflict("This message is not sent yet: recall it, and send another", code="MESSAGE_WAITING")
    stored = await _read_own(ctx, customer_id, message_id)
    await activity_dates.record_activity(ctx, customer_id)
    is_changed = "text" in change and change["text"] != stored["text"]
    fields = {"text": change["text"], "editedAt": now()} if is_changed else {}
    where = {"customerId": customer_id, "_id": message_id}
    message = await store.messages.rewrite(ctx, where, lambda _: fields, version=change.get("version"))
    return _to_message(ctx, require_found(message, "message"))


@transactional
async def delete(ctx: Context, customer_id: ObjectId, message_id: ObjectId) -> None:
    """Remove text and attachments of a message of the caller; the message keeps its place. One that waits is recalled.

    Raises NotFound if there is no such message or it is deleted, Forbidden if another person wrote it, and what
    `list_messages` raises.
    """
    _require_own_words(ctx)
    await customers.get_visible(ctx, customer_id)
    if (unsent := await waiting.find_one(ctx, customer_id, message_id)) is not None:
        if "notDelivered" not in unsent:  # then any coach may: its author may be gone
            _require_author(ctx, unsent["author"])
        await activity_dates.record_activity(ctx, customer_id)
        await waiting.recall(ctx, unsent)
        return
    stored = await _read_own(ctx, customer_id, message_id)
    await activity_dates.record_activity(ctx, customer_id)
    await _delivery.delete(ctx, customer_id, stored)


@transactional
async def mark_read(
    ctx: Context, customer_id: ObjectId, *, block_id: ObjectId | None = None
) -> conversation_models.Conversation:
    """Mark the messages that the caller's side has not read as read, and return the conversation.

    With `block_id` only the comments on that workout block. An impersonation session changes nothing: the client has
    not read them. Raises what `list_messages` raises.
    """
    await customers.get_visible(ctx, customer_id)
    side = _own_side(ctx)
    where: Filter = {"customerId": customer_id, "unreadBy": side, **store.about_block(block_id)}
    change = {"$set": {"readAt": now()}, "$unset": {"unreadBy": ""}}
    marked = 0 if ctx.caller.impersonated_by else await store.messages.set_derived(ctx, where, change)
    conversation = await store.conversations.find_one(ctx, {"customerId": customer_id}) if marked else None
    if conversation is not None:
        remaining = conversation["unread"][side] - marked if block_id else 0
        await activity_dates.record_activity(ctx, customer_id)
        await store.set_unread(ctx, customer_id, side, remaining)
        await _delivery.mark_attention_due(ctx, customer_id, side)
        if not remaining:
            await ctx.publish(conversation_models.MessagesRead(customer_id, side))
    return await get_conversation(ctx, customer_id)


async def delete_conversations(ctx: Context, event: CustomersDeleted) -> None:
    """Remove the conversations of deleted clients from the list at once; their messages are erased later."""
    await store.conversations.delete_many(ctx, {"customerId": {"$in": list(event.customer_ids)}})


# --- Rules -----------------------------------------------------------------------------------------------------------


def _own_side(ctx: Context) -> conversation_models.Side:
    return "company" if ctx.caller.is_coach else "client"


def _require_own_words(ctx: Context) -> None:
    """Raise Forbidden in an impersonation session: what it writes would be read as the client's words."""
    if ctx.caller.impersonated_by is not None:
        raise Forbidden("An impersonation session cannot send or change messages", code="IMPERSONATED")


async def _read_own(ctx: Context, customer_id: ObjectId, message_id: ObjectId) -> conversation_models.MessageContent:
    message = await store.find_message(ctx, customer_id, message_id)
    if message is None or message["text"] is None:
        raise NotFound("message")
    _require_author(ctx, message["author"])
    return message


def _require_author(ctx: Context, author: Actor) -> None:
    if author["_id"] != ctx.caller.id:
        raise Forbidden("Only its author may change or delete a message", code="NOT_THE_AUTHOR")


async def _resolve_about(
    ctx: Context, customer_id: ObjectId, about: conversation_models.MessageSubjectInput | None
) -> conversation_models.MessageSubject | None:
    """Return what a message comments on.

    Raises NotFound if the client has no such block or item, or the caller is the client and the day is hidden.
    """
    if about is None:
        return None
    block = await workouts.get(ctx, ClientCalendar(customer_id), about["wblockId"])
    date = str(block["date"])
    if not (await visibility.find_visibility(ctx, customer_id, date, date)).allows(day=date):
        raise block_not_found()
    if (item_id := about.get("witemId")) is not None:
        items.find_index(block["items"], item_id)
    return {"wblockId": block["_id"], "witemId": item_id}


def _to_message(ctx: Context, stored: conversation_models.StoredMessage) -> conversation_models.Message:
    """Return a message as it is sent; one that has been delivered has no time of delivery."""
    attached = [attachments.present(ctx, file) for file in stored["attachments"]]
    fields = {"deliverAt": None, "notDelivered": None, **stored}
    return {**take(conversation_models.Message, fields), "attachments": attached}


find_commented = store.find_commented
find_turns = store.find_turns
