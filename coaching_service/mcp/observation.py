"""Metrics and log lines of tool calls: which tool, which application, and with what outcome. All labels are bounded."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal

import structlog

from coaching_service.core.database.context import Context
from coaching_service.core.metrics import Metrics

# denied: not permitted; rejected: invalid arguments, not found or a conflict; proposed: has to be confirmed;
# declined: by the user; failed: by an error of the service.
Outcome = Literal["done", "denied", "rejected", "proposed", "declined", "failed"]
# Applications by what their names contain, the first that fits.
_APPLICATIONS = {
    "claude-code": re.compile(r"claude.?code"),
    "claude": re.compile(r"claude|anthropic"),
    "chatgpt": re.compile(r"chatgpt|openai|codex"),
    "cursor": re.compile(r"cursor"),
    "vscode": re.compile(r"visual studio code|vs.?code|copilot"),
    "gemini": re.compile(r"gemini|google"),
    "inspector": re.compile(r"inspector"),
    "mcp-remote": re.compile(r"mcp.remote"),
    "fastmcp": re.compile(r"fastmcp"),
    "python": re.compile(r"python|httpx|aiohttp"),
    "node": re.compile(r"\bnode|undici|typescript"),
}
log = structlog.get_logger("coaching_service.mcp")


def classify_application(*names: str | None) -> str:
    """Return the known application that one of the names belongs to, the first name first; else `other`."""
    for name in names:
        for application, pattern in _APPLICATIONS.items():
            if name and pattern.search(name[:200].lower()):
                return application
    return "other"


@dataclass
class Observation:
    """A tool call that is being observed."""

    outcome: Outcome = "failed"


@contextmanager
def observing(metrics: Metrics, ctx: Context, tool: str, application: str) -> Iterator[Observation]:
    """Count a tool call, and write its log line, with the outcome that was set."""
    observation, started = Observation(), time.perf_counter()
    try:
        yield observation
    finally:
        seconds = time.perf_counter() - started
        metrics.tool_calls.labels(tool, application, observation.outcome).inc()
        metrics.tool_seconds.labels(tool).observe(seconds)
        log.info(
            "tool called",
            tool=tool,
            application=application,
            outcome=observation.outcome,
            ms=round(seconds * 1000, 1),
            company=str(ctx.company_id),
            request_id=ctx.request_id,
        )
