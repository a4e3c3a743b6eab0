"""Limits of HTTP connections: how many, how long for request headers, and the file descriptors they need."""

from __future__ import annotations

import resource
from collections import Counter
from dataclasses import dataclass, field

import structlog

log = structlog.get_logger("coaching_service")

_MAX_DESCRIPTORS = 65_536
_RESERVED_DESCRIPTORS = 128  # for database connections, temporary files and the media worker
_WARNING_SHARE, _CALM_SHARE = 0.8, 0.7


@dataclass
class ConnectionLimits:
    """The connections of one server, and their limits.

    `maximum`: open connections in total. `per_address`: open connections of one network address, None for no limit
    (behind a proxy all of them share one). `header_seconds`: time for the headers of a request.
    `keepalive_seconds`: time a connection may be idle between requests.
    """

    maximum: int = 4000
    per_address: int | None = 256
    header_seconds: float = 10.0
    keepalive_seconds: float = 75.0
    _addresses: Counter[str] = field(default_factory=Counter, init=False)
    _open: int = field(default=0, init=False)
    _has_warned: bool = field(default=False, init=False)

    def admit(self, address: str) -> bool:
        """Count a new connection and return True, or return False if a limit is reached."""
        if self._open >= self.maximum or (
            self.per_address is not None and self._addresses[address] >= self.per_address
        ):
            return False
        self._open += 1
        self._addresses[address] += 1
        self._warn_when_nearly_full()
        return True

    def release(self, address: str) -> None:
        """Count an admitted connection as closed."""
        self._open -= 1
        self._addresses[address] -= 1
        if not self._addresses[address]:
            del self._addresses[address]
        if self._open < self.maximum * _CALM_SHARE:
            self._has_warned = False

    def _warn_when_nearly_full(self) -> None:
        if not self._has_warned and self._open >= self.maximum * _WARNING_SHARE:
            self._has_warned = True
            log.warning("connections near their limit", open=self._open, maximum=self.maximum)


def raise_descriptor_limit(connections: int) -> int:
    """Raise the soft limit of open files as far as allowed, and return how many connections fit into it.

    Logs a warning if fewer than `connections` fit.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _MAX_DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, _MAX_DESCRIPTORS)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        soft = wanted
    available = connections if soft == resource.RLIM_INFINITY else max(1, soft - _RESERVED_DESCRIPTORS)
    if available < connections:
        log.warning("the limit of open files is below MAX_CONNECTIONS", open_files=soft, max_connections=connections)
    return min(available, connections)
