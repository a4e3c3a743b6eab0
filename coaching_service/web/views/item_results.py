"""What a client recorded for a workout item, described next to what was planned."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, TypedDict

from coaching_service.core.database.documents import Document
from coaching_service.training.workouts import items
from coaching_service.training.workouts.models import WorkItem
from coaching_service.web.views.item_descriptions import EFFORT_FIELDS, describe_set, format_number

_NOT_COMPLETED = "not completed"


class SetResult(TypedDict):
    """One set in words: `set` is its number or name, `effort` its RPE and RIR."""

    set: str
    planned: str
    done: str
    effort: str
    isCompleted: bool


class ItemResults(TypedDict):
    """What was recorded for an item; `answers` are pairs of question or metric and its answer or value."""

    completedAt: datetime | None
    comment: str | None
    sets: list[SetResult]
    answers: list[tuple[str, str]]


def describe_results(item: WorkItem, unit: str) -> ItemResults | None:
    """Describe what was recorded for an item, or return None if nothing was; loads are in `unit`."""
    if not items.is_recorded(item):
        return None
    describe_sets = {"EXERCISE": _exercise_sets, "CIRCUIT": _circuit_sets}.get(item["type"])
    describe_answers = {"FORM": _form_answers, "METRICS": _metric_values}.get(item["type"])
    return {
        "completedAt": item["completedAt"],
        "comment": item["comment"],
        "sets": list(describe_sets(item, unit)) if describe_sets and item.get("customerSets") else [],
        "answers": list(describe_answers(item)) if describe_answers else [],
    }


def _exercise_sets(item: Mapping[str, Any], unit: str) -> Iterator[SetResult]:
    """Every planned or logged set, by index."""
    planned = {each["index"]: each for each in item["exerciseSets"]}
    logged = {each["index"]: each for each in item["customerSets"]}
    for index in sorted(planned.keys() | logged.keys()):
        yield _set_result(str(index), planned.get(index), logged.get(index), unit)


def _circuit_sets(item: Mapping[str, Any], unit: str) -> Iterator[SetResult]:
    """Every logged set, by round, then in the order of the circuit's exercises."""
    entries = {entry["exerciseId"]: (order, entry) for order, entry in enumerate(item["circuitExercises"])}
    removed = (len(entries), {"exercise": {"name": "removed exercise"}, "sets": []})

    def position(logged: Document) -> tuple[int, int, int]:
        return logged["round"], entries.get(logged["exerciseId"], removed)[0], logged["index"]

    for logged in sorted(item["customerSets"], key=position):
        _, entry = entries.get(logged["exerciseId"], removed)
        planned = next((each for each in entry["sets"] if each["index"] == logged["index"]), None)
        label = f"Round {logged['round']}: {entry['exercise']['name']}"
        if len(entry["sets"]) != 1:
            label += f", set {logged['index']}"
        yield _set_result(label, planned, logged, unit)


def _set_result(label: str, planned: Document | None, logged: Document | None, unit: str) -> SetResult:
    return {
        "set": label,
        "planned": (describe_set(planned, unit) if planned else "") or "–",
        "done": _describe_logged_set(logged, unit) if logged else _NOT_COMPLETED,
        "effort": _describe_effort(logged) if logged else "",
        "isCompleted": bool(logged and logged["isCompleted"]),
    }


def _describe_logged_set(logged: Document, unit: str) -> str:
    """Describe a logged set, such as `8, 60 kg` or, if it was not completed, `4, 60 kg (not completed)`."""
    parts = [
        format_number(logged["reps"]),
        format_number(logged["seconds"], "s"),
        format_number(logged["meters"], "m"),
        format_number(logged["load"], unit),
    ]
    amounts = ", ".join(part for part in parts if part)
    if logged["isCompleted"]:
        return amounts or "done"
    return f"{amounts} ({_NOT_COMPLETED})" if amounts else _NOT_COMPLETED


def _describe_effort(logged: Document) -> str:
    return ", ".join(f"{name} {format_number(logged[key])}" for name, key in EFFORT_FIELDS if logged[key] is not None)


def _form_answers(item: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    answers = {answer["questionId"]: answer["value"] for answer in item["answers"]}
    for question in item["form"]["questions"]:
        unit = "of 10" if question["type"] == "rating" else ""
        yield question["label"], _describe_answer(answers.get(question["_id"]), unit)


def _describe_answer(value: Any, unit: str) -> str:
    if value in (None, "", []):
        return "–"
    if isinstance(value, list):
        return ", ".join(value)
    return value if isinstance(value, str) else format_number(value, unit)


def _metric_values(item: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    metrics = {metric["_id"]: metric for metric in item["metricsFields"]["metrics"]}
    for recorded in item["values"]:
        metric = metrics.get(recorded["metricId"])
        name = metric["name"] if metric else "Removed metric"
        yield name, format_number(recorded["value"], metric["metricUnit"]["shortName"] if metric else "")
