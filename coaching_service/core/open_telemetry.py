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

from coaching_service import __version__
from coaching_service.core.errors import ServiceError
from coaching_service.core.tracing import Attributes, CommandSpan, Span, SpanKind, trace_id

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

    def end(self) -> None:
        """End the measurement."""
        self._span.end()


class OpenTelemetryTracer:
    """Measures pieces of work, and sends what was measured in the background."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        names = (environment.get("OTEL_SERVICE_NAME", ""), environment.get("OTEL_RESOURCE_ATTRIBUTES", ""))
        is_named = bool(names[0]) or "service.name=" in names[1]
        own = {"service.version": __version__} | ({} if is_named else {"service.name": "coaching-service"})
        self._provider = TracerProvider(resource=Resource.create(own), shutdown_on_exit=False)
        self._exporter = OTLPSpanExporter()
        self._provider.add_span_processor(BatchSpanProcessor(self._exporter))
        self._tracer = self._provider.get_tracer("coaching_service", __version__)
        _report_failures()

    @property
    def is_on(self) -> bool:
        """Always: without tracing, NO_TRACER is used."""
        return True

    def start_command(self, operation: str, collection: str | None) -> CommandSpan | None:
        """Begin a span with the name of the command and its collection; None outside of another span."""
        if not trace.get_current_span().get_span_context().is_valid:
            return None
        attributes = {"db.system.name": "mongodb", "db.operation.name": operation}
        if collection is not None:
            attributes["db.collection.name"] = collection
        title = operation if collection is None else f"{operation} {collection}"
        return _Span(self._tracer.start_span(title, kind=Kind.CLIENT, attributes=attributes))

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
        try:
            async with asyncio.timeout(_CLOSE_SECONDS):
                await is_closed.wait()
        except TimeoutError:
            # Ends its retries, and with them the thread.
            self._exporter.shutdown()  # type: ignore[no-untyped-call]  # the exporter is partly untyped


class _ToLog(logging.Handler):
    """Writes the SDK's messages to the log of the service."""

    def emit(self, record: logging.LogRecord) -> None:
        log.warning("traces are not sent", reason=record.getMessage()[:300])


def _report_failures() -> None:
    sdk_log = logging.getLogger("opentelemetry")
    if not any(isinstance(handler, _ToLog) for handler in sdk_log.handlers):
        sdk_log.addHandler(_ToLog(logging.WARNING))
        sdk_log.propagate = False
