"""What was sent and answered: the basis of the verification and of the report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

# How often a write may be stored: one that was answered (`ONCE`), one sent once and not answered (`AT_MOST_ONCE`), and one
# sent once whose response says that nothing was changed (`NEVER`).
ONCE, AT_MOST_ONCE, NEVER = (1,), (0, 1), (0,)
Times = tuple[int, ...]


@dataclass(frozen=True)
class Exchange:
    """One request. `node`: the process of the service; `status`: of its response, None if there was none.

    Times in seconds of the monotonic clock.
    """

    node: int
    operation: str
    is_write: bool
    began: float
    ended: float
    status: int | None

    @property
    def is_successful_write(self) -> bool:
        return self.is_write and self.status is not None and self.status < 300

    @property
    def is_failure(self) -> bool:
        """Whether the response says that the service could not do it."""
        return self.status is not None and self.status >= 500


@dataclass(frozen=True)
class Readiness:
    """One response of /readyz of a process. Times in seconds."""

    node: int
    began: float
    ended: float
    is_ready: bool


@dataclass
class Fault:
    """A fault; times in seconds of the monotonic clock.

    `limit_seconds`: the longest pause of successful writes, from the beginning of the fault; if it is an `outage`, in
    which no write can succeed, from its end (`lifted`). `killed`: the processes of the service that were killed.
    `over`: when the time to recover ended.
    """

    name: str
    limit_seconds: float
    outage: bool = False
    began: float = 0.0
    lifted: float = 0.0
    over: float = 0.0
    killed: tuple[int, ...] = ()


@dataclass(frozen=True)
class Move:
    """An item that was sent from the first of two blocks of a client to the second; `times`: how often it may be."""

    client: str
    item: str
    blocks: tuple[str, str]
    times: Times


@dataclass(frozen=True)
class Log:
    """The repetitions that were logged for an item of a client's block."""

    client: str
    item: str
    reps: int


@dataclass(frozen=True)
class BulkMessage:
    """A message to several clients; `times`: how often it may be stored for each, the same for all of them."""

    marker: str
    clients: Sequence[str]
    times: Times


@dataclass(frozen=True)
class Assignment:
    """A program that was assigned to a client who had no workouts; `times`: how often."""

    client: str
    times: Times


@dataclass(frozen=True)
class Photo:
    """A photo of a client who had none; `times`: how often it may be stored."""

    client: str
    times: Times


@dataclass(frozen=True)
class Import:
    """An imported file of clients with these names, of an import that ended."""

    names: Sequence[str]


@dataclass
class Ledger:
    """All exchanges and faults, and what must, or may, be stored.

    `notes`: how often each note may be stored. `groups`: clients that were added to each group. `unplanned`: responses
    that no fault explains.
    """

    exchanges: list[Exchange] = field(default_factory=list)
    readiness: list[Readiness] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    unplanned: list[str] = field(default_factory=list)
    replayed: int = 0

    notes: dict[str, Times] = field(default_factory=dict)
    moves: list[Move] = field(default_factory=list)
    logs: list[Log] = field(default_factory=list)
    groups: dict[str, set[str]] = field(default_factory=dict)
    messages: list[BulkMessage] = field(default_factory=list)
    assignments: list[Assignment] = field(default_factory=list)
    photos: list[Photo] = field(default_factory=list)
    imports: list[Import] = field(default_factory=list)
    deleted_clients: list[str] = field(default_factory=list)

    def statuses(self) -> Counter[str]:
        """How often each status was received."""
        return Counter(str(exchange.status or "no response") for exchange in self.exchanges)
