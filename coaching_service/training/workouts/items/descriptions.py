"""Short text descriptions of workout items and their planned sets, for calendars, programs and workout pages."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from itertools import groupby
from typing import Literal, TypedDict

from coaching_service.core.ids import ObjectId
from coaching_service.training.workouts.items.models import ReminderFields, WorkItem
from coaching_service.training.workouts.sets.models import PlannedSet

EFFORT_FIELDS: tuple[tuple[str, Literal["rpe", "rir"]], ...] = (("RPE", "rpe"), ("RIR", "rir"))


_KINDS = {"drop": "drop set", "failure": "to failure"}


class ItemDescription(TypedDict):
    """A workout item in words: `lines` are its planned sets or other details."""

    _id: ObjectId
    type: str
    title: str
    lines: list[str]
    isCompleted: bool


def describe_item(item: WorkItem, unit: str) -> ItemDescription:
    """Describe an item as returned by the workout service; loads are in `unit`."""
    title, lines = _title_and_lines(item, unit)
    return {
        "_id": item["_id"],
        "type": item["type"],
        "title": title,
        "lines": lines,
        "isCompleted": item["isCompleted"],
    }


def _title_and_lines(item: WorkItem, unit: str) -> tuple[str, list[str]]:
    if item["type"] == "EXERCISE":
        superset = [f"Superset {item['supersetId']}"] if item["supersetId"] else []
        return item["exercise"]["name"], [*describe_sets(item["exerciseSets"], unit), *superset]
    if item["type"] == "CIRCUIT":
        rounds = f", {item['rounds']} round{'' if item['rounds'] == 1 else 's'}" if item["rounds"] else ""
        return item["circuitName"] + rounds, [
            f"{entry['exercise']['name']}: {'; '.join(describe_sets(entry['sets'], unit))}"
            for entry in item["circuitExercises"]
        ]
    if item["type"] == "TASK":
        return item["taskFields"]["title"], [item["taskFields"]["description"] or ""]
    if item["type"] == "FORM":
        return f"Form: {item['form']['name']}", []
    if item["type"] == "METRICS":
        metrics = item["metricsFields"]
        return f"Measure: {metrics['name']}", [", ".join(metric["name"] for metric in metrics["metrics"])]
    return item["reminderFields"]["message"], [_describe_scheduled_time(item["reminderFields"])]


def _describe_scheduled_time(reminder: ReminderFields) -> str:
    """Return a time of day unchanged, and an ISO date-time as `09:00 (Thu 19 Nov 2026, 08:00 UTC)`."""
    scheduled = reminder["scheduledTime"]
    if len(scheduled) <= len("08:30"):
        return scheduled
    sent = datetime.fromisoformat(scheduled)
    return f"{reminder['time']} ({f'{sent:%a} {sent.day} {sent:%b %Y, %H:%M %Z}'.rstrip()})"


def describe_sets(sets: Sequence[PlannedSet], unit: str) -> list[str]:
    """Describe planned sets, equal consecutive sets on one line with their count; loads are in `unit`."""
    lines = []
    for text, equal_sets in groupby(describe_set(planned, unit) for planned in sets):
        count = len(list(equal_sets))
        lines.append(f"{count} × {text}" if text else f"{count} {'set' if count == 1 else 'sets'}")
    return lines


def describe_set(planned: PlannedSet, unit: str) -> str:
    """Describe a planned set, such as `8, 60 kg, RPE 8`; empty if it plans no value."""
    return ", ".join([*describe_amounts(planned, unit), *describe_details(planned)])


def describe_amounts(planned: PlannedSet, unit: str) -> list[str]:
    """Describe how much a planned set is: its repetitions, time, distance and load, each if it is planned."""
    parts = [
        _describe_reps(planned),
        _format_range(planned.get("minPlannedSeconds"), planned.get("maxPlannedSeconds"), "\N{NO-BREAK SPACE}s"),
        format_number(planned.get("plannedMeters"), "m"),
        _describe_load(planned, unit),
    ]
    return [part for part in parts if part]


def describe_details(planned: PlannedSet) -> list[str]:
    """Describe how a planned set is done: effort, tempo, rest, and what kind of set it is, each if it is planned."""
    parts = [
        *(f"{name} {format_number(planned[key])}" for name, key in EFFORT_FIELDS if planned[key] is not None),
        f"tempo {planned['tempo']}" if planned["tempo"] else "",
        f"rest {format_number(planned['rest'], 's')}" if planned["rest"] else "",
        "per side" if planned.get("perSide") else "",
        "warm-up" if planned["isWarmup"] else "",
        _KINDS.get(planned.get("setKind", "normal"), ""),
    ]
    return [part for part in parts if part]


def _describe_reps(planned: PlannedSet) -> str:
    """Describe planned repetitions, such as `8`, or `AMRAP, at least 8`."""
    minimum, maximum = planned.get("minPlannedReps"), planned.get("maxPlannedReps")
    if not planned.get("isAmrap"):
        return _format_range(minimum, maximum, "")
    lowest = format_number(maximum if minimum is None else minimum)
    return f"AMRAP, at least {lowest}" if lowest else "AMRAP"


def _describe_load(planned: PlannedSet, unit: str) -> str:
    """Describe a planned load, such as `60 kg`, `75 % (105 kg)`, or `75 %` if the load is not known."""
    load, percent = format_number(planned.get("load"), unit), format_number(planned.get("loadPercent"), "%")
    if not percent:
        return load
    return f"{percent} ({load})" if load else percent


def format_number(value: float | None, unit: str = "") -> str:
    """Format a number with at most three decimals, thousands separators and its unit, on one line; empty for None."""
    if value is None:
        return ""
    text = f"{value:,.3f}".rstrip("0").rstrip(".")
    return f"{text}\N{NO-BREAK SPACE}{unit}" if unit else text


def _format_range(minimum: float | None, maximum: float | None, unit: str) -> str:
    bounds = [format_number(bound) for bound in dict.fromkeys((minimum, maximum)) if bound is not None]
    return "–".join(bounds) + unit if bounds else ""
