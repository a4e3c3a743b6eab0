"""The sockets that the service listens on."""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass

from coaching_service.settings import Settings, SettingsError


@dataclass(frozen=True)
class Sockets:
    """The sockets of the API, and of the metrics if they have a port of their own."""

    api: socket.socket
    metrics: socket.socket | None = None

    def __enter__(self) -> Sockets:
        return self

    def __exit__(self, *_: object) -> None:
        self.api.close()
        if self.metrics is not None:
            self.metrics.close()


def bind(settings: Settings) -> tuple[Sockets, Settings]:
    """Reserve the ports, and return the sockets with the settings that have the port (0 becomes a free one).

    The sockets do not accept connections yet. Raises SettingsError if an address cannot be used.
    """
    api = _bind(settings.host, settings.port, "--host or --port")
    port = settings.metrics_port
    try:
        metrics = (
            None
            if port is None
            else _bind(settings.metrics_address or "127.0.0.1", port, "METRICS_PORT or METRICS_ADDRESS")
        )
    except SettingsError:
        api.close()
        raise
    return Sockets(api, metrics), settings.model_copy(update={"port": api.getsockname()[1]})


def _bind(host: str, port: int, setting: str) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    bound = socket.socket(family)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            bound.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        bound.bind((host, port))
    except OSError as error:
        bound.close()
        raise _cannot_listen(host, port, error, setting) from None
    return bound


def _cannot_listen(host: str, port: int, error: OSError, setting: str) -> SettingsError:
    # asyncio puts the address into its message, and only a name that does not resolve has no error number.
    reason = os.strerror(error.errno) if error.errno and error.errno > 0 else error.strerror
    return SettingsError(f"Cannot listen on {host}:{port} ({reason}): choose another with {setting}")
