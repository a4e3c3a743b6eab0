"""Requests and responses of the message operations."""

from __future__ import annotations

from marshmallow import fields

from coaching_service.core.pagination import CursorQuery
from coaching_service.core.query import QueryBoolean
from coaching_service.core.validation import Choice, DateTime, Identifier, Input, ListOf, Output, Text
from coaching_service.people.customers.schemas import NamedCustomer
from coaching_service.progress.conversation.limits import MAX_ATTACHMENTS, MAX_TEXT_LENGTH

_TEXT = {"description": "Plain text."}


class MessageQuery(CursorQuery):
    """Part of a conversation; with `wblockId` only the comments on that workout block."""

    wblockId = Identifier(metadata={"description": "Only messages about this workout block or an item of it."})


class ConversationQuery(CursorQuery):
    """Part of the list of conversations."""

    unread = QueryBoolean(
        metadata={"description": "`true`: only with messages the company has not read; `false`: only the others."}
    )


class MessageSubjectInput(Input):
    """The workout block, and optionally the item, that the message comments on."""

    wblockId = Identifier(required=True)
    witemId = Identifier(allow_none=True)


class NewMessage(Input):
    """A message to send."""

    text = Text(max_length=MAX_TEXT_LENGTH, required=True, metadata=_TEXT)
    about = fields.Nested(
        MessageSubjectInput,
        allow_none=True,
        metadata={"description": "What the message comments on; null for nothing."},
    )
    attachments = ListOf(
        Identifier(),
        maximum=MAX_ATTACHMENTS,
        metadata={"description": "Identifiers of files that were uploaded for this conversation by the author."},
    )


class MessageText(Input):
    """The text of a message."""

    text = Text(max_length=MAX_TEXT_LENGTH, required=True, metadata=_TEXT)


class MessageAuthor(Output):
    """Who wrote a message."""

    type = Choice(
        "coach",
        "client",
        "assistant",
        "key",
        "system",
        metadata={"description": "How the author acted when writing it."},
    )
    _id = Identifier(metadata={"description": "The identifier of the coach or client."})
    name = fields.String()


class MessageSubject(Output):
    """The workout block, and the item of it if any, that a message comments on."""

    wblockId = Identifier()
    witemId = Identifier(allow_none=True)


class MessageAttachment(Output):
    """A file of a message."""

    _id = Identifier()
    kind = Choice("picture", "video", "document", metadata={"description": "What kind of file it is."})
    contentType = fields.String()
    size = fields.Integer(metadata={"description": "Its size in bytes."})
    url = fields.Url(metadata={"description": "A signed link to the file, valid for two hours."})


class Message(Output):
    """A message."""

    _id = Identifier()
    customerId = Identifier()
    author = fields.Nested(MessageAuthor)
    text = fields.String(allow_none=True, metadata={"description": "Plain text; null once the message is deleted."})
    about = fields.Nested(
        MessageSubject, allow_none=True, metadata={"description": "What the message comments on; null for nothing."}
    )
    attachments = fields.List(fields.Nested(MessageAttachment), metadata={"description": "Its files, at most three."})
    createdAt = DateTime()
    updatedAt = DateTime()
    editedAt = DateTime(allow_none=True, metadata={"description": "When the text was last changed; null for never."})
    readAt = DateTime(
        allow_none=True,
        metadata={"description": "When the other side read it: the client, or any coach; null until then."},
    )
    version = fields.Integer()


class Conversation(Output):
    """A client's conversation."""

    customer = fields.Nested(NamedCustomer)
    lastMessage = fields.Nested(
        Message, allow_none=True, metadata={"description": "The newest message; null for none."}
    )
    unread = fields.Integer(metadata={"description": "The number of messages that the caller's side has not read."})
