"""Whether a request that fails may have changed something, which its caller has to know before they repeat it.

The driver reports each command that it sends. A write outside of a transaction, and a commit, belong to the request in
whose context they are sent. An error response then says that nothing was changed, or that the outcome is unknown.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

from pymongo.monitoring import CommandFailedEvent, CommandListener, CommandStartedEvent, CommandSucceededEvent

from coaching_service.core.errors import OutcomeUnknown, ServiceError, Unavailable

_COMMIT, _FIND_AND_MODIFY = "commitTransaction", "findAndModify"
_WRITES = frozenset({"insert", "update", "delete", _FIND_AND_MODIFY})
_TRANSIENT = "TransientTransactionError"
# Collections whose writes alone change nothing that a caller asked for, such as counters and unused files.
incidental_collections: set[str] = set()


@dataclass
class _Outcome:
    """What the database has reported of the writes of a request.

    `unanswered` are the commands without a response, or with one that does not say whether they were executed.
    `has_key`: the request can be repeated safely with its idempotency key.
    """

    has_written: bool = False
    has_key: bool = False
    unanswered: set[int] = field(default_factory=set)


_current: ContextVar[_Outcome | None] = ContextVar("outcome", default=None)


def begin() -> None:
    """Begin a request: the writes of this context belong to it from now on."""
    _current.set(_Outcome())


def mark_repeatable() -> None:
    """Record that the request has an idempotency key, with which it can be repeated safely."""
    if (outcome := _current.get()) is not None:
        outcome.has_key = True


@contextmanager
def incidental() -> Iterator[None]:
    """Ignore the writes of the block, which no caller asks for, such as when a key was last used."""
    token = _current.set(None)
    try:
        yield
    finally:
        _current.reset(token)


def reported(error: ServiceError) -> ServiceError:
    """Return the error to report for one of a request that changes something: OutcomeUnknown if it may have."""
    outcome = _current.get()
    if outcome is None or not isinstance(error, Unavailable):
        return error
    return OutcomeUnknown(outcome.has_key) if outcome.has_written or outcome.unanswered else error


class WriteObserver(CommandListener):
    """Records the writes of each request. The driver calls it in the context of the operation.

    `uncertain`: the codes of errors after which a write may have been executed.
    """

    def __init__(self, uncertain: Collection[int]) -> None:
        self._uncertain = uncertain
        self._running: dict[int, _Outcome] = {}

    def started(self, event: CommandStartedEvent) -> None:
        """Record a command that may change something: it is about to be sent."""
        outcome, name, command = _current.get(), event.command_name, event.command
        # A write outside of a transaction, and of a collection that callers change.
        is_write = name in _WRITES and "autocommit" not in command and command[name] not in incidental_collections
        if outcome is not None and (name == _COMMIT or is_write):
            outcome.unanswered.add(event.request_id)
            self._running[event.request_id] = outcome

    def succeeded(self, event: CommandSucceededEvent) -> None:
        """Record whether the command has changed something."""
        if (outcome := self._running.pop(event.request_id, None)) is None:
            return
        if "writeConcernError" in event.reply:
            return
        outcome.unanswered.discard(event.request_id)
        result = event.reply.get("lastErrorObject", {}) if event.command_name == _FIND_AND_MODIFY else event.reply
        if event.command_name == _COMMIT or result.get("n", 0):
            outcome.has_written = True

    def failed(self, event: CommandFailedEvent) -> None:
        """Record a command that certainly changed nothing; the outcome of others is unknown."""
        if (outcome := self._running.pop(event.request_id, None)) is None:
            return
        code = event.failure.get("code")
        if event.command_name == _COMMIT:  # a router may report a code of a shard that has committed
            is_certain = _TRANSIENT in event.failure.get("errorLabels", ())
        else:
            is_certain = isinstance(code, int) and code not in self._uncertain
        if is_certain:
            outcome.unanswered.discard(event.request_id)
