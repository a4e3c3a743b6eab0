"""What each request of the newer era of MCP has."""

from __future__ import annotations

from typing import Any

MODERN = "2026-07-28"


def envelope(capabilities: dict[str, Any] | None = None) -> dict[str, Any]:
    """The metadata of every request of the newer era, with the client's capabilities."""
    return {
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientInfo": {"name": "a test", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": capabilities or {},
    }
