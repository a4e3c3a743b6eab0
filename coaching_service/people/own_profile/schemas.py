"""Requests and responses of a client's own profile."""

from __future__ import annotations

from marshmallow import fields

from coaching_service.core.validation import Boolean, DateTime, Input, Output, Text, Timezone
from coaching_service.people.customers.schemas import Birthday, ContactDetails

_MESSAGES = {"description": "Whether to send mail about unread messages of the coaches."}
_NOTIFICATIONS = {"description": "Which mails the client gets."}


class OwnNotificationsInput(Input):
    """Which mails to get."""

    messages = Boolean(required=True, metadata=_MESSAGES)


class OwnNotifications(Output):
    """Which mails the client gets."""

    messages = fields.Boolean(metadata=_MESSAGES)


class OwnDetails(Input):
    """What a client may change of their own record."""

    phone = Text(max_length=50, allow_blank=True, allow_none=True)
    birthday = Birthday(allow_none=True)
    timezone = Timezone(allow_none=True)
    notifications = fields.Nested(OwnNotificationsInput, metadata=_NOTIFICATIONS)


class OwnProfile(ContactDetails):
    """A client's own record."""

    notifications = fields.Nested(OwnNotifications, metadata=_NOTIFICATIONS)
    createdAt = DateTime()
    updatedAt = DateTime()
    version = fields.Integer()
