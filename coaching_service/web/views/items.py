"""Items of workout blocks in words: what is to be done, as a coach would write it on a board."""

from __future__ import annotations

from itertools import groupby
from typing import Any

from coaching_service.kernel.storage.documents import Document


def described(item: Document, unit: str) -> dict[str, Any]:
    """`{_id, title, lines, done, type}` of an item as it is read; loads are in `unit`."""
    title, lines = _words(item, unit)
    return {"_id": item["_id"], "title": title, "lines": lines, "done": item["isCompleted"], "type": item["type"]}


def _words(item: Document, unit: str) -> tuple[str, list[str]]:
    kind = item["type"]
    if kind == "EXERCISE":
        return item["exercise"]["name"], _sets(item["exerciseSets"], unit)
    if kind == "CIRCUIT":
        rounds = f", {item['rounds']} rounds" if item["rounds"] else ""
        return item["circuitName"] + rounds, [each["exercise"]["name"] for each in item["circuitExercises"]]
    if kind == "TASK":
        return item["taskFields"]["title"], [item["taskFields"]["description"] or ""]
    if kind == "FORM":
        return f"Form: {item['form']['name']}", []
    if kind == "METRICS":
        metrics = item["metricsFields"]
        return f"Measure: {metrics['name']}", [", ".join(metric["name"] for metric in metrics["metrics"])]
    return item["reminderFields"]["message"], [item["reminderFields"]["scheduledTime"]]


def _sets(sets: list[Document], unit: str) -> list[str]:
    """Planned sets, alike ones together."""
    lines = []
    for text, alike in groupby(_set(each, unit) for each in sets):
        count = len(list(alike))
        lines.append(f"{count} × {text}" if text else f"{count} {'set' if count == 1 else 'sets'}")
    return lines


def _set(planned: Document, unit: str) -> str:
    parts = [
        _range(planned.get("minPlannedReps"), planned.get("maxPlannedReps"), ""),
        _range(planned.get("minPlannedSeconds"), planned.get("maxPlannedSeconds"), " s"),
        f"{planned['plannedMeters']:g} m" if planned.get("plannedMeters") else "",
        f"{planned['load']:g} {unit}" if planned.get("load") else "",
        "warm-up" if planned.get("isWarmup") else "",
    ]
    return ", ".join(part for part in parts if part)


def _range(least: float | None, most: float | None, unit: str) -> str:
    ends = [f"{end:g}" for end in dict.fromkeys((least, most)) if end is not None]
    return "–".join(ends) + unit if ends else ""
