"""An authenticator in software, which creates passkeys and answers with them as a browser does."""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
from dataclasses import dataclass, field
from typing import Any

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from webauthn.helpers import encode_cbor

from tests.support.client import CoachClient

PRESENT, VERIFIED, _HAS_KEY = 0x01, 0x04, 0x40


def encode(data: bytes) -> str:
    """Return bytes in base64url without padding."""
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


@dataclass
class Authenticator:
    """One passkey. `flags`: what it says of its user; `counter`: of its uses, or 0 if it counts none."""

    origin: str = "http://coaching.test"
    host: str = "coaching.test"
    flags: int = PRESENT | VERIFIED
    counter: int = 0
    credential_id: bytes = field(default_factory=lambda: secrets.token_bytes(16))
    key: ec.EllipticCurvePrivateKey = field(default_factory=lambda: ec.generate_private_key(ec.SECP256R1()))

    def create(self, public_key: dict[str, Any]) -> dict[str, Any]:
        """Return the answer to `navigator.credentials.create`, as `toJSON()` of a browser has it."""
        numbers = self.key.public_key().public_numbers()
        key = {1: 2, 3: -7, -1: 1, -2: numbers.x.to_bytes(32, "big"), -3: numbers.y.to_bytes(32, "big")}
        attested = bytes(16) + len(self.credential_id).to_bytes(2, "big") + self.credential_id + encode_cbor(key)
        data = self._data(_HAS_KEY) + attested
        return self._credential(
            clientDataJSON=encode(self._client_data("webauthn.create", public_key["challenge"])),
            attestationObject=encode(encode_cbor({"fmt": "none", "attStmt": {}, "authData": data})),
            transports=["internal"],
        )

    def get(self, public_key: dict[str, Any], *, challenge: str = "") -> dict[str, Any]:
        """Return the answer to `navigator.credentials.get`; `challenge`: another one than the one asked."""
        client_data = self._client_data("webauthn.get", challenge or public_key["challenge"])
        data = self._data()
        signature = self.key.sign(data + hashlib.sha256(client_data).digest(), ec.ECDSA(hashes.SHA256()))
        return self._credential(
            clientDataJSON=encode(client_data), authenticatorData=encode(data), signature=encode(signature)
        )

    def _client_data(self, kind: str, challenge: str) -> bytes:
        said = {"type": kind, "challenge": challenge, "origin": self.origin, "crossOrigin": False}
        return json.dumps(said).encode()

    def _data(self, flags: int = 0) -> bytes:
        host = hashlib.sha256(self.host.encode()).digest()
        return host + bytes([self.flags | flags]) + self.counter.to_bytes(4, "big")

    def _credential(self, **response: Any) -> dict[str, Any]:
        return {
            "id": encode(self.credential_id),
            "rawId": encode(self.credential_id),
            "type": "public-key",
            "authenticatorAttachment": "platform",
            "clientExtensionResults": {},
            "response": response,
        }


async def register(session: CoachClient, name: str = "Phone", **options: Any) -> Authenticator:
    """Register a passkey of a new authenticator for the user of a session."""
    authenticator = Authenticator(**options)
    public_key = (await session.post("/auth/passkeys/options", {})).ok()["publicKey"]
    (await session.post("/auth/passkeys", {"name": name, "credential": authenticator.create(public_key)})).ok(201)
    return authenticator
