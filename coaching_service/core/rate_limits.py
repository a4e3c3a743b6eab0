"""Counting attempts in MongoDB, so that a limit holds across processes and restarts."""

from __future__ import annotations

from datetime import timedelta

from coaching_service.core.database.connection import Index
from coaching_service.core.database.context import Services
from coaching_service.core.database.documents import Document, Documents, now
from coaching_service.core.errors import TooManyRequests

WINDOW = timedelta(minutes=15)

_counters = Documents[Document](
    "rateCounters",
    global_indexes=(Index(("key",), unique=True), Index(("until",), expire_after=0)),
    cross_company_reason="attempts are counted before anybody is known",
)


async def count(services: Services, kind: str, name: str) -> tuple[int, int]:
    """Count one attempt of `name`; gives how many there are in its 15 minutes, and the seconds until those end."""
    at = now()
    window = {"$cond": [{"$gt": ["$until", at]}, "$until", at + WINDOW]}
    counted = {"$cond": [{"$gt": ["$until", at]}, {"$add": ["$count", 1]}, 1]}
    found = await _counters.across_companies(services).find_one_and_update(
        {"key": _key(services, kind, name)},
        [{"$set": {"count": counted, "until": window}}],
        upsert=True,
        return_document=True,
    )
    return found["count"], max(1, int((found["until"] - at).total_seconds()) + 1)


async def limit(services: Services, kind: str, name: str, maximum: int) -> None:
    """Count one attempt of `name`. Raises TooManyRequests when there are more than `most` in its 15 minutes."""
    counted, seconds = await count(services, kind, name)
    if counted > maximum:
        raise too_many_requests(seconds)


async def seen(services: Services, kind: str, name: str) -> tuple[int, int]:
    """How many attempts of `name` were counted in its 15 minutes, and the seconds until those end."""
    at = now()
    found = await _counters.across_companies(services).find_one(
        {"key": _key(services, kind, name), "until": {"$gt": at}}
    )
    return (found["count"], max(1, int((found["until"] - at).total_seconds()) + 1)) if found else (0, 0)


async def forget(services: Services, kind: str, name: str) -> None:
    """Forget every attempt of `name`."""
    await _counters.across_companies(services).delete_one({"key": _key(services, kind, name)})


def too_many_requests(seconds: int) -> TooManyRequests:
    """The error that says when to come back."""
    return TooManyRequests("Too many attempts; try again later", {"Retry-After": str(seconds)})


def _key(services: Services, kind: str, name: str) -> str:
    # A keyed hash: e-mail addresses cannot be guessed from the stored counters.
    return f"{kind}:{services.vault.keyed_hash(name)}"
