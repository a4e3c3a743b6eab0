"""The real service as a child process, on a folder of its own."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar, overload

import aiohttp

SETTINGS = (
    *("HOST", "PORT", "BASE_URL", "DATA_DIR", "MONGODB_URI", "MONGODB_DATABASE", "SECRET_KEYS", "METRICS_PORT"),
    *("LOG_FORMAT", "LOG_LEVEL", "WORKERS", "MAX_BODY_BYTES", "DATABASE_CONCURRENCY"),
)
T = TypeVar("T")


@overload
async def until(
    condition: Callable[[], Awaitable[T | None]], what: str, seconds: float = 120.0, pause: float | None = None
) -> T: ...
@overload
async def until(
    condition: Callable[[], T | None], what: str, seconds: float = 120.0, pause: float | None = None
) -> T: ...
async def until(
    condition: Callable[[], object], what: str, seconds: float = 120.0, pause: float | None = None
) -> object:
    """Wait until `condition` returns a true value, and return it; the only place where these tests wait.

    Without `pause` it looks again after a quarter of the time that it has waited, at the latest after a quarter of a
    second: looking takes processor time from what it waits for.
    """
    began = time.monotonic()
    while True:
        outcome = condition()
        if value := await outcome if isinstance(outcome, Awaitable) else outcome:
            return value
        waited = time.monotonic() - began
        assert waited < seconds, f"{what}: not within {seconds} s"
        await asyncio.sleep(min(max(waited / 4, 0.02), 0.25) if pause is None else pause)


def command(folder: Path, *arguments: str) -> list[str]:
    """Return the command that starts the service on a folder."""
    return [
        sys.executable,
        "-m",
        "coaching_service",
        "serve",
        "--demo",
        "--port",
        "0",
        "--data",
        str(folder),
        *arguments,
    ]


def environment(**settings: str) -> dict[str, str]:
    """This process's environment with these settings of the service, and no others; webhooks may be on this machine."""
    inherited = {name: value for name, value in os.environ.items() if name not in SETTINGS}
    return {**inherited, "WORKERS": "1", "WEBHOOKS_ALLOW_HTTP": "true", "WEBHOOKS_ALLOW_PRIVATE": "true", **settings}


def refused(folder: Path, *arguments: str, **settings: str) -> str:
    """Start the service with invalid settings, and return the one sentence it ends with (exit code 1)."""
    result = subprocess.run(
        command(folder, *arguments),
        env=environment(**({"LOG_LEVEL": "error"} | settings)),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (result.returncode, result.stdout) == (1, ""), result
    assert result.stderr.startswith("Error: "), result.stderr
    assert result.stderr.count("\n") == 1, result.stderr
    return result.stderr.removeprefix("Error: ").strip()


def mongods_of(folder: Path) -> list[int]:
    """Return the identifiers of the mongod processes on the database of a folder."""
    process_ids = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            arguments = (process / "cmdline").read_bytes().split(b"\0")
        except OSError:  # it has ended since
            continue
        if b"--dbpath" in arguments and str(folder / "mongodb").encode() in arguments:
            process_ids.append(int(process.name))
    return process_ids


class Service:
    """A service with the demo company that can be started several times on the same folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._process: subprocess.Popen[str] | None = None
        self._http: aiohttp.ClientSession | None = None

    @property
    def facts(self) -> dict[str, str]:
        """The contents of demo.json."""
        facts: dict[str, str] = json.loads((self.folder / "demo.json").read_text())
        return facts

    @property
    def printed(self) -> str:
        """What the process has printed since its start."""
        return self.folder.with_suffix(".out").read_text()

    @property
    def logged(self) -> str:
        """The lines that the process has logged since its start, without one that it is still writing."""
        text = self.folder.with_suffix(".err").read_text()
        return text[: text.rfind("\n") + 1]

    async def start(self, *arguments: str, **settings: str) -> None:
        """Start, and wait until demo.json is written: the last thing a start does.

        Connections to the previous process are closed only now, because a test may still have been using them.
        """
        await self.hang_up()
        before = self._written()
        process = self._process = self._spawn(*arguments, **settings)

        def started() -> bool:
            assert process.poll() is None, f"ended with {process.returncode}: {self.logged}"
            return self._written() != before

        await until(started, "the service has started")
        await self.hang_up_and_connect()

    def _spawn(self, *arguments: str, **settings: str) -> subprocess.Popen[str]:
        with self.folder.with_suffix(".out").open("w") as out, self.folder.with_suffix(".err").open("w") as err:
            return subprocess.Popen(
                command(self.folder, *arguments),
                env=environment(**settings),
                stdin=subprocess.DEVNULL,  # not a terminal, whose end sends SIGHUP
                stdout=out,
                stderr=err,
                text=True,
            )

    def _written(self) -> tuple[int, int] | None:
        file = self.folder / "demo.json"
        return (file.stat().st_ino, file.stat().st_mtime_ns) if file.exists() else None

    async def call(
        self, method: str, path: str, body: Any = None, *, status: int = 200, headers: dict[str, str] | None = None
    ) -> Any:
        """Send a request with the demo company's key, assert its status and return the JSON of the response."""
        assert self._http is not None
        async with self._http.request(method, path, json=body, headers=headers) as response:
            text = await response.text()
            assert response.status == status, text
            return json.loads(text) if response.content_type == "application/json" else text

    async def create(self, name: str) -> str:
        """Create a client and return its identifier."""
        created = await self.call("POST", "/coach/customers", {"name": name}, status=201)
        return str(created["_id"])

    async def customers(self) -> dict[str, str]:
        """The name of every client, by identifier."""
        names: dict[str, str] = {}
        page = 1
        while page:
            answer = await self.call("GET", f"/coach/customers?archived=false&pageSize=50&pageNum={page}")
            names |= {each["_id"]: each["name"] for each in answer["docs"]}
            page = answer["nextPage"]
        return names

    async def hang_up(self) -> None:
        """Close our connections."""
        if self._http is not None:
            await self._http.close()
            self._http = None

    async def hang_up_and_connect(self) -> None:
        """Close our connections, and use new ones."""
        await self.hang_up()
        self._http = aiohttp.ClientSession(self.facts["baseUrl"], headers={"X-API-Key": self.facts["apiKey"]})

    def send_signal(self, number: int) -> None:
        """Send a signal."""
        assert self._process is not None
        self._process.send_signal(number)

    async def end(self, number: int = signal.SIGTERM) -> int:
        """Send a signal, wait for the service to end and return its exit code."""
        self.send_signal(number)
        return await self.ended()

    async def ended(self) -> int:
        """Wait for the service to end and return its exit code."""
        assert self._process is not None
        process, self._process = self._process, None
        await until(lambda: process.poll() is not None, "the service has ended")
        return process.returncode

    async def clean_up(self) -> None:
        """Stop the service if it is still running."""
        if self._process is not None:
            await self.end(signal.SIGKILL)
        await self.hang_up()
        await until(lambda: not mongods_of(self.folder), "no database is left")
