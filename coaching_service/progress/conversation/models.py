"""Messages, conversations and attachments as they are sent, stored and returned."""

from __future__ import annotations

from datetime import datetime
from typing import Literal, NotRequired, TypeAlias, TypedDict

from coaching_service.core.database.models import Stored
from coaching_service.core.database.recording import Actor
from coaching_service.core.fields import Part
from coaching_service.core.ids import ObjectId
from coaching_service.people.customers.models import CustomerReference

# The two sides of a conversation: the client, and the coaches of the company.
Side = Literal["client", "company"]
AttachmentKind = Literal["picture", "video", "document"]


class About(TypedDict):
    """The workout block, and the item of it if any, that a message comments on."""

    wblockId: ObjectId
    witemId: ObjectId | None


class AttachedFile(TypedDict):
    """A stored attachment; `size` is in bytes."""

    _id: ObjectId
    kind: AttachmentKind
    contentType: str
    size: int
    fileId: ObjectId
    thumbnailId: ObjectId | None


class PendingAttachment(Stored):
    """An attachment that is uploaded and in no message yet."""

    customerId: ObjectId
    uploadedBy: ObjectId
    file: AttachedFile


class StoredMessage(Stored):
    """A stored message; `text` is null once it is deleted.

    `unreadBy` (private) is the side that has not read it; absent once it is read or deleted.
    """

    customerId: ObjectId
    author: Actor
    text: str | None
    about: About | None
    attachments: list[AttachedFile]
    editedAt: datetime | None
    readAt: datetime | None
    unreadBy: NotRequired[Side]


class MailState(TypedDict):
    """The job of the mail about unread messages that is scheduled for one side, and when the last mail was sent."""

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


class Attachment(TypedDict):
    """An attachment as it is returned; `url` is a signed link, `size` is in bytes."""

    _id: ObjectId
    kind: AttachmentKind
    contentType: str
    size: int
    url: str


class Message(TypedDict):
    """A message as it is returned."""

    _id: ObjectId
    customerId: ObjectId
    author: Actor
    text: str | None
    about: About | None
    attachments: list[Attachment]
    createdAt: datetime
    updatedAt: datetime
    editedAt: datetime | None
    readAt: datetime | None
    version: int


class Conversation(TypedDict):
    """A client's conversation as one side sees it: `unread` is the number of messages this side has not read."""

    customer: CustomerReference
    lastMessage: Message | None
    unread: int


class AboutInput(TypedDict):
    """What a new message comments on."""

    wblockId: ObjectId
    witemId: NotRequired[ObjectId | None]


class NewMessage(TypedDict):
    """A message to send; `attachments` are identifiers of uploaded files."""

    text: str
    about: NotRequired[AboutInput | None]
    attachments: NotRequired[list[ObjectId]]


class SampleMessage(TypedDict):
    """A message of sample data, sent at a time (UTC), and whether the other side has read it."""

    author: Actor
    text: str
    at: datetime
    isRead: bool


class MessageChange(TypedDict):
    """The new text of a message; `version` is the one the change is based on."""

    text: NotRequired[str]
    version: NotRequired[int]


# What a message says, and who has not read it.
MessageContent: TypeAlias = Part[StoredMessage, Literal["_id", "author", "text", "attachments", "unreadBy", "version"]]
