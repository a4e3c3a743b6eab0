"""The processor time of a run and of other programs, from /proc (proc(5): utime, stime, cutime and cstime in ticks)."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

_PROC = Path("/proc")


@dataclass(frozen=True)
class ProcessorTime:
    """Ticks since the start of the machine: of all processors, of those that were busy, and of this run."""

    total: int
    busy: int
    own: int

    @classmethod
    def now(cls) -> ProcessorTime:
        """Read them; processes that this one started, and those that ended, belong to the run."""
        user, nice, system, idle, iowait, irq, softirq, steal = map(
            int, (_PROC / "stat").read_text("ascii").split("\n", 1)[0].split()[1:9]
        )
        busy = user + nice + system + irq + softirq + steal
        return cls(busy + idle + iowait, busy, _ticks_of_family(os.getpid()))

    def share_of_others(self) -> float:
        """Return the share of the processors that other programs have used since, from 0 to 1."""
        now = ProcessorTime.now()
        others = (now.busy - self.busy) - (now.own - self.own)
        return max(0.0, others / max(1, now.total - self.total))


def _ticks_of_family(ancestor: int) -> int:
    parents, ticks = {}, {}
    for folder in _PROC.iterdir():
        if folder.name.isdigit():
            try:
                fields = (folder / "stat").read_text("ascii", errors="replace").rpartition(")")[2].split()
            except OSError:  # it has ended
                continue
            parents[int(folder.name)] = int(fields[1])
            ticks[int(folder.name)] = sum(map(int, fields[11:15]))
    return sum(used for process, used in ticks.items() if _descends(process, ancestor, parents))


def _descends(process: int, ancestor: int, parents: dict[int, int]) -> bool:
    while process and process != ancestor:
        process = parents.get(process, 0)
    return process == ancestor
