"""A door before the database: the story sees every command that comes through, and may act at the one it waits for."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any

import bson

_HEADER = struct.Struct("<iiii")
_OP_MSG = 2013
Act = Callable[[], Awaitable[bool]]


@dataclass
class DateTime:
    """The `count`-th time that `command` is asked of `collection`: before it is carried out, or once it is `done`."""

    command: str
    collection: str | None = None
    count: int = 1
    done: bool = False
    session: Any = None

    def seen(self, message: bytes) -> bool:
        """Count it if it is one of these; whether it is the one."""
        if _HEADER.unpack_from(message)[3] != _OP_MSG:  # the first hello
            return False
        asked = bson.decode(message[21 : 21 + int.from_bytes(message[21:25], "little")])
        name, about = next(iter(asked.items()))
        if name == self.command and (self.collection is None or about == self.collection):
            self.count -= 1
            self.session = asked.get("lsid")
            return self.count == 0
        return False


class Wire:
    """Passes everything on. At an awaited moment `act` is called, which says whether it may go on; if not, that
    connection breaks. Once it is `cut`, no other can be had."""

    def __init__(self, host: str, port: int) -> None:
        self._there = host, port
        self._moment: DateTime | None = None
        self._act: Act | None = None
        self.reached = asyncio.Event()
        self._is_cut = False

    def wait_for(self, moment: DateTime, act: Act) -> None:
        """Have `act` called at that moment, once."""
        self.reached.clear()
        self._moment, self._act = moment, act

    async def cut(self) -> bool:
        """Let nothing through any more."""
        self._is_cut = True
        return False

    async def _at_moment(self) -> bool:
        act, self._moment, self._act = self._act, None, None
        assert act is not None
        self.reached.set()
        return await act()

    async def passing(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection, from its beginning to its end."""
        if self._is_cut:
            writer.transport.abort()
            return
        to_database = await asyncio.open_connection(*self._there)
        awaited: set[int] = set()
        ways = [
            asyncio.create_task(self._asking(reader, to_database[1], awaited)),
            asyncio.create_task(self._answering(to_database[0], writer, awaited)),
        ]
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)
            for end in (writer, to_database[1]):
                end.transport.abort()

    async def _asking(self, source: asyncio.StreamReader, target: asyncio.StreamWriter, awaited: set[int]) -> None:
        async for number, _, message in _messages(source):
            if self._moment is not None and self._moment.seen(message):
                if self._moment.done:
                    awaited.add(number)
                elif not await self._at_moment():
                    return
            target.write(message)
            await target.drain()

    async def _answering(self, source: asyncio.StreamReader, target: asyncio.StreamWriter, awaited: set[int]) -> None:
        async for _, answered, message in _messages(source):
            if answered in awaited and not await self._at_moment():
                return
            target.write(message)
            await target.drain()


async def _messages(reader: asyncio.StreamReader) -> AsyncIterator[tuple[int, int, bytes]]:
    """Each message's number, the number it answers, and its bytes."""
    with suppress(asyncio.IncompleteReadError, ConnectionError):
        while True:
            header = await reader.readexactly(_HEADER.size)
            length, number, answered, _ = _HEADER.unpack(header)
            yield number, answered, header + await reader.readexactly(length - _HEADER.size)


@asynccontextmanager
async def wire_to(uri: str) -> AsyncIterator[tuple[Wire, str]]:
    """A door before the database at `uri`, and the address of the door."""
    host, _, port = uri.removeprefix("mongodb://").partition("/")[0].partition(":")
    wire = Wire(host, int(port))
    server = await asyncio.start_server(wire.passing, "127.0.0.1", 0)
    try:
        yield wire, f"mongodb://127.0.0.1:{server.sockets[0].getsockname()[1]}/?directConnection=true"
    finally:
        server.close()
