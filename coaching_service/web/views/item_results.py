"""What a client recorded for a workout item, described next to what was planned."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any, TypedDict

from coaching_service.training.workouts.items import content as items
from coaching_service.training.workouts.items.descriptions import EFFORT_FIELDS, describe_set, format_number
from coaching_service.training.workouts.items.models import (
    CircuitItem,
    ExerciseItem,
    FormItem,
    MetricsItem,
    Skip,
    Swap,
    WorkItem,
)
from coaching_service.training.workouts.sets import CustomerSet, PlannedSet

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
    pain: str | None
    skipped: str | None
    swappedFor: str | None
    sets: list[SetResult]
    answers: list[tuple[str, str]]


def describe_results(item: WorkItem, unit: str) -> ItemResults | None:
    """Describe what was recorded for an item, or return None if nothing was; loads are in `unit`."""
    if not items.is_recorded(item):
        return None
    swap = item.get("swappedFor")
    return {
        "completedAt": item["completedAt"],
        "comment": item["comment"],
        "pain": item.get("pain"),
        "skipped": _describe_choice("", item.get("skipped")),
        "swappedFor": _describe_choice(swap["exercise"]["name"], swap) if swap else None,
        "sets": list(_sets(item, unit)),
        "answers": list(_answers(item)),
    }


def _describe_choice(name: str, choice: Skip | Swap | None) -> str | None:
    """Describe why a client skipped an item, or what the client did in its place; None if the client did not."""
    if choice is None:
        return None
    return ": ".join(filter(None, (name, choice["reason"]))) or "no reason given"


def _sets(item: WorkItem, unit: str) -> Iterator[SetResult]:
    if item["type"] == "EXERCISE" and item["customerSets"]:
        for _, label, planned, logged in pair_sets(item):
            yield _set_result(label, planned, logged, unit)
    elif item["type"] == "CIRCUIT":
        yield from _circuit_sets(item, unit)


def _answers(item: WorkItem) -> Iterator[tuple[str, str]]:
    if item["type"] == "FORM":
        yield from _form_answers(item)
    elif item["type"] == "METRICS":
        yield from _metric_values(item)


def pair_sets(item: ExerciseItem) -> Iterator[tuple[int, str, PlannedSet | None, CustomerSet | None]]:
    """Yield the planned and the logged sets of an exercise with their labels, by index; a second one was not planned.

    The label of a set that was logged of the planned exercise, though another was done, has its name.
    """
    planned = {each["index"]: each for each in item["exerciseSets"]}
    logged: dict[int, list[CustomerSet | None]] = {}
    for each in item["customerSets"]:
        logged.setdefault(each["index"], []).append(each)
    for index in sorted(planned.keys() | logged.keys()):
        for position, done in enumerate(logged.get(index, [None])):
            is_of_planned = done is not None and done["exerciseId"] == item["exerciseId"]
            label = f"{index}: {item['exercise']['name']}" if is_of_planned else str(index)
            yield index, label, planned.get(index) if position == 0 else None, done


def _circuit_sets(circuit: CircuitItem, unit: str) -> Iterator[SetResult]:
    """Yield every logged set, by round and order of the circuit's exercises; sets of removed exercises last."""
    entries = {entry["exerciseId"]: entry for entry in circuit["circuitExercises"]}
    order = {exercise_id: position for position, exercise_id in enumerate(entries)}

    def position(logged: CustomerSet) -> tuple[int, int, int]:
        exercise_id = logged["exerciseId"]
        return logged["round"] or 0, order[exercise_id] if exercise_id in order else len(order), logged["index"]

    for logged in sorted(circuit["customerSets"], key=position):
        entry = entries.get(logged["exerciseId"]) if logged["exerciseId"] else None
        sets = entry["sets"] if entry else []
        label = f"Round {logged['round']}: {entry['exercise']['name'] if entry else 'removed exercise'}"
        if len(sets) != 1:
            label += f", set {logged['index']}"
        planned = next((planned for planned in sets if planned["index"] == logged["index"]), None)
        yield _set_result(label, planned, logged, unit)


def _set_result(label: str, planned: PlannedSet | None, logged: CustomerSet | None, unit: str) -> SetResult:
    return {
        "set": label,
        "planned": (describe_set(planned, unit) if planned else "") or "–",
        "done": describe_logged_set(logged, unit) if logged else _NOT_COMPLETED,
        "effort": describe_effort(logged) if logged else "",
        "isCompleted": bool(logged and logged["isCompleted"]),
    }


_KINDS = {"drop": "drop set", "failure": "to failure"}


def describe_logged_set(logged: CustomerSet, unit: str) -> str:
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


def describe_effort(logged: CustomerSet) -> str:
    """Describe the kind and the effort of a logged set, such as `warm-up`, `RPE 8`; empty if none was logged."""
    efforts = [f"{name} {format_number(logged[key])}" for name, key in EFFORT_FIELDS if logged[key] is not None]
    return ", ".join([*describe_kind(logged), *efforts])


def describe_kind(logged: CustomerSet) -> list[str]:
    """Return what a logged set was, if it was not a normal one."""
    kind = logged.get("setKind", "normal")
    return [*(["warm-up"] if logged.get("isWarmup") else []), *([_KINDS[kind]] if kind in _KINDS else [])]


def _form_answers(item: FormItem) -> Iterator[tuple[str, str]]:
    if item["answers"] is None:
        return
    answers = {answer["questionId"]: answer["value"] for answer in item["answers"]}
    for question in item["form"]["questions"]:
        unit = "of 10" if question["type"] == "rating" else ""
        yield question["label"], describe_answer(answers.get(question["_id"]), unit)


def describe_answer(value: Any, unit: str = "") -> str:
    """Describe the answer to a question: a text, a number, or a list of options."""
    if value in (None, "", []):
        return "–"
    if isinstance(value, list):
        return ", ".join(value)
    return value if isinstance(value, str) else format_number(value, unit)


def _metric_values(item: MetricsItem) -> Iterator[tuple[str, str]]:
    metrics = {metric["_id"]: metric for metric in item["metricsFields"]["metrics"]}
    for recorded in item["values"] or ():
        metric = metrics.get(recorded["metricId"])
        name = metric["name"] if metric else "Removed metric"
        yield name, format_number(recorded["value"], metric["metricUnit"]["shortName"] if metric else "")
