"""Webhooks of a company, and their deliveries and messages once they are there."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from tests.support.client import CoachClient
from tests.support.service_process import until
from tests.support.webhooks import Message, Receiver

Json = dict[str, Any]
NewCoach = Callable[[], Awaitable[CoachClient]]


async def subscribe(coach: CoachClient, receiver: Receiver, **fields: Any) -> Json:
    """A webhook of the receiver."""
    created: Json = (await coach.post("/coach/webhooks", {"url": receiver.url, **fields})).ok(201)
    return created


async def deliveries_of(coach: CoachClient, webhook: Json, **query: Any) -> list[Json]:
    """The deliveries of a webhook, newest first."""
    page = (await coach.get(f"/coach/webhooks/{webhook['_id']}/deliveries", limit=100, **query)).ok()
    docs: list[Json] = page["docs"]
    return docs


async def received(receiver: Receiver, number: int) -> list[Message]:
    """The messages once there are so many."""
    await until(lambda: len(receiver.messages) >= number, f"{number} messages", 60)
    return receiver.messages


async def settled(coach: CoachClient, webhook: Json, status: str, number: int = 1) -> list[Json]:
    """The deliveries with a status once there are so many."""

    async def reached() -> list[Json]:
        docs = await deliveries_of(coach, webhook, status=status)
        return docs if len(docs) >= number else []

    return await until(reached, f"{number} deliveries {status}", 60)


async def is_empty(collection: Any, where: Json) -> bool:
    return await collection.count_documents(where) == 0
