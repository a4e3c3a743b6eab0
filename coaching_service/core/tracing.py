"""Spans: how long the parts of a request, a job or another piece of work take. Off by default, and then without cost.

The standard environment variables of OpenTelemetry turn it on (see `start_tracing`). Attributes are names of routes,
collections, jobs and hosts, never values that people have entered.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from functools import partial
from threading import Thread

import structlog
from opentelemetry.context import Context
from opentelemetry.trace import INVALID_SPAN, NoOpTracer, Span, SpanKind, StatusCode, Tracer
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from coaching_service import __version__
from coaching_service.core.errors import ServiceError

NO_TRACER = NoOpTracer()
_NO_SPAN = nullcontext(INVALID_SPAN)
_ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
_CLOSE_SECONDS = 1.0
log = structlog.get_logger("coaching_service.tracing")
_propagator = TraceContextTextMapPropagator()


def measure(
    tracer: Tracer,
    name: str,
    kind: SpanKind = SpanKind.INTERNAL,
    attributes: Mapping[str, str | int] | None = None,
    headers: Mapping[str, str] | None = None,
) -> AbstractContextManager[Span]:
    """Measure the block, as a part of the span around it or of the one that `headers` name (W3C `traceparent`)."""
    if tracer is NO_TRACER:
        return _NO_SPAN
    return _measure(tracer, name, None if headers is None else _propagator.extract(headers), kind, attributes)


@contextmanager
def _measure(
    tracer: Tracer, name: str, parent: Context | None, kind: SpanKind, attributes: Mapping[str, str | int] | None
) -> Iterator[Span]:
    with tracer.start_as_current_span(
        name, parent, kind, attributes, record_exception=False, set_status_on_exception=False
    ) as span:
        try:
            yield span
        except BaseException as error:  # only its class or code is recorded: its message may name people
            if isinstance(error, ServiceError) and error.status < 500:
                span.set_attribute("error.type", type(error).__name__)
            else:
                fail(span, getattr(error, "trace_reason", type(error).__name__))
            raise


def fail(span: Span, reason: str) -> None:
    """Mark the work as failed, for a reason with few values, such as the name of a class of errors."""
    span.set_attribute("error.type", reason)
    span.set_status(StatusCode.ERROR)


class TracingUnusable(Exception):
    """The environment turns tracing on in a way that is not supported; the message says what to change."""


def start_tracing(environment: Mapping[str, str]) -> tuple[Tracer, Callable[[], Awaitable[None]]]:
    """Return the tracer that the standard variables of OpenTelemetry describe, and what sends the rest at the end.

    `OTEL_EXPORTER_OTLP_ENDPOINT`, `OTEL_EXPORTER_OTLP_TRACES_ENDPOINT` or `OTEL_TRACES_EXPORTER=otlp` turn it on,
    `OTEL_TRACES_EXPORTER=none` and `OTEL_SDK_DISABLED=true` off: then it is NO_TRACER. Raises TracingUnusable.
    """
    exporter = environment.get("OTEL_TRACES_EXPORTER", "").strip().lower()
    has_endpoint = any(environment.get(name) for name in _ENDPOINTS)
    is_disabled = environment.get("OTEL_SDK_DISABLED", "").strip().lower() == "true"
    if is_disabled or exporter == "none" or not (exporter or has_endpoint):
        return NO_TRACER, partial(asyncio.sleep, 0)
    if exporter not in ("", "otlp"):
        raise TracingUnusable("OTEL_TRACES_EXPORTER must be otlp or none")
    for name in ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"):
        if environment.get(name, "http/protobuf") not in ("", "http/protobuf"):
            raise TracingUnusable(f"{name} must be http/protobuf: the service sends traces by HTTP")
    try:  # the SDK is only imported when tracing is on
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ModuleNotFoundError as error:
        if not (error.name or "").startswith("opentelemetry"):
            raise
        raise TracingUnusable(
            "Tracing needs packages that are not installed: pip install 'coaching-service[telemetry]', "
            "or unset the variables that begin with OTEL_"
        ) from None
    names = (environment.get("OTEL_SERVICE_NAME", ""), environment.get("OTEL_RESOURCE_ATTRIBUTES", ""))
    is_named = bool(names[0]) or "service.name=" in names[1]
    own = {"service.version": __version__} | ({} if is_named else {"service.name": "coaching-service"})
    # Not the global provider: no library reports what it handles.
    provider, sender = TracerProvider(resource=Resource.create(own), shutdown_on_exit=False), OTLPSpanExporter()
    provider.add_span_processor(BatchSpanProcessor(sender))
    sdk_log = logging.getLogger("opentelemetry")
    if not any(isinstance(handler, _ToLog) for handler in sdk_log.handlers):
        sdk_log.addHandler(_ToLog(logging.WARNING))
        sdk_log.propagate = False

    async def close() -> None:
        """Send what was measured; gives up after a second, and the rest is lost."""
        loop, is_closed = asyncio.get_running_loop(), asyncio.Event()

        def shut_down() -> None:
            provider.shutdown()
            with suppress(RuntimeError):  # the loop no longer waits, and is closed
                loop.call_soon_threadsafe(is_closed.set)

        Thread(target=shut_down, daemon=True).start()
        try:
            async with asyncio.timeout(_CLOSE_SECONDS):
                await is_closed.wait()
        except TimeoutError:
            # Ends its retries, and with them the thread.
            sender.shutdown()  # type: ignore[no-untyped-call]  # the exporter is partly untyped

    return provider.get_tracer("coaching_service", __version__), close


class _ToLog(logging.Handler):
    """Writes the SDK's messages to the log of the service."""

    def emit(self, record: logging.LogRecord) -> None:
        log.warning("traces are not sent", reason=record.getMessage()[:300])
