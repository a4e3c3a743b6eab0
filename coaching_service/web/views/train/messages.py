"""The conversation of a client with the coaches."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from coaching_service.core.auth.access import customer
from coaching_service.core.database.context import Context
from coaching_service.core.database.files import StoredFile
from coaching_service.core.http.responses import Download
from coaching_service.core.ids import ObjectId
from coaching_service.progress.conversation import attachments
from coaching_service.progress.conversation import service as conversation
from coaching_service.progress.conversation.models import MessageText
from coaching_service.web.page_queries import PartQuery
from coaching_service.web.pages import Pages, Redirect
from coaching_service.web.views.customer_messages import MESSAGE_FORM, FileQuery, load_messages, send_message

pages = Pages("/train/messages")


@pages.get("", access=customer(), template="train/messages.html")
async def messages_page(ctx: Context, query: PartQuery) -> dict[str, Any]:
    """The messages by day, the newest last, with a form to write; opening the newest marks all as read."""
    shown = await load_messages(ctx, ctx.caller.id, pages.prefix, query)
    if shown["first_new"]:
        await conversation.mark_read(ctx, ctx.caller.id)
    today = ctx.caller.today()
    return shown | {"day_names": {today: "Today", today - timedelta(days=1): "Yesterday"}, "unread_messages": 0}


@pages.post("", access=customer(), form=MESSAGE_FORM, file_optional=True, on=messages_page)
async def send_own_message(ctx: Context, form: MessageText, file: StoredFile | None) -> Redirect:
    """Send a message, with a file if one is chosen, to the coaches."""
    await send_message(ctx, ctx.caller.id, form, file)
    return Redirect(pages.prefix)


@pages.get("/{messageId}/attachments/{attachmentId}/file", access=customer(), template="")
async def message_file(ctx: Context, message_id: ObjectId, attachment_id: ObjectId, query: FileQuery) -> Download:
    """One file of a message, for the client who is signed in; browsers do not keep it."""
    return await attachments.read(ctx, ctx.caller.id, message_id, attachment_id, small=query["size"] == "small")


@pages.post("/{messageId}/delete", access=customer(), on=messages_page, deletes=True)
async def delete_own_message(ctx: Context, message_id: ObjectId) -> Redirect:
    """Delete a message of the client."""
    await conversation.delete(ctx, ctx.caller.id, message_id)
    return Redirect(pages.prefix, "Message deleted.")
