"""The conversation with a client."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from marshmallow import fields

from coaching_service.core.auth.access import coach
from coaching_service.core.auth.permissions import CUSTOMERS
from coaching_service.core.database.context import Context
from coaching_service.core.database.files import StoredFile
from coaching_service.core.database.transactions import gather_reads
from coaching_service.core.errors import InvalidFields
from coaching_service.core.http.routes import MultipartBody
from coaching_service.core.ids import ObjectId
from coaching_service.core.validation import Input
from coaching_service.progress.conversation import attachments
from coaching_service.progress.conversation import service as conversation
from coaching_service.progress.conversation.schemas import MessageText
from coaching_service.web.pages import Pages, Redirect
from coaching_service.web.views.customer_layout import customer_path, load_header

pages = Pages("/app")
_MESSAGES = "/customers/{customerId}/messages"
_PAGE_SIZE = 30


class PartQuery(Input):
    """A part of a list: `after` is the cursor of the one before."""

    after = fields.String(load_default=None)


@pages.get(_MESSAGES, access=coach(CUSTOMERS.VIEW), query=PartQuery(), template="messages/conversation.html")
async def messages_page(ctx: Context, customer_id: ObjectId, query: dict[str, Any]) -> dict[str, Any] | Redirect:
    """The messages of a client, newest first, with forms to write and to mark them as read."""
    path = messages_path(customer_id)
    try:
        customer, state, page = await gather_reads(
            ctx,
            load_header(ctx, customer_id),
            conversation.read_conversation(ctx, customer_id),
            conversation.list_messages(ctx, customer_id, limit=_PAGE_SIZE, after=query["after"]),
        )
    except InvalidFields:  # the cursor is of another list
        return Redirect(path)
    return {
        "customer": customer,
        "page": page,
        "unread": state["unread"],
        "is_first_part": query["after"] is None,
        "next_url": f"{path}?{urlencode({'after': page['nextCursor']})}",
    }


@pages.post(_MESSAGES, access=coach(CUSTOMERS.EDIT), form=MessageText(), on=messages_page)
async def write_message(ctx: Context, customer_id: ObjectId, form: dict[str, Any]) -> Redirect:
    """Send a message to the client; what the client wrote before counts as read."""
    await conversation.mark_read(ctx, customer_id)
    await conversation.create(ctx, customer_id, {"text": form["text"]})
    return Redirect(messages_path(customer_id), "Message sent.")


@pages.post(
    f"{_MESSAGES}/file",
    access=coach(CUSTOMERS.EDIT),
    form=MultipartBody("file", attachments.CONTENT_TYPES, MessageText(), size_limit="attachment"),
    on=messages_page,
)
async def send_file(ctx: Context, customer_id: ObjectId, form: dict[str, Any], file: StoredFile) -> Redirect:
    """Send a file with a message to the client."""
    attachment = await attachments.add(ctx, customer_id, file)
    await conversation.create(ctx, customer_id, {"text": form["text"], "attachments": [attachment["_id"]]})
    return Redirect(messages_path(customer_id), "File sent.")


@pages.post(f"{_MESSAGES}/read", access=coach(CUSTOMERS.EDIT), on=messages_page, idempotent=True)
async def mark_messages_read(ctx: Context, customer_id: ObjectId) -> Redirect:
    """Mark the client's messages as read, for the whole company."""
    await conversation.mark_read(ctx, customer_id)
    return Redirect(messages_path(customer_id), "Marked as read.")


@pages.post(f"{_MESSAGES}/{{messageId}}/delete", access=coach(CUSTOMERS.EDIT), on=messages_page)
async def delete_message(ctx: Context, customer_id: ObjectId, message_id: ObjectId) -> Redirect:
    """Delete a message of the coach."""
    await conversation.delete(ctx, customer_id, message_id)
    return Redirect(messages_path(customer_id), "Message deleted.")


def messages_path(customer_id: ObjectId) -> str:
    """The path of a client's messages."""
    return customer_path(customer_id, "/messages")
