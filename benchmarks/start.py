"""CPU seconds of a process of the service until it is ready, with a database whose indexes are unchanged.

    python -m benchmarks.start [FOLDER ...] --runs 5

Each FOLDER has a version of the service, such as a worktree of Git (default: this one). The versions take turns, so that the
load of the machine changes all of them alike. The first start of each creates its database, compiles its modules as an
installation does, and is not counted.
"""

from __future__ import annotations

import argparse
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path

DEADLINE_SECONDS = 300.0
_TICKS = os.sysconf("SC_CLK_TCK")


def measure(version: Path, data: Path) -> float:
    """Start the service, wait until it is ready, and return the CPU seconds of its process, without the database's."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = (sys.executable, "-m", "coaching_service", "serve", "--port", str(port), "--data", str(data))
    settings = {"WORKERS": "1", "PYTHONDONTWRITEBYTECODE": ""}
    process = subprocess.Popen(
        command, cwd=version, env=os.environ | settings, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        _wait(process, f"http://127.0.0.1:{port}/readyz")
        user, system = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[11:13]
        return (int(user) + int(system)) / _TICKS
    finally:
        process.terminate()
        process.wait()


def _wait(process: subprocess.Popen[bytes], url: str) -> None:
    deadline = time.monotonic() + DEADLINE_SECONDS
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise RuntimeError(f"the service ended with {process.returncode}")
        try:
            with urllib.request.urlopen(url, timeout=10) as response:
                if response.status == 200:
                    return
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            time.sleep(0.1)
    raise RuntimeError("the service was not ready in time")


def main() -> None:
    """Print the median, and all measurements, of each version."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", nargs="*", type=Path, default=[Path(__file__).parents[1]])
    parser.add_argument("--runs", type=int, default=5)
    arguments = parser.parse_args()
    versions = [folder.resolve() for folder in arguments.folders]
    seconds: dict[Path, list[float]] = {version: [] for version in versions}
    with tempfile.TemporaryDirectory(prefix="start-") as folder:
        for run in range(arguments.runs + 1):
            for number, version in enumerate(versions):
                measured = measure(version, Path(folder) / str(number))
                if run:
                    seconds[version].append(measured)
    for version, measured_each in seconds.items():
        print(f"{version}: median {statistics.median(measured_each):.2f} s of {sorted(measured_each)}")


if __name__ == "__main__":
    main()
