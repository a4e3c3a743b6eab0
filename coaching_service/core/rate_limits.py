"""Counters of attempts in MongoDB, so that a limit holds across processes and restarts; time is the database's."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, TypedDict

from coaching_service.core.database.across_companies import upsert_not_durable
from coaching_service.core.database.collections import ShardKey, Unsharded
from coaching_service.core.database.connection import Index
from coaching_service.core.database.context import Context, Services
from coaching_service.core.database.documents import Document, Documents
from coaching_service.core.database.portable import NotExported
from coaching_service.core.errors import TooManyRequests
from coaching_service.core.ids import ObjectId

WINDOW = timedelta(minutes=15)


class RateCounter(TypedDict):
    """The attempts of one name in the window that ends at `until`, the last one at `at`; `key` is a keyed hash."""

    _id: ObjectId
    key: str
    count: int
    at: datetime
    until: datetime


_counters = Documents[RateCounter](
    "rateCounters",
    global_indexes=(Index(("key",), unique=True), Index(("until",), expire_after=0)),
    cross_company_reason="attempts are counted before the caller is known",
    placement=Unsharded("small counters that MongoDB deletes when their time is over"),
    transfer=NotExported("state of the service"),
    incidental=True,
)
_IS_OPEN: Document = {"$gt": ["$until", "$$NOW"]}
_COUNT: Document = {"count": 1, "at": "$$NOW", "until": 1}


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
    change = {
        "count": {"$cond": [_IS_OPEN, {"$max": [0, {"$add": ["$count", number]}]}, max(0, number)]},
        "at": "$$NOW",
        "until": {"$cond": [_IS_OPEN, "$until", window_end]},
    }
    counter: Any = await _counters.across_companies(services).find_one_and_update(
        {"key": _key(services, kind, name)},
        [{"$set": change}],
        upsert=True,
        return_document=True,
        session=tx.session if tx else None,
    )
    return counter["count"], _seconds_left(counter)


async def limit(services: Services, kind: str, name: str, maximum: int) -> None:
    """Count one attempt of `name`. Raises TooManyRequests if there are more than `maximum` in its window."""
    attempts, seconds = await count(services, kind, name)
    if attempts > maximum:
        raise too_many_requests(services, kind, seconds)


async def get_count(services: Services, kind: str, name: str) -> tuple[int, int]:
    """Return the attempts of `name` in its window and the seconds until the window ends; (0, 0) without a window."""
    where = {"key": _key(services, kind, name), "$expr": _IS_OPEN}
    counter: Any = await _counters.across_companies(services).find_one(where, _COUNT)
    return (counter["count"], _seconds_left(counter)) if counter else (0, 0)


async def reset(services: Services, kind: str, name: str) -> None:
    """Delete the attempts of `name`."""
    await _counters.across_companies(services).delete_one({"key": _key(services, kind, name)})


async def take(services: Services, kind: str, name: str) -> int:
    """Delete the attempts of `name` and return how many were in its window."""
    where = {"key": _key(services, kind, name), "$expr": _IS_OPEN}
    counter: Any = await _counters.across_companies(services).find_one_and_delete(where)
    return counter["count"] if counter else 0


def too_many_requests(services: Services, kind: str, seconds: int) -> TooManyRequests:
    """Return the error that tells the caller to retry after `seconds`; `kind` names the limit in metrics."""
    services.metrics.rate_limited.labels(kind).inc()
    return TooManyRequests("Too many attempts; try again later", {"Retry-After": str(seconds)})


def _seconds_left(counter: RateCounter) -> int:
    return max(1, math.ceil((counter["until"] - counter["at"]).total_seconds()))


def _key(services: Services, kind: str, name: str) -> str:
    # A keyed hash: e-mail addresses cannot be guessed from the stored counters.
    return f"{kind}:{services.vault.keyed_hash(name)}"


# --- Token buckets in MongoDB: how many requests a credential may send, over all processes of the service -------------
# A process takes tokens for one second at a time and uses them without the database; see docs/decisions/fairness.md.


_MAX_SHARES = 10_000
_SHARE_SECONDS = 1.0


class TokenBucket(TypedDict):
    """The tokens of the credential `_id` at the time `at`; `granted` were taken last; full at `until`."""

    _id: ObjectId
    tokens: float
    granted: int
    at: datetime
    until: datetime


_buckets = Documents[TokenBucket](
    "tokenBuckets",
    global_indexes=(Index(("until",), expire_after=0),),
    cross_company_reason="requests are counted for each credential",
    placement=ShardKey(("_id",), is_hashed=True),
    transfer=NotExported("state of the service"),
    incidental=True,
)


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
        share = self._share_of(credential_id)
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

    def _share_of(self, credential_id: ObjectId) -> _Share:
        if (share := self._shares.get(credential_id)) is None:
            if len(self._shares) >= _MAX_SHARES:
                now = self._clock()
                self._shares = {
                    key: each
                    for key, each in self._shares.items()
                    if each.lock.locked() or max(each.expires, each.refused_until) > now
                }
            share = self._shares[credential_id] = _Share()
        return share

    def _is_decided(self, share: _Share) -> bool:
        """Return whether a request can be accepted or refused without the database."""
        now = self._clock()
        return (share.tokens > 0 and now < share.expires) or (share.tokens == 0 and now < share.refused_until)

    async def _take_share(self, credential_id: ObjectId, share: _Share) -> None:
        """Return the tokens that were not used, and take the tokens of another second."""
        returned, share.tokens = share.tokens, 0
        bucket = await upsert_not_durable(_buckets, self._services, credential_id, self._taking(returned))
        now = self._clock()
        share.tokens, share.expires = bucket["granted"], now + _SHARE_SECONDS
        share.bucket_tokens, share.read_at = bucket["tokens"], now
        if share.tokens == 0:
            share.refused_until = now + max(_SHARE_SECONDS, (1 - bucket["tokens"]) / self._per_second)

    def _taking(self, returned: int) -> list[Document]:
        """Return the update that refills a bucket by the clock of the database and takes up to one share."""
        per_millisecond = self._per_second / 1000
        elapsed = {"$subtract": ["$$NOW", {"$ifNull": ["$at", "$$NOW"]}]}
        refilled = {"$add": [{"$ifNull": ["$tokens", self.size]}, returned, {"$multiply": [elapsed, per_millisecond]}]}
        missing = {"$subtract": [self.size, "$tokens"]}
        until = {"$add": ["$$NOW", {"$toLong": {"$ceil": {"$divide": [missing, per_millisecond]}}}]}
        return [
            {"$set": {"tokens": {"$min": [self.size, refilled]}, "at": "$$NOW"}},
            {"$set": {"granted": {"$min": [self._share_size, {"$toInt": {"$floor": "$tokens"}}]}}},
            {"$set": {"tokens": {"$subtract": ["$tokens", "$granted"]}}},
            {"$set": {"until": until}},
        ]
