"""Tracing with OpenTelemetry, sent by HTTP. It is only imported when tracing is on.

The SDK reads the standard environment variables by itself: endpoint, headers, sampler, batches, resource. The global
provider is left alone, so that no library reports what it handles.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from threading import Thread

import structlog
from opentelemetry import context as contexts
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import SpanKind as Kind
from opentelemetry.trace import StatusCode, format_trace_id
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
from pymongo.monitoring import CommandFailedEvent, CommandListener, CommandStartedEvent, CommandSucceededEvent

from coaching_service import __version__
from coaching_service.core.errors import ServiceError
from coaching_service.core.tracing import Attributes, Span, SpanKind, trace_id

_KINDS = {"server": Kind.SERVER, "client": Kind.CLIENT, "consumer": Kind.CONSUMER, "internal": Kind.INTERNAL}
_CLOSE_SECONDS = 1.0
_propagator = TraceContextTextMapPropagator()
log = structlog.get_logger("coaching_service.tracing")


class _Span:
    """One measured piece of work, whose reason for failing is an attribute."""

    __slots__ = ("_span", "has_failed")

    def __init__(self, span: trace.Span) -> None:
        self._span = span
        self.has_failed = False

    def set(self, name: str, value: str | int) -> None:
        """Set an attribute."""
        self._span.set_attribute(name, value)

    def fail(self, reason: str) -> None:
        """Mark the work as failed."""
        self.has_failed = True
        self._span.set_attribute("error.type", reason)
        self._span.set_status(StatusCode.ERROR)


class OpenTelemetryTracer:
    """Measures pieces of work, and sends what was measured in the background."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        names = (environment.get("OTEL_SERVICE_NAME", ""), environment.get("OTEL_RESOURCE_ATTRIBUTES", ""))
        is_named = bool(names[0]) or "service.name=" in names[1]
        own = {"service.version": __version__} | ({} if is_named else {"service.name": "coaching-service"})
        self._provider = TracerProvider(resource=Resource.create(own), shutdown_on_exit=False)
        self._provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
        self._tracer = self._provider.get_tracer("coaching_service", __version__)
        self.command_listeners = (_CommandTracer(self._tracer),)
        _report_failures()

    @contextmanager
    def span(
        self,
        name: str,
        kind: SpanKind = "internal",
        attributes: Attributes | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Iterator[Span]:
        """Measure the block. Of an error that ends it only the class is recorded: its message may name people."""
        parent = None if headers is None else _propagator.extract(headers)
        started = self._tracer.start_span(name, parent, _KINDS[kind], attributes)
        span = _Span(started)
        attached = contexts.attach(trace.set_span_in_context(started, parent))
        named = trace_id.set(format_trace_id(started.get_span_context().trace_id))
        try:
            yield span
        except BaseException as error:
            if isinstance(error, ServiceError) and error.status < 500:
                span.set("error.type", type(error).__name__)
            elif not span.has_failed:
                span.fail(type(error).__name__)
            raise
        finally:
            trace_id.reset(named)
            contexts.detach(attached)
            started.end()

    async def close(self) -> None:
        """Send what was measured; gives up after a second, and the rest is lost."""
        loop, is_closed = asyncio.get_running_loop(), asyncio.Event()

        def close() -> None:
            self._provider.shutdown()
            with suppress(RuntimeError):  # the loop no longer waits, and is closed
                loop.call_soon_threadsafe(is_closed.set)

        Thread(target=close, daemon=True).start()
        with suppress(TimeoutError):
            async with asyncio.timeout(_CLOSE_SECONDS):
                await is_closed.wait()


class _CommandTracer(CommandListener):
    """Measures the commands that are sent inside of a span: their names and collections, not what they contain."""

    def __init__(self, tracer: trace.Tracer) -> None:
        self._tracer = tracer
        self._running: dict[int, trace.Span] = {}

    def started(self, event: CommandStartedEvent) -> None:
        """Begin a span."""
        if not trace.get_current_span().get_span_context().is_valid:
            return
        name = event.command_name
        collection = event.command.get("collection" if name == "getMore" else name)
        attributes = {"db.system.name": "mongodb", "db.operation.name": name}
        if isinstance(collection, str):
            attributes["db.collection.name"] = collection
        title = f"{name} {collection}" if isinstance(collection, str) else name
        self._running[event.request_id] = self._tracer.start_span(title, kind=Kind.CLIENT, attributes=attributes)

    def succeeded(self, event: CommandSucceededEvent) -> None:
        """End the span."""
        if (span := self._running.pop(event.request_id, None)) is not None:
            span.end()

    def failed(self, event: CommandFailedEvent) -> None:
        """End the span with the code of the error: its message may quote values."""
        if (span := self._running.pop(event.request_id, None)) is not None:
            failure = event.failure
            _Span(span).fail(str(failure.get("codeName") or failure.get("code") or failure.get("errtype") or "unknown"))
            span.end()


class _ToLog(logging.Handler):
    """Writes the SDK's messages to the log of the service."""

    def emit(self, record: logging.LogRecord) -> None:
        log.warning("traces are not sent", reason=record.getMessage()[:300])


def _report_failures() -> None:
    sdk_log = logging.getLogger("opentelemetry")
    if not any(isinstance(handler, _ToLog) for handler in sdk_log.handlers):
        sdk_log.addHandler(_ToLog(logging.WARNING))
        sdk_log.propagate = False
