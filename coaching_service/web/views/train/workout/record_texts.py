"""Personal records in the words of a client."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypedDict

from coaching_service.progress.personal_records.models import PersonalRecord
from coaching_service.training.workouts.training_load import ESTIMATED_ONE_REP_MAX, HEAVIEST_LOAD
from coaching_service.web.views.item_descriptions import format_number


class RecordText(TypedDict):
    """A record: the exercise, and what was reached, such as `heaviest set: 100 kg for 5 reps`."""

    exercise: str
    text: str


def describe_records(records: Sequence[PersonalRecord]) -> list[RecordText]:
    """Return personal records in words."""
    return [{"exercise": record["exerciseName"], "text": _describe(record)} for record in records]


def _describe(record: PersonalRecord) -> str:
    value = record["value"]
    if record["type"] == HEAVIEST_LOAD:
        reps = f" for {_count(record['reps'])}" if record["reps"] else ""
        return f"heaviest set: {format_number(value, record['unit'])}{reps}"
    if record["type"] == ESTIMATED_ONE_REP_MAX:
        return f"best estimated one-rep max: {format_number(round(value, 1), record['unit'])}"
    return f"most reps in a set: {format_number(value)}"


def _count(reps: int) -> str:
    return f"{reps} rep" if reps == 1 else f"{reps} reps"
