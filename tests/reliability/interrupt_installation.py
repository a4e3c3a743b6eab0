#!/usr/bin/env python3
"""Interrupt real first starts of scripts/serve, and check that the next start completes them.

    python3 tests/reliability/interrupt_installation.py [--moments 10]

For maintainers: it needs the package registry, 1 GB in the temporary folder, and a minute or more for each moment. Each
moment has a clean clone of the committed state. The whole process group receives SIGKILL or SIGINT (Ctrl-C), in turn,
at moments spread evenly over the installation; three more follow while the database and the demo company are created.
Every installed file is compared with the hash that its package records.
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
from contextlib import contextmanager
from itertools import cycle
from pathlib import Path

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
        _wait(lambda: _is_ready(folder), process)
        started = time.monotonic() - began
        _check_and_stop(folder, process)
    print(f"uninterrupted: installed after {installed:.1f} s, ready after {started:.1f} s", flush=True)
    moments = [installed * (number + 0.5) / count for number in range(count)]
    moments += [installed + (started - installed) * (number + 0.5) / STARTS for number in range(STARTS)]
    failures = sum(not _interrupt(moment, number) for moment, number in zip(moments, cycle(_SIGNALS), strict=False))
    print(f"{len(moments) - failures} passed, {failures} failed")
    raise SystemExit(failures > 0)


_SIGNALS = (signal.SIGKILL, signal.SIGINT)


def _interrupt(moment: float, number: signal.Signals) -> bool:
    """Interrupt a first start after `moment` seconds; return whether the next one is complete."""
    with _clone() as folder:
        process = _serve(folder)
        time.sleep(moment)
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
            print(f"{moment:6.1f} s  {number.name:8} left {state}; FAILED: {error}", flush=True)
            return False
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
    print(f"{moment:6.1f} s  {number.name:8} left {state}; ready after {took:.1f} s, {files} files intact", flush=True)
    return True


def _describe(folder: Path) -> str:
    """What an interrupted start has left."""
    if (folder / "data" / "mongodb").exists():
        return "a database" + (" with the demo company" if (folder / "data" / "demo.json").exists() else "")
    if (folder / STAMP).exists():
        return "a complete environment"
    size = sum(file.stat().st_size for file in folder.glob(".venv/**/*") if file.is_file())
    return f"{size / 1e6:.0f} MB" if (folder / ".venv").exists() else "nothing"


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
