"""The rows of the form that logs an exercise or circuit: one per set, prefilled with the plan until it is logged."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, NamedTuple, NotRequired, TypedDict

from coaching_service.core.ids import ObjectId
from coaching_service.training.workouts.items import content as items
from coaching_service.training.workouts.items.descriptions import describe_set
from coaching_service.training.workouts.items.models import CircuitItem, ExerciseItem, WorkItem
from coaching_service.training.workouts.sets.models import CustomerSet, PlannedSet
from coaching_service.web.views.item_results import pair_sets

AmountField = Literal["reps", "seconds", "meters", "load", "rpe", "rir"]
_PlannedField = Literal["minPlannedReps", "minPlannedSeconds", "plannedMeters", "load"]
AMOUNT_FIELDS: dict[AmountField, str] = {
    "reps": "Reps",
    "seconds": "Seconds",
    "meters": "Meters",
    "load": "Load",
    "rpe": "RPE",
    "rir": "RIR",
}
_PLANNED_FIELDS: dict[AmountField, _PlannedField] = {
    "reps": "minPlannedReps",
    "seconds": "minPlannedSeconds",
    "meters": "plannedMeters",
    "load": "load",
}
_AMOUNTS_BY_MEASURE = {"reps": ("reps", "load"), "time": ("seconds", "load"), "distance": ("meters", "seconds", "load")}


class Amount(NamedTuple):
    """One field of a row: the field's name, its label, and its initial value."""

    name: AmountField
    label: str
    value: float | None


class LogRow(TypedDict):
    """One set in the form; `exerciseId` and `round` only in circuits. `planned` describes the planned set."""

    label: str
    index: int
    exerciseId: NotRequired[ObjectId | None]
    round: NotRequired[int | None]
    planned: str
    isCompleted: bool
    amounts: list[Amount]


def log_rows(item: WorkItem, unit: str) -> list[LogRow]:
    """Return the rows of an exercise or circuit, loads in `unit`; other items have none."""
    prefill = not items.is_recorded(item)
    if item["type"] == "EXERCISE":
        return list(_exercise_rows(item, unit, prefill))
    if item["type"] == "CIRCUIT":
        return list(_circuit_rows(item, unit, prefill))
    return []


def _exercise_rows(exercise: ExerciseItem, unit: str, prefill: bool) -> Iterator[LogRow]:
    for index, label, planned, logged in pair_sets(exercise):
        exercise_id = logged["exerciseId"] if logged else None
        row = _row(f"Set {label}", index, planned, logged, unit, prefill)
        yield {**row, "exerciseId": exercise_id, "round": None} if exercise_id else row


def _circuit_rows(circuit: CircuitItem, unit: str, prefill: bool) -> Iterator[LogRow]:
    """Yield the planned sets by round, then the logged sets that are no longer planned."""
    logged = {(each["exerciseId"], each["round"], each["index"]): each for each in circuit["customerSets"]}
    for round_number in range(1, circuit["rounds"] + 1):
        for entry in circuit["circuitExercises"]:
            for planned in entry["sets"]:
                exercise_id, index = entry["exerciseId"], planned["index"]
                label = f"Round {round_number}: {entry['exercise']['name']}"
                if len(entry["sets"]) > 1:
                    label += f", set {index}"
                row = _row(label, index, planned, logged.pop((exercise_id, round_number, index), None), unit, prefill)
                yield {**row, "exerciseId": exercise_id, "round": round_number}
    for unplanned in logged.values():
        label = f"Round {unplanned['round']}: no longer planned"
        row = _row(label, unplanned["index"], None, unplanned, unit, prefill)
        yield {**row, "exerciseId": unplanned["exerciseId"], "round": unplanned["round"]}


def _row(
    label: str, index: int, planned: PlannedSet | None, logged: CustomerSet | None, unit: str, prefill: bool
) -> LogRow:
    amounts = []
    for name, field_label in AMOUNT_FIELDS.items():
        logged_value = logged.get(name) if logged else None
        if logged_value is None and not _is_offered(name, planned):
            continue
        planned_value = planned.get(_PLANNED_FIELDS[name]) if planned and name in _PLANNED_FIELDS else None
        label_with_unit = f"{field_label}, {unit}" if name == "load" else field_label
        amounts.append(Amount(name, label_with_unit, planned_value if prefill else logged_value))
    return {
        "label": label,
        "index": index,
        "planned": describe_set(planned, unit) if planned else "",
        "isCompleted": logged["isCompleted"] if logged else prefill,
        "amounts": amounts,
    }


def _is_offered(name: AmountField, planned: PlannedSet | None) -> bool:
    """Return whether a set of this type is logged with this amount; reps and load for a set that is not planned."""
    measure = planned["type"].partition("_")[0] if planned else "reps"
    return name in _AMOUNTS_BY_MEASURE[measure] or name in ("rpe", "rir")
