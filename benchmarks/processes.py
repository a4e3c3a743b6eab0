"""The processes of a service that is measured: itself, or a supervisor with its workers."""

from __future__ import annotations

import time
import urllib.request
from dataclasses import dataclass
from pathlib import Path

from benchmarks.servers import Server
from benchmarks.slots import cpu_seconds

_START_SECONDS = 60.0


@dataclass(frozen=True)
class Processes:
    """Those that answer requests, and the supervisor if there is one."""

    workers: list[int]
    supervisor: int | None

    def cpu(self) -> dict[int, float]:
        """The seconds of CPU that each has used."""
        return {pid: cpu_seconds(pid) for pid in self.all}

    @property
    def all(self) -> list[int]:
        """Their numbers."""
        return self.workers if self.supervisor is None else [self.supervisor, *self.workers]


def processes_of(server: Server, workers: int) -> Processes:
    """Wait until all workers of a service answer. Raises RuntimeError after a minute."""
    if workers == 1:
        return Processes([server.pid], None)
    deadline = time.monotonic() + _START_SECONDS
    while time.monotonic() < deadline:
        with urllib.request.urlopen(f"{server.base_url}/metrics", timeout=10) as response:
            if f"workers_running {workers}.0" in response.read().decode():
                return Processes(children_of(server.pid), server.pid)
        time.sleep(0.2)  # between two looks at the state; the deadline is above
    raise RuntimeError(f"{workers} workers do not run within {_START_SECONDS:.0f} s")


def children_of(parent: int) -> list[int]:
    """The processes that another has started."""
    children = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if int((process / "stat").read_text().rpartition(")")[2].split()[1]) == parent:
                children.append(int(process.name))
        except OSError:  # it has ended in the meantime
            continue
    return sorted(children)


def memory_mb(pid: int) -> tuple[float, float]:
    """Resident memory of a process, and the part of it that is its own (private), in MB."""
    fields = _memory_fields(pid)
    return fields["Rss"] * 1.024e-3, (fields["Private_Clean"] + fields["Private_Dirty"]) * 1.024e-3


def proportional_mb(pid: int) -> float:
    """Memory of a process in MB, where a page that several share counts by the part of each (PSS)."""
    return _memory_fields(pid)["Pss"] * 1.024e-3


def _memory_fields(pid: int) -> dict[str, int]:
    fields: dict[str, int] = {}
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]:
        name, value = line.split()[:2]
        fields[name.rstrip(":")] = int(value)
    return fields
