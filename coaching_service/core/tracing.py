"""Spans: how long the parts of a request, a job or another piece of work take. Off by default, and then without cost.

The standard environment variables of OpenTelemetry turn it on (see `make_tracer`). Attributes are names of routes,
collections, jobs and hosts, never values that people have entered.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from contextvars import ContextVar
from typing import Literal, Protocol, Self

SpanKind = Literal["server", "client", "consumer", "internal"]
Attributes = Mapping[str, str | int]
ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
# The trace of the running work, as 32 hexadecimal digits, for log lines.
trace_id: ContextVar[str | None] = ContextVar("trace_id", default=None)


class Span(Protocol):
    """One measured piece of work."""

    def set(self, name: str, value: str | int) -> None:
        """Set an attribute."""

    def fail(self, reason: str) -> None:
        """Mark the work as failed, for a reason with few values, such as the name of a class of errors."""


class CommandSpan(Protocol):
    """One measured command of the database, begun on one thread and ended on the same or another."""

    def fail(self, reason: str) -> None:
        """Mark the command as failed, for a reason with few values."""

    def end(self) -> None:
        """End the measurement."""


class Tracer(Protocol):
    """Measures pieces of work."""

    @property
    def is_on(self) -> bool:
        """Whether anything is measured."""

    def start_command(self, operation: str, collection: str | None) -> CommandSpan | None:
        """Begin to measure a command of the database; None outside of another span."""

    def span(
        self,
        name: str,
        kind: SpanKind = "internal",
        attributes: Attributes | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> AbstractContextManager[Span]:
        """Measure the block, as a part of the span around it or of the one that `headers` name (W3C `traceparent`)."""

    async def close(self) -> None:
        """Send what was measured; gives up after a second."""


class _NoSpan:
    """Measures nothing; one object for all."""

    __slots__ = ()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def set(self, name: str, value: str | int) -> None:
        """Does nothing."""

    def fail(self, reason: str) -> None:
        """Does nothing."""


_NO_SPAN = _NoSpan()


class NoTracer:
    """Tracing that is off."""

    is_on = False

    def start_command(self, operation: str, collection: str | None) -> CommandSpan | None:
        """Measures nothing."""
        return None

    def span(
        self,
        name: str,
        kind: SpanKind = "internal",
        attributes: Attributes | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> AbstractContextManager[Span]:
        """Measures nothing."""
        return _NO_SPAN

    async def close(self) -> None:
        """Does nothing."""


NO_TRACER = NoTracer()


class TracingUnusable(Exception):
    """The environment turns tracing on in a way that is not supported; the message says what to change."""


def make_tracer(environment: Mapping[str, str]) -> Tracer:
    """The tracer that the standard variables of OpenTelemetry describe; NO_TRACER unless they turn tracing on.

    `OTEL_EXPORTER_OTLP_ENDPOINT`, `OTEL_EXPORTER_OTLP_TRACES_ENDPOINT` or `OTEL_TRACES_EXPORTER=otlp` turn it on,
    `OTEL_TRACES_EXPORTER=none` and `OTEL_SDK_DISABLED=true` off. Raises TracingUnusable.
    """
    exporter = environment.get("OTEL_TRACES_EXPORTER", "").strip().lower()
    has_endpoint = any(environment.get(name) for name in ENDPOINTS)
    if environment.get("OTEL_SDK_DISABLED", "").strip().lower() == "true" or exporter == "none":
        return NO_TRACER
    if not exporter and not has_endpoint:
        return NO_TRACER
    if exporter not in ("", "otlp"):
        raise TracingUnusable("OTEL_TRACES_EXPORTER must be otlp or none")
    for name in ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"):
        if environment.get(name, "http/protobuf") not in ("", "http/protobuf"):
            raise TracingUnusable(f"{name} must be http/protobuf: the service sends traces by HTTP")
    try:
        from coaching_service.core.open_telemetry import OpenTelemetryTracer
    except ModuleNotFoundError as error:
        if not (error.name or "").startswith("opentelemetry"):
            raise
        raise TracingUnusable(
            "Tracing needs packages that are not installed: pip install 'coaching-service[telemetry]', "
            "or unset the variables that begin with OTEL_"
        ) from None
    return OpenTelemetryTracer(environment)
