"""A replica set of three mongods that can be killed, frozen, cut off and made to step down."""

from __future__ import annotations

import asyncio
import signal
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import Any

from pymongo import MongoClient
from pymongo.errors import PyMongoError

from coaching_service.installation.embedded import find_mongod
from tests.reliability.replica_set import NAME, ReplicaSet, free_port, hello, initiate
from tests.reliability.torture.relays import Network
from tests.support.service_process import until

MEMBERS = 3
# As docs/deployment.md recommends.
ELECTION_SECONDS = 5
SETTINGS = {"electionTimeoutMillis": 5000, "catchUpTimeoutMillis": 1000, "heartbeatIntervalMillis": 500}
PARAMETER = "oplogFetcherSteadyStateMaxFetcherRestarts=0"


class Members(ReplicaSet):
    """The members by the ports of their relays, each with a folder of its own."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._folder, self._network = folder, Network()
        self._folders: dict[int, Path] = {}
        self._targets: dict[int, int] = {}

    async def start_all(self) -> None:
        """Start all members behind relays and configure the replica set."""
        for number in range(MEMBERS):
            target = free_port()
            port = await self._network.add(target, self._process_id)
            self._folders[port], self._targets[port] = self._folder / f"mongod{number}", target
            self.start(port)
        await asyncio.to_thread(initiate, *self._folders, settings=SETTINGS)
        await self.find_primary()

    def start(self, *ports: int) -> None:
        """Start members on the data they had."""
        options = ["--bind_ip", "127.0.0.1", "--nounixsocket", "--quiet", "--oplogSize", "512", "--replSet", NAME]
        options += ["--setParameter", PARAMETER]
        for port in ports:
            folder, target = self._folders[port], self._targets[port]
            folder.mkdir(parents=True, exist_ok=True)
            command = [find_mongod(), "--dbpath", str(folder), "--port", str(target), *options]
            with (folder.with_suffix(".log")).open("ab") as log:
                self.members[port] = subprocess.Popen([*command, "--wiredTigerCacheSizeGB", "0.25"], stdout=log)

    async def find_primary(self) -> int:
        """The port of the primary, once there is one."""
        return await asyncio.to_thread(self.primary)

    async def find_secondaries(self) -> list[int]:
        """The ports of the others."""
        primary = await self.find_primary()
        return [port for port in self.members if port != primary]

    async def all_respond(self) -> None:
        """Wait until all members respond."""

        async def respond() -> bool:
            return all([await asyncio.to_thread(hello, port) for port in self.members])

        await until(respond, "all members respond")

    def kill(self, *ports: int) -> None:
        """Kill members as a power failure would."""
        for port in ports:
            self.members[port].kill()
            self.members[port].wait()

    def step_down(self, port: int) -> None:
        """Make the primary a secondary."""
        client = MongoClient[dict[str, Any]]("127.0.0.1", self._targets[port], directConnection=True)
        with client, suppress(PyMongoError):  # the connection may be closed
            client.admin.command({"replSetStepDown": 20, "secondaryCatchUpPeriodSecs": 5})

    def cut_off(self, *ports: int) -> None:
        """Cut members off from clients and from other members."""
        self._network.cut(*ports)

    def release(self) -> None:
        """Continue frozen members and connect those that are cut off."""
        self._network.join()
        for member in self.members.values():
            member.send_signal(signal.SIGCONT)

    async def close(self) -> None:
        """End all members, also frozen ones."""
        for member in self.members.values():
            member.send_signal(signal.SIGCONT)
            member.kill()
            member.wait()
        await self._network.close()

    def _process_id(self, port: int) -> int | None:
        member = self.members.get(port)
        return None if member is None else member.pid
