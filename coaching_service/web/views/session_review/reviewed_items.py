"""The items of a logged session, with a table of each exercise: what was planned and done in each set."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypedDict

from coaching_service.core.ids import ObjectId
from coaching_service.library.exercises.models import ASSISTANCE
from coaching_service.training.workouts.blocks.models import Block
from coaching_service.training.workouts.items import content as items
from coaching_service.training.workouts.items.descriptions import describe_item, describe_set
from coaching_service.training.workouts.items.models import CircuitExercise, CircuitItem, ExerciseItem, WorkItem
from coaching_service.training.workouts.sets.models import CustomerSet, PlannedSet
from coaching_service.web.formatting import format_date
from coaching_service.web.views.item_results import (
    ItemResults,
    describe_effort,
    describe_logged_set,
    describe_results,
    pair_sets,
)
from coaching_service.web.views.session_review.deviations import Deviation, find_deviations

ItemState = Literal["done", "part", "skipped", "open"]


class ReviewRow(TypedDict):
    """One set: `label` is its number, with its round in a circuit; `effort` its RPE and RIR."""

    label: str
    planned: str
    done: str
    effort: str
    isPlanned: bool
    isDone: bool
    deviations: list[Deviation]


class ReviewTable(TypedDict):
    """The sets of an exercise; `lastTime` is what the client did the time before, with its date.

    It is empty for an exercise that was swapped for another.
    """

    exerciseId: ObjectId | None
    name: str
    rows: list[ReviewRow]
    lastTime: str


class ReviewedItem(TypedDict):
    """An item with what became of it; `lines` are its plan or details, `hasSets`: a set of it was logged."""

    _id: ObjectId
    title: str
    state: ItemState
    lines: list[str]
    hasSets: bool
    tables: list[ReviewTable]
    results: ItemResults | None


def review_items(block: Block, unit: str) -> list[ReviewedItem]:
    """Return the items of a client's workout; loads are in `unit`. `lastTime` is shown where the items have it."""
    return [_review(item, unit) for item in block["items"]]


def _review(item: WorkItem, unit: str) -> ReviewedItem:
    described = describe_item(item, unit)
    tables: list[ReviewTable] = []
    if item["type"] == "EXERCISE":
        tables = [_exercise_table(item, unit)]
    elif item["type"] == "CIRCUIT":
        tables = _circuit_tables(item, unit)
    return {
        "_id": item["_id"],
        "title": described["title"],
        "state": _state_of(item),
        "lines": [line for line in described["lines"] if line],
        "hasSets": any(row["done"] for table in tables for row in table["rows"]),
        "tables": tables,
        "results": describe_results(item, unit),
    }


def _state_of(item: WorkItem) -> ItemState:
    if item["isCompleted"]:
        return "done"
    if item.get("skipped"):
        return "skipped"
    return "part" if items.is_recorded(item) else "open"


def _exercise_table(item: ExerciseItem, unit: str) -> ReviewTable:
    last = item.get("lastTime") if item.get("swappedFor") is None else None
    return {
        "exerciseId": item["exerciseId"],
        "name": item["exercise"]["name"],
        "rows": [_row(str(index), planned, logged, unit, item) for index, _, planned, logged in pair_sets(item)],
        "lastTime": f"{format_date(last['date'])}: {_describe_sets(last['sets'], unit)}" if last else "",
    }


def _describe_sets(sets: Sequence[CustomerSet], unit: str) -> str:
    return "; ".join(describe_logged_set(each, unit) for each in sets)


def _circuit_tables(circuit: CircuitItem, unit: str) -> list[ReviewTable]:
    """Return a table of each exercise with its sets by round, and one of the sets whose exercise was removed."""
    planned_ids = {entry["exerciseId"] for entry in circuit["circuitExercises"]}
    tables = [_circuit_table(circuit, entry, unit) for entry in circuit["circuitExercises"]]
    removed = [each for each in circuit["customerSets"] if each["exerciseId"] not in planned_ids]
    if removed:
        rows = [_row(_round_label(each["round"] or 1, each["index"], 0), None, each, unit) for each in removed]
        tables.append({"exerciseId": None, "name": "Removed exercise", "rows": rows, "lastTime": ""})
    return tables


def _circuit_table(circuit: CircuitItem, entry: CircuitExercise, unit: str) -> ReviewTable:
    planned = {each["index"]: each for each in entry["sets"]}
    logged = {
        (each["round"] or 1, each["index"]): each
        for each in circuit["customerSets"]
        if each["exerciseId"] == entry["exerciseId"]
    }
    keys = {(number, index) for number in range(1, circuit["rounds"] + 1) for index in planned} | logged.keys()
    rows = [
        _row(
            _round_label(number, index, len(planned)),
            planned.get(index) if number <= circuit["rounds"] else None,
            logged.get((number, index)),
            unit,
            entry,
        )
        for number, index in sorted(keys)
    ]
    return {"exerciseId": entry["exerciseId"], "name": entry["exercise"]["name"], "rows": rows, "lastTime": ""}


def _round_label(number: int, index: int, sets: int) -> str:
    return f"Round {number}" if sets == 1 else f"Round {number}, set {index}"


def _row(
    label: str,
    planned: PlannedSet | None,
    logged: CustomerSet | None,
    unit: str,
    plan: ExerciseItem | CircuitExercise | None = None,
) -> ReviewRow:
    """Return a set of a planned exercise; amounts of an exercise that was done in its place are not compared.

    Nor are those of an exercise that was imported without a plan.
    """
    was_planned = plan is None or plan.get("exerciseSets") != []
    is_same = logged is None or logged["exerciseId"] in (None, plan and plan["exerciseId"])
    is_assisted = plan is not None and plan["exercise"].get("loadType") == ASSISTANCE
    return {
        "label": label,
        "planned": describe_set(planned, unit) if planned else "",
        "done": describe_logged_set(logged, unit) if logged else "",
        "effort": describe_effort(logged) if logged else "",
        "isPlanned": planned is not None,
        "isDone": bool(logged and logged["isCompleted"]),
        "deviations": find_deviations(planned, logged, unit, same_exercise=is_same, is_assisted=is_assisted)
        if was_planned
        else [],
    }
