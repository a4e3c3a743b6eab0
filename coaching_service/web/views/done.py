"""What a client did of an item, beside what was planned, in words."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from coaching_service.core.database.documents import Document
from coaching_service.training.workouts import items
from coaching_service.web.views.items import EFFORT, figure, planned_set

Row = dict[str, str]


def done(item: Document, unit: str) -> Document | None:
    """What was recorded of an item as it is read, or None when nothing was; loads are in `unit`.

    Gives `when` (the moment it was completed, or None), `comment`, `sets` (rows of `set`, `planned`, `done`, `effort`)
    and `answers` (a question or metric, and what was answered or measured).
    """
    if not items.is_recorded(item):
        return None
    sets = {"EXERCISE": _exercise, "CIRCUIT": _circuit}.get(item["type"])
    answers = {"FORM": _answers, "METRICS": _values}.get(item["type"])
    return {
        "when": item["completedAt"],
        "comment": item["comment"],
        "sets": list(sets(item, unit)) if sets and item["customerSets"] else [],
        "answers": list(answers(item)) if answers else [],
    }


def _exercise(item: Document, unit: str) -> Iterator[Row]:
    """Each set that was planned or done."""
    planned = {each["index"]: each for each in item["exerciseSets"]}
    logged = {each["index"]: each for each in item["customerSets"]}
    for index in sorted(planned.keys() | logged.keys()):
        yield _row(str(index), planned.get(index), logged.get(index), unit)


def _circuit(item: Document, unit: str) -> Iterator[Row]:
    """Each set that was done, round after round."""
    entries = {entry["exerciseId"]: (at, entry) for at, entry in enumerate(item["circuitExercises"])}
    gone = (len(entries), {"exercise": {"name": "an exercise taken out since"}, "sets": []})

    def place(of: Document) -> tuple[int, int, int]:
        return of["round"], entries.get(of["exerciseId"], gone)[0], of["index"]

    for each in sorted(item["customerSets"], key=place):
        _, entry = entries.get(each["exerciseId"], gone)
        planned = next((one for one in entry["sets"] if one["index"] == each["index"]), None)
        where = f"Round {each['round']}: {entry['exercise']['name']}"
        yield _row(where if len(entry["sets"]) == 1 else f"{where}, {each['index']}", planned, each, unit)


def _row(label: str, planned: Document | None, logged: Document | None, unit: str) -> Row:
    return {
        "set": label,
        "planned": planned_set(planned, unit) or "–" if planned else "–",
        "done": _set(logged, unit) if logged and logged["isCompleted"] else "not done",
        "effort": _effort(logged) if logged else "",
    }


def _set(logged: Document, unit: str) -> str:
    parts = [
        figure(logged["reps"]),
        figure(logged["seconds"], "s"),
        figure(logged["meters"], "m"),
        figure(logged["load"], unit),
    ]
    return ", ".join(part for part in parts if part) or "done"


def _effort(logged: Document) -> str:
    return ", ".join(f"{name} {figure(logged[key])}" for name, key in EFFORT if logged[key] is not None)


def _answers(item: Document) -> Iterator[tuple[str, str]]:
    given = {answer["questionId"]: answer["value"] for answer in item["answers"]}
    for question in item["form"]["questions"]:
        yield question["label"], _answer(given.get(question["_id"]), "of 10" if question["type"] == "rating" else "")


def _answer(value: Any, unit: str) -> str:
    if value in (None, "", []):
        return "–"
    if isinstance(value, list):
        return ", ".join(value)
    return value if isinstance(value, str) else figure(value, unit)


def _values(item: Document) -> Iterator[tuple[str, str]]:
    metrics = {metric["_id"]: metric for metric in item["metricsFields"]["metrics"]}
    for each in item["values"]:
        metric = metrics.get(each["metricId"])
        name = metric["name"] if metric else "A metric that was taken out of the set"
        yield name, figure(each["value"], metric["metricUnit"]["shortName"] if metric else "")
