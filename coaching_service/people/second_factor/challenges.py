"""Challenges: encrypted texts, which are stored nowhere, to be answered once within 5 minutes."""

from __future__ import annotations

import base64
import secrets
import time
from datetime import timedelta
from typing import TypedDict

import orjson

from coaching_service.core import rate_limits
from coaching_service.core.auth import SecretUnreadable
from coaching_service.core.database.context import Context, Services

LIFETIME = timedelta(minutes=5)
_KIND = "challenge"


class Challenge(TypedDict):
    """Whom a challenge asks: `password` is a signature of the password that was right, `device` as in Attempt.

    `company` and `subject` are empty if anyone may answer. `nonce` is the number of the challenge, `detail` what else
    its purpose needs.
    """

    company: str
    subject: str
    password: str
    device: str | None
    detail: str
    until: float
    nonce: str


def create(
    services: Services,
    purpose: str,
    company: object = "",
    subject: object = "",
    *,
    password: str = "",
    device: str | None = None,
    detail: str = "",
    nonce: str = "",
) -> str:
    """Return a new challenge for a purpose, in base64url; `nonce`: its number, if the caller needs to know it."""
    content: Challenge = {
        "company": str(company),
        "subject": str(subject),
        "password": password,
        "device": device,
        "detail": detail,
        "until": time.time() + LIFETIME.total_seconds(),
        "nonce": nonce or secrets.token_urlsafe(12),
    }
    sealed = services.vault.seal(orjson.dumps(content), f"challenge: {purpose}")
    return base64.urlsafe_b64encode(sealed).decode().rstrip("=")


async def find(services: Services, purpose: str, text: str) -> Challenge | None:
    """Return the challenge of a text; None if it is unknown, older than 5 minutes or used."""
    try:
        sealed = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
        content: Challenge = orjson.loads(services.vault.open(sealed, f"challenge: {purpose}"))
    except (SecretUnreadable, ValueError):
        return None
    if content["until"] <= time.time() or (await rate_limits.get_count(services, _KIND, content["nonce"]))[0]:
        return None
    return content


async def use(ctx: Context, challenge: Challenge) -> bool:
    """Use a challenge that was answered rightly; returns False if it was used before."""
    number, _ = await rate_limits.count(ctx.services, _KIND, challenge["nonce"], window=LIFETIME)
    return number == 1
