"""One worker process, as the supervisor sees it."""

from __future__ import annotations

import asyncio
import json
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict
from typing import Protocol

from coaching_service.core.worker_connection import (
    MAX_MESSAGE_BYTES,
    Instructions,
    Message,
    encode,
)

_REPORT_SECONDS = 1.0


class Owner(Protocol):
    """Receives what workers do."""

    def on_end(self, worker: Worker) -> None:
        """Handle the end of the process."""

    async def total(self, asking: Worker, text: str) -> str:
        """Return the metrics of all workers; `text` has the metrics of the worker that asks."""


class Worker:
    """A process that serves requests.

    `metrics` as it reported them last. `is_expected_to_end` once it has been asked to end. `has_decided` is set
    when it serves requests or has ended.
    """

    def __init__(self, instructions: Instructions, owner: Owner) -> None:
        """Start the process. Raises OSError."""
        self.number = instructions.worker
        self.metrics = ""
        self.is_expected_to_end = False
        self.ready_at: float | None = None
        self.has_decided = asyncio.Event()
        self.has_ended = asyncio.Event()
        self._owner = owner
        self._has_reported = asyncio.Event()
        self._writer: asyncio.StreamWriter | None = None
        self._totals: set[asyncio.Task[None]] = set()
        own, its = socket.socketpair()
        sockets = [number for number in (instructions.listening, instructions.metrics_listening) if number is not None]
        with its:
            own.sendall(encode(asdict(instructions)))
            command = [sys.executable, "-m", "coaching_service", "serve", "--worker-socket", str(its.fileno())]
            self._process = subprocess.Popen(  # noqa: S603 - our own program
                command,
                stdin=subprocess.DEVNULL,
                pass_fds=(its.fileno(), *sockets),
                process_group=0,  # Ctrl-C in the terminal must only reach the supervisor
            )
        self._following = asyncio.create_task(self._follow(own))
        loop = asyncio.get_running_loop()
        threading.Thread(target=self._wait, args=(loop, self._report_end), daemon=True).start()

    @property
    def pid(self) -> int:
        """The number of the process."""
        return self._process.pid

    @property
    def exit_code(self) -> int:
        """The exit code once it has ended; the negative number of the signal that has ended it."""
        return self._process.returncode

    def describe_end(self) -> str:
        """Return why the process has ended."""
        code = self._process.returncode
        if code >= 0:
            return f"exit code {code}"
        with suppress(ValueError):
            return f"signal {signal.Signals(-code).name}"
        return f"signal {-code}"

    async def becomes_ready(self) -> bool:
        """Wait until the worker serves requests or has ended; returns whether it serves them."""
        await self.has_decided.wait()
        return self.ready_at is not None and not self.has_ended.is_set()

    def retire(self) -> None:
        """Let the process end once it has answered its requests; others have to serve new connections."""
        self.is_expected_to_end = True
        self._send({"kind": "retire"})

    def stop(self, number: signal.Signals = signal.SIGTERM) -> None:
        """Let the process end as on SIGTERM, or by another signal."""
        self.is_expected_to_end = True
        if self._process.poll() is None:
            self._process.send_signal(number)

    async def ends_within(self, seconds: float) -> bool:
        """Wait until the process has ended; returns whether it has."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self.has_ended.wait()
        return self.has_ended.is_set()

    async def report(self) -> str:
        """Return the metrics of the process: the last ones if it does not respond."""
        if self.ready_at is None or self.has_ended.is_set():
            return self.metrics
        self._has_reported.clear()
        self._send({"kind": "report"})
        with suppress(TimeoutError):
            async with asyncio.timeout(_REPORT_SECONDS):
                await self._has_reported.wait()
        return self.metrics

    def _wait(self, loop: asyncio.AbstractEventLoop, then: Callable[[], None]) -> None:
        self._process.wait()
        with suppress(RuntimeError):  # the supervisor has ended meanwhile
            loop.call_soon_threadsafe(then)

    def _report_end(self) -> None:
        async def report() -> None:
            await asyncio.wait((self._following,), timeout=_REPORT_SECONDS)  # for its last metrics
            self.has_ended.set()
            self.has_decided.set()
            self._has_reported.set()
            self._owner.on_end(self)

        self._ending = asyncio.create_task(report())

    async def _follow(self, own: socket.socket) -> None:
        """Read what the process sends, until it closes the connection."""
        reader, self._writer = await asyncio.open_unix_connection(sock=own, limit=MAX_MESSAGE_BYTES)
        with suppress(ConnectionError):
            async for line in reader:
                self._receive(json.loads(line))
        self._writer.close()

    def _receive(self, message: Message) -> None:
        if message["kind"] == "ready":
            self.ready_at = time.monotonic()
            self.has_decided.set()
        elif message["kind"] == "metrics":
            self.metrics = message["text"]
            self._has_reported.set()
        else:
            self.metrics = message["text"]
            task = asyncio.create_task(self._answer(message["number"], message["text"]))
            self._totals.add(task)
            task.add_done_callback(self._totals.discard)

    async def _answer(self, number: int, text: str) -> None:
        self._send({"kind": "total", "number": number, "text": await self._owner.total(self, text)})

    def _send(self, message: Message) -> None:
        if self._writer is not None and not self._writer.is_closing():
            self._writer.write(encode(message))
