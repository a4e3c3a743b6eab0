"""Adding a message to a conversation, and deleting one from it, in the caller's transaction."""

from __future__ import annotations

from collections.abc import Sequence

from coaching_service.core.database import files
from coaching_service.core.database.context import Context
from coaching_service.core.database.recording import Actor
from coaching_service.core.ids import ObjectId
from coaching_service.people.customers import derived_figures
from coaching_service.progress.conversation import attachments, store
from coaching_service.progress.conversation import models as conversation_models


async def deliver(
    ctx: Context,
    customer_id: ObjectId,
    author: Actor,
    text: str,
    about: conversation_models.MessageSubject | None,
    *,
    attached: Sequence[conversation_models.AttachedFile] = (),
    message_id: ObjectId | None = None,
) -> conversation_models.StoredMessage:
    """Add a message to a client's conversation; the client is locked in the transaction of `ctx`.

    `message_id`: its identifier, if it has one already.
    """
    unread_by: conversation_models.Side = "client" if ctx.caller.is_coach else "company"
    content = {"author": author, "text": text, "about": about, "attachments": list(attached)}
    about_message = {"_id": message_id or ObjectId(), "customerId": customer_id, **content}
    state = {"editedAt": None, "readAt": None, "unreadBy": unread_by}
    message = await store.messages.insert(ctx, {**about_message, **state})
    await store.add_to_conversation(ctx, message, unread_by)
    await mark_attention_due(ctx, customer_id, unread_by)
    await ctx.publish(conversation_models.MessageCreated(customer_id, message["_id"], unread_by))
    return message


async def delete(ctx: Context, customer_id: ObjectId, message: conversation_models.MessageContent) -> None:
    """Remove text and files of a message, which keeps its place; if it was unread, it is not any more."""
    change = {"$set": {"text": None, "attachments": []}, "$unset": {"unreadBy": ""}}
    await store.messages.update(ctx, {"customerId": customer_id, "_id": message["_id"]}, change)
    await files.discard(ctx, [file_id for file in message["attachments"] for file_id in attachments.file_ids(file)])
    conversation = await store.conversations.find_one(ctx, {"customerId": customer_id})
    if conversation is not None and (side := message.get("unreadBy")) is not None:
        remaining = conversation["unread"][side] - 1
        await store.set_unread(ctx, customer_id, side, remaining)
        await mark_attention_due(ctx, customer_id, side)
        if not remaining:
            await ctx.publish(conversation_models.MessagesRead(customer_id, side))


async def mark_attention_due(ctx: Context, customer_id: ObjectId, side: conversation_models.Side) -> None:
    """Have it renewed why the client needs attention: the company's unread messages are a reason, the client's not."""
    if side == "company":
        await derived_figures.mark_due(ctx, [customer_id])
