"""A replica set of real mongods whose members can be frozen and continued."""

from __future__ import annotations

import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pymongo import MongoClient
from pymongo.errors import PyMongoError

from coaching_service.installation.embedded import find_mongod

NAME = "faults"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def stop(member: subprocess.Popen[bytes]) -> None:
    """Stop a process, and wait until none of its threads runs: on a busy machine some still answer after the signal."""
    member.send_signal(signal.SIGSTOP)
    deadline = time.monotonic() + 60
    while states := [state for state in thread_states(member.pid) if state != "T"]:
        assert time.monotonic() < deadline, f"threads of a stopped process still run: {states}"
        time.sleep(0.001)  # between two looks at the state; the deadline is above


def thread_states(process: int) -> list[str]:
    """The state of every thread of a process as Linux shows it: "T" is stopped."""
    states = []
    for thread in Path(f"/proc/{process}/task").iterdir():
        with suppress(FileNotFoundError, ProcessLookupError):  # it has just ended
            states.append((thread / "stat").read_text().rpartition(")")[2].split()[0])
    return states


@dataclass
class ReplicaSet:
    """Members by port; some of them may be frozen."""

    members: dict[int, subprocess.Popen[bytes]] = field(default_factory=dict)

    @property
    def uri(self) -> str:
        hosts = ",".join(f"127.0.0.1:{port}" for port in self.members)
        return f"mongodb://{hosts}/?replicaSet={NAME}"

    def primary(self) -> int:
        """The port of the primary, once there is one."""
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            for port in self.members:
                if hello(port).get("isWritablePrimary"):
                    return port
            time.sleep(0.05)  # between two looks at the state; the deadline is above
        raise AssertionError("no primary within 60 s")

    def freeze(self, *ports: int) -> None:
        for port in ports:
            stop(self.members[port])

    def thaw(self) -> None:
        """Continue every member, and wait until there is a primary that all others follow.

        A member that still rolls writes back, or has ended, would be missed by the majority of the next test.
        """
        for member in self.members.values():
            member.send_signal(signal.SIGCONT)
        deadline = time.monotonic() + 120
        while not self._has_followers(self.primary()):
            ended = [port for port, member in self.members.items() if member.poll() is not None]
            assert not ended, f"members have ended: {ended}"
            assert time.monotonic() < deadline, f"members do not follow the primary: {self._states(self.primary())}"
            time.sleep(0.05)  # between two looks at the state; the deadline is above

    def _has_followers(self, primary: int) -> bool:
        """Whether all members respond to the primary and have applied all of its writes."""
        states = self._states(primary)
        names = [state["stateStr"] for state in states]
        written = {state.get("optime", {}).get("ts") for state in states}
        return sorted(names) == ["PRIMARY", *["SECONDARY"] * (len(self.members) - 1)] and len(written) == 1

    @staticmethod
    def _states(primary: int) -> list[dict[str, Any]]:
        """What the primary reports about each member, nothing if it does not respond."""
        with MongoClient[dict[str, Any]]("127.0.0.1", primary, directConnection=True, timeoutMS=5000) as client:
            try:
                return list(client.admin.command("replSetGetStatus")["members"])
            except PyMongoError:
                return []


def hello(port: int) -> dict[str, Any]:
    """The state that a mongod reports, or {} if it does not respond."""
    options: dict[str, Any] = {"directConnection": True, "timeoutMS": 500}
    with MongoClient[dict[str, Any]]("127.0.0.1", port, **options) as client:
        try:
            return client.admin.command("hello")
        except PyMongoError:
            return {}


@contextmanager
def running_member(folder: Path, port: int, mongod: str | None = None) -> Iterator[subprocess.Popen[bytes]]:
    """Run a mongod of the replica set; it is killed at the end, frozen or not."""
    folder.mkdir(parents=True, exist_ok=True)
    options = ["--bind_ip", "127.0.0.1", "--nounixsocket", "--quiet", "--oplogSize", "64", "--replSet", NAME]
    command = [
        mongod or find_mongod(),
        "--dbpath",
        str(folder),
        "--port",
        str(port),
        *options,
        "--wiredTigerCacheSizeGB",
        "0.25",
    ]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as member:
        try:
            yield member
        finally:
            member.kill()


# A member that replicates from a frozen one looks for another after the time for a heartbeat, by default 10 seconds.
QUICK_ELECTIONS = {"electionTimeoutMillis": 1000, "heartbeatIntervalMillis": 500, "heartbeatTimeoutSecs": 2}


def initiate(*ports: int, settings: dict[str, int] = QUICK_ELECTIONS) -> None:
    """Configure the replica set of these members, with these settings, once they respond."""
    deadline = time.monotonic() + 60
    while not all(hello(port) for port in ports):
        assert time.monotonic() < deadline, "the members do not start"
    config = {
        "_id": NAME,
        "members": [{"_id": number, "host": f"127.0.0.1:{port}"} for number, port in enumerate(ports)],
        "settings": settings,
    }
    with MongoClient[dict[str, Any]]("127.0.0.1", ports[0], directConnection=True) as client:
        client.admin.command("replSetInitiate", config)


@contextmanager
def running_replica_set(folder: Path, count: int = 3, mongod: str | None = None) -> Iterator[ReplicaSet]:
    """Run a replica set of `count` members; `mongod` is the program, by default the one that the service would use."""
    with ExitStack() as stack:
        replica_set = ReplicaSet()
        for number in range(count):
            port = free_port()
            replica_set.members[port] = stack.enter_context(running_member(folder / str(number), port, mongod))
        initiate(*replica_set.members)
        replica_set.primary()
        yield replica_set
