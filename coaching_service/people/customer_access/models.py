"""Requests about a client's access."""

from __future__ import annotations

from typing import Annotated, NotRequired, TypedDict

from coaching_service.core.fields import Default
from coaching_service.core.validation import Email, Text
from coaching_service.people.sessions.schemas import NewPassword


class FirstAccess(TypedDict):
    """A client's first access."""

    token: Annotated[str, Text(max_length=100)]
    password: Annotated[str, NewPassword()]
    email: NotRequired[Annotated[str | None, Email()]]


class CustomerPassword(TypedDict):
    """A password set by the coach."""

    password: Annotated[str, NewPassword()]


class DeclineLink(TypedDict):
    """The token of a link in an invitation."""

    token: Annotated[str, Text(max_length=500), Default("")]


class DeclinePage(DeclineLink):
    """The company whose invitations the token declines; None if the token is not valid."""

    company: str | None
