"""Checks messages of webhooks (Standard Webhooks)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypedDict, cast

from standardwebhooks import Webhook, WebhookVerificationError

__all__ = ("WebhookEvent", "WebhookVerificationError", "verify_webhook")


# The functional form: `_id` is not a name that a class may have.
class _Actor(TypedDict):
    type: str
    _id: str | None


class WebhookEvent(TypedDict):
    """An event as `GET /coach/events` lists it: what happened, when and by whom. `data` depends on `type`."""

    id: str
    seq: int
    type: str
    createdAt: str
    customerId: str | None
    actor: _Actor
    data: dict[str, Any]


def verify_webhook(secret: str, body: bytes, headers: Mapping[str, str]) -> WebhookEvent:
    """Return the event of a message. Raises WebhookVerificationError if it is not from the service, or is too old.

    `secret` begins with `whsec_`; `body` are the bytes that were received, not parsed and written again. The message
    arrives more than once if it was not accepted in time: store the header `webhook-id` of what you have processed.
    """
    try:
        return cast("WebhookEvent", Webhook(secret).verify(body, dict(headers)))
    except UnicodeDecodeError as error:
        raise WebhookVerificationError("The body is not UTF-8") from error
