"""A receiver of webhooks on this machine, which verifies them with the library of Standard Webhooks."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web
from standardwebhooks import Webhook

from tests.support.local_servers import receiving_posts

Json = dict[str, Any]


@dataclass
class Message:
    """A received message: its headers, its body, and the event in it."""

    headers: dict[str, str]
    body: bytes

    @property
    def id(self) -> str:
        """The `webhook-id`."""
        return self.headers["webhook-id"]

    @property
    def event(self) -> Json:
        """The event."""
        event: Json = json.loads(self.body)
        return event

    def verify(self, secret: str) -> Json:
        """Check the signature, and return the event. Raises WebhookVerificationError."""
        event: Json = Webhook(secret).verify(self.body, self.headers)
        return event


# What a receiver responds to a message, given how often it has received its `webhook-id` before.
Status = Callable[[Message, int], int]


@dataclass
class Receiver:
    """What a receiver has received, and what it responds: 200 unless a test sets `respond`, with `headers`.

    While `is_hanging` is set, it does not respond.
    """

    url: str = ""
    messages: list[Message] = field(default_factory=list)
    respond: Status = lambda _message, _before: 200
    headers: dict[str, str] = field(default_factory=dict)
    is_hanging: bool = False
    hanging: int = 0
    released: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def sequence(self) -> list[int]:
        """The numbers of the events of all messages, in the order in which they arrived."""
        return [message.event["seq"] for message in self.messages]

    def count_by_id(self) -> Counter[str]:
        """How often each `webhook-id` was received."""
        return Counter(message.id for message in self.messages)

    async def receive(self, request: web.Request) -> web.Response:
        """Receive a message."""
        headers = {name.lower(): value for name, value in request.headers.items()}
        message = Message(headers, await request.read())
        before = sum(each.id == message.id for each in self.messages)
        self.messages.append(message)
        if self.is_hanging:
            self.hanging += 1
            await self.released.wait()
        return web.Response(status=self.respond(message, before), headers=self.headers)


@asynccontextmanager
async def receiving() -> AsyncIterator[Receiver]:
    """A receiver on a port of its own."""
    receiver = Receiver()
    async with receiving_posts("/{path:.*}", receiver.receive) as address:
        receiver.url = f"{address}/hook"
        try:
            yield receiver
        finally:
            receiver.released.set()
