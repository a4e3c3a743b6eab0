"""What clients change of their own record."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal, TypeAlias, TypedDict

from marshmallow import fields

from coaching_service.core.fields import UNSET, Change, Default, Description
from coaching_service.core.validation import Text
from coaching_service.core.validation_messages import Message
from coaching_service.people.customers.models import OwnContact
from coaching_service.people.notification_settings.models import SETTINGS_INPUT, NotificationSettings


class Language(Text):
    """A language tag of BCP 47: a language, with or without a script and a region."""

    _TAG = re.compile(r"[a-z]{2,3}(-[A-Z][a-z]{3})?(-([A-Z]{2}|\d{3}))?", re.ASCII)
    default_error_messages = {"language": Message("must be a language such as es or pt-BR", "INVALID_LANGUAGE")}

    def _deserialize(self, value: Any, attr: str | None, data: Any, **_: Any) -> str:
        text = super()._deserialize(value, attr, data)
        if not self._TAG.fullmatch(text):
            raise self.make_error("language")
        return text


class OwnSettings(TypedDict):
    """What a client chooses for themselves."""

    language: Annotated[
        str | None,
        Language(),
        Default(UNSET),
        Description("The language the client prefers, such as `es` or `pt-BR` (BCP 47); null: none."),
    ]
    loadUnit: Annotated[
        Literal["kg", "lb"] | None,
        Default(UNSET),
        Description("In which unit pages show and take loads; null: the company's, which REST always has."),
    ]
    notifications: Annotated[
        NotificationSettings,
        fields.Nested(SETTINGS_INPUT),
        Default(UNSET),
        Description("Which notifications the client gets, how and when."),
    ]


class OwnRecord(OwnContact, OwnSettings):
    """What a client may change of their own record."""


# The fields that clients change of their own record, and the version that the change is based on.
OwnDetails: TypeAlias = Change[OwnRecord]
