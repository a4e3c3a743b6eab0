"""Notifications that are due, as they are stored, and what is sent."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Annotated, Literal, TypeAlias, TypedDict

from coaching_service.core.database.context import Context
from coaching_service.core.events import EventValue
from coaching_service.core.fields import Default
from coaching_service.core.ids import ObjectId
from coaching_service.core.validation import Text
from coaching_service.people.notification_settings import Channel, Kind


class Recipient(TypedDict):
    """Who receives a notification."""

    type: Literal["client", "coach"]
    _id: ObjectId


class Subject(TypedDict, total=False):
    """What a notification is about, for the feature that writes it: identifiers, a local date and a time of day."""

    date: str
    time: str
    wblockId: ObjectId
    witemId: ObjectId
    assistantId: ObjectId


class Notification(TypedDict):
    """A notification that is due, or has been.

    `key` is unique within the company. `channels` are the ways it may be sent, if the recipient wants them.
    `customerId` is the client it is about, if any. It is due at `dueAt`, and pointless from `validUntil` on; all times
    are UTC. `sendAt` is the time it is due, the end of the quiet hours, or the end of the lease of the process that
    sends it; None once it has an `outcome`. `sentAt` is when it was sent last. `requests` counts how often it was made
    due again while it was pending.
    """

    _id: ObjectId
    companyId: ObjectId
    key: str
    kind: Kind
    channels: list[Channel]
    recipient: Recipient
    customerId: ObjectId | None
    subject: Subject
    dueAt: datetime
    validUntil: datetime | None
    sendAt: datetime | None
    outcome: Literal["sent", "dropped"] | None
    sentAt: datetime | None
    requests: int
    createdAt: datetime


class MailsOffLink(TypedDict):
    """The token of the link that turns a kind of mails off."""

    token: Annotated[str, Text(max_length=500), Default("")]


@dataclass(frozen=True)
class DueNotification:
    """A notification to make due at `due_at` (UTC), once for each `key`.

    With `interval`, the same key is due again after it has been sent, but not before the interval is over.
    """

    key: str
    kind: Kind
    recipient: Recipient
    due_at: datetime
    customer_id: ObjectId | None = None
    subject: Subject = field(default_factory=Subject)
    channels: Sequence[Channel] = ("mail", "push")
    valid_until: datetime | None = None
    interval: timedelta | None = None


@dataclass(frozen=True)
class Message:
    """What is sent: `path` is the page it leads to.

    A mail has `subject`, `paragraphs`, `button`, `notes` and `reason`: a sentence that states why the person receives
    it. On devices `title` and `text` are shown, which name neither people nor workouts; `details` in place of `text`
    if the recipient wants it. `event` is the data of the event `reminder.sent`, for reminders of clients.
    """

    subject: str
    paragraphs: list[str]
    button: str
    path: str
    reason: str
    title: str
    text: str
    details: str | None = None
    notes: list[str] = field(default_factory=list)
    event: Mapping[str, EventValue] | None = None


@dataclass(frozen=True)
class Later:
    """Returned in place of a message that is due at another time."""

    at: datetime


@dataclass(frozen=True)
class PushMessage:
    """What is shown on the devices of a recipient; a newer one with the same `tag` replaces it.

    `customer_id` is the client it is about, if any. `path` is the page that it opens. It is pointless from
    `valid_until` (UTC) on.
    """

    recipient: Recipient
    customer_id: ObjectId | None
    tag: str
    title: str
    text: str
    path: str
    valid_until: datetime | None = None


# Returns what to send of a notification that is due, or None if there is nothing to send any more: it is logged, read,
# deleted or hidden. Called in the transaction that sends it, as the owner of the company.
Source: TypeAlias = Callable[[Context, Notification], Awaitable[Message | Later | None]]
Sources: TypeAlias = Mapping[Kind, Source]
# Queues what is shown on devices, in the caller's transaction, and returns the number of devices.
PushQueue: TypeAlias = Callable[[Context, PushMessage], Awaitable[int]]
