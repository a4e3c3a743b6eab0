"""Requests of the operations on a client's access."""

from __future__ import annotations

from coaching_service.core.validation import Email, Input, Text
from coaching_service.people.sessions.schemas import NewPassword


class FirstAccess(Input):
    """A client's first access."""

    token = Text(max_length=100, required=True)
    password = NewPassword(required=True)
    email = Email(allow_none=True)


class CustomerPassword(Input):
    """A password set by the coach."""

    password = NewPassword(required=True)


class DeclineToken(Input):
    """The token of a link in an invitation."""

    token = Text(max_length=500, load_default="")
