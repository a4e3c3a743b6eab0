"""The rules of compliance (which days count, and which of them are completed), free of the database."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from itertools import groupby

from coaching_service.people.availability.absences import Absences
from coaching_service.progress.compliance.models import BlockCompliance, DayCompliance
from coaching_service.training.workouts.reports.models import ScheduledBlock


def group_by_date(blocks: Iterable[ScheduledBlock]) -> dict[str, list[ScheduledBlock]]:
    """Return the blocks of each date that has any; `blocks` are sorted by date."""
    return {day: list(blocks_of_day) for day, blocks_of_day in groupby(blocks, key=lambda block: block["date"])}


def describe_days(
    blocks_by_date: Mapping[str, Sequence[ScheduledBlock]], start: date, end: date, absences: Absences
) -> list[DayCompliance]:
    """Return every day from `start` to `end` with what was scheduled and completed on it."""
    return [describe_day(day, blocks_by_date.get(day, ()), absences) for day in list_dates(start, end)]


def list_dates(start: date, end: date) -> list[str]:
    """Return every date from `start` to `end`."""
    return [str(date.fromordinal(number)) for number in range(start.toordinal(), end.toordinal() + 1)]


def describe_day(day: str, blocks: Sequence[ScheduledBlock], absences: Absences) -> DayCompliance:
    """Return what was scheduled and completed on one day.

    A workout day has a block that is not rest and has an exercise, a circuit or a task; it is completed when all items
    of such blocks are. Other blocks are ignored in both. A day on which the client does not train is none.
    """
    is_absent = day in absences
    workouts = [block for block in blocks if block["isWorkout"]]
    total = sum(block["totalItems"] for block in workouts)
    completed = sum(block["completedItems"] for block in workouts)
    return {
        "date": day,
        "isWorkoutDay": total > 0 and not is_absent,
        "isRestDay": not workouts and any(block["isRest"] for block in blocks),
        "isCompleted": total > 0 and completed == total and not is_absent,
        "totalItems": total,
        "completedItems": completed,
        "workoutBlocks": [_describe_block(block) for block in blocks],
    }


def _describe_block(block: ScheduledBlock) -> BlockCompliance:
    is_completed = block["totalItems"] > 0 and block["completedItems"] == block["totalItems"]
    return {"id": block["_id"], "name": block["name"], "isCompleted": is_completed}


def count_workout_days(days: Iterable[DayCompliance], today: date) -> tuple[int, int]:
    """Return the numbers of workout days and of completed ones, up to yesterday, and today once completed."""
    counted = [
        day
        for day in days
        if day["isWorkoutDay"] and (day["date"] < str(today) or (day["date"] == str(today) and day["isCompleted"]))
    ]
    return len(counted), sum(day["isCompleted"] for day in counted)


def percentage(completed: int, total: int) -> float | None:
    """Completed workout days in percent, to one decimal; None without a workout day."""
    return round(100 * completed / total, 1) if total else None
