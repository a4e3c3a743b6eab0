"""A database and processes of the service on it, which can be killed and started again one by one."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Collection
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp

from coaching_service import runtime
from coaching_service.core.auth import new_master_key
from coaching_service.core.database.context import Context, Services
from coaching_service.people import api_keys, team
from coaching_service.settings import Settings
from tests.reliability.replica_set import NAME, free_port, initiate, running_member
from tests.support.drill import database_of, require_whole
from tests.support.service_process import environment, until


@dataclass
class Node:
    """A process of the service, on the same port after each start; `variables` are further settings.

    `code` is the folder of another version's package.
    """

    folder: Path
    settings: Settings
    key: str
    port: int = field(default_factory=free_port)
    process: subprocess.Popen[bytes] | None = None
    variables: dict[str, str] = field(default_factory=dict)
    code: Path | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def logged(self) -> str:
        """What the process has logged since its last start."""
        return self.folder.with_suffix(".err").read_text()

    async def start(self) -> None:
        """Start, and wait until it is ready: on a machine with ten times the load of its processors, for minutes."""
        self.begin()
        await until(self.is_ready, "the service is ready", 600)

    def begin(self) -> None:
        """Start, and do not wait."""
        self.process = self._spawn()

    def _spawn(self) -> subprocess.Popen[bytes]:
        variables = environment(
            **database_of(self.settings),
            LOG_FORMAT="json",
            **({"PYTHONPATH": str(self.code)} if self.code else {}),
            **self.variables,
        )
        command = [sys.executable, "-m", "coaching_service", "serve"]
        current = self.folder.with_suffix(".err")
        if current.exists():
            with self.folder.with_suffix(".earlier.err").open("ab") as earlier:
                earlier.write(current.read_bytes())
        with current.open("w") as log:
            return subprocess.Popen(
                [*command, "--port", str(self.port), "--data", str(self.folder)],
                cwd=self.code,
                env=variables,
                stdout=subprocess.DEVNULL,
                stderr=log,
            )

    async def is_ready(self) -> bool:
        async with aiohttp.ClientSession() as http:
            try:
                async with http.get(f"{self.url}/readyz") as response:
                    return response.status == 200
            except aiohttp.ClientConnectionError:
                return False

    async def require_whole(self, *, allowed: Collection[str] = ()) -> None:
        """Require that the service is whole."""
        await require_whole(self.url, self.key, allowed=allowed, **database_of(self.settings))

    async def end(self, number: int = signal.SIGTERM) -> int:
        """Send a signal, wait until the process has ended and return its exit code."""
        process, self.process = self.process, None
        assert process is not None
        process.send_signal(number)
        return await asyncio.to_thread(process.wait)

    @asynccontextmanager
    async def session(self, connections: int) -> AsyncIterator[aiohttp.ClientSession]:
        """Connections with the company's key."""
        connector = aiohttp.TCPConnector(limit=connections)
        timeout = aiohttp.ClientTimeout(total=60)
        headers = {"X-API-Key": self.key}
        async with aiohttp.ClientSession(self.url, connector=connector, headers=headers, timeout=timeout) as http:
            yield http


class Deployment:
    """One mongod, and services on it with a company."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._port = free_port()
        self._mongod = ExitStack()
        self._member: subprocess.Popen[bytes] | None = None
        self.nodes: list[Node] = []
        self.key = ""
        uri = f"mongodb://127.0.0.1:{self._port}/?replicaSet={NAME}"
        self.settings = Settings(
            mongodb_uri=uri, mongodb_database="changes", secret_keys=(new_master_key(),), data_dir=folder / "none"
        )

    def start_database(self) -> None:
        self._member = self._mongod.enter_context(running_member(self._folder / "database", self._port))

    def kill_database(self) -> None:
        """Kill mongod, and start it again on the same data."""
        assert self._member is not None
        os.kill(self._member.pid, signal.SIGKILL)
        self._mongod.close()
        self.start_database()

    def close(self) -> None:
        """End everything."""
        for node in self.nodes:
            if node.process is not None:
                node.process.kill()
                node.process.wait()
        self._mongod.close()

    def add_node(self, **variables: str) -> Node:
        node = Node(self._folder / f"node{len(self.nodes)}", self.settings, self.key, variables=variables)
        self.nodes.append(node)
        return node


@asynccontextmanager
async def deployed(folder: Path) -> AsyncIterator[tuple[Deployment, Services]]:
    """A deployment without a running service, and access to its database."""
    async with AsyncExitStack() as stack:
        deployment = Deployment(folder)
        stack.callback(deployment.close)
        deployment.start_database()
        await asyncio.to_thread(initiate, deployment._port)
        services = await stack.enter_async_context(runtime.open_services(deployment.settings))
        await until(lambda: _has_indexes(services), "the database accepts writes")
        owner = await team.create_company(Context(services), "Changes", "Olga", "olga@changes.test", "no hash")
        deployment.key = (await api_keys.create(Context(services).acting_as(owner), "Test"))["key"]
        yield deployment, services


async def _has_indexes(services: Services) -> Any:
    try:
        return await runtime.make_indexes(services)
    except Exception:  # noqa: BLE001 - there is no primary yet
        return None
