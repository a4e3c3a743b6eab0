"""What was measured, as a table for people and as JSON for machines."""

from __future__ import annotations

import json
import os
import platform
import sysconfig
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from statistics import median
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.slots import Slot

_PACKAGES = ("coaching-service", "aiohttp", "motor", "pymongo", "uvloop", "orjson", "marshmallow")


@dataclass
class Match:
    """One kind of request at one number of connections: the slots of the service and of the bare handler by round."""

    name: str
    connections: int
    target: float
    service: list[Slot] = field(default_factory=list)
    bare: list[Slot] = field(default_factory=list)

    @property
    def ratios(self) -> list[float]:
        """Requests a second of the service divided by those of the bare handler, round by round."""
        return [ours.rate / theirs.rate for ours, theirs in zip(self.service, self.bare, strict=True)]

    @property
    def reached(self) -> bool:
        """Whether the median of the rounds reaches the target."""
        return median(self.ratios) >= self.target


Memory = dict[str, dict[str, float]]


def show(console: Console, matches: list[Match], memory: Memory, setting: str) -> None:
    """Print the figures: medians over the rounds, and the median of the ratio with its minimum and maximum."""
    table = Table(title="The service compared with bare aiohttp handlers", caption=setting, caption_justify="left")
    for heading in ("Request", "Conn.", "Arm", "Req/s", "p50 ms", "p99 ms", "CPU us", "mongod us", "Ratio"):
        table.add_column(heading, justify="left" if heading in ("Request", "Arm") else "right", no_wrap=True)
    table.add_column("Target")
    for match in matches:
        ratios = match.ratios
        spread = f"{min(ratios):.2f} / [bold]{median(ratios):.2f}[/] / {max(ratios):.2f}"
        verdict = "[green]reached[/]" if match.reached else "[red]missed[/]"
        first = (match.name, str(match.connections), "service", *_medians(match.service))
        table.add_row(*first, spread, f"{match.target:.1f} {verdict}")
        table.add_row("", "", "bare", *_medians(match.bare), "", "", end_section=True)
    console.print(table)
    for name, figures in memory.items():
        console.print(f"Resident memory of {name}: " + ", ".join(f"{each} {mb:.0f} MB" for each, mb in figures.items()))


def _medians(slots: list[Slot]) -> list[str]:
    def middle(figure: str) -> float:
        return median(getattr(slot, figure) for slot in slots)

    return [
        f"{middle('rate'):.0f}",
        f"{middle('p50'):.1f}",
        f"{middle('p99'):.1f}",
        f"{middle('cpu'):.0f}",
        f"{middle('database_cpu'):.0f}",
    ]


def write(file: Path, matches: list[Match], memory: Memory, setting: dict[str, Any]) -> None:
    """Write every slot, and the machine on which it was measured."""
    measured = [
        asdict(match) | {"ratios": match.ratios, "medianRatio": median(match.ratios), "reached": match.reached}
        for match in matches
    ]
    document = {
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": machine(),
        "packages": {name: version(name) for name in _PACKAGES},
        "setting": setting,
        "memoryMb": memory,
        "measured": measured,
    }
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(document, indent=2) + "\n")


def machine() -> dict[str, Any]:
    """The interpreter and the machine that measure: version and build of Python, the system, the number of cores."""
    return {
        "python": platform.python_version(),
        "optimised": is_optimised(sysconfig.get_config_vars()),
        "system": platform.platform(),
        "cpus": os.cpu_count(),
    }


def is_optimised(build: Mapping[str, Any]) -> bool:
    """Whether an interpreter with these configuration variables was built with profile-guided optimisation.

    Without it, which is the default of `configure` and of `pyenv install`, Python code takes much longer.
    """
    # The official container images configure it. Others run the make target `profile-opt`; CPython's tests look for the
    # flag that this adds. Of the builds of Debian and Ubuntu the only trace is an empty PGO_PROF_USE_FLAG: `configure`
    # sets PGO_PROF_GEN_FLAG and PGO_PROF_USE_FLAG, or neither for other compilers.
    words = f"{build.get('CONFIG_ARGS')} {build.get('PY_CFLAGS_NODIST')}"
    if any(word in words for word in ("--enable-optimizations", "-fprofile-use", "-fprofile-instr-use")):
        return True
    return bool(build.get("PGO_PROF_GEN_FLAG")) and not build.get("PGO_PROF_USE_FLAG")
