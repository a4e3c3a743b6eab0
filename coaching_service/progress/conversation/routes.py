"""Messages over REST: by coaches, and by clients in their own session."""

from __future__ import annotations

from coaching_service.core.auth import CUSTOMERS, MESSAGES_SCOPES, coach, customer
from coaching_service.core.database.context import Context
from coaching_service.core.database.files import StoredFile
from coaching_service.core.errors import Forbidden, NotFound
from coaching_service.core.field_schemas import input_of
from coaching_service.core.http.routes import MultipartBody, Routes
from coaching_service.core.ids import ObjectId
from coaching_service.core.list_selection import CursorPage, cursor_page_of
from coaching_service.core.validation import patch_of
from coaching_service.progress.conversation import messages
from coaching_service.progress.conversation import service as conversation

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
_FILE = MultipartBody("file", conversation.ATTACHMENT_TYPES, size_limit="attachment", file_required=True)


@routes.get("", access=coach(CUSTOMERS.VIEW), returns=cursor_page_of(messages.MESSAGE))
async def list_messages(
    ctx: Context, customer_id: ObjectId, query: messages.MessageQuery
) -> CursorPage[messages.Message]:
    """List the messages of a client's conversation, newest first.

    A deleted message keeps its place, with `text` null.
    """
    return await conversation.list_messages(
        ctx, customer_id, limit=query["limit"], after=query["after"], block_id=query.get("wblockId")
    )


@routes.post(
    "",
    access=coach(CUSTOMERS.EDIT),
    body=input_of(messages.NewCoachMessage, messages.OneText)(),
    returns=messages.MESSAGE,
    errors=(NotFound,),
    example=_NEW_MESSAGE,
)
async def send_message(ctx: Context, customer_id: ObjectId, body: messages.NewCoachMessage) -> messages.Message:
    """Send a message to a client.

    `about` makes it a comment on a workout block or item. If the client has not read it after ten minutes, a mail
    without its text is sent, at most one an hour. With `deliverAt` only coaches see it until then; it is not sent if
    the client is archived at that time, or its author may not write to the client any more (`notDelivered`).
    """
    return await conversation.create(ctx, customer_id, body)


@routes.get("/{messageId}", access=coach(CUSTOMERS.VIEW), returns=messages.MESSAGE)
async def get_message(ctx: Context, customer_id: ObjectId, message_id: ObjectId) -> messages.Message:
    """Read a message of a client's conversation.

    `text` of a deleted message is null.
    """
    return await conversation.get(ctx, customer_id, message_id)


@routes.patch(
    "/{messageId}", access=coach(CUSTOMERS.EDIT), body=_MESSAGE_CHANGE, returns=messages.MESSAGE, example=_CHANGE
)
async def update_message(
    ctx: Context, customer_id: ObjectId, message_id: ObjectId, body: messages.MessageChange
) -> messages.Message:
    """Change the text of a message.

    Only its author may.
    """
    return await conversation.update(ctx, customer_id, message_id, body)


@routes.delete("/{messageId}", access=coach(CUSTOMERS.EDIT))
async def delete_message(ctx: Context, customer_id: ObjectId, message_id: ObjectId) -> None:
    """Delete a message.

    Only its author may. Its text and files are deleted; the message keeps its place in the list.
    """
    await conversation.delete(ctx, customer_id, message_id)


@routes.put("/read", access=coach(CUSTOMERS.EDIT))
async def mark_messages_read(ctx: Context, customer_id: ObjectId) -> messages.Conversation:
    """Mark the messages of a client as read.

    They count as read for the whole company.
    """
    return await conversation.mark_read(ctx, customer_id)


@routes.post("/attachments", access=coach(CUSTOMERS.EDIT), multipart=_FILE, request_class="database", example={})
async def upload_message_attachment(
    ctx: Context, customer_id: ObjectId, file: StoredFile | None
) -> messages.MessageAttachment:
    """Upload a file for a message.

    A picture, an MP4, QuickTime or WebM video, or a PDF. It is deleted unless a message of the same author contains it
    within a day. Metadata, such as the location, is removed from pictures.
    """
    return await conversation.add_attachment(ctx, customer_id, file)


@inbox_routes.get("", access=coach(CUSTOMERS.VIEW))
async def list_conversations(ctx: Context, query: messages.ConversationQuery) -> CursorPage[messages.Conversation]:
    """List the conversations, the one with the newest message first.

    The conversations of the clients in the coach's scope; clients without any message are not listed.
    """
    return await conversation.list_conversations(
        ctx, unread=query.get("unread"), limit=query["limit"], after=query["after"]
    )


@own_routes.get("", access=customer(), returns=cursor_page_of(messages.MESSAGE))
async def list_own_messages(ctx: Context, query: messages.MessageQuery) -> CursorPage[messages.Message]:
    """List the messages of my conversation with my coaches, newest first."""
    return await conversation.list_messages(
        ctx, ctx.caller.id, limit=query["limit"], after=query["after"], block_id=query.get("wblockId")
    )


@own_routes.post(
    "", access=customer(), returns=messages.MESSAGE, errors=(Forbidden, NotFound), example=_NEW_OWN_MESSAGE
)
async def send_own_message(ctx: Context, body: messages.NewMessage) -> messages.Message:
    """Send a message to my coaches.

    Not in an impersonation session.
    """
    return await conversation.create(ctx, ctx.caller.id, body)


@own_routes.patch("/{messageId}", access=customer(), body=_MESSAGE_CHANGE, returns=messages.MESSAGE, example=_CHANGE)
async def update_own_message(ctx: Context, message_id: ObjectId, body: messages.MessageChange) -> messages.Message:
    """Change the text of a message of mine."""
    return await conversation.update(ctx, ctx.caller.id, message_id, body)


@own_routes.delete("/{messageId}", access=customer())
async def delete_own_message(ctx: Context, message_id: ObjectId) -> None:
    """Delete a message of mine.

    Its text and files are deleted; the message keeps its place in the list.
    """
    await conversation.delete(ctx, ctx.caller.id, message_id)


@own_routes.put("/read", access=customer())
async def mark_own_messages_read(ctx: Context) -> messages.Conversation:
    """Mark the messages of my coaches as read.

    In an impersonation session nothing changes.
    """
    return await conversation.mark_read(ctx, ctx.caller.id)


@own_routes.post("/attachments", access=customer(), multipart=_FILE, errors=(Forbidden,), example={})
async def upload_own_message_attachment(ctx: Context, file: StoredFile | None) -> messages.MessageAttachment:
    """Upload a file for a message of mine.

    A picture, an MP4, QuickTime or WebM video, or a PDF. It is deleted unless a message of mine contains it within a
    day. Metadata, such as the location, is removed from pictures.
    """
    return await conversation.add_attachment(ctx, ctx.caller.id, file)
