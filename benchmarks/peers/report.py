"""What was measured of the service and its peers: ratios with their spread, as JSON, as a table and as Markdown."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from statistics import median
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.report import machine
from benchmarks.slots import Slot

SERVICE = "service"
_PACKAGES = ("coaching-service", "aiohttp", "motor", "pymongo", "uvloop", "orjson", "marshmallow", "mcp")
_FIGURES = {"rate": "rate", "p50": "p50Ms", "p99": "p99Ms", "cpu": "cpuUs", "database_cpu": "databaseCpuUs"}
Row = dict[str, Any]


@dataclass
class Comparison:
    """One kind of request at one number of connections: the slots of each arm, by round.

    `targets`: the smallest ratio of the service to an arm that is good enough. `p99_arm`: the arm whose p99 that of the
    service should not exceed. `lost`: the arms of which a slot failed three times: they have no figures.
    """

    kind: str
    connections: int
    targets: Mapping[str, float] = field(default_factory=dict)
    p99_arm: str | None = None
    slots: dict[str, list[Slot]] = field(default_factory=dict)
    lost: set[str] = field(default_factory=set)

    def ratios(self, arm: str) -> list[float]:
        """Requests a second of the service divided by those of an arm, round by round."""
        pairs = zip(self.slots[SERVICE], self.slots[arm], strict=True)
        return [ours.rate / theirs.rate for ours, theirs in pairs]

    def rows(self) -> list[Row]:
        """The figures of each arm, medians of the rounds; the first is the service's, which has no ratio."""
        return [self._row(arm, slots) for arm, slots in self.slots.items()]

    def _row(self, arm: str, slots: Sequence[Slot]) -> Row:
        row: Row = {"kind": self.kind, "connections": self.connections, "arm": arm}
        if arm in self.lost:
            return row | {"failed": True}
        row |= {name: round(median(getattr(slot, figure) for slot in slots), 2) for figure, name in _FIGURES.items()}
        if arm == SERVICE or SERVICE in self.lost:
            return row
        ratios = self.ratios(arm)
        middle = median(ratios)
        row |= {"ratioMin": round(min(ratios), 3), "ratio": round(middle, 3), "ratioMax": round(max(ratios), 3)}
        if (target := self.targets.get(arm)) is not None:
            row |= {"target": target, "reached": middle >= target}
        if arm == self.p99_arm:
            ours = median(slot.p99 for slot in self.slots[SERVICE])
            theirs = median(slot.p99 for slot in slots)
            row |= {"p99Ratio": round(ours / theirs, 3), "p99Reached": ours <= theirs}
        return row


def measuring_options(arguments: Sequence[str]) -> list[str]:
    """The options that decide what is measured: without those for files, whose paths are of one machine."""
    options: list[str] = []
    values = iter(arguments)
    for option in values:
        if option in ("--json", "--markdown"):
            next(values, None)
        elif not option.startswith(("--json=", "--markdown=")):
            options.append(option)
    return options


def document(
    comparisons: Iterable[Comparison], memory: Mapping[str, Any], setting: Mapping[str, Any], peers: Mapping[str, str]
) -> Row:
    """The report: the machine, the versions, the memory of each server, and the rows of all comparisons."""
    return {
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": setting["command"],
        "machine": machine(),
        "packages": {name: version(name) for name in _PACKAGES},
        "peers": dict(peers),
        "setting": {name: value for name, value in setting.items() if name != "command"},
        "memoryMb": dict(memory),
        "rows": [row for comparison in comparisons for row in comparison.rows()],
    }


def write(file: Path, report: Row) -> None:
    """Write a report, one row a line, so that two reports can be compared."""
    head = {name: value for name, value in report.items() if name != "rows"}
    rows = ",\n".join(f"    {json.dumps(row)}" for row in report["rows"])
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(head, indent=2).removesuffix("\n}") + f',\n  "rows": [\n{rows}\n  ]\n}}\n')


def missed(report: Row) -> list[Row]:
    """The rows that miss their target, of requests a second or of p99, and those without figures."""
    return [
        row
        for row in report["rows"]
        if row.get("failed") or row.get("reached") is False or row.get("p99Reached") is False
    ]


# --- tables ----------------------------------------------------------------------------------------------------------

HEADINGS = ("Work", "Arm", "Service / arm", "Target", "Req/s", "p50 ms", "p99 ms", "CPU us")


