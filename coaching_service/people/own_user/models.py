"""The authenticated user as it is sent and returned."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias, TypedDict

from marshmallow import fields
from marshmallow.validate import OneOf

from coaching_service.core.fields import UNSET, Default, Description, Partial
from coaching_service.core.ids import ObjectId
from coaching_service.people.notification_settings.models import SETTINGS_INPUT, NotificationSettings


class UserSettings(TypedDict):
    """What a coach or client chooses for themselves."""

    notifications: Annotated[
        NotificationSettings,
        fields.Nested(SETTINGS_INPUT),
        Default(UNSET),
        Description("Which notifications the user gets, how and when."),
    ]


CurrentUserChange: TypeAlias = Partial[UserSettings]


class CurrentUser(UserSettings):
    """The authenticated caller."""

    _id: ObjectId
    name: str
    email: Annotated[str | None, fields.String(metadata={"maxLength": 254, "minLength": 1, "format": "idn-email"})]
    emailConfirmed: Annotated[bool, Description("Whether the e-mail address of the sign-in is confirmed.")]
    role: Literal["OWNER", "EMPLOYEE", "CUSTOMER"]
    companyId: ObjectId
    permissions: Annotated[list[str], Description("`area.action`, e.g. `customers.view`, as this credential has them.")]
    via: Annotated[str, fields.String(validate=OneOf(("session", "apiKey")))]
