"""Domain events about messages."""

from __future__ import annotations

from dataclasses import dataclass

from coaching_service.core.events import DomainEvent
from coaching_service.core.ids import ObjectId
from coaching_service.progress.conversation.models import Side


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
