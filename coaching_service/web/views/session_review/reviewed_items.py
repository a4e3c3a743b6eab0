"""The items of a logged session with tables of what was planned and done in each set, and how that differs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal, TypedDict

from coaching_service.core.ids import ObjectId
from coaching_service.library.exercises.models import ASSISTANCE
from coaching_service.training.workouts.blocks.models import Block
from coaching_service.training.workouts.items import content as items
from coaching_service.training.workouts.items.descriptions import (
    EFFORT_FIELDS,
    describe_item,
    describe_set,
    format_number,
)
from coaching_service.training.workouts.items.models import CircuitExercise, CircuitItem, ExerciseItem, WorkItem
from coaching_service.training.workouts.sets.models import CustomerSet, PlannedSet
from coaching_service.web.formatting import format_date, quantity
from coaching_service.web.views.item_results import (
    ItemResults,
    describe_effort,
    describe_logged_set,
    describe_results,
    pair_sets,
)

DeviationKind = Literal["less", "more", "missed", "extra", "swapped"]
_Bounds = tuple[float | None, float | None]
_UNLIMITED = float("inf")


class Deviation(TypedDict):
    """A difference in words; `less` and `more` than planned, `missed` for a set that was not completed.

    Less assistance than planned is `more`. `swapped` is a set of another exercise.
    """

    kind: DeviationKind
    text: str


def _find_deviations(
    planned: PlannedSet | None,
    logged: CustomerSet | None,
    unit: str,
    *,
    same_exercise: bool = True,
    is_assisted: bool = False,
) -> list[Deviation]:
    """Return how a set differs from its plan; loads are in `unit`, and help if the exercise `is_assisted`.

    Amounts that were not logged are taken as planned; amounts of another exercise are not compared.
    """
    if logged is None:
        return [{"kind": "missed", "text": "Not done"}]
    if planned is None:
        return [{"kind": "extra", "text": "Extra set"}]
    differing: list[Deviation] = (
        [*_amounts(planned, logged, unit, is_assisted=is_assisted)]
        if same_exercise
        else [{"kind": "swapped", "text": "Another exercise"}]
    )
    if not logged["isCompleted"]:
        return [{"kind": "missed", "text": "Not completed" if _has_amounts(logged) else "Not done"}, *differing]
    return [*differing, *_efforts(planned, logged)] if same_exercise else differing


def _has_amounts(logged: CustomerSet) -> bool:
    return any((logged["reps"], logged["seconds"], logged["meters"], logged["load"]))


def _amounts(planned: PlannedSet, logged: CustomerSet, unit: str, *, is_assisted: bool) -> Iterator[Deviation]:
    if (reps := _outside(logged["reps"], _reps_of(planned))) is not None:
        yield {"kind": "less" if reps < 0 else "more", "text": f"{quantity(int(abs(reps)), 'rep')} {_word(reps)}"}
    meters, load = planned.get("plannedMeters"), planned.get("load")
    amounts = (
        (logged["seconds"], _bounds(planned.get("minPlannedSeconds"), planned.get("maxPlannedSeconds")), "s"),
        (logged["meters"], (meters, meters), "m"),
    )
    for value, bounds, of_value in amounts:
        if (by := _outside(value, bounds)) is not None:
            yield {"kind": "less" if by < 0 else "more", "text": f"{format_number(abs(by), of_value)} {_word(by)}"}
    if (by := _outside(logged["load"], (load, load))) is not None:
        text = f"{format_number(abs(by), unit)} {_word(by)}{' assistance' if is_assisted else ''}"
        yield {"kind": "less" if (by < 0) != is_assisted else "more", "text": text}


def _efforts(planned: PlannedSet, logged: CustomerSet) -> Iterator[Deviation]:
    """RPE and RIR that differ: a higher RPE or a lower RIR is more effort than planned."""
    for name, key in EFFORT_FIELDS:
        value, target = logged[key], planned[key]
        if value is not None and target is not None and value != target:
            is_harder = (value > target) == (key == "rpe")
            text = f"{name} {format_number(value)} instead of {format_number(target)}"
            yield {"kind": "more" if is_harder else "less", "text": text}


def _reps_of(planned: PlannedSet) -> _Bounds:
    low, high = _bounds(planned.get("minPlannedReps"), planned.get("maxPlannedReps"))
    return (low, _UNLIMITED) if planned.get("isAmrap") else (low, high)


def _bounds(low: float | None, high: float | None) -> _Bounds:
    """Return the lowest and the highest value as planned; one alone is both."""
    return (high if low is None else low), (low if high is None else high)


def _outside(value: float | None, bounds: _Bounds) -> float | None:
    """Return by how much a value is below (negative) or above its bounds; None if it is not, or either is missing."""
    low, high = bounds
    if value is None:
        return None
    if low is not None and value < low:
        return value - low
    return value - high if high is not None and value > high else None


def _word(by: float) -> str:
    return "less" if by < 0 else "more"


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
        "deviations": _find_deviations(planned, logged, unit, same_exercise=is_same, is_assisted=is_assisted)
        if was_planned
        else [],
    }
