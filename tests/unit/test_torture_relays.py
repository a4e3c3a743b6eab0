"""The relays of `scripts/torture` cut a process off from the others, in both directions."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import suppress

import pytest

from tests.reliability.torture.relays import Network, local_ports
from tests.support.service_process import until


class Members:
    """Two servers that return what they are sent, behind relays; the first belongs to the process `first`."""

    def __init__(self) -> None:
        self.network = Network()
        self.ports: list[int] = []
        self.first: int | None = None
        self._servers: list[asyncio.Server] = []
        self._open: set[asyncio.StreamWriter] = set()

    async def start(self) -> None:
        for _ in range(2):
            server = await asyncio.start_server(self._echo, "127.0.0.1", 0)
            self._servers.append(server)
            target = server.sockets[0].getsockname()[1]
            self.ports.append(await self.network.add(target, self._process_of))

    async def close(self) -> None:
        """End all connections."""
        await self.network.close()
        for server in self._servers:
            server.close()
        await until(lambda: not self._open, "all connections are closed")

    async def _echo(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open.add(writer)
        with suppress(ConnectionError):
            while data := await reader.read(100):
                writer.write(data)
        writer.transport.abort()
        self._open.discard(writer)

    def _process_of(self, port: int) -> int | None:
        return self.first if port == self.ports[0] else None


class Connection:
    """A connection of this process through a relay."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    async def responds(self) -> bool:
        """Whether what is sent comes back; False once it is closed."""
        with suppress(ConnectionError):
            self._writer.write(b"x")
            if await self._reader.read(1) == b"x":
                return True
        self.close()
        return False

    def close(self) -> None:
        self._writer.transport.abort()


async def connect(port: int) -> Connection:
    return Connection(*await asyncio.open_connection("127.0.0.1", port))


async def accepts(port: int) -> bool:
    """Whether a new connection is forwarded."""
    connection = await connect(port)
    is_forwarded = await connection.responds()
    connection.close()
    return is_forwarded


@pytest.fixture
async def members() -> AsyncIterator[Members]:
    started = Members()
    await started.start()
    yield started
    await started.close()


async def test_nothing_reaches_a_member_that_is_cut_off(members: Members) -> None:
    first, second = [await connect(port) for port in members.ports]
    assert await first.responds()
    assert await second.responds()
    members.network.cut(members.ports[0])
    assert not await first.responds()
    assert not await accepts(members.ports[0])
    assert await second.responds(), "the caller is not the process that is cut off"
    assert await accepts(members.ports[1])
    members.network.join()
    assert await accepts(members.ports[0])
    second.close()


async def test_a_member_that_is_cut_off_reaches_no_other(members: Members) -> None:
    members.first = os.getpid()
    second = await connect(members.ports[1])
    assert await second.responds()
    members.network.cut(members.ports[0])
    assert not await second.responds()
    assert not await accepts(members.ports[1])
    members.network.join()
    assert await accepts(members.ports[1])


async def test_ports_of_a_process_are_its_own(members: Members) -> None:
    assert set(members.ports) <= local_ports(os.getpid())
    assert not set(members.ports) & local_ports(os.getppid())
