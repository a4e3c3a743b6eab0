"""The conversation with a client, and the inbox: unread messages, responses to review, forms without an answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, TypedDict

from marshmallow import fields

from coaching_service.core.auth.access import CUSTOMERS, FORMS, coach
from coaching_service.core.database.context import Context
from coaching_service.core.database.files import StoredFile
from coaching_service.core.database.transactions import gather_reads
from coaching_service.core.fields import Default
from coaching_service.core.http.responses import Download
from coaching_service.core.http.routes import MultipartBody
from coaching_service.core.ids import ObjectId
from coaching_service.people.changes import service
from coaching_service.progress.conversation import attachments
from coaching_service.progress.conversation import service as conversation
from coaching_service.progress.conversation.models import Message, MessageText, NewMessage
from coaching_service.progress.form_requests import service as form_requests
from coaching_service.progress.form_requests.models import FormRequest
from coaching_service.progress.form_responses import service as form_responses
from coaching_service.web.page_queries import PartQuery, list_url
from coaching_service.web.pages import Pages, Redirect
from coaching_service.web.views.customer_layout import customer_path, load_header

pages = Pages("/app")
_MESSAGES = "/customers/{customerId}/messages"
_inbox = pages.below("/inbox")
_PAGE_SIZE = 30
_CONVERSATIONS, _FORMS, _OVERDUE, _UPCOMING = 30, 20, 100, 10
MESSAGE_FORM = MultipartBody("file", attachments.CONTENT_TYPES, MessageText, size_limit="attachment")


class FileQuery(TypedDict):
    """Which version of a picture: `small` or `full`."""

    size: Annotated[str, fields.String(), Default("full")]


@pages.get(_MESSAGES, access=coach(CUSTOMERS.VIEW), template="messages/conversation.html")
async def messages_page(ctx: Context, customer_id: ObjectId, query: PartQuery) -> dict[str, Any]:
    """The messages of a client, oldest first, with a form to write; the newest part follows what is written.

    Opening the newest marks all as read for the company, if the coach may change the client.
    """
    customer, shown = await gather_reads(
        ctx, load_header(ctx, customer_id), load_messages(ctx, customer_id, messages_path(customer_id), query)
    )
    if shown["first_new"] and CUSTOMERS.EDIT in ctx.caller.permissions:
        await conversation.mark_read(ctx, customer_id)
    return {**shown, "customer": customer}


async def load_messages(ctx: Context, customer_id: ObjectId, path: str, query: PartQuery) -> dict[str, Any]:
    """Return the variables of a part of a conversation: in the newest, `first_new` is the first unread message, if any.

    `path` is the path of its page.
    """
    live_after, is_newest = await service.find_position(ctx), query["after"] is None
    page = await conversation.list_messages(ctx, customer_id, limit=_PAGE_SIZE, after=query["after"])
    messages = page["docs"][::-1]
    new = [message["_id"] for message in messages if is_unread(message, to_client=not ctx.caller.is_coach)]
    return {
        "messages": messages,
        "first_new": new[0] if is_newest and new else None,
        "is_newest": is_newest,
        "live_after": live_after,
        "earlier_url": list_url(path, {"after": page["nextCursor"]})() if page["hasMore"] else None,
    }


def is_unread(message: Message, *, to_client: bool = False) -> bool:
    """Return whether a message from the client, or with `to_client` one to the client, has not been read."""
    is_received = (message["author"]["type"] == "client") is not to_client
    return is_received and message["readAt"] is None and message["text"] is not None


@pages.post(_MESSAGES, access=coach(CUSTOMERS.EDIT), form=MESSAGE_FORM, file_optional=True, on=messages_page)
async def write_message(ctx: Context, customer_id: ObjectId, form: MessageText, file: StoredFile | None) -> Redirect:
    """Send a message, with a file if one is chosen; what the client wrote before counts as read."""
    await conversation.mark_read(ctx, customer_id)
    await send_message(ctx, customer_id, form, file)
    return Redirect(messages_path(customer_id), "Message sent.")


async def send_message(ctx: Context, customer_id: ObjectId, form: MessageText, file: StoredFile | None) -> None:
    """Send a message of the caller in the conversation with a client, with a file if there is one."""
    new: NewMessage = {"text": form["text"]}
    if file is not None:
        new["attachments"] = [(await attachments.add(ctx, customer_id, file))["_id"]]
    await conversation.create(ctx, customer_id, new)


@pages.get(f"{_MESSAGES}/{{messageId}}/attachments/{{attachmentId}}/file", access=coach(CUSTOMERS.VIEW), template="")
async def message_file(
    ctx: Context, customer_id: ObjectId, message_id: ObjectId, attachment_id: ObjectId, query: FileQuery
) -> Download:
    """One file of a message of a client; browsers do not keep it."""
    return await attachments.read(ctx, customer_id, message_id, attachment_id, small=query["size"] == "small")


@pages.post(f"{_MESSAGES}/{{messageId}}/delete", access=coach(CUSTOMERS.EDIT), on=messages_page, deletes=True)
async def delete_message(ctx: Context, customer_id: ObjectId, message_id: ObjectId) -> Redirect:
    """Delete a message of the coach, or recall one of the coach's assistant that has not been sent."""
    message = await conversation.get(ctx, customer_id, message_id)
    await conversation.delete(ctx, customer_id, message_id)
    done = "deleted" if message["deliverAt"] is None else "recalled"
    return Redirect(messages_path(customer_id), f"Message {done}.")


