"""Messages, conversations and attachments as they are asked for, sent, stored and returned."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, Literal, NotRequired, TypeAlias, TypedDict, get_args

from marshmallow import fields

from coaching_service.core import validation
from coaching_service.core.auth import Via
from coaching_service.core.database.field_changes import Returned, Stored
from coaching_service.core.database.recording import Actor, ActorType
from coaching_service.core.events import DomainEvent
from coaching_service.core.field_schemas import output_of
from coaching_service.core.fields import Change, Description, Part, Private
from coaching_service.core.ids import ObjectId
from coaching_service.core.list_selection import PartQuery
from coaching_service.core.text import without_invisible_controls
from coaching_service.people.customers.models import NamedCustomer

# The two sides of a conversation: the client, and the coaches of the company.
Side = Literal["client", "company"]
AttachmentKind = Literal["picture", "video", "document"]

MAX_TEXT_LENGTH = 5_000  # characters
MAX_ATTACHMENTS = 3


class MessageQuery(PartQuery):
    """Part of a conversation; with `wblockId` only the comments on that workout block."""

    wblockId: NotRequired[Annotated[ObjectId, Description("Only messages about this workout block or an item of it.")]]


class ConversationQuery(PartQuery):
    """Part of the list of conversations."""

    unread: NotRequired[
        Annotated[bool, Description("`true`: only with messages the company has not read; `false`: only the others.")]
    ]


class MessageSubject(TypedDict):
    """The workout block, and the item of it if any, that a message comments on."""

    wblockId: ObjectId
    witemId: ObjectId | None


class _File(TypedDict):
    _id: ObjectId
    kind: Annotated[AttachmentKind, Description("What kind of file it is.")]
    contentType: str
    size: Annotated[int, Description("Its size in bytes.")]


class AttachedFile(_File):
    """A stored attachment."""

    fileId: ObjectId
    thumbnailId: ObjectId | None


class PendingAttachment(Stored):
    """An attachment that is uploaded and in no message yet."""

    customerId: ObjectId
    uploadedBy: ObjectId
    file: AttachedFile


class StoredMessage(Stored):
    """A stored message; `text` is null once it is deleted.

    `unreadBy` is the side that has not read it; absent once it is read or deleted.
    """

    customerId: ObjectId
    author: Actor
    text: str | None
    about: MessageSubject | None
    attachments: list[AttachedFile]
    editedAt: datetime | None
    readAt: datetime | None
    unreadBy: NotRequired[Annotated[Side, Private]]


class WaitingMessage(Stored):
    """A message of an assistant: it is delivered under its identifier at `deliverAt`, unless it is recalled before.

    `isWaiting` until then; afterwards the text is empty, and the document is kept so that the change that
    created it can be undone. `changeId` is that change, or its batch; `via` and `credentialId` say how the assistant
    acted.
    """

    customerId: ObjectId
    author: Actor
    text: str
    about: MessageSubject | None
    deliverAt: datetime
    isWaiting: NotRequired[Annotated[bool, Private]]
    changeId: Annotated[ObjectId, Private]
    via: Annotated[Via, Private]
    credentialId: Annotated[ObjectId, Private]


class ShownMessage(StoredMessage):
    """A message as a coach sees it: `deliverAt` only while it waits to be delivered."""

    deliverAt: NotRequired[datetime]


class MailState(TypedDict):
    """What version 0.2 reads: the job of the mail to one side, and when the last mail was sent."""

    jobId: ObjectId | None
    sentAt: datetime | None


class StoredConversation(Stored):
    """The state of a client's conversation, updated with each message.

    `unread` counts the messages that each side has not read; `isUnread`: the company has any.
    """

    customerId: ObjectId
    lastMessageId: ObjectId
    lastMessageAt: datetime
    unread: dict[Side, int]
    isUnread: bool
    mail: dict[Side, MailState]


class UnreadCount(TypedDict):
    """How many messages of the conversation `_id` each side has not read."""

    _id: ObjectId
    actual: dict[Side, int]


class MessageAttachment(_File):
    """A file of a message."""

    url: Annotated[str, fields.Url(), Description("A signed link to the file, valid for two hours.")]


class MessageAuthor(validation.Output):
    """Who wrote a message."""

    type = validation.Choice(*get_args(ActorType), metadata={"description": "How the author acted when writing it."})
    _id = validation.Identifier(metadata={"description": "The identifier of the coach or client."})
    name = fields.String()
    applicationId = validation.Identifier(
        metadata={"description": "The application's access, if it wrote.", "optional": True}
    )


class Message(Returned):
    """A message."""

    customerId: ObjectId
    author: Annotated[Actor, fields.Nested(MessageAuthor)]
    text: Annotated[str | None, Description("Plain text; null once the message is deleted.")]
    about: Annotated[MessageSubject | None, Description("What the message comments on; null for nothing.")]
    attachments: Annotated[list[MessageAttachment], Description("Its files, at most three.")]
    editedAt: Annotated[datetime | None, Description("When the text was last changed; null for never.")]
    readAt: Annotated[
        datetime | None,
        Description("When the other side read it: the client, or any coach; null until then."),
    ]
    deliverAt: Annotated[
        datetime | None,
        Description(
            "When a message of an assistant will be delivered; until then only coaches see it, and deleting it recalls "
            "it. Null for a message that has been delivered."
        ),
    ]


_FIRST = ("_id", "customerId", "author", "text", "about", "attachments", "createdAt", "updatedAt")
MESSAGE = output_of(Message, first=_FIRST)


class Conversation(TypedDict):
    """A client's conversation."""

    customer: NamedCustomer
    lastMessage: Annotated[Message | None, fields.Nested(MESSAGE), Description("The newest message; null for none.")]
    unread: Annotated[int, Description("The number of messages that the caller's side has not read.")]


