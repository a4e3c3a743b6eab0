"""What was sent and answered: the basis of the verification and of the report."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Exchange:
    """One request. `status`: of its response; None if there was none. Times in seconds of the monotonic clock."""

    operation: str
    is_write: bool
    began: float
    ended: float
    status: int | None

    @property
    def is_successful_write(self) -> bool:
        return self.is_write and self.status is not None and self.status < 300


@dataclass(frozen=True)
class Fault:
    """A fault, and the longest time in which writes may not succeed after it; `began` in seconds."""

    name: str
    began: float
    limit_seconds: float


@dataclass
class Ledger:
    """All exchanges and faults, and what must, or may, be stored.

    `once`: markers of writes that were answered 2xx, or repeated until they were. `at_most_once`: markers of writes
    that were sent once and not answered 2xx.
    """

    exchanges: list[Exchange] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    readiness: list[tuple[float, bool]] = field(default_factory=list)
    once: dict[str, str] = field(default_factory=dict)
    at_most_once: dict[str, str] = field(default_factory=dict)
    moved_items: dict[str, list[str]] = field(default_factory=dict)
    logged_items: dict[str, int] = field(default_factory=dict)
    bulk_groups: dict[str, list[str]] = field(default_factory=dict)
    assignments: dict[str, dict[str, Any]] = field(default_factory=dict)
    photos: dict[str, str] = field(default_factory=dict)
    deleted_clients: list[str] = field(default_factory=list)
    unplanned: list[str] = field(default_factory=list)

    def statuses(self) -> Counter[str]:
        """How often each status was received."""
        return Counter(str(exchange.status or "no response") for exchange in self.exchanges)

    def recovery_seconds(self, fault: Fault) -> float | None:
        """The time from a fault to the first write that was begun after it and succeeded; None if none did."""
        ended = [each.ended for each in self.exchanges if each.is_successful_write and each.began >= fault.began]
        return min(ended) - fault.began if ended else None

    def longest_seconds(self, *, failed: bool) -> float:
        """The longest time of a request that failed, or of one that succeeded."""
        chosen = [
            each.ended - each.began
            for each in self.exchanges
            if (each.status is None or each.status >= 500) == failed and each.status is not None
        ]
        return max(chosen, default=0.0)

    def longest_wrong_readiness_seconds(self) -> float:
        """The longest time for which /readyz was 200 at each check while no write of anyone succeeded."""
        successes = sorted(each.ended for each in self.exchanges if each.is_successful_write)
        longest, since = 0.0, None
        position = 0
        for moment, is_ready in self.readiness:
            while position < len(successes) and successes[position] <= moment:
                position += 1
                since = None if not is_ready else successes[position - 1]
            since = None if not is_ready else (moment if since is None else since)
            longest = max(longest, moment - since if since is not None else 0.0)
        return longest
