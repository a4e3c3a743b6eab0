"""Devices that signed in before: a signed token by which a device has a counter of failed sign-ins of its own."""

from __future__ import annotations

import re
import secrets
import time
from collections.abc import Iterable
from datetime import timedelta

from coaching_service.core.database.context import Services
from coaching_service.people.identities.models import StoredIdentity

LIFETIME = timedelta(days=180)
_TOKEN = re.compile(
    r"(?P<device>[\w-]{22})\.(?P<until>[0-9]{1,12})\.(?P<password>[\w-]{43})\.(?P<signature>[\w-]{43})", re.ASCII
)
_ID_BYTES = 16


def sign_device(services: Services, identity: StoredIdentity) -> str:
    """Return a token for a device on which the user of an identity has just proved who they are."""
    until = int(time.time() + LIFETIME.total_seconds())
    password = services.vault.sign(_password_of(identity))
    content = f"{secrets.token_urlsafe(_ID_BYTES)}.{until}.{password}"
    return f"{content}.{services.vault.sign(_device_of(identity, content))}"


def find_device(services: Services, identity: StoredIdentity | None, tokens: Iterable[str]) -> str | None:
    """Return the name under which the failures of a device are counted; None if no token is valid for the identity.

    Devices that have only signed in with an earlier password share a name, so that a user of that password has not
    collected many counters.
    """
    if identity is None:
        return None
    earlier = None
    for token in tokens:
        match = _TOKEN.fullmatch(token)
        if match is None or int(match["until"]) < time.time():
            continue
        content = token.rpartition(".")[0]
        if not services.vault.verify_signature(_device_of(identity, content), match["signature"]):
            continue
        if services.vault.verify_signature(_password_of(identity), match["password"]):
            return match["device"]
        earlier = f"earlier password of {identity['subjectId']}"
    return earlier


def _device_of(identity: StoredIdentity, content: str) -> str:
    return f"device of {identity['subjectId']}: {content}"


def _password_of(identity: StoredIdentity) -> str:
    return f"password of {identity['subjectId']}: {identity['passwordHash']}"
