"""Fields of push subscriptions with limits of their own."""

from __future__ import annotations

import base64
from typing import Any, Literal

from cryptography.hazmat.primitives.asymmetric import ec

from coaching_service.core.validation import Text
from coaching_service.core.validation_messages import Message

AUTH_BYTES = 16
_MAX_LENGTH = 100


def decode_base64url(text: str) -> bytes:
    """Return the bytes of base64url, with or without padding. Raises ValueError."""
    unpadded = text.rstrip("=").encode()
    return base64.b64decode(unpadded + b"=" * (-len(unpadded) % 4), altchars=b"-_", validate=True)


class BrowserKey(Text):
    """A key of a push subscription in base64url: a point of P-256 (`p256dh`) or 16 bytes (`auth`)."""

    default_error_messages = {"key": Message("must be a key of a push subscription, in base64url", "INVALID_PUSH_KEY")}

    def __init__(self, kind: Literal["p256dh", "auth"], **options: Any) -> None:
        self.kind = kind
        super().__init__(max_length=_MAX_LENGTH, **options)

    def _deserialize(self, value: Any, attr: str | None, data: Any, **_: Any) -> str:
        text = super()._deserialize(value, attr, data)
        try:
            decoded = decode_base64url(text)
            if self.kind == "p256dh":
                ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), decoded)
        except ValueError:
            raise self.make_error("key") from None
        if self.kind == "auth" and len(decoded) != AUTH_BYTES:
            raise self.make_error("key")
        return text
