"""Structured logs: JSON lines for machines, colours for a terminal."""

from __future__ import annotations

import logging
import sys

import orjson
import structlog
from opentelemetry.trace import format_trace_id, get_current_span
from structlog.typing import EventDict


def configure(log_format: str, level: str, worker: int | None = None) -> None:
    """Send the service's log to standard error. `log_format`: `json`, `console`, or `auto` (console on a terminal).

    `worker`: the number of this worker process, which each line has.
    """

    def add_worker(_logger: object, _method: str, entry: EventDict) -> EventDict:
        entry["worker"] = worker
        return entry

    pretty = log_format == "console" or (log_format == "auto" and sys.stderr.isatty())
    # Not the renderer's own choice, which also prints local variables: passwords and keys are among them.
    console = structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback)
    json_lines = structlog.processors.JSONRenderer(serializer=orjson.dumps)
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            add_trace_id,
            *([] if worker is None else [add_worker]),
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            *([console] if pretty else [structlog.processors.format_exc_info, json_lines]),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelNamesMapping()[level.upper()]),
        logger_factory=(
            structlog.PrintLoggerFactory(sys.stderr) if pretty else structlog.BytesLoggerFactory(sys.stderr.buffer)
        ),
        cache_logger_on_first_use=False,
    )


def add_trace_id(_logger: object, _method: str, entry: EventDict) -> EventDict:
    """Add the trace of the running work to a log entry, if tracing is on: a processor of structlog."""
    if (context := get_current_span().get_span_context()).is_valid:
        entry["trace_id"] = format_trace_id(context.trace_id)
    return entry
