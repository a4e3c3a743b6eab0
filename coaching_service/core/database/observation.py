"""What the driver reports of its connections and commands, as metrics and as spans."""

from __future__ import annotations

from opentelemetry.trace import Span, SpanKind, Tracer, get_current_span
from pymongo.monitoring import (
    CommandFailedEvent,
    CommandListener,
    CommandStartedEvent,
    CommandSucceededEvent,
    ConnectionCheckedInEvent,
    ConnectionCheckedOutEvent,
    ConnectionCheckOutFailedEvent,
    ConnectionCheckOutStartedEvent,
    ConnectionClosedEvent,
    ConnectionCreatedEvent,
    ConnectionPoolListener,
)

from coaching_service.core.metrics import DATABASE_COMMANDS, Metrics
from coaching_service.core.tracing import fail


class CommandObserver(CommandListener):
    """Measures the commands of a client, those excepted that wait for new documents on purpose."""

    def __init__(self, metrics: Metrics) -> None:
        self._seconds = {name: metrics.command_seconds.labels(name) for name in DATABASE_COMMANDS}
        self._other = self._seconds["other"]
        self._waiting: set[int] = set()

    def started(self, event: CommandStartedEvent) -> None:
        """Remember the reads of change streams: only they limit the time of a getMore."""
        if event.command_name == "getMore" and "maxTimeMS" in event.command:
            self._waiting.add(event.request_id)

    def succeeded(self, event: CommandSucceededEvent | CommandFailedEvent) -> None:
        """Measure a command, also one that failed."""
        if event.request_id in self._waiting:
            self._waiting.discard(event.request_id)
            return
        self._seconds.get(event.command_name, self._other).observe(event.duration_micros / 1_000_000)

    failed = succeeded


class CommandTracer(CommandListener):
    """Traces the commands of a client inside of other spans: their names and collections, not what they contain."""

    def __init__(self, tracer: Tracer) -> None:
        self._tracer = tracer
        self._running: dict[int, Span] = {}

    def started(self, event: CommandStartedEvent) -> None:
        """Begin a span with the name of the command and its collection."""
        if not get_current_span().get_span_context().is_valid:
            return
        title = name = event.command_name
        attributes = {"db.system.name": "mongodb", "db.operation.name": name}
        if isinstance(collection := event.command.get("collection" if name == "getMore" else name), str):
            title, attributes["db.collection.name"] = f"{name} {collection}", collection
        self._running[event.request_id] = self._tracer.start_span(title, kind=SpanKind.CLIENT, attributes=attributes)

    def succeeded(self, event: CommandSucceededEvent) -> None:
        """End the span."""
        if (span := self._running.pop(event.request_id, None)) is not None:
            span.end()

    def failed(self, event: CommandFailedEvent) -> None:
        """End the span with the code of the error: its message may quote values."""
        if (span := self._running.pop(event.request_id, None)) is not None:
            failure = event.failure
            fail(span, str(failure.get("codeName") or failure.get("code") or failure.get("errtype") or "unknown"))
            span.end()


class ConnectionObserver(ConnectionPoolListener):
    """Counts the connections of a client.

    The driver calls it on many threads, for each command: adding to these collections takes no lock.
    """

    def __init__(self, metrics: Metrics) -> None:
        self._open: set[tuple[object, int]] = set()
        self._in_use: set[tuple[object, int]] = set()
        self._waiting: list[None] = []
        metrics.connections_open.set_function(lambda: len(self._open))
        metrics.connections_in_use.set_function(lambda: len(self._in_use))
        metrics.connections_waiting.set_function(lambda: len(self._waiting))

    def connection_created(self, event: ConnectionCreatedEvent) -> None:
        """Count a connection that is being established."""
        self._open.add((event.address, event.connection_id))

    def connection_closed(self, event: ConnectionClosedEvent) -> None:
        """Count a connection that was closed."""
        self._open.discard((event.address, event.connection_id))
        self._in_use.discard((event.address, event.connection_id))

    def connection_check_out_started(self, event: ConnectionCheckOutStartedEvent) -> None:
        """Count an operation that needs a connection."""
        self._waiting.append(None)

    def connection_check_out_failed(self, event: ConnectionCheckOutFailedEvent) -> None:
        """Count a command that failed without a reply."""
        self._waiting.pop()

    def connection_checked_out(self, event: ConnectionCheckedOutEvent) -> None:
        """It got one."""
        self._waiting.pop()
        self._in_use.add((event.address, event.connection_id))

    def connection_checked_in(self, event: ConnectionCheckedInEvent) -> None:
        """Count an operation that is over."""
        self._in_use.discard((event.address, event.connection_id))

    def pool_created(self, event: object) -> None:
        """Ignore what happens to the pool: the connections are reported as well."""

    pool_ready = pool_cleared = pool_closed = connection_ready = pool_created
