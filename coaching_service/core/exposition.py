"""Metrics of several workers as one: adds up what each reports in Prometheus's text format."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import inf, isinf, isnan
from typing import Literal

Rule = Literal["sum", "largest", "smallest", "own"]

# What a gauge of several workers is; counters and histograms are added. `own`: of the worker that answers, for
# what is the same in all of them.
GAUGES: dict[str, Rule] = {
    "backup_age_seconds": "own",
    "change_log_oldest_pending_seconds": "own",
    "change_log_pending": "own",
    "check_ins_due": "own",
    "check_ins_oldest_due_seconds": "own",
    "coaching_service_build_info": "largest",
    "database_connections_in_use": "sum",
    "database_connections_open": "sum",
    "database_connections_waiting": "sum",
    "disk_free_bytes": "own",
    "disk_size_bytes": "own",
    "erasures_pending": "own",
    "figures_due": "own",
    "figures_oldest_due_seconds": "own",
    "files_stored_bytes": "own",
    "http_requests_in_flight": "sum",
    "jobs_oldest_pending_seconds": "own",
    "jobs_pending": "own",
    "mail_oldest_seconds": "own",
    "notifications_due": "own",
    "notifications_oldest_due_seconds": "own",
    "process_max_fds": "smallest",
    "process_open_fds": "largest",
    "process_resident_memory_bytes": "sum",
    "process_start_time_seconds": "smallest",
    "process_virtual_memory_bytes": "sum",
    "request_queue_waiting": "sum",
    "verify_age_seconds": "own",
    "webhook_deliveries_pending": "own",
    "webhook_oldest_pending_seconds": "own",
    "work_failing": "own",
    "workers_running": "largest",
}
_COMBINE: dict[Rule, Callable[[float, float], float]] = {
    "sum": lambda first, second: first + second,
    "largest": max,
    "smallest": min,
    "own": lambda first, _: first,
}


class _Family:
    """A metric with its series; `lines` are its comments."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.kind = ""
        self.lines: list[str] = []
        self.series: dict[str, float] = {}


def add_up(own: str, others: Iterable[str]) -> str:
    """Return the metrics `own` with the metrics of other workers, each in the text format."""
    families = _parse(own)
    for text in others:
        for name, family in _parse(text).items():
            total = families.setdefault(name, family)
            if total is not family:
                _add(total, family)
    return _format(families.values())


def totals_of(texts: Iterable[str]) -> str:
    """Return the sums of what only grows: what remains of workers that have ended."""
    families = _parse(add_up("", texts))
    return _format(family for family in families.values() if family.kind != "gauge")


def _add(total: _Family, family: _Family) -> None:
    combine = _COMBINE[GAUGES.get(family.name, "own") if family.kind == "gauge" else "sum"]
    for series, value in family.series.items():
        total.series[series] = combine(total.series[series], value) if series in total.series else value


def _parse(text: str) -> dict[str, _Family]:
    families: dict[str, _Family] = {}
    family = _Family("")
    for line in text.splitlines():
        if line.startswith("# "):
            _, word, name, rest = line.split(" ", 3)
            if name != family.name:
                family = families[name] = _Family(name)
            family.lines.append(line)
            if word == "TYPE":
                family.kind = rest
        elif line:
            series, _, value = line.rpartition(" ")
            family.series[series] = float(value)
    return families


def _format(families: Iterable[_Family]) -> str:
    lines: list[str] = []
    for family in families:
        lines += family.lines
        lines += (f"{series} {_format_value(value)}" for series, value in family.series.items())
    return "\n".join([*lines, ""])


def _format_value(value: float) -> str:
    if isnan(value):
        return "NaN"
    if isinf(value):
        return "+Inf" if value == inf else "-Inf"
    return repr(value)
