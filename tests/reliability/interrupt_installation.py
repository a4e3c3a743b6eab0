#!/usr/bin/env python3
"""Interrupt real first starts of scripts/serve, and check that the next start completes them.

    python3 tests/reliability/interrupt_installation.py [--moments 10]

For maintainers: it needs the package registry, 1 GB in the temporary folder, and a minute or more for each moment. Each
moment has a clean clone of the committed state. The whole process group receives SIGKILL or SIGINT (Ctrl-C), in turn,
at moments spread over the installation: half of them by time, half by the size of what is installed. Three more follow
while the database and the demo company are created. Every installed file is compared with the hash that its package records.
"""

from __future__ import annotations

import argparse
import base64
import csv
import hashlib
import json
import os
import signal
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import cycle
from pathlib import Path
from typing import NamedTuple

REPOSITORY = Path(__file__).parents[2]
STAMP = ".venv/installed.lock"
STARTS = 3
# Background jobs of a shell ignore SIGINT, and so do the programs that they start.
HEED_CTRL_C = ("env", "--default-signal=INT")
_SECONDS = 900.0


def main() -> None:
    """Measure a first start, then interrupt others; exit with 1 if one could not be completed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--moments", type=int, default=10, help="moments during the installation [10]")
    count = parser.parse_args().moments
    with _clone() as folder:
        began = time.monotonic()
        process = _serve(folder)
        _wait((folder / STAMP).exists, process)
        installed = time.monotonic() - began
        size = _size(folder)
        _wait(lambda: _is_ready(folder), process)
        started = time.monotonic() - began - installed
        _check_and_stop(folder, process)
    print(f"uninterrupted: {size / 1e6:.0f} MB after {installed:.1f} s, ready {started:.1f} s later", flush=True)
    moments = [Moment(size=0, seconds=installed * number / count) for number in range(1, count // 2 + 1)]
    moments += [
        Moment(size=size * number // (count // 2 + 1), seconds=0) for number in range(1, count - count // 2 + 1)
    ]
    moments += [Moment(size=None, seconds=started * number / (STARTS + 1)) for number in range(1, STARTS + 1)]
    failures = sum(not _interrupt(moment, number) for moment, number in zip(moments, cycle(_SIGNALS), strict=False))
    print(f"{len(moments) - failures} passed, {failures} failed")
    raise SystemExit(failures > 0)


class Moment(NamedTuple):
    """When to interrupt: `seconds` after the environment has `size` bytes, or is complete (None)."""

    size: int | None
    seconds: float

    def __str__(self) -> str:
        size = "complete" if self.size is None else f"{self.size / 1e6:.0f} MB"
        return f"{size:>8} + {self.seconds:4.1f} s"

    def is_reached(self, folder: Path) -> bool:
        """Whether the environment is that far."""
        return (folder / STAMP).exists() if self.size is None else _size(folder) >= self.size


_SIGNALS = (signal.SIGKILL, signal.SIGINT)


def _interrupt(moment: Moment, number: signal.Signals) -> bool:
    """Interrupt a first start at a moment; return whether the next one is complete."""
    with _clone() as folder:
        process = _serve(folder)
        _wait(lambda: moment.is_reached(folder), process)
        time.sleep(moment.seconds)
        os.killpg(process.pid, number)
        process.wait(60)
        state = _describe(folder)
        began = time.monotonic()
        process = _serve(folder)
        try:
            _wait(lambda: _is_ready(folder), process)
            took = time.monotonic() - began
            files = _check_and_stop(folder, process)
        except AssertionError as error:
            print(f"{moment}  {number.name:8} left {state}; FAILED: {error}", flush=True)
            return False
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
    print(f"{moment}  {number.name:8} left {state}; ready after {took:.1f} s, {files} files intact", flush=True)
    return True


def _describe(folder: Path) -> str:
    """What an interrupted start has left."""
    if (folder / "data" / "mongodb").exists():
        return "a database" + (" with the demo company" if (folder / "data" / "demo.json").exists() else "")
    if (folder / STAMP).exists():
        return "a complete environment"
    return f"{_size(folder) / 1e6:.0f} MB" if (folder / ".venv").exists() else "nothing"


def _size(folder: Path) -> int:
    """The bytes of the environment; files may appear and disappear meanwhile."""
    size = 0
    for parent, _, names in os.walk(folder / ".venv"):
        for name in names:
            with suppress(OSError):
                size += os.lstat(f"{parent}/{name}").st_size
    return size


@contextmanager
def _clone() -> Iterator[Path]:
    """A clean clone of the committed state."""
    with tempfile.TemporaryDirectory(prefix="coaching-installation-", ignore_cleanup_errors=True) as folder:
        subprocess.run(["git", "clone", "--quiet", str(REPOSITORY), folder], check=True)
        yield Path(folder)


def _serve(folder: Path) -> subprocess.Popen[bytes]:
    """Run scripts/serve in a process group of its own, on a data folder in the clone."""
    with (folder / "serve.log").open("ab") as log:
        command = [*HEED_CTRL_C, "scripts/serve", "--port", "0", "--data", "data"]
        return subprocess.Popen(command, cwd=folder, stdout=log, stderr=log, start_new_session=True)


def _is_ready(folder: Path) -> bool:
    """Whether the service that wrote demo.json is ready."""
    try:
        address = json.loads((folder / "data" / "demo.json").read_text())["baseUrl"]
        with urllib.request.urlopen(f"{address}/readyz", timeout=5) as response:
            return bool(response.status == 200)
    except OSError:
        return False


def _wait(condition: Callable[[], bool], process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + _SECONDS
    while not condition():
        assert process.poll() is None, f"scripts/serve ended with {process.returncode}"
        assert time.monotonic() < deadline, f"not ready within {_SECONDS:.0f} s"
        time.sleep(0.05)


def _check_and_stop(folder: Path, process: subprocess.Popen[bytes]) -> int:
    """Compare the installed files with their hashes, stop the service, and return the number of files."""
    files = 0
    for record in folder.glob(".venv/lib/python3*/site-packages/*.dist-info/RECORD"):
        for name, recorded, _ in csv.reader(record.read_text().splitlines()):
            if recorded:
                algorithm, _, expected = recorded.partition("=")
                digest = hashlib.new(algorithm, (record.parents[1] / name).read_bytes()).digest()
                assert base64.urlsafe_b64encode(digest).decode().rstrip("=") == expected, f"{name} is not intact"
                files += 1
    assert [file.name for file in folder.glob(".venv.*") if file.name != ".venv.lock"] == [], "an old folder is left"
    os.killpg(process.pid, signal.SIGTERM)
    assert process.wait(30) == 0, "the service did not stop cleanly"
    return files


if __name__ == "__main__":
    main()
