"""The processes under measure: the service as it is served, and the bare handlers, both on the first core."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path

from benchmarks.slots import cpu_seconds
from coaching_service.core.auth import new_master_key
from coaching_service.installation.embedded import running_mongod
from coaching_service.settings import Settings

DATABASE = "bench"
_START_SECONDS = 180.0  # of a busy machine
# Longer than the service rests between two renewals of figures (3 s), and between two looks for background work.
_QUIET_SECONDS = 5.0
_QUIET_SHARE = 0.02  # of a core


@dataclass(frozen=True)
class Server:
    """A process that serves requests, and its address."""

    name: str
    pid: int
    base_url: str


@contextmanager
def temporary_settings() -> Iterator[Settings]:
    """Run a database in a temporary folder; yields the settings of services that use both."""
    with tempfile.TemporaryDirectory(prefix="coaching-bench-") as folder, running_mongod(Path(folder) / "data") as uri:
        keys = (new_master_key(),)
        yield Settings(mongodb_uri=uri, mongodb_database=DATABASE, secret_keys=keys, data_dir=Path(folder))


def environment_of(settings: Settings) -> dict[str, str]:
    """The variables with which another process has the same database, keys and folder."""
    return {
        "MONGODB_URI": settings.mongodb_uri or "",
        "MONGODB_DATABASE": settings.mongodb_database,
        "SECRET_KEYS": ",".join(settings.secret_keys),
        "DATA_DIR": str(settings.data_dir),
    }


def running_service(
    settings: Settings, core: int | str, name: str = "service", **variables: str
) -> AbstractContextManager[Server]:
    """Run the service on `core` with these settings and variables, as `running_program` does; its log is `log_of`."""
    module = ["coaching_service", "serve"]
    return running(name, module, environment_of(settings) | variables, core, log_of(settings, name))


def log_of(settings: Settings, name: str = "service") -> Path:
    """The log of a service with these settings."""
    return settings.data_dir / f"{name}.log"


def running(
    name: str, module: list[str], settings: dict[str, str], core: int | str, log: Path
) -> AbstractContextManager[Server]:
    """Run a Python module as a server, as `running_program` does."""
    return running_program(name, [sys.executable, "-m", *module], settings, core, log)


@contextmanager
def running_program(
    name: str, program: list[str], settings: dict[str, str], core: int | str, log: Path
) -> Iterator[Server]:
    """Run a server on `core`, or a list as of taskset, with these settings and no others; its log goes to a file.

    It listens on HOST and PORT of its environment. Raises RuntimeError when it does not respond in time.
    """
    port = _free_port()
    environment = {"PATH": os.environ["PATH"], "HOST": "127.0.0.1", "PORT": str(port), "WORKERS": "1", **settings}
    command = ["taskset", "-c", str(core), *program]
    with log.open("w") as said:
        process = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=said, stderr=said)
        try:
            _wait_for(process, port, log)
            yield Server(name, process.pid, f"http://127.0.0.1:{port}")
        finally:
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def has_lost_database(settings: Settings) -> bool:
    """Whether a service has logged that the database does not respond: it may not, however busy it is."""
    return "the database does not respond" in log_of(settings).read_text()


def child_named(word: str) -> int:
    """The child of this process whose program has `word` in its name: mongod, which we start without its number."""
    for process in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((process / "stat").read_text().rpartition(")")[2].split()[1])
            if parent == os.getpid() and word in (process / "comm").read_text():
                return int(process.name)
        except OSError:  # it has ended in the meantime
            continue
    raise RuntimeError(f"no {word} is running")


def wait_until_idle(pids: list[int], seconds: float = 120.0) -> None:
    """Wait until the processes have used hardly any CPU for five seconds. Raises RuntimeError after `seconds`."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        before = sum(map(cpu_seconds, pids))
        time.sleep(_QUIET_SECONDS)  # the CPU time of this interval is what is measured
        if sum(map(cpu_seconds, pids)) - before < _QUIET_SECONDS * _QUIET_SHARE:
            return
    raise RuntimeError(f"the servers are not idle within {seconds:.0f} s")


def _wait_for(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise RuntimeError(f"ended with {process.returncode}: {log.read_text()[-500:]}")
        if _answers(port):
            return
        time.sleep(0.05)
    raise RuntimeError(f"does not answer within {_START_SECONDS:.0f} s: {log.read_text()[-500:]}")


def _answers(port: int) -> bool:
    try:
        urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=5).close()
    except urllib.error.HTTPError as error:  # the bare handlers have no /readyz, and have responded
        return error.code == HTTPStatus.NOT_FOUND
    except OSError:
        return False
    return True


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
