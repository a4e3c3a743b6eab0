"""Messages, conversations and attachments as they are asked for, sent, stored and returned."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Annotated, Any, Literal, NotRequired, TypeAlias, TypedDict, get_args

from marshmallow import ValidationError, fields, validates_schema

from coaching_service.core import validation
from coaching_service.core.auth import Via
from coaching_service.core.database.declared import Returned, Stored
from coaching_service.core.database.documents import now
from coaching_service.core.database.recording import Actor, ActorType
from coaching_service.core.events import DomainEvent
from coaching_service.core.field_schemas import output_of
from coaching_service.core.fields import Change, Description, Part, Private
from coaching_service.core.ids import ObjectId
from coaching_service.core.list_selection import PartQuery
from coaching_service.core.query import QueryTime
from coaching_service.core.text import without_invisible_controls
from coaching_service.library import message_templates
from coaching_service.people.customers.models import NamedCustomer

# The two sides of a conversation: the client, and the coaches of the company.
Side = Literal["client", "company"]
AttachmentKind = Literal["picture", "video", "document"]
# Why a message could not be delivered: the client is archived, or its author may not write to the client any more.
Obstacle = Literal["CLIENT_ARCHIVED", "AUTHOR_NOT_ALLOWED"]

MAX_TEXT_LENGTH = message_templates.MAX_TEXT_LENGTH
MAX_ATTACHMENTS = 3
FURTHEST_DELIVERY = timedelta(days=30)


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
    """A message that waits: it is delivered under its identifier at `deliverAt`, unless it is recalled before.

    `isWaiting` until then; afterwards the text is empty, and the document is kept so that the change that
    created it can be undone. `changeId` is that change, or its batch; `via` and `credentialId` say how its author
    acted. One that could not be delivered at its time has `notDelivered`, and stays until it is deleted.
    """

    customerId: ObjectId
    author: Actor
    text: str
    about: MessageSubject | None
    attachments: NotRequired[list[AttachedFile]]
    deliverAt: datetime
    notDelivered: NotRequired[Obstacle]
    isWaiting: NotRequired[Annotated[bool, Private]]
    changeId: Annotated[ObjectId, Private]
    via: Annotated[Via, Private]
    credentialId: Annotated[ObjectId, Private]


class ShownMessage(StoredMessage):
    """A message as a coach sees it: `deliverAt` only while it waits to be delivered, or could not be."""

    deliverAt: NotRequired[datetime]
    notDelivered: NotRequired[Obstacle]


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


class Turn(TypedDict):
    """The first of the messages that a side of a conversation has written one after another."""

    _id: ObjectId
    customerId: ObjectId
    createdAt: datetime
    isOfClient: bool
    authorId: ObjectId | None


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
            "When the message will be delivered; until then only coaches see it, and deleting it recalls it. Null for "
            "one that has been delivered."
        ),
    ]
    notDelivered: Annotated[
        Obstacle | None,
        Description(
            "Why it was not delivered at `deliverAt`: the client was archived, or its author could not write to the "
            "client any more. It is not sent later. Null for all other messages."
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


class _Enclosed(TypedDict):
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


class NewMessage(_Enclosed, MessageText):
    """A message to send."""


class DeliveryTime(QueryTime):
    """When a message is to be delivered: not in the past, and at most 30 days ahead."""

    def _deserialize(self, value: Any, attr: str | None, data: Any, **options: Any) -> datetime:  # type: ignore[override]  # as of QueryTime
        at = super()._deserialize(value, attr, data, **options)
        if (wrong := find_wrong_time(at)) is not None:
            raise ValidationError(wrong)
        return at


def find_wrong_time(at: datetime) -> validation.Message | None:
    """Return why no message can be delivered at a time (UTC), or None."""
    moment = now()
    if at < moment:
        return validation.Message("must not be in the past", "IN_THE_PAST")
    if at > moment + FURTHEST_DELIVERY:
        return validation.Message(f"must not be more than {FURTHEST_DELIVERY.days} days ahead", "TOO_FAR_AHEAD")
    return None


class CoachText(TypedDict):
    """What a coach sends: `text`, or `templateId` in place of it; at once, or at `deliverAt`."""

    text: NotRequired[Annotated[str, MessageField(), Description("Plain text.")]]
    templateId: NotRequired[
        Annotated[
            ObjectId | None,
            Description("In place of `text`: a message template, in which the client's first name is filled in."),
        ]
    ]
    deliverAt: NotRequired[
        Annotated[
            datetime | None,
            DeliveryTime(),
            Description("When to deliver it, at most 30 days ahead; until then DELETE recalls it. Default: at once."),
        ]
    ]


class NewCoachMessage(_Enclosed, CoachText):
    """A message to send to a client."""


class OneText(validation.Input):
    """The check that a message has a text or a template."""

    @validates_schema
    def validate_text(self, data: Mapping[str, Any], **_: Any) -> None:
        """Raise ValidationError for both and for none."""
        if data.get("templateId") is None:
            if "text" not in data:
                raise validation.invalid("is required, or templateId", "REQUIRED", "text")
        elif "text" in data:
            raise validation.invalid("must not be combined with text", "NOT_ALLOWED", "templateId")


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
