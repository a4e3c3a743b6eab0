"""Requests and responses of the account operations."""

from __future__ import annotations

from marshmallow import fields

from coaching_service.core.validation import (
    Boolean,
    Choice,
    DateTime,
    Email,
    Identifier,
    Input,
    Integer,
    Output,
    Text,
    Timezone,
)

_NOTIFICATIONS = {"description": "Which mails the coaches get."}
_MESSAGES = {"description": "Whether they get mail about unread messages of clients."}


class CurrentUser(Output):
    """The authenticated caller."""

    _id = Identifier()
    name = fields.String()
    email = Email(allow_none=True)
    emailConfirmed = fields.Boolean(metadata={"description": "Whether the e-mail address of the sign-in is confirmed."})
    role = Choice("OWNER", "EMPLOYEE", "CUSTOMER")
    companyId = Identifier()
    permissions = fields.List(
        fields.String(), metadata={"description": "`area.action`, e.g. `customers.view`, as this credential has them."}
    )
    via = Choice("session", "apiKey")


class AccountNotificationsInput(Input):
    """Which mails the coaches get."""

    messages = Boolean(required=True, metadata=_MESSAGES)


class AccountNotifications(Output):
    """Which mails the coaches get."""

    messages = fields.Boolean(metadata=_MESSAGES)


_INACTIVE = {"description": "A client is inactive after so many days without a session. A new company has 7."}
_COMPLIANCE = {"description": "Compliance in the last 30 days is low below so many percent. A new company has 60."}
_HORIZON = {"description": "A workout has to be scheduled from today to so many days ahead. A new company has 3."}
_ATTENTION = {"description": "When clients need attention."}


class AttentionSettingsInput(Input):
    """When clients need attention; settings that are left out stay as they are."""

    inactiveDays = Integer(minimum=1, maximum=365, metadata=_INACTIVE)
    complianceBelow = Integer(minimum=0, maximum=100, metadata=_COMPLIANCE)
    horizonDays = Integer(minimum=0, maximum=90, metadata=_HORIZON)


class AttentionSettings(Output):
    """When clients need attention."""

    inactiveDays = fields.Integer(metadata=_INACTIVE)
    complianceBelow = fields.Integer(metadata=_COMPLIANCE)
    horizonDays = fields.Integer(metadata=_HORIZON)


class AccountDetails(Input):
    """The fields of the company that its owner can change."""

    companyName = Text(required=True)
    timezone = Timezone(required=True)
    loadUnit = Choice("kg", "lb", required=True, metadata={"description": "Stays while any load is stored."})
    notifications = fields.Nested(AccountNotificationsInput, metadata=_NOTIFICATIONS)
    attention = fields.Nested(AttentionSettingsInput, metadata=_ATTENTION)


class Account(Output):
    """The company."""

    _id = Identifier()
    companyName = fields.String()
    timezone = fields.String(
        metadata={"description": "IANA; `today` is there for clients without a zone of their own."}
    )
    loadUnit = Choice("kg", "lb")
    notifications = fields.Nested(AccountNotifications, metadata=_NOTIFICATIONS)
    attention = fields.Nested(AttentionSettings, metadata=_ATTENTION)
    createdAt = DateTime()
    updatedAt = DateTime()
    version = fields.Integer()


class AccountErasure(Input):
    """The owner's password, as a confirmation."""

    password = Text(max_length=200, trim=False, required=True)
