"""Relays in front of the members of a replica set, which cut a member off from clients and from other members.

The configuration of the replica set names the ports of the relays, so that all connections pass through them. A member
that is cut off is reached by nothing, and reaches no other member: its own connections are known by their local ports.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

_CHUNK_BYTES = 65_536
_TCP_TABLE = Path("/proc/net/tcp")


def local_ports(process_id: int) -> set[int]:
    """The ports from which a process has TCP connections, or at which it listens (IPv4)."""
    inodes = set()
    with suppress(OSError):  # it has ended
        for descriptor in Path(f"/proc/{process_id}/fd").iterdir():
            with suppress(OSError):  # it was closed
                inodes.add(str(descriptor.readlink()).removeprefix("socket:[").removesuffix("]"))
    lines = [line.split() for line in _TCP_TABLE.read_text().splitlines()[1:]]
    return {int(columns[1].rpartition(":")[2], 16) for columns in lines if columns[9] in inodes}


@dataclass
class Relay:
    """Forwards connections to a member. `target`: the port of the member; `process_id`: that of its process, or None.

    `sources` are the connections: the port of the caller, and what closes it.
    """

    target: int
    port: int = 0
    is_cut: bool = False
    process_id: Callable[[], int | None] = lambda: None
    sources: dict[int, Callable[[], None]] = field(default_factory=dict)


class Network:
    """The relays of all members, by their ports."""

    def __init__(self) -> None:
        self._relays: dict[int, Relay] = {}
        self._servers: list[asyncio.Server] = []
        self._handlers: set[asyncio.Task[object]] = set()

    async def add(self, target: int, process_id: Callable[[int], int | None]) -> int:
        """Start a relay of the member that listens on `target`; return the port of the relay.

        `process_id` is called with that port and returns the identifier of the member's process.
        """
        relay = Relay(target)

        async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            if (task := asyncio.current_task()) is not None:
                self._handlers.add(task)
                task.add_done_callback(self._handlers.discard)
            await self._handle(relay, reader, writer)

        server = await asyncio.start_server(handle, "127.0.0.1", 0)
        relay.port = server.sockets[0].getsockname()[1]
        relay.process_id = lambda: process_id(relay.port)
        self._servers.append(server)
        self._relays[relay.port] = relay
        return relay.port

    def cut(self, *ports: int) -> None:
        """Close all connections to and from the members at these relays, and refuse new ones."""
        for port in ports:
            self._relays[port].is_cut = True
        outgoing = self._cut_sources()
        for relay in self._relays.values():
            for source, close in list(relay.sources.items()):
                if relay.is_cut or source in outgoing:
                    close()

    def join(self) -> None:
        """Forward all connections again."""
        for relay in self._relays.values():
            relay.is_cut = False

    async def close(self) -> None:
        """End all relays, and wait for them: the end of the event loop would report each one that it cancels."""
        self.cut(*self._relays)
        for server in self._servers:
            server.close()
        await asyncio.gather(*self._handlers, return_exceptions=True)

    def _cut_sources(self) -> set[int]:
        """The ports of the connections that members that are cut off have begun."""
        cut = [relay.process_id() for relay in self._relays.values() if relay.is_cut]
        return set().union(*(local_ports(process_id) for process_id in cut if process_id is not None))

    def _is_refused(self, relay: Relay, source: int) -> bool:
        return relay.is_cut or (any(each.is_cut for each in self._relays.values()) and source in self._cut_sources())

    async def _handle(self, relay: Relay, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        source = writer.get_extra_info("peername")[1]
        if self._is_refused(relay, source):
            writer.transport.abort()
            return
        try:
            member_reader, member_writer = await asyncio.open_connection("127.0.0.1", relay.target)
        except OSError:
            writer.transport.abort()
            return

        def close() -> None:
            writer.transport.abort()
            member_writer.transport.abort()

        relay.sources[source] = close
        try:
            if not self._is_refused(relay, source):  # since then
                await _forward_both(reader, writer, member_reader, member_writer)
        finally:
            if relay.sources.get(source) is close:
                del relay.sources[source]
            close()


async def _forward_both(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    member_reader: asyncio.StreamReader,
    member_writer: asyncio.StreamWriter,
) -> None:
    """Forward until one of both ends is closed."""
    directions = [
        asyncio.create_task(_forward(reader, member_writer)),
        asyncio.create_task(_forward(member_reader, writer)),
    ]
    try:
        await asyncio.wait(directions, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for direction in directions:
            direction.cancel()
        await asyncio.gather(*directions, return_exceptions=True)


async def _forward(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError):
        while chunk := await source.read(_CHUNK_BYTES):
            target.write(chunk)
            await target.drain()
