"""Requests and responses of the session operations."""

from __future__ import annotations

from typing import Any

from marshmallow import ValidationError, fields

from coaching_service.core.validation import Choice, Email, Input, Output, Text
from coaching_service.core.validation_messages import Message
from coaching_service.people.identities.common_passwords import is_common
from coaching_service.people.identities.passwords import MAX_LENGTH, MIN_LENGTH

_DEVICE_TOKEN = "Identifies this device when the user signs in again, for 180 days."  # noqa: S105 - a description


class NewPassword(Text):
    """A password to set: 12 to 200 characters, not trimmed; the most common ones are refused."""

    def __init__(self, **options: Any) -> None:
        super().__init__(max_length=MAX_LENGTH, trim=False, metadata={"minLength": MIN_LENGTH}, **options)

    def _deserialize(self, value: Any, attr: str | None, data: Any, **_: Any) -> str:
        text = super()._deserialize(value, attr, data)
        if not text.strip():
            raise ValidationError("should not be empty")
        if len(text) < MIN_LENGTH:
            raise self.make_error("short")
        if is_common(text):
            raise self.make_error("common")
        return text

    default_error_messages = {
        "short": f"must be at least {MIN_LENGTH} characters long",
        "common": Message("is a password that many people use; use several unrelated words", "COMMON_PASSWORD"),
    }


class Credentials(Input):
    """The e-mail address and password of a user who signs in."""

    email = Text(max_length=254, required=True)
    password = Text(max_length=MAX_LENGTH, trim=False, required=True)


class DeviceToken(Text):
    """The token of a device that signed in before; one that is not valid is ignored."""

    def __init__(self) -> None:
        super().__init__(
            max_length=500,
            allow_blank=True,
            allow_none=True,
            metadata={
                "description": "`deviceToken` of an earlier sign-in on this device, at most 180 days ago: failures of "
                "others do not lock it. One that is not valid is ignored."
            },
        )


class SignIn(Credentials):
    """The e-mail address and password of a user, and the token of the device."""

    deviceToken = DeviceToken()


class SignUp(Input):
    """A company and its owner."""

    companyName = Text(required=True)
    name = Text(required=True)
    email = Email(required=True)
    password = NewPassword(required=True)


class RefreshToken(Input):
    """A refresh token."""

    refreshToken = Text(max_length=500, required=True)


class ForgottenPassword(Input):
    """The e-mail address of a user who has forgotten the password."""

    email = Text(max_length=254, required=True)


class ResetRequest(ForgottenPassword):
    """The e-mail address of a user, and the token of the device."""

    deviceToken = DeviceToken()


class _PasswordToSet(Input):
    password = NewPassword(required=True)
    deleteApiKeys = Choice(
        "none",
        "sinceLastChange",
        "all",
        load_default="none",
        metadata={
            "description": "Which API keys of the user to delete: none, those created since the password was last "
            "changed, or all."
        },
    )


class PasswordReset(_PasswordToSet):
    """A new password, and the token that allows setting it."""

    token = Text(max_length=500, required=True)


class EmailConfirmation(Input):
    """The token that was mailed to an e-mail address."""

    token = Text(max_length=500, required=True)


class PasswordChange(_PasswordToSet):
    """The current password and a new one."""

    currentPassword = Text(max_length=MAX_LENGTH, trim=False, required=True)


class SessionTokens(Output):
    """A session: `accessToken` goes into `Authorization: Bearer`, `expiresIn` counts seconds."""

    accessToken = fields.String()
    tokenType = Choice("Bearer")
    expiresIn = fields.Integer()
    refreshToken = fields.String()


class SignedIn(SessionTokens):
    """A session, and a token of the device: send it as `deviceToken` when the user signs in again on this device."""

    deviceToken = fields.String(metadata={"description": _DEVICE_TOKEN})


class AccessToken(Output):
    """A session that cannot be renewed."""

    accessToken = fields.String()
    tokenType = Choice("Bearer")
    expiresIn = fields.Integer()


class Confirmation(Output):
    """The confirmation of an action."""

    message = fields.String()


class PasswordSet(Confirmation):
    """The confirmation of a new password: `apiKeys` is the number of API keys that the user still has."""

    apiKeys = fields.Integer(metadata={"description": "How many API keys the user still has."})
    deviceToken = fields.String(metadata={"description": _DEVICE_TOKEN})
