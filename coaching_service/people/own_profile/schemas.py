"""Requests and responses of a client's own profile."""

from __future__ import annotations

import re
from typing import Any

from marshmallow import fields

from coaching_service.core.validation import Boolean, Choice, DateTime, Input, Output, Text, Timezone
from coaching_service.core.validation_messages import Message
from coaching_service.people.customers.schemas import Birthday, ContactDetails

_MESSAGES = {"description": "Whether to send mail about unread messages of the coaches."}
_LANGUAGE = {"description": "The language the client prefers, such as `es` or `pt-BR` (BCP 47); null: none."}
_LOAD_UNIT = {"description": "In which unit pages show and take loads; null: the company's, which REST always has."}
_NOTIFICATIONS = {"description": "Which mails the client gets."}


class Language(Text):
    """A language tag of BCP 47: a language, with or without a script and a region."""

    _TAG = re.compile(r"[a-z]{2,3}(-[A-Z][a-z]{3})?(-([A-Z]{2}|\d{3}))?", re.ASCII)
    default_error_messages = {"language": Message("must be a language such as es or pt-BR", "INVALID_LANGUAGE")}

    def _deserialize(self, value: Any, attr: str | None, data: Any, **_: Any) -> str:
        text = super()._deserialize(value, attr, data)
        if not self._TAG.fullmatch(text):
            raise self.make_error("language")
        return text


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
    language = Language(allow_none=True, metadata=_LANGUAGE)
    loadUnit = Choice("kg", "lb", allow_none=True, metadata=_LOAD_UNIT)
    notifications = fields.Nested(OwnNotificationsInput, metadata=_NOTIFICATIONS)


class ErasureRequest(Output):
    """A client's request for the erasure of their data."""

    erasureRequestedAt = DateTime(metadata={"description": "When the client asked for it first."})


class OwnProfile(ContactDetails):
    """A client's own record."""

    language = fields.String(allow_none=True, metadata=_LANGUAGE)
    loadUnit = Choice("kg", "lb", allow_none=True, metadata=_LOAD_UNIT)
    notifications = fields.Nested(OwnNotifications, metadata=_NOTIFICATIONS)
    profilePhotoUrl = fields.Url(allow_none=True)
    createdAt = DateTime()
    updatedAt = DateTime()
    version = fields.Integer()
