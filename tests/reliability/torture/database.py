"""A replica set of three mongods that can be killed, started again, frozen and made to step down."""

from __future__ import annotations

import signal
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import Any

from pymongo import MongoClient
from pymongo.errors import PyMongoError

from coaching_service.core.database.embedded import find_mongod
from tests.reliability.replica_set import NAME, ReplicaSet, free_port, initiate

MEMBERS = 3


class Members(ReplicaSet):
    """The members, each with a folder of its own."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._folders = {free_port(): folder / f"mongod{number}" for number in range(MEMBERS)}

    def start_all(self) -> None:
        """Start all members and configure the replica set."""
        for port in self._folders:
            self.start(port)
        initiate(*self._folders)
        self.primary()

    def start(self, port: int) -> None:
        """Start a member on the data it had."""
        folder = self._folders[port]
        folder.mkdir(parents=True, exist_ok=True)
        options = ["--bind_ip", "127.0.0.1", "--nounixsocket", "--quiet", "--oplogSize", "512", "--replSet", NAME]
        command = [find_mongod(), "--dbpath", str(folder), "--port", str(port), *options]
        with (folder.with_suffix(".log")).open("ab") as log:
            self.members[port] = subprocess.Popen([*command, "--wiredTigerCacheSizeGB", "0.25"], stdout=log)

    def kill(self, port: int) -> None:
        """Kill a member as a power failure would."""
        self.members[port].kill()
        self.members[port].wait()

    def step_down(self) -> None:
        """Make the primary a secondary."""
        client = MongoClient[dict[str, Any]]("127.0.0.1", self.primary(), directConnection=True)
        with client, suppress(PyMongoError):  # the connection may be closed
            client.admin.command({"replSetStepDown": 20, "secondaryCatchUpPeriodSecs": 5})

    def secondary(self) -> int:
        """The port of a secondary."""
        primary = self.primary()
        return next(port for port in self.members if port != primary)

    def close(self) -> None:
        """End all members, also frozen ones."""
        for member in self.members.values():
            member.send_signal(signal.SIGCONT)
            member.kill()
            member.wait()
