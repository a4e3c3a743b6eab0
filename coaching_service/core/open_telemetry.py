"""Sending spans by HTTP with the SDK of OpenTelemetry. It is only imported when tracing is on.

The SDK reads the standard environment variables by itself: endpoint, headers, sampler, batches, resource. The global
provider is left alone, so that no library reports what it handles.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from functools import partial
from threading import Thread

import structlog
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import Tracer

from coaching_service import __version__

_CLOSE_SECONDS = 1.0
log = structlog.get_logger("coaching_service.tracing")


def start_sending(environment: Mapping[str, str]) -> tuple[Tracer, Callable[[], Awaitable[None]]]:
    """Return a tracer whose spans are sent in the background, and what sends the rest at the end."""
    names = (environment.get("OTEL_SERVICE_NAME", ""), environment.get("OTEL_RESOURCE_ATTRIBUTES", ""))
    is_named = bool(names[0]) or "service.name=" in names[1]
    own = {"service.version": __version__} | ({} if is_named else {"service.name": "coaching-service"})
    provider = TracerProvider(resource=Resource.create(own), shutdown_on_exit=False)
    exporter = OTLPSpanExporter()
    provider.add_span_processor(BatchSpanProcessor(exporter))
    _report_failures()
    return provider.get_tracer("coaching_service", __version__), partial(_close, provider, exporter)


async def _close(provider: TracerProvider, exporter: OTLPSpanExporter) -> None:
    """Send what was measured; gives up after a second, and the rest is lost."""
    loop, is_closed = asyncio.get_running_loop(), asyncio.Event()

    def close() -> None:
        provider.shutdown()
        with suppress(RuntimeError):  # the loop no longer waits, and is closed
            loop.call_soon_threadsafe(is_closed.set)

    Thread(target=close, daemon=True).start()
    try:
        async with asyncio.timeout(_CLOSE_SECONDS):
            await is_closed.wait()
    except TimeoutError:
        # Ends its retries, and with them the thread.
        exporter.shutdown()  # type: ignore[no-untyped-call]  # the exporter is partly untyped


class _ToLog(logging.Handler):
    """Writes the SDK's messages to the log of the service."""

    def emit(self, record: logging.LogRecord) -> None:
        log.warning("traces are not sent", reason=record.getMessage()[:300])


def _report_failures() -> None:
    sdk_log = logging.getLogger("opentelemetry")
    if not any(isinstance(handler, _ToLog) for handler in sdk_log.handlers):
        sdk_log.addHandler(_ToLog(logging.WARNING))
        sdk_log.propagate = False
