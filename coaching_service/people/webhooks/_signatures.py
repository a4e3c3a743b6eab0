"""Secrets and signatures of Standard Webhooks (https://www.standardwebhooks.com, symmetric signatures)."""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
from collections.abc import Iterable
from datetime import datetime

from coaching_service.core.auth.secrets import Vault
from coaching_service.core.ids import ObjectId
from coaching_service.people.webhooks.models import StoredSecret

_PREFIX = "whsec_"
_SECRET_BYTES = 32  # the specification wants 24 to 64


def new_secret() -> str:
    """Return a new secret: `whsec_` and 32 random bytes in base64."""
    return _PREFIX + base64.b64encode(secrets.token_bytes(_SECRET_BYTES)).decode()


def seal_secret(vault: Vault, webhook_id: ObjectId, secret: str) -> bytes:
    """Return the encrypted secret of a webhook."""
    return vault.seal(secret.encode(), _binding(webhook_id))


def open_secret(vault: Vault, webhook_id: ObjectId, sealed: bytes) -> str:
    """Return the secret of a webhook. Raises SecretUnreadable."""
    return vault.open(sealed, _binding(webhook_id)).decode()


def open_secrets(vault: Vault, webhook_id: ObjectId, stored: Iterable[StoredSecret], at: datetime) -> list[str]:
    """Return the secrets that are in use at a time, newest first. Raises SecretUnreadable."""
    in_use = (each for each in stored if each["expiresAt"] is None or each["expiresAt"] > at)
    return [open_secret(vault, webhook_id, each["sealed"]) for each in in_use]


def headers_of(message_id: str, timestamp: int, body: bytes, in_use: Iterable[str]) -> dict[str, str]:
    """Return the headers of a message with a signature for each secret; `timestamp` is in seconds since 1970."""
    signed = f"{message_id}.{timestamp}.".encode() + body
    return {
        "Content-Type": "application/json",
        "webhook-id": message_id,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": " ".join(_sign(secret, signed) for secret in in_use),
    }


def _sign(secret: str, signed: bytes) -> str:
    key = base64.b64decode(secret.removeprefix(_PREFIX))
    return "v1," + base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()


def _binding(webhook_id: ObjectId) -> str:
    return f"webhook:{webhook_id}"
