"""Personal records in words: the name of each type, and values with their unit."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from coaching_service.people.activity import record_types
from coaching_service.people.activity.record_types import RECORD_NAMES
from coaching_service.progress.personal_records.models import PersonalRecord
from coaching_service.training.workouts.sets.records import COUNT, RecordKey, is_better
from coaching_service.web.formatting import format_duration, format_number


def record_name(record: Mapping[str, Any]) -> str:
    """Return the name of a record's type, with the distance of the fastest time, such as `Fastest 400 m`."""
    name = RECORD_NAMES[record["type"]]
    return f"{name} {format_number(float(record['meters']), 'm')}" if record.get("meters") else name


def record_value(record: Mapping[str, Any]) -> str:
    """Return the value of a record with its unit, such as `100 kg`, `12 reps` or `1 min 30 s`."""
    return format_record_value(record["type"], record["value"], record["unit"])


def format_record_value(record_type: str, value: float, unit: str) -> str:
    """Return a value of a type of record with its unit; times in minutes and hours."""
    if unit == "s":
        return format_duration(value)
    places = 1 if record_type == record_types.ESTIMATED_ONE_REP_MAX else 2
    return format_number(round(value, places), "reps" if unit == COUNT else unit)


def record_key(record: PersonalRecord) -> RecordKey:
    """Return what a record is of."""
    return RecordKey(record["type"], record.get("meters"))


def best_records(records: Iterable[PersonalRecord]) -> list[PersonalRecord]:
    """Return the best of the records of one exercise for each type and distance, in the order of the types."""
    best: dict[RecordKey, PersonalRecord] = {}
    for record in records:
        known = best.get(record_key(record))
        if known is None or is_better(record["type"], record["value"], known["value"]):
            best[record_key(record)] = record
    return [best[key] for key in sorted(best, key=lambda each: each.order)]


RECORD_FILTERS: dict[str, Callable[..., str]] = {"record_name": record_name, "record_value": record_value}