class MessageSubjectInput(TypedDict):
    """The workout block, and optionally the item, that the message comments on."""

    wblockId: ObjectId
    witemId: NotRequired[ObjectId | None]


class MessageField(validation.Text):
    """The text of a message, without characters that a reader does not see and that change what is read."""

    def __init__(self, **options: Any) -> None:
        super().__init__(max_length=MAX_TEXT_LENGTH, **options)

    def _deserialize(self, value: Any, attr: str | None, data: Any, **_: Any) -> str:
        readable = without_invisible_controls(value) if isinstance(value, str) else value
        return super()._deserialize(readable, attr, data)


class MessageText(TypedDict):
    """The text of a message."""

    text: Annotated[str, MessageField(), Description("Plain text.", argument="Plain text, in the coach's words.")]


class NewMessage(MessageText):
    """A message to send."""

    about: NotRequired[
        Annotated[MessageSubjectInput | None, Description("What the message comments on; null for nothing.")]
    ]
    attachments: NotRequired[
        Annotated[
            list[ObjectId],
            validation.ListOf(validation.Identifier(), maximum=MAX_ATTACHMENTS),
            Description("Identifiers of files that were uploaded for this conversation by the author."),
        ]
    ]


class SampleMessage(TypedDict):
    """A message of sample data, sent at a time (UTC), and whether the other side has read it."""

    author: Actor
    text: str
    at: datetime
    isRead: bool


MessageChange: TypeAlias = Change[MessageText]

# What a message says, and who has not read it.
MessageContent: TypeAlias = Part[StoredMessage, Literal["_id", "author", "text", "attachments", "unreadBy", "version"]]


# --- Domain events about messages -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class MessageCreated(DomainEvent):
    """A message was sent; the side `unread_by` has not read it."""

    customer_id: ObjectId
    message_id: ObjectId
    unread_by: Side


@dataclass(frozen=True)
class MessagesRecalled(DomainEvent):
    """All messages that an assistant has sent with a change, or a batch of changes, were recalled or deleted unread."""

    change_id: ObjectId


@dataclass(frozen=True)
class MessagesRead(DomainEvent):
    """One side has read all messages of a conversation, or the last one that it had not read was deleted."""

    customer_id: ObjectId
    read_by: Side
