"""A session in words: how it felt, how long it took, and the personal records set in it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from math import ceil
from typing import TypedDict

from coaching_service.people.activity.record_types import (
    ESTIMATED_ONE_REP_MAX,
    HEAVIEST_LOAD,
    LEAST_ASSISTANCE,
    MOST_REPS,
    RecordType,
)
from coaching_service.progress.personal_records.models import PersonalRecord
from coaching_service.training.workouts.blocks.models import Block
from coaching_service.training.workouts.items.descriptions import format_number
from coaching_service.web.formatting import quantity, record_name, record_value

FEELINGS = ((1, "Bad"), (2, "Poor"), (3, "Okay"), (4, "Good"), (5, "Great"))
_LONGEST = 360  # minutes; sets that are further apart were not logged while training
_WITH_REPS = (HEAVIEST_LOAD, LEAST_ASSISTANCE)
_NAMES: dict[RecordType, str] = {HEAVIEST_LOAD: "heaviest set", ESTIMATED_ONE_REP_MAX: "best estimated one-rep max"}


class RecordText(TypedDict):
    """A record: the exercise, and what was reached, such as `heaviest set: 100 kg for 5 reps`."""

    exercise: str
    text: str


def describe_records(records: Sequence[PersonalRecord]) -> list[RecordText]:
    """Return personal records in words."""
    return [{"exercise": record["exerciseName"], "text": _describe(record)} for record in records]


def _describe(record: PersonalRecord) -> str:
    reps = f" for {quantity(record['reps'], 'rep')}" if record["reps"] and record["type"] in _WITH_REPS else ""
    if record["type"] == MOST_REPS:
        return f"most reps in a set: {format_number(record['value'])}"
    return f"{_NAMES.get(record['type'], record_name(record).lower())}: {record_value(record)}{reps}"


def measure_minutes(block: Block) -> int | None:
    """Return the minutes from the first to the last logged set; None with fewer than two, or if it is too long."""
    times: list[datetime] = [
        logged["loggedAt"]
        for item in block["items"]
        if item["type"] == "EXERCISE" or item["type"] == "CIRCUIT"
        for logged in item["customerSets"]
        if logged["isCompleted"] and "loggedAt" in logged
    ]
    if len(times) < 2:
        return None
    minutes = ceil((max(times) - min(times)).total_seconds() / 60)
    return minutes if 0 < minutes <= _LONGEST else None