def table_rows(report: Row, titles: Mapping[str, str]) -> list[tuple[str, ...]]:
    """The cells of the table: a row for each kind and arm, with the figures for each number of connections."""
    by_arm: dict[tuple[str, str], list[Row]] = {}
    for row in report["rows"]:
        by_arm.setdefault((row["kind"], row["arm"]), []).append(row)
    return [_cells(titles[kind] if arm == SERVICE else "", arm, rows) for (kind, arm), rows in by_arm.items()]


def _cells(title: str, arm: str, rows: Sequence[Row]) -> tuple[str, ...]:
    ratios = " / ".join(
        f"{row['ratio']:.2f} ({row['ratioMin']:.2f} to {row['ratioMax']:.2f})" for row in rows if "ratio" in row
    )
    targets = []
    if with_target := [row for row in rows if "target" in row]:
        targets.append(f"{min(row['target'] for row in with_target):g} {_verdict(with_target, 'reached')}")
    if with_p99 := [row for row in rows if "p99Ratio" in row]:
        p99 = " / ".join(f"{row['p99Ratio']:.2f}" for row in with_p99)
        targets.append(f"p99 {p99} of at most 1 {_verdict(with_p99, 'p99Reached')}")
    figures = [
        " / ".join("failed" if row.get("failed") else f"{row[name]:.{digits}f}" for row in rows)
        for name, digits in (("rate", 0), ("p50Ms", 1), ("p99Ms", 1), ("cpuUs", 0))
    ]
    return title, arm, ratios, ", ".join(targets), *figures


def _verdict(rows: Sequence[Row], name: str) -> str:
    return "reached" if all(row[name] for row in rows) else "missed"


def show(console: Console, report: Row, titles: Mapping[str, str]) -> None:
    """Print the table."""
    table = Table(title="The service and its peers", caption=describe(report), caption_justify="left")
    for heading in HEADINGS:
        table.add_column(heading)
    for cells in table_rows(report, titles):
        table.add_row(*cells)
    console.print(table)
    for server, figures in report["memoryMb"].items():
        console.print(f"Resident memory of {server}: {figures['idle']:.0f} MB idle, {figures['after']:.0f} MB after")


def describe(report: Row) -> str:
    """A paragraph about how the figures were measured."""
    setting, load = report["setting"], report["setting"]["load"]
    connections = " / ".join(map(str, setting["connections"]))
    return (
        f"{setting['clients']:,} clients; {setting['rounds']} rounds of {setting['seconds']} s, one more to warm up, in "
        f"reverse order every other round. Figures at {connections} connections are medians of the rounds; ratios have "
        f"their smallest and largest value. Servers on one core, mongod and wrk on another. Load average {load[0]:.1f} "
        f"before and {load[1]:.1f} after. {_interpreter(report['machine'])}.{_failures(setting)}"
        f"{_lost_rows(report['rows'])}"
    )


def _failures(setting: Row) -> str:
    """The slots that failed and were repeated, if any."""
    counts = Counter(setting.get("failedSlots", ()))
    failed = "; ".join(f"{number} of {name}" for name, number in counts.items())
    return f" Slots that failed (no or bad responses) and were repeated: {failed}." if failed else ""


def _lost_rows(rows: Iterable[Row]) -> str:
    """The rows without figures, if any."""
    lost = "; ".join(f"{row['kind']}, {row['arm']}, {row['connections']}" for row in rows if row.get("failed"))
    return f" Without figures, because a slot failed three times: {lost}." if lost else ""


def _interpreter(measured_on: Row) -> str:
    """The version of Python, and how it was built unless the report is too old to say so."""
    builds = {None: "", True: ", optimised build", False: ", built without profile-guided optimisation"}
    return f"Python {measured_on['python']}{builds[measured_on.get('optimised')]}"


def markdown(report: Row, titles: Mapping[str, str]) -> str:
    """The table as Markdown, with the versions of the peers and the memory of each server."""
    lines = [describe(report), ""]
    lines += _markdown_table(HEADINGS, table_rows(report, titles))
    memory = [(name, f"{each['idle']:.0f}", f"{each['after']:.0f}") for name, each in report["memoryMb"].items()]
    lines += ["", *_markdown_table(("Resident memory, MB", "Idle", "After"), memory), ""]
    versions = ", ".join(f"{name} {number}" for name, number in {**report["packages"], **report["peers"]}.items())
    lines += [f"Versions: {versions}.", "", f"Measured on {report['at'][:10]} with `{report['command']}`."]
    return "\n".join(lines) + "\n"


def _markdown_table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    lines = [headings, ["---"] * len(headings), *rows]
    return [f"| {' | '.join(cells)} |" for cells in lines]
