"""Requests about a client's access."""

from __future__ import annotations

from typing import NotRequired, TypedDict


class FirstAccess(TypedDict):
    """A client's first access; `email` is needed if the client has none, or it is used by another user."""

    token: str
    password: str
    email: NotRequired[str | None]


class CustomerPassword(TypedDict):
    """A password set by the coach."""

    password: str


class DeclineLink(TypedDict):
    """The token of a link in an invitation."""

    token: str


class DeclinePage(DeclineLink):
    """The company whose invitations the token declines; None if the token is not valid."""

    company: str | None
