"""A proxy of the database: a test can act when a certain command or its response passes through."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import bson

_HEADER = struct.Struct("<iiii")
_OP_MSG = 2013
Act = Callable[[], Awaitable[bool]]


@dataclass
class Moment:
    """The `count`-th `command` on `collection`: before it is sent, or with `done` before its response is returned.

    With `of` it counts in sessions that have used that collection: the commit that stores messages, not any other.
    """

    command: str
    collection: str | None = None
    count: int = 1
    done: bool = False
    session: Any = None
    of: str | None = None
    _sessions: list[Any] = field(default_factory=list)

    def matches(self, message: bytes) -> bool:
        """Count the message if it is such a command; returns whether it is the one to wait for."""
        if _HEADER.unpack_from(message)[3] != _OP_MSG:  # the first message of a connection
            return False
        command = bson.decode(message[21 : 21 + int.from_bytes(message[21:25], "little")])
        name, about = next(iter(command.items()))
        if self.of is not None and about == self.of:
            self._sessions.append(command.get("lsid"))
        if self.of is not None and command.get("lsid") not in self._sessions:
            return False
        if name == self.command and (self.collection is None or about == self.collection):
            self.count -= 1
            self.session = command.get("lsid")
            return self.count == 0
        return False


class DatabaseProxy:
    """Forwards every message. At the moment waited for `act` is called, which returns whether to continue.

    If not, that connection breaks. After `cut` no other is accepted.
    """

    def __init__(self, host: str, port: int) -> None:
        self._database = host, port
        self._moment: Moment | None = None
        self._act: Act | None = None
        self.reached = asyncio.Event()
        self._is_cut = False
        self._connections: set[asyncio.Task[None]] = set()

    def wait_for(self, moment: Moment, act: Act) -> None:
        """Call `act` at that moment, once."""
        self.reached.clear()
        self._moment, self._act = moment, act

    async def cut(self) -> bool:
        """Break the connection that is at the moment, and accept no others."""
        self._is_cut = True
        return False

    async def _reach_moment(self) -> bool:
        act, self._moment, self._act = self._act, None, None
        assert act is not None
        self.reached.set()
        return await act()

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Handle one connection until it ends."""
        connection = asyncio.current_task()
        assert connection is not None
        self._connections.add(connection)
        try:
            if not self._is_cut:
                await self._forward(reader, writer)
        except asyncio.CancelledError:
            pass  # the streams of asyncio would log it
        finally:
            self._connections.discard(connection)
            writer.transport.abort()

    async def end(self) -> None:
        """Break all connections."""
        for connection in (connections := list(self._connections)):
            connection.cancel()
        await asyncio.gather(*connections)

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        to_database = await asyncio.open_connection(*self._database)
        awaited: set[int] = set()
        directions = [
            asyncio.create_task(self._forward_commands(reader, to_database[1], awaited)),
            asyncio.create_task(self._forward_responses(to_database[0], writer, awaited)),
        ]
        try:
            await asyncio.wait(directions, return_when=asyncio.FIRST_COMPLETED)
        finally:
            to_database[1].transport.abort()
            for direction in directions:
                direction.cancel()
            await asyncio.gather(*directions, return_exceptions=True)

    async def _forward_commands(
        self, source: asyncio.StreamReader, target: asyncio.StreamWriter, awaited: set[int]
    ) -> None:
        async for number, _, message in _messages(source):
            if self._moment is not None and self._moment.matches(message):
                if self._moment.done:
                    awaited.add(number)
                elif not await self._reach_moment():
                    return
            target.write(message)
            await target.drain()

    async def _forward_responses(
        self, source: asyncio.StreamReader, target: asyncio.StreamWriter, awaited: set[int]
    ) -> None:
        async for _, responds_to, message in _messages(source):
            if responds_to in awaited and not await self._reach_moment():
                return
            target.write(message)
            await target.drain()


async def _messages(reader: asyncio.StreamReader) -> AsyncIterator[tuple[int, int, bytes]]:
    """Yield of each message its number, the number of the message it responds to, and its bytes."""
    with suppress(asyncio.IncompleteReadError, ConnectionError):
        while True:
            header = await reader.readexactly(_HEADER.size)
            length, number, responds_to, _ = _HEADER.unpack(header)
            yield number, responds_to, header + await reader.readexactly(length - _HEADER.size)


async def _stop_accepting(server: asyncio.Server) -> None:
    """Close a server. What it has accepted becomes a connection first: asyncio would leave its socket open."""
    for listening in server.sockets:
        asyncio.get_running_loop().remove_reader(listening.fileno())
    for _ in range(3):  # to the transport, to its protocol, to the task that handles it
        await asyncio.sleep(0)
    server.close()


@asynccontextmanager
async def proxy_to(uri: str) -> AsyncIterator[tuple[DatabaseProxy, str]]:
    """Run a proxy of the database at `uri`; yields the proxy and its URI."""
    host, _, port = uri.removeprefix("mongodb://").partition("/")[0].partition(":")
    proxy = DatabaseProxy(host, int(port))
    server = await asyncio.start_server(proxy.handle, "127.0.0.1", 0)
    try:
        yield proxy, f"mongodb://127.0.0.1:{server.sockets[0].getsockname()[1]}/?directConnection=true"
    finally:
        await _stop_accepting(server)
        await proxy.end()
