"""The connection of a worker process with its supervisor: a socket that the worker inherits, with a JSON object a line.

The first line is for the worker and has its instructions. Then the worker sends `ready` once, and `metrics` when it is
asked for them with `report`, and when it ends. With `total` it asks for the metrics of all workers, and gets `total`.
`retire` lets it end. If the connection ends, the supervisor has ended.
"""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from itertools import count
from typing import Any

from coaching_service.core.background import running_in_background
from coaching_service.core.errors import Unavailable

MAX_MESSAGE_BYTES = 1 << 25  # metrics of a worker are less than 1 MB
_RETIRE_SECONDS = 30.0
_TOTAL_SECONDS = 5.0
Message = dict[str, Any]


@dataclass(frozen=True)
class Instructions:
    """What a worker needs to start.

    `worker` is its number, from 1. `listening` and `metrics_listening` are the numbers of its inherited sockets. With
    `prepares` it prepares the database; with `listens_at_once` it responds, with 503, before it is ready. `embedded`
    is the address of the supervisor's database; the others replace settings of the environment.
    """

    worker: int
    listening: int
    metrics_listening: int | None
    prepares: bool
    listens_at_once: bool
    with_demo: bool
    embedded: str | None
    host: str
    port: int
    data_dir: str


def retire_seconds(shutdown_seconds: float) -> float:
    """Return how long a worker that is replaced answers requests on its open connections, before it stops as usual."""
    return max(_RETIRE_SECONDS, shutdown_seconds)


def encode(message: Message) -> bytes:
    """Return a message as it is sent."""
    return json.dumps(message).encode() + b"\n"


class SupervisorConnection:
    """The connection of this worker with its supervisor."""

    def __init__(self, descriptor: int) -> None:
        """Receive the instructions on the socket with this number. Raises ConnectionError."""
        self._socket = socket.socket(fileno=descriptor)
        self._socket.set_inheritable(False)
        self.instructions = Instructions(**json.loads(self._receive_line()))
        self._writer: asyncio.StreamWriter | None = None
        self._numbers = count(1)
        self._asked: dict[int, asyncio.Future[str]] = {}

    def _receive_line(self) -> bytes:
        line = b""
        while not line.endswith(b"\n"):
            received = self._socket.recv(4096)
            if not received:
                raise ConnectionError("the supervisor has ended")
            line += received
        return line

    @asynccontextmanager
    async def following(
        self, report: Callable[[], str], retire: Callable[[], None], lose: Callable[[], None]
    ) -> AsyncIterator[None]:
        """Follow the supervisor while the context is open.

        `report` returns the metrics of this process, which are also sent at the end. `retire` is called when the
        process has to end although the service goes on, `lose` when the supervisor has ended.
        """
        reader, self._writer = await asyncio.open_unix_connection(sock=self._socket, limit=MAX_MESSAGE_BYTES)

        async def follow() -> None:
            with suppress(ConnectionError):
                async for line in reader:
                    message = json.loads(line)
                    if message["kind"] == "retire":
                        retire()
                    elif message["kind"] == "report":
                        self._send({"kind": "metrics", "text": report()})
                    elif (asked := self._asked.pop(message["number"], None)) is not None and not asked.done():
                        asked.set_result(message["text"])
            lose()

        try:
            async with running_in_background(follow):
                yield
        finally:
            self._send({"kind": "metrics", "text": report()})
            with suppress(ConnectionError):
                await self._writer.drain()
            self._writer.close()

    def report_ready(self) -> None:
        """Tell the supervisor that this worker responds to requests."""
        self._send({"kind": "ready"})

    async def add_others(self, text: str) -> str:
        """Return the metrics `text` of this process with the metrics of all others. Raises Unavailable."""
        number = next(self._numbers)
        total: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._asked[number] = total
        try:
            self._send({"kind": "total", "number": number, "text": text})
            async with asyncio.timeout(_TOTAL_SECONDS):
                return await total
        except TimeoutError:
            raise Unavailable("The supervisor does not respond") from None
        finally:
            self._asked.pop(number, None)

    def _send(self, message: Message) -> None:
        if self._writer is not None and not self._writer.is_closing():
            self._writer.write(encode(message))
