"""The conversation of a client with the coaches."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from coaching_service.core.auth.access import customer
from coaching_service.core.database.context import Context
from coaching_service.core.database.files import StoredFile
from coaching_service.core.errors import InvalidFields
from coaching_service.core.http.downloads import Download
from coaching_service.core.http.routes import MultipartBody
from coaching_service.core.ids import ObjectId
from coaching_service.people.changes import following
from coaching_service.progress.conversation import attachments
from coaching_service.progress.conversation import service as conversation
from coaching_service.progress.conversation.models import Message, MessageText, NewMessage
from coaching_service.web.pages import Pages, Redirect
from coaching_service.web.urls import list_url
from coaching_service.web.views.customer_messages import FileQuery, PartQuery

pages = Pages("/train/messages")
_PATH = "/train/messages"
_PAGE_SIZE = 30


@pages.get("", access=customer(), query=PartQuery, template="train/messages.html")
async def messages_page(ctx: Context, query: PartQuery) -> dict[str, Any] | Redirect:
    """The messages by day, the newest last, with a form to write; opening the newest marks all as read."""
    live_after = await following.find_position(ctx)
    try:
        page = await conversation.list_messages(ctx, ctx.caller.id, limit=_PAGE_SIZE, after=query["after"])
    except InvalidFields:  # the cursor is of another list
        return Redirect(_PATH)
    messages = page["docs"][::-1]
    new = [message["_id"] for message in messages if _is_unread(message)]
    is_newest = query["after"] is None
    if is_newest and new:
        await conversation.mark_read(ctx, ctx.caller.id)
    today = ctx.caller.today()
    return {
        "messages": messages,
        "first_new": new[0] if is_newest and new else None,
        "is_newest": is_newest,
        "live_after": live_after,
        "earlier_url": list_url(_PATH, {"after": page["nextCursor"]})() if page["hasMore"] else None,
        "day_names": {today: "Today", today - timedelta(days=1): "Yesterday"},
        "unread_messages": 0,
    }


def _is_unread(message: Message) -> bool:
    return message["author"]["type"] != "client" and message["readAt"] is None and message["text"] is not None


@pages.post(
    "",
    access=customer(),
    form=MultipartBody("file", attachments.CONTENT_TYPES, MessageText, size_limit="attachment"),
    file_optional=True,
    on=messages_page,
)
async def send_own_message(ctx: Context, form: MessageText, file: StoredFile | None) -> Redirect:
    """Send a message, with a file if one is chosen, to the coaches."""
    new: NewMessage = {"text": form["text"]}
    if file is not None:
        new["attachments"] = [(await attachments.add(ctx, ctx.caller.id, file))["_id"]]
    await conversation.create(ctx, ctx.caller.id, new)
    return Redirect(_PATH)


@pages.get("/{messageId}/attachments/{attachmentId}/file", access=customer(), query=FileQuery, template="")
async def message_file(ctx: Context, message_id: ObjectId, attachment_id: ObjectId, query: FileQuery) -> Download:
    """One file of a message, for the client who is signed in; browsers do not keep it."""
    return await attachments.read(ctx, ctx.caller.id, message_id, attachment_id, small=query["size"] == "small")


@pages.post("/{messageId}/delete", access=customer(), on=messages_page)
async def delete_own_message(ctx: Context, message_id: ObjectId) -> Redirect:
    """Delete a message of the client."""
    await conversation.delete(ctx, ctx.caller.id, message_id)
    return Redirect(_PATH, "Message deleted.")