def messages_path(customer_id: ObjectId) -> str:
    """Return the path of a client's messages."""
    return customer_path(customer_id, "/messages")


class _InboxQuery(PartQuery):
    """With `all` also the conversations in which everything has been read."""

    all: Annotated[bool, Default(False)]


@_inbox.get("", access=coach(CUSTOMERS.VIEW), template="messages/inbox.html")
async def inbox_page(ctx: Context, query: _InboxQuery) -> dict[str, Any]:
    """The conversations with unread messages, or all of them; with the permission, the forms of clients."""
    unread, live_after = None if query["all"] else True, await service.find_position(ctx)
    page = await conversation.list_conversations(ctx, unread=unread, limit=_CONVERSATIONS, after=query["after"])
    return {
        "page": page,
        "shows_all": query["all"],
        "live_after": None if query["after"] else live_after,
        "next_url": list_url(_inbox.prefix, {"after": page["nextCursor"], "all": query["all"]})(),
        **(await _load_forms(ctx) if FORMS.VIEW in ctx.caller.permissions else {}),
    }


async def _load_forms(ctx: Context) -> dict[str, Any]:
    """Load the latest responses that are not reviewed, and the forms without an answer."""
    responses, overdue, upcoming = await gather_reads(
        ctx,
        form_responses.list_received(ctx, reviewed=False, limit=_FORMS),
        form_requests.list_overdue(ctx, limit=_OVERDUE),
        form_requests.list_pending(ctx, overdue=False, limit=_UPCOMING),
    )
    return {
        "responses": responses,
        "overdue": _group_by_client(overdue),
        "counts_all": len(overdue) < _OVERDUE,
        "upcoming": upcoming,
    }


def _group_by_client(overdue: Sequence[FormRequest]) -> list[list[FormRequest]]:
    """Group overdue forms by client; the forms and the clients are in the order given."""
    groups: dict[ObjectId, list[FormRequest]] = {}
    for request in overdue:
        groups.setdefault(request["customer"]["_id"], []).append(request)
    return list(groups.values())


@_inbox.post("/responses/{responseId}/reviewed", access=coach(FORMS.EDIT), on=inbox_page, idempotent=True)
async def mark_response_reviewed(ctx: Context, response_id: ObjectId) -> Redirect:
    """Mark a response as reviewed."""
    await form_responses.set_reviewed(ctx, response_id, reviewed=True)
    return Redirect(f"{_inbox.prefix}#responses", "Marked as reviewed.")
