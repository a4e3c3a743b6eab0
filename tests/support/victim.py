"""Another process of the service, at which a story may do its worst: it is reached, and ended, from outside."""

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

from coaching_service.settings import Settings
from tests.support.client import CoachClient
from tests.support.service_process import environment, until
from tests.support.wire import Wire, wire_to


@dataclass
class Victim:
    """Another process of the service on the same database, behind a door of the story's."""

    process: subprocess.Popen[bytes]
    wire: Wire
    base_url: str
    http: aiohttp.ClientSession

    async def send(self, method: str, path: str, **options: Any) -> int | None:
        """The status of the answer; None when the connection broke before there was one."""
        try:
            async with self.http.request(method, self.base_url + path, **options) as response:
                await response.read()
                return response.status
        except aiohttp.ClientConnectionError:
            return None

    def speak_for(self, coach: CoachClient) -> None:
        """Use this coach's key from now on."""
        self.http.headers["X-API-Key"] = str(coach.key)

    async def killed(self) -> bool:
        """End it, so that it can do nothing more."""
        self.process.kill()
        await until(lambda: self.process.poll() is not None, "it has ended")
        return False

    async def cut_off(self) -> bool:
        """Break its connection to the database."""
        return False


@asynccontextmanager
async def running(settings: Settings, key: str | None, folder: Path) -> AsyncIterator[Victim]:
    """A victim, spoken to with a coach's key."""
    async with wire_to(str(settings.mongodb_uri)) as (wire, uri):
        with _spawned(settings, uri, folder) as process:
            try:
                assert process.stdout is not None
                address = (await asyncio.to_thread(process.stdout.readline)).decode().split()[1]
                async with aiohttp.ClientSession(headers={"X-API-Key": str(key)}) as http:
                    yield Victim(process, wire, address, http)
            finally:
                process.kill()


def _spawned(settings: Settings, uri: str, folder: Path) -> subprocess.Popen[bytes]:
    keys = ",".join(settings.secret_keys)
    variables = environment(MONGODB_URI=uri, MONGODB_DATABASE=settings.mongodb_database, SECRET_KEYS=keys)
    command = [sys.executable, "-m", "coaching_service", "serve", "--port", "0", "--data", str(folder)]
    return subprocess.Popen(command, env=variables | {"LOG_LEVEL": "critical"}, stdout=subprocess.PIPE)
