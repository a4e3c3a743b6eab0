"""A client's sets, records and results in an exercise, in words and in the unit that the client has chosen."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypedDict

from coaching_service.core.database.context import Context
from coaching_service.people.account.service import LOAD_UNITS, convert_stored_load
from coaching_service.people.activity import record_types
from coaching_service.progress.personal_records.models import PersonalRecord
from coaching_service.training.workouts.reports.models import LiftResult
from coaching_service.training.workouts.sets import CustomerSet, RecordKey, unit_of
from coaching_service.web.formatting import (
    best_records,
    format_duration,
    format_number,
    quantity,
    record_name,
    record_value,
)
from coaching_service.web.views.item_results import describe_kind


def show_records(ctx: Context, records: Sequence[PersonalRecord]) -> list[PersonalRecord]:
    """Return personal records, with loads in the client's unit."""
    return [_show_record(record, ctx.caller.load_unit) for record in records]


def _show_record(record: PersonalRecord, load_unit: str) -> PersonalRecord:
    if record["unit"] not in LOAD_UNITS or record["unit"] == load_unit:
        return record
    return {**record, "value": convert_stored_load(record["value"], record["unit"], load_unit), "unit": load_unit}


def show_results(ctx: Context, results: Sequence[LiftResult]) -> list[LiftResult]:
    """Return what was done of an exercise in workouts, with its loads in the client's unit."""
    unit, shown_unit = ctx.caller.company.load_unit, ctx.caller.load_unit
    if unit == shown_unit:
        return list(results)
    return [
        {
            **result,
            "volumeLoad": convert_stored_load(result["volumeLoad"], unit, shown_unit),
            "bests": [
                {**best, "value": convert_stored_load(best["value"], unit, shown_unit)}
                if unit_of(best["kind"]) is None
                else best
                for best in result["bests"]
            ],
        }
        for result in results
    ]


_FASTEST_SHOWN = 3
# The types of values that say most about an exercise, the one to prefer first.
_MAIN_TYPES: tuple[record_types.RecordType, ...] = (
    record_types.ESTIMATED_ONE_REP_MAX,
    record_types.HEAVIEST_LOAD,
    record_types.LEAST_ASSISTANCE,
    record_types.MOST_REPS,
    record_types.FARTHEST_DISTANCE,
    record_types.LONGEST_TIME,
)

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
        *describe_kind(done),
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
    parts.append(format_duration(done["seconds"]) if done["seconds"] is not None else "")
    parts.append(format_number(done["meters"], "m") if done["meters"] is not None else "")
    return ", ".join(part for part in parts if part) or ("Done" if done["isCompleted"] else "Not done")


def describe_records(records: Iterable[PersonalRecord]) -> list[NamedRecord]:
    """Describe the best record of each type of one exercise; most reps only if no load was lifted.

    Of the fastest times over a distance, the latest three.
    """
    best = best_records(records)
    fastest = sorted(
        (each for each in best if each["type"] == record_types.FASTEST), key=lambda each: each["date"], reverse=True
    )
    left_out = [each["_id"] for each in fastest[_FASTEST_SHOWN:]]
    if any(each["type"] in (record_types.HEAVIEST_LOAD, record_types.LEAST_ASSISTANCE) for each in best):
        left_out += [each["_id"] for each in best if each["type"] == record_types.MOST_REPS]
    return [
        {"name": _short_name(each), "value": _record_value(each), "date": each["date"]}
        for each in best
        if each["_id"] not in left_out
    ]


def _short_name(record: PersonalRecord) -> str:
    return "Heaviest" if record["type"] == record_types.HEAVIEST_LOAD else record_name(record)


def _record_value(record: PersonalRecord) -> str:
    if record["type"] == record_types.MOST_REPS:
        return quantity(int(record["value"]), "rep")
    with_reps = record["type"] in (record_types.HEAVIEST_LOAD, record_types.LEAST_ASSISTANCE) and record["reps"]
    return record_value(record) + (f" × {record['reps']}" if with_reps else "")


def best_points(results: Iterable[LiftResult], key: RecordKey) -> list[Point]:
    """Return the best value for a record of each workout that has one, by date."""
    return [
        (result["date"], best["value"])
        for result in results
        for best in result["bests"]
        if (best["kind"], best.get("meters")) == key
    ]


def main_points(results: Sequence[LiftResult]) -> tuple[record_types.RecordType, list[Point]]:
    """Return the type of value that says most about an exercise, with its points: none if it has no such values."""
    for record_type in _MAIN_TYPES:
        if points := best_points(results, RecordKey(record_type)):
            return record_type, points
    return record_types.MOST_REPS, []
