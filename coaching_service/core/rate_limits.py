"""Counters of attempts in MongoDB, so that a limit holds across processes and restarts; time is the database's."""

from __future__ import annotations

import math
from datetime import datetime, timedelta
from typing import Any, TypedDict

from coaching_service.core.database.connection import Index
from coaching_service.core.database.context import Context, Services
from coaching_service.core.database.documents import Document, Documents
from coaching_service.core.database.portable import NotExported
from coaching_service.core.database.sharding import Unsharded
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
