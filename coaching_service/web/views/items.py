"""Items of workout blocks in words: what is to be done, as a coach would write it on a board."""

from __future__ import annotations

from datetime import datetime
from itertools import groupby
from typing import Any

from coaching_service.core.database.documents import Document

EFFORT = (("RPE", "rpe"), ("RIR", "rir"))


def described(item: Document, unit: str) -> dict[str, Any]:
    """`{_id, title, lines, done, type}` of an item as it is read; loads are in `unit`."""
    title, lines = _words(item, unit)
    return {"_id": item["_id"], "title": title, "lines": lines, "done": item["isCompleted"], "type": item["type"]}


def _words(item: Document, unit: str) -> tuple[str, list[str]]:
    kind = item["type"]
    if kind == "EXERCISE":
        with_others = [f"Superset {item['supersetId']}"] if item["supersetId"] else []
        return item["exercise"]["name"], [*planned_lines(item["exerciseSets"], unit), *with_others]
    if kind == "CIRCUIT":
        rounds = f", {item['rounds']} rounds" if item["rounds"] else ""
        return item["circuitName"] + rounds, [
            f"{each['exercise']['name']}: {'; '.join(planned_lines(each['sets'], unit))}"
            for each in item["circuitExercises"]
        ]
    if kind == "TASK":
        return item["taskFields"]["title"], [item["taskFields"]["description"] or ""]
    if kind == "FORM":
        return f"Form: {item['form']['name']}", []
    if kind == "METRICS":
        metrics = item["metricsFields"]
        return f"Measure: {metrics['name']}", [", ".join(metric["name"] for metric in metrics["metrics"])]
    return item["reminderFields"]["message"], [_when(item["reminderFields"]["scheduledTime"])]


def _when(scheduled: str) -> str:
    """A time of day as it is, a moment as `Thu 19 Nov 2026, 08:00 UTC`."""
    if len(scheduled) <= len("08:30"):
        return scheduled
    at = datetime.fromisoformat(scheduled)
    return f"{at:%a} {at.day} {at:%b %Y, %H:%M %Z}".rstrip()


def planned_lines(sets: list[Document], unit: str) -> list[str]:
    """Planned sets, each run of equal ones in one line with their count; loads are in `unit`."""
    lines = []
    for text, alike in groupby(planned_set(each, unit) for each in sets):
        count = len(list(alike))
        lines.append(f"{count} × {text}" if text else f"{count} {'set' if count == 1 else 'sets'}")
    return lines


def planned_set(planned: Document, unit: str) -> str:
    """A planned set, such as `8, 60 kg, RPE 8`; empty when it only says that there is one."""
    parts = [
        _range(planned.get("minPlannedReps"), planned.get("maxPlannedReps"), ""),
        _range(planned.get("minPlannedSeconds"), planned.get("maxPlannedSeconds"), " s"),
        figure(planned.get("plannedMeters"), "m"),
        figure(planned.get("load"), unit),
        *(f"{name} {figure(planned[key])}" for name, key in EFFORT if planned[key] is not None),
        f"tempo {planned['tempo']}" if planned["tempo"] else "",
        f"rest {figure(planned['rest'], 's')}" if planned["rest"] else "",
        "warm-up" if planned["isWarmup"] else "",
    ]
    return ", ".join(part for part in parts if part)


def figure(value: float | None, unit: str = "") -> str:
    """A number of three places at most without idle zeros, thousands set apart, with its unit; nothing for none."""
    if value is None:
        return ""
    return f"{f'{value:,.3f}'.rstrip('0').rstrip('.')} {unit}".rstrip()


def _range(minimum: float | None, maximum: float | None, unit: str) -> str:
    ends = [figure(end) for end in dict.fromkeys((minimum, maximum)) if end is not None]
    return "–".join(ends) + unit if ends else ""
