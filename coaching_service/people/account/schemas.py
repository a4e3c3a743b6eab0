"""Requests and responses of the account operations."""

from __future__ import annotations

from marshmallow import fields

from coaching_service.core.validation import Boolean, Choice, DateTime, Email, Identifier, Input, Output, Text, Timezone

_NOTIFICATIONS = {"description": "Which mails the coaches get."}
_MESSAGES = {"description": "Whether they get mail about unread messages of clients."}


class CurrentUser(Output):
    """The authenticated caller."""

    _id = Identifier()
    name = fields.String()
    email = Email(allow_none=True)
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


class AccountDetails(Input):
    """The fields of the company that its owner can change."""

    companyName = Text(required=True)
    timezone = Timezone(required=True)
    loadUnit = Choice("kg", "lb", required=True, metadata={"description": "Stays once any load is stored."})
    notifications = fields.Nested(AccountNotificationsInput, metadata=_NOTIFICATIONS)


class Account(Output):
    """The company."""

    _id = Identifier()
    companyName = fields.String()
    timezone = fields.String(
        metadata={"description": "IANA; `today` is there for clients without a zone of their own."}
    )
    loadUnit = Choice("kg", "lb")
    notifications = fields.Nested(AccountNotifications, metadata=_NOTIFICATIONS)
    createdAt = DateTime()
    updatedAt = DateTime()
    version = fields.Integer()


class AccountErasure(Input):
    """The owner's password, as a confirmation."""

    password = Text(max_length=200, trim=False, required=True)
