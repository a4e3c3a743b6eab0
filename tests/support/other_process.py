"""The service behind a proxy of its database: in this process, or in another, which a test can kill."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
from aiohttp import web
from aiohttp.test_utils import TestServer
from yarl import URL

from coaching_service import runtime
from coaching_service.app import create_app
from coaching_service.http_server import Runner
from coaching_service.settings import Settings
from tests.support.client import CoachClient
from tests.support.database_proxy import DatabaseProxy, proxy_to
from tests.support.drill import database_of
from tests.support.service_process import environment, until


@dataclass
class Proxied:
    """A service that reaches the database of the tests through a proxy."""

    proxy: DatabaseProxy
    base_url: str
    http: aiohttp.ClientSession

    async def send(self, method: str, path: str, **options: Any) -> int | None:
        """Return the status of the response; None if the connection broke before there was one."""
        try:
            async with self.http.request(method, self.base_url + path, **options) as response:
                await response.read()
                return response.status
        except aiohttp.ClientConnectionError:
            return None

    def act_for(self, coach: CoachClient) -> None:
        """Send this coach's key from now on."""
        self.http.headers["X-API-Key"] = str(coach.key)

    def act_for_session(self, coach: CoachClient) -> None:
        """Send the headers of this coach's session from now on."""
        del self.http.headers["X-API-Key"]
        self.http.headers.update(coach.headers)

    def make_url(self, path: str) -> URL:
        """Return the URL of a path."""
        return URL(self.base_url + path)

    async def disconnect(self) -> bool:
        """Break its connection to the database; returns that the proxied command must not continue."""
        return False


@dataclass
class OtherProcess(Proxied):
    """Another process of the service."""

    process: subprocess.Popen[bytes]

    async def kill(self) -> bool:
        """Kill the process, by the same return value as `disconnect`."""
        self.process.kill()
        await until(lambda: self.process.poll() is not None, "it has ended")
        return False


class AsServed(TestServer):
    """The server that operators run: unlike aiohttp's test server, it continues a write whose caller disconnects."""

    async def _make_runner(self, **options: Any) -> Runner:
        return Runner(self.app, **(options | {"handler_cancellation": False}))

    def all_disconnected(self) -> bool:
        """Whether all connections are closed."""
        assert self.runner is not None and isinstance(self.runner.server, web.Server)
        return not any(each.transport for each in self.runner.server.connections)


@asynccontextmanager
async def proxied(settings: Settings, key: str | None) -> AsyncIterator[Proxied]:
    """Run another application with its own connections in this process; requests to it have a coach's key."""
    async with proxy_to(str(settings.mongodb_uri)) as (proxy, uri):
        own = settings.model_copy(update={"mongodb_uri": uri})
        async with (
            runtime.open_services(own) as services,
            AsServed(create_app(own, services)) as server,
            aiohttp.ClientSession(headers={"X-API-Key": str(key)}) as http,
        ):
            yield Proxied(proxy, str(server.make_url("")).rstrip("/"), http)


@asynccontextmanager
async def running(settings: Settings, key: str | None, folder: Path, **variables: str) -> AsyncIterator[OtherProcess]:
    """Run another process with these variables; requests to it have a coach's key."""
    async with proxy_to(str(settings.mongodb_uri)) as (proxy, uri):
        with _spawned(settings, uri, folder, variables) as process:
            try:
                assert process.stdout is not None
                address = (await asyncio.to_thread(process.stdout.readline)).decode().split()[1]
                async with aiohttp.ClientSession(headers={"X-API-Key": str(key)}) as http:
                    yield OtherProcess(proxy, address, http, process)
            finally:
                process.kill()


def _spawned(settings: Settings, uri: str, folder: Path, further: dict[str, str]) -> subprocess.Popen[bytes]:
    variables = environment(**database_of(settings) | {"MONGODB_URI": uri})
    command = [sys.executable, "-m", "coaching_service", "serve", "--port", "0", "--data", str(folder)]
    return subprocess.Popen(command, env=variables | further | {"LOG_LEVEL": "critical"}, stdout=subprocess.PIPE)
