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
