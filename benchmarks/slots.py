"""One slot: wrk on one server for a second, and what the server spent on it."""

from __future__ import annotations

import os
import re
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

_TICK = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")
_UNITS = {"us": 0.001, "ms": 1.0, "s": 1000.0, "m": 60_000.0}
_SETTLE_SECONDS = 0.2


class BadSlot(Exception):
    """A slot that measured something other than successful requests."""


@dataclass(frozen=True)
class Slot:
    """What one slot measured: requests a second, milliseconds, server and database CPU in microseconds a request."""

    requests: int
    rate: float
    p50: float
    p99: float
    cpu: float
    database_cpu: float


def cpu_seconds(pid: int) -> float:
    """The processor time a process and its threads have used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICK


def resident_mb(pid: int) -> float:
    """The resident memory of a process, in MB."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * _PAGE / 1e6


def run(arguments: list[str], connections: int, server: int, database: int, seconds: int = 1) -> Slot:
    """Run wrk with `arguments` for some seconds on the processes `server` and `database`.

    Raises BadSlot when a response was an error, a socket failed, or there was no response.
    """
    time.sleep(_SETTLE_SECONDS)  # requests that the previous slot left unfinished are done by then
    before = cpu_seconds(server), cpu_seconds(database)
    command = ["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "--timeout", "30s", "--latency", *arguments]
    result = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    spent = cpu_seconds(server) - before[0], cpu_seconds(database) - before[1]
    return read(result.stdout + result.stderr, *spent)


def read(output: str, cpu: float, database_cpu: float) -> Slot:
    """Parse the output of wrk; `cpu` and `database_cpu` are seconds used in the slot."""
    counted = re.search(r"(\d+) requests in", output)
    rate = re.search(r"Requests/sec:\s+([\d.]+)", output)
    shares = {share: re.search(rf"{share}%\s+([\d.]+)(us|ms|s|m)\b", output) for share in (50, 99)}
    bad = re.search(r"Non-2xx|Socket errors|Unexpected response|nan", output)
    if bad or counted is None or rate is None or None in shares.values() or counted[1] == "0":
        raise BadSlot(f"wrk reports failures: {' '.join(output.split())[-800:]}")
    requests = int(counted[1])
    p50, p99 = (float(share[1]) * _UNITS[share[2]] for share in shares.values() if share)
    return Slot(requests, float(rate[1]), p50, p99, cpu / requests * 1e6, database_cpu / requests * 1e6)
