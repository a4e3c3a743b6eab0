"""A client's sets, records and results in an exercise, in words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypedDict

from coaching_service.progress.personal_records.models import PersonalRecord
from coaching_service.training.workouts.query_models import LiftResult
from coaching_service.training.workouts.set_models import CustomerSet
from coaching_service.training.workouts.totals_models import RecordType
from coaching_service.training.workouts.training_load import ESTIMATED_ONE_REP_MAX, HEAVIEST_LOAD, MOST_REPS
from coaching_service.web.formatting import format_number, quantity

RECORD_NAMES: dict[RecordType, str] = {
    HEAVIEST_LOAD: "Heaviest",
    ESTIMATED_ONE_REP_MAX: "Estimated 1RM",
    MOST_REPS: "Most reps",
}

Point = tuple[str, float]


class NamedRecord(TypedDict):
    """A personal record in words."""

    name: str
    value: str
    date: str


class DoneSet(TypedDict):
    """A set in words: `effort` is its RPE and reps in reserve, if they were entered."""

    amount: str
    effort: str
    isCompleted: bool


def describe_set(done: CustomerSet, unit: str) -> DoneSet:
    """Describe a set that was logged, such as `60 kg x 8`; loads are in `unit`."""
    effort = [
        *([f"RPE {format_number(done['rpe'])}"] if done["rpe"] is not None else []),
        *([f"{format_number(done['rir'])} in reserve"] if done["rir"] is not None else []),
    ]
    return {"amount": _amount(done, unit), "effort": ", ".join(effort), "isCompleted": done["isCompleted"]}


def _amount(done: CustomerSet, unit: str) -> str:
    load = format_number(done["load"], unit) if done["load"] else ""
    if load and done["reps"] is not None:
        parts = [f"{load} × {done['reps']}"]
    else:
        parts = [load, quantity(done["reps"], "rep") if done["reps"] is not None else ""]
    parts.append(_duration(done["seconds"]) if done["seconds"] is not None else "")
    parts.append(format_number(done["meters"], "m") if done["meters"] is not None else "")
    return ", ".join(part for part in parts if part) or ("Done" if done["isCompleted"] else "Not done")


def _duration(seconds: float) -> str:
    """Return `45 s`, `2 min` or `1 min 30 s`."""
    minutes, rest = divmod(seconds, 60)
    parts = [f"{int(minutes)} min"] if minutes else []
    return " ".join([*parts, *([f"{format_number(rest)} s"] if rest or not minutes else [])])


def describe_records(records: Iterable[PersonalRecord]) -> list[NamedRecord]:
    """Describe the best record of each type of one exercise; most reps only if no load was lifted."""
    best: dict[RecordType, PersonalRecord] = {}
    for record in records:
        known = best.get(record["type"])
        if known is None or record["value"] > known["value"]:
            best[record["type"]] = record
    types: Sequence[RecordType] = [HEAVIEST_LOAD, ESTIMATED_ONE_REP_MAX] if HEAVIEST_LOAD in best else [*RECORD_NAMES]
    return [
        {"name": RECORD_NAMES[each], "value": _record_value(best[each]), "date": best[each]["date"]}
        for each in types
        if each in best
    ]


def _record_value(record: PersonalRecord) -> str:
    if record["type"] == MOST_REPS:
        return quantity(int(record["value"]), "rep")
    reps = f" × {record['reps']}" if record["type"] == HEAVIEST_LOAD and record["reps"] else ""
    places = 1 if record["type"] == ESTIMATED_ONE_REP_MAX else 2
    return format_number(round(record["value"], places), record["unit"]) + reps


def best_points(results: Iterable[LiftResult], record_type: RecordType) -> list[Point]:
    """Return the best value of a type of each workout that has one, by date."""
    return [
        (result["date"], best["value"]) for result in results for best in result["bests"] if best["kind"] == record_type
    ]


def main_points(results: Sequence[LiftResult]) -> tuple[RecordType, list[Point]]:
    """Return the type of value that says most about an exercise, with its points: none if it has no such values."""
    for record_type in (ESTIMATED_ONE_REP_MAX, HEAVIEST_LOAD, MOST_REPS):
        if points := best_points(results, record_type):
            return record_type, points
    return MOST_REPS, []
