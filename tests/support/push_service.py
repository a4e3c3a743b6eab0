"""A push service on this machine: it checks what it receives, and decrypts it as a browser does (RFC 8291)."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import secrets
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import jwt
from aiohttp import web
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from tests.support.local_servers import receiving_posts

Json = dict[str, Any]


def encode(content: bytes) -> str:
    """Base64url without padding."""
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()


def decode(text: str) -> bytes:
    """The bytes of base64url."""
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def _derive(secret: bytes, salt: bytes, info: bytes, length: int) -> bytes:
    return HKDF(algorithm=SHA256(), length=length, salt=salt, info=info).derive(secret)


@dataclass
class Received:
    """A message as a browser shows it, the headers it came with, and when (seconds since 1970)."""

    content: Json
    headers: dict[str, str]
    at: float


@dataclass
class Device:
    """A browser that has subscribed with a key of the service. `respond`: the status of the next messages."""

    endpoint: str
    server_key: str
    respond: int = 201
    retry_after: str | None = None
    is_hanging: bool = False
    hanging: int = 0
    attempts: list[float] = field(default_factory=list)
    messages: list[Received] = field(default_factory=list)
    private_key: ec.EllipticCurvePrivateKey = field(default_factory=lambda: ec.generate_private_key(ec.SECP256R1()))
    auth: bytes = field(default_factory=lambda: os.urandom(16))

    @property
    def subscription(self) -> Json:
        """What `PushSubscription.toJSON()` returns, but for the time it ends."""
        return {"endpoint": self.endpoint, "keys": {"p256dh": encode(self._point()), "auth": encode(self.auth)}}

    @property
    def contents(self) -> list[Json]:
        """What was received, without headers."""
        return [each.content for each in self.messages]

    def _point(self) -> bytes:
        return self.private_key.public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)

    def decrypt(self, body: bytes) -> bytes:
        """The content of a message of one record. Raises InvalidTag if it is not for this device."""
        salt, length = body[:16], body[20]
        sender_point, encrypted = body[21 : 21 + length], body[21 + length :]
        assert len(body) <= 4096
        sender = ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), sender_point)
        shared = self.private_key.exchange(ec.ECDH(), sender)
        secret = _derive(shared, self.auth, b"WebPush: info\0" + self._point() + sender_point, 32)
        key = _derive(secret, salt, b"Content-Encoding: aes128gcm\0", 16)
        nonce = _derive(secret, salt, b"Content-Encoding: nonce\0", 12)
        padded = AESGCM(key).decrypt(nonce, encrypted, None).rstrip(b"\0")
        assert padded.endswith(b"\2"), "the last record ends with 2"
        return padded[:-1]


@dataclass
class PushService:
    """The devices of a push service by the last part of their endpoint, and what it rejected."""

    url: str = ""
    devices: dict[str, Device] = field(default_factory=dict)
    rejected: list[str] = field(default_factory=list)
    released: asyncio.Event = field(default_factory=asyncio.Event)

    def new_device(self, server_key: str, **options: Any) -> Device:
        """A browser that has subscribed with a public key of the service."""
        name = secrets.token_urlsafe(24)
        self.devices[name] = Device(f"{self.url}/send/{name}", server_key, **options)
        return self.devices[name]

    async def receive(self, request: web.Request) -> web.Response:
        """Receive a message."""
        device = self.devices.get(request.match_info["name"])
        if device is None:
            return web.Response(status=404)
        device.attempts.append(time.time())
        body = await request.read()
        if device.is_hanging:
            device.hanging += 1
            await self.released.wait()
        if (problem := self._find_problem(device, request)) is not None:
            self.rejected.append(problem)
            return web.Response(status=403)
        if device.respond != 201:
            headers = {"Retry-After": device.retry_after} if device.retry_after is not None else {}
            return web.Response(status=device.respond, headers=headers)
        content = json.loads(device.decrypt(body))
        device.messages.append(Received(content, dict(request.headers), time.time()))
        return web.Response(status=201, headers={"Location": f"{self.url}/message/{secrets.token_hex(8)}"})

    def _find_problem(self, device: Device, request: web.Request) -> str | None:
        """Why a push service refuses a message, as RFC 8030 and RFC 8292 say; None if it does not."""
        if request.headers.get("Content-Encoding") != "aes128gcm":
            return "Content-Encoding"
        if not request.headers.get("TTL", "").isdigit():
            return "TTL"
        scheme, _, parameters = request.headers.get("Authorization", "").partition(" ")
        fields = dict(each.strip().split("=", 1) for each in parameters.split(","))
        if scheme != "vapid" or fields["k"] != device.server_key:
            return "another key than the one of the subscription"
        key = ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), decode(fields["k"]))
        claims = jwt.decode(fields["t"], key, algorithms=["ES256"], audience=self.url)
        if not claims["sub"].startswith(("mailto:", "https://")):
            return "sub"
        return None if time.time() < claims["exp"] <= time.time() + 86400 else "exp"


@asynccontextmanager
async def push_service() -> AsyncIterator[PushService]:
    """A push service on a port of its own."""
    service = PushService()
    async with receiving_posts("/send/{name}", service.receive) as service.url:
        try:
            yield service
        finally:
            service.released.set()
