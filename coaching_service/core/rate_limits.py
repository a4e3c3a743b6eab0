"""The limiter: what names use up is stored in MongoDB, so that it holds across processes and restarts.

It ends with a window, or all the time as in a token bucket. Time is the database's.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, NotRequired, TypedDict

from coaching_service.core.database.across_companies import upsert_not_durable
from coaching_service.core.database.context import Context, Services
from coaching_service.core.database.declared import Index, NotExported, ShardKey
from coaching_service.core.database.documents import Document, Documents
from coaching_service.core.errors import TooManyRequests
from coaching_service.core.ids import ObjectId, stable_id

WINDOW = timedelta(minutes=15)


class RateLimit(TypedDict):
    """What a name had used at the time `at`; nothing counts from `until` on. `taken`: last, of token buckets only."""

    _id: ObjectId
    used: float
    taken: NotRequired[int]
    at: datetime
    until: datetime


_limits = Documents[RateLimit](
    "rateLimits",
    global_indexes=(Index(("until",), expire_after=0),),
    cross_company_reason="attempts are counted before the caller is known",
    placement=ShardKey(("_id",), is_hashed=True),
    transfer=NotExported("state of the service"),
    incidental=True,
)
_IS_OPEN: Document = {"$gt": ["$until", "$$NOW"]}


async def count(
    services: Services,
    kind: str,
    name: str,
    *,
    number: int = 1,
    window: timedelta = WINDOW,
    tx: Context | None = None,
) -> tuple[int, int]:
    """Count attempts of `name`; returns the number in its window (of 15 minutes) and the seconds until it ends.

    A negative `number` takes attempts back, at most those that were counted in the window. `tx`: in its transaction,
    so that nothing is counted if that is rolled back.
    The result has no projection: MongoDB ignores it when the driver repeats the command after an election.
    """
    window_end = {"$add": ["$$NOW", round(window.total_seconds() * 1000)]}
    used = {"$max": [0, {"$add": [{"$cond": [_IS_OPEN, "$used", 0]}, number]}]}
    stages = [{"$set": {"used": used, "at": "$$NOW", "until": {"$cond": [_IS_OPEN, "$until", window_end]}}}]
    counted: Any = await _limits.across_companies(services).find_one_and_update(
        {"_id": _id(services, kind, name)},
        stages,
        upsert=True,
        return_document=True,
        session=tx.session if tx else None,
    )
    return counted["used"], _seconds_left(counted)


async def limit(services: Services, kind: str, name: str, maximum: int) -> None:
    """Count one attempt of `name`. Raises TooManyRequests if there are more than `maximum` in its window."""
    attempts, seconds = await count(services, kind, name)
    if attempts > maximum:
        raise too_many_requests(services, kind, seconds)


async def get_count(services: Services, kind: str, name: str) -> tuple[int, int]:
    """Return the attempts of `name` in its window and the seconds until the window ends; (0, 0) without a window."""
    where, fields = {"_id": _id(services, kind, name), "$expr": _IS_OPEN}, {"used": 1, "at": "$$NOW", "until": 1}
    counted: Any = await _limits.across_companies(services).find_one(where, fields)
    return (counted["used"], _seconds_left(counted)) if counted else (0, 0)


async def reset(services: Services, kind: str, name: str) -> None:
    """Delete the attempts of `name`."""
    await _limits.across_companies(services).delete_one({"_id": _id(services, kind, name)})


async def take(services: Services, kind: str, name: str) -> int:
    """Delete the attempts of `name` and return how many were in its window."""
    where = {"_id": _id(services, kind, name), "$expr": _IS_OPEN}
    counted: Any = await _limits.across_companies(services).find_one_and_delete(where)
    return counted["used"] if counted else 0


def too_many_requests(services: Services, kind: str, seconds: int) -> TooManyRequests:
    """Return the error that tells the caller to retry after `seconds`; `kind` names the limit in metrics."""
    services.metrics.rate_limited.labels(kind).inc()
    return TooManyRequests("Too many attempts; try again later", {"Retry-After": str(seconds)})


def _seconds_left(counted: RateLimit) -> int:
    return max(1, math.ceil((counted["until"] - counted["at"]).total_seconds()))


def _id(services: Services, kind: str, name: str) -> ObjectId:
    # Of a keyed hash: e-mail addresses cannot be guessed from what is stored.
    return stable_id(kind, services.vault.keyed_hash(name))


# --- Token buckets: how many requests a credential may send, over all processes of the service ------------------------
# A process takes tokens for one second at a time and uses them without the database; see docs/decisions/fairness.md.


_MAX_SHARES = 10_000
_SHARE_SECONDS = 1.0


class RateLimitExceeded(TooManyRequests):
    """The credential has used up its requests of this minute; `Retry-After` says when the next one is accepted."""

    default_code = "RATE_LIMIT_EXCEEDED"

    def __init__(self, seconds: int) -> None:
        unit = "second" if seconds == 1 else "seconds"
        super().__init__(f"Too many requests; try again in {seconds} {unit}", {"Retry-After": str(seconds)})
        self.seconds = seconds


@dataclass(slots=True)
class _Share:
    """The tokens that this process has taken from one bucket and may use until `expires`.

    The bucket had `bucket_tokens` at the time `read_at`. Until `refused_until` it has no token for this process.
    """

    tokens: int = 0
    expires: float = 0.0
    bucket_tokens: float = 0.0
    read_at: float = 0.0
    refused_until: float = 0.0
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)


class TokenBuckets:
    """The buckets of all credentials: `size` tokens each, refilled by `size` a minute.

    `clock` returns seconds that only grow.
    """

    def __init__(self, services: Services, size: int, clock: Callable[[], float] = time.monotonic) -> None:
        self.size = size
        self._services, self._clock = services, clock
        self._per_second = size / 60
        self._share_size = math.ceil(self._per_second)
        self._shares: dict[ObjectId, _Share] = {}

    @property
    def seconds_per_token(self) -> int:
        """Whole seconds until an additional token is available."""
        return math.ceil(1 / self._per_second)

    async def take(self, credential_id: ObjectId) -> int:
        """Take one token, and return how many remain. Raises RateLimitExceeded if there is none."""
        if (share := self._shares.get(credential_id)) is None:
            if len(self._shares) >= _MAX_SHARES:
                now = self._clock()
                self._shares = {
                    key: each
                    for key, each in self._shares.items()
                    if each.lock.locked() or max(each.expires, each.refused_until) > now
                }
            share = self._shares[credential_id] = _Share()
        if not self._is_decided(share):
            async with share.lock:  # the requests of one credential ask the database once
                if not self._is_decided(share):
                    await self._take_share(credential_id, share)
        now = self._clock()
        if share.tokens == 0:
            raise RateLimitExceeded(max(1, math.ceil(share.refused_until - now)))
        share.tokens -= 1
        in_bucket = min(self.size, share.bucket_tokens + (now - share.read_at) * self._per_second)
        return min(self.size, share.tokens + math.floor(in_bucket))

    def _is_decided(self, share: _Share) -> bool:
        """Return whether a request can be accepted or refused without the database."""
        now = self._clock()
        return (share.tokens > 0 and now < share.expires) or (share.tokens == 0 and now < share.refused_until)

    async def _take_share(self, credential_id: ObjectId, share: _Share) -> None:
        """Return the tokens that were not used, and take the tokens of another second."""
        returned, share.tokens = share.tokens, 0
        per_millisecond = self._per_second / 1000
        missing = {"$multiply": [{"$subtract": [{"$ifNull": ["$until", "$$NOW"]}, "$$NOW"]}, per_millisecond]}
        free = {"$toInt": {"$floor": {"$subtract": [self.size, "$used"]}}}
        full_at = {"$add": ["$$NOW", {"$toLong": {"$ceil": {"$divide": ["$used", per_millisecond]}}}]}
        stages: list[Document] = [
            {"$set": {"used": {"$max": [0, {"$subtract": [missing, returned]}]}, "at": "$$NOW"}},
            {"$set": {"taken": {"$min": [self._share_size, free]}}},
            {"$set": {"used": {"$add": ["$used", "$taken"]}}},
            {"$set": {"until": full_at}},
        ]
        bucket = await upsert_not_durable(_limits, self._services, credential_id, stages)
        now = self._clock()
        share.tokens, share.expires = bucket["taken"], now + _SHARE_SECONDS
        share.bucket_tokens, share.read_at = self.size - bucket["used"], now
        if share.tokens == 0:
            share.refused_until = now + max(_SHARE_SECONDS, (1 - share.bucket_tokens) / self._per_second)
