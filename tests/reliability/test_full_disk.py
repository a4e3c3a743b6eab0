"""A disk without space: one sentence that names the folder, at start and while the service runs."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.service_process import command, environment, mongods_of

Start = Callable[[str], "subprocess.CompletedProcess[str]"]


def can_mount() -> bool:
    """Whether this machine lets a process mount a file system that only it sees."""
    return subprocess.run(["unshare", "-rm", "true"], capture_output=True, check=False).returncode == 0


@pytest.fixture
def start_on_disk(tmp_path: Path) -> Start:
    """Starts the service on a disk of a size such as `64k` (else with that limit of file sizes) until it ends."""
    disk = tmp_path / "disk"
    disk.mkdir()

    def start(size: str) -> subprocess.CompletedProcess[str]:
        limited = f'mount -t tmpfs -o size={size} tmpfs "$0" && exec "$@"'
        unshare = ["unshare", "-rm", "--propagation", "private", "--kill-child"]
        if not can_mount():
            limited, unshare = 'ulimit -f 2048; exec "$@"', []
        return subprocess.run(
            [*unshare, "bash", "-c", limited, str(disk), *command(disk / "data")],
            env=environment(LOG_FORMAT="json", PYTHONDONTWRITEBYTECODE="1"),
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    return start


def sentence(disk: Path) -> str:
    """The error message about the disk or the limit."""
    if can_mount():
        return f"The disk of {disk}/data is full: free space on it, or choose another folder with --data."
    return f"The limit of file sizes (ulimit -f) is too small for the database in {disk}/data: raise it."


def test_full_disk_at_start_is_one_sentence(start_on_disk: Start, tmp_path: Path) -> None:
    ended = start_on_disk("64k")
    assert (ended.returncode, ended.stdout) == (1, "")
    assert ended.stderr == f"Error: {sentence(tmp_path / 'disk')}\n"


def test_disk_that_fills_up_while_the_service_runs_is_one_sentence(start_on_disk: Start, tmp_path: Path) -> None:
    """mongod ends at a write that does not fit; the service ends with it."""
    ended = start_on_disk("1m")
    assert ended.returncode == 1, ended.stderr
    logged = [json.loads(line) for line in ended.stderr.splitlines() if line.startswith("{")]
    reasons = [line["reason"] for line in logged if line["event"] == "the embedded database has ended by itself"]
    messages = [line.removeprefix("Error: ") for line in ended.stderr.splitlines() if line.startswith("Error: ")]
    assert {*reasons, *messages} == {sentence(tmp_path / "disk")}
    assert "Traceback" not in ended.stderr
    assert mongods_of(tmp_path / "disk" / "data") == []
