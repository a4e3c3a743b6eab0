"""The figures of a client computed plainly from the calendar, independently of the service."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, timedelta
from typing import Any

from tests.support.training import Json

Calendar = list[Json]
SHARE_OF_ROLE = {"primary": 1, "secondary": 0.5}


def planned_exercises(item: Json) -> set[str]:
    """The exercises an item plans."""
    planned = {item["exerciseId"]} if item["type"] == "EXERCISE" else set()
    return planned | {entry["exerciseId"] for entry in item.get("circuitExercises", [])}


def logged_sets(item: Json) -> list[tuple[str, Json]]:
    """The logged sets of an item, each with its exercise."""
    return [(logged["exerciseId"] or item["exerciseId"], logged) for logged in item.get("customerSets", [])]


def working_sets(item: Json) -> Iterator[tuple[str, int, float]]:
    """Exercise, reps and load of the completed sets that are not warm-up."""
    plans = [(item.get("exerciseId"), item.get("exerciseSets", []))]
    plans += [(entry["exerciseId"], entry["sets"]) for entry in item.get("circuitExercises", [])]
    warm_ups = {(exercise, planned["index"]) for exercise, sets in plans for planned in sets if planned["isWarmup"]}
    for exercise, logged in logged_sets(item):
        if logged["isCompleted"] and (exercise, logged["index"]) not in warm_ups:
            yield exercise, logged["reps"] or 0, logged["load"] or 0


def trained_exercises(item: Json) -> set[str]:
    """The exercises of which a set that is not warm-up is completed."""
    return {exercise for exercise, _, _ in working_sets(item)}


def is_session(block: Json) -> bool:
    """Contract 7: a completed set that is not warm-up, or a completed item of a type without sets."""
    return any(
        next(working_sets(item), None) is not None if item["type"] in ("EXERCISE", "CIRCUIT") else item["isCompleted"]
        for item in block["items"]
    )


def estimate_one_rep_max(reps: int, load: float) -> float:
    """Epley for 2 to 12 reps, the load itself for one; 0 without an estimate."""
    if reps == 1:
        return load
    return load + load * reps / 30 if 2 <= reps <= 12 else 0


def history(calendar: Calendar, exercise: str, *, include_incomplete: bool) -> list[Json]:
    """The sessions of an exercise, newest first, with the fields that are computed."""
    sessions = []
    for block in sorted(calendar, key=lambda block: (block["date"], block["_id"]), reverse=True):
        items = [item for item in block["items"] if exercise in planned_exercises(item) | trained_exercises(item)]
        if any(include_incomplete or exercise in trained_exercises(item) for item in items):
            sets = [(reps, load) for item in items for trained, reps, load in working_sets(item) if trained == exercise]
            best = max((estimate_one_rep_max(*each) for each in sets), default=0)
            session = {
                "date": block["date"],
                "wblockId": block["_id"],
                "isCompleted": all(item["isCompleted"] for item in items),
                "sets": [logged for item in items for trained, logged in logged_sets(item) if trained == exercise],
                "volumeLoad": round(sum(reps * load for reps, load in sets), 6),
                "estimate": round(best, 2) or None,
            }
            sessions.append(session)
    return sessions


def records(calendar: Calendar) -> dict[tuple[str, str], tuple[Any, ...]]:
    """Value, reps, date and item of the record of each exercise and type: of equals the earliest, then most reps."""
    bests: dict[tuple[str, str], tuple[Any, ...]] = {}
    for block in calendar:
        for item in block["items"]:
            for exercise, reps, load in working_sets(item):
                values = {
                    "heaviest_load": load if reps else 0,
                    "most_reps": reps,
                    "estimated_1rm": round(estimate_one_rep_max(reps, load), 2),
                }
                for record_type, value in values.items():
                    candidate = (-value, block["date"], -reps, item["_id"])
                    if value:
                        key = (exercise, record_type)
                        bests[key] = min(candidate, bests.get(key, candidate))
    return {key: (-value, -reps, day, item) for key, (value, day, reps, item) in bests.items()}


def volume(calendar: Calendar, exercises: list[Json], first: str, last: str) -> dict[str, list[float]]:
    """Sets, reps and volume load of each muscle by name."""
    muscles = {exercise["_id"]: exercise["muscleGroups"] for exercise in exercises}
    totals: dict[str, list[float]] = {}
    for block in calendar:
        for item in block["items"] if first <= block["date"] <= last else ():
            for exercise, reps, load in working_sets(item):
                for muscle in muscles[exercise]:
                    total = totals.setdefault(muscle["name"], [0, 0, 0])
                    share = SHARE_OF_ROLE[muscle["role"]]
                    for position, figure in enumerate((1, reps, reps * load)):
                        total[position] += share * figure
    return {name: [round(figure, 6) for figure in total] for name, total in totals.items()}


def dates_between(first: str, last: str) -> list[str]:
    """Every date from `first` to `last`."""
    start, end = date.fromisoformat(first), date.fromisoformat(last)
    return [str(start + timedelta(number)) for number in range((end - start).days + 1)]


def days_before(day: str, number: int) -> str:
    """The date `number` days before a date."""
    return str(date.fromisoformat(day) - timedelta(number))


def session_load(block: Json) -> float | None:
    """The session load of a block."""
    rpe, minutes = block["sessionRpe"], block["durationMinutes"]
    return None if rpe is None or minutes is None else rpe * minutes


def sessions_between(calendar: Calendar, first: str, last: str) -> Calendar:
    """The sessions from `first` to `last`."""
    return [block for block in calendar if first <= block["date"] <= last and is_session(block)]


def last_trained_date(calendar: Calendar, today: str) -> str | None:
    """The date of the latest session; today of later ones, which were logged today."""
    return max((min(block["date"], today) for block in calendar if is_session(block)), default=None)


def volume_load(blocks: Calendar) -> float:
    """The sum of reps x load."""
    return sum(reps * load for block in blocks for item in block["items"] for _, reps, load in working_sets(item))


def ratio(calendar: Calendar, day: str) -> tuple[float | None, str]:
    """The acute:chronic ratio on a day, and the load it is of."""
    month = sessions_between(calendar, days_before(day, 27), day)
    rated = bool(month) and all(session_load(block) is not None for block in month)
    week = [block for block in month if block["date"] >= days_before(day, 6)]
    acute, chronic = [
        sum(session_load(block) or 0 for block in blocks) if rated else volume_load(blocks) for blocks in (week, month)
    ]
    session_dates = [block["date"] for block in sessions_between(calendar, "0001-01-01", "9999-12-31")]
    is_early = not session_dates or days_before(day, 28) < min(session_dates)
    value = None if is_early or not chronic else round(4 * acute / chronic, 2)
    return value, "sessionLoad" if rated else "volumeLoad"


def period_of(day: str, group_by: str) -> str:
    """The first date of the period that contains a date."""
    weekday = date.fromisoformat(day).weekday()
    return {"day": day, "week": days_before(day, weekday), "month": day[:8] + "01"}[group_by]


def workload(calendar: Calendar, first: str, last: str, group_by: str) -> list[tuple[Any, ...]]:
    """First date, sessions, sets, reps, volume load, session load and ratio of each period."""
    periods = []
    for start in dict.fromkeys(period_of(day, group_by) for day in dates_between(first, last)):
        dates = [day for day in dates_between(first, last) if period_of(day, group_by) == start]
        blocks = sessions_between(calendar, dates[0], dates[-1])
        sets = [each for block in blocks for item in block["items"] for each in working_sets(item)]
        loads = [load for block in blocks if (load := session_load(block)) is not None]
        figures = (start, len(blocks), len(sets), sum(reps for _, reps, _ in sets), round(volume_load(blocks), 6))
        periods.append((*figures, sum(loads) if loads else None, *ratio(calendar, dates[-1])))
    return periods


def compliance(calendar: Calendar, first: str, last: str) -> list[tuple[Any, ...]]:
    """Date, workout day, rest day, completed, number of items and of completed items of each day."""
    days = []
    for day in dates_between(first, last):
        blocks = [block for block in calendar if block["date"] == day]
        items = [item for block in blocks if not block["isRest"] for item in block["items"]]
        completed = [item for item in items if item["isCompleted"]]
        is_rest_day = not items and any(block["isRest"] for block in blocks)
        is_completed = bool(items) and len(completed) == len(items)
        days.append((day, bool(items), is_rest_day, is_completed, len(items), len(completed)))
    return days


def workout_days(calendar: Calendar, first: str, last: str, today: str) -> tuple[int, int]:
    """Contract 7: the workout days up to yesterday, with today only once it is completed, and those completed."""
    counted = [
        is_completed
        for day, is_workout, _, is_completed, _, _ in compliance(calendar, first, last)
        if is_workout and (day < today or (day == today and is_completed))
    ]
    return len(counted), sum(counted)


def percentage(calendar: Calendar, first: str, last: str, today: str) -> float | None:
    """The completed workout days in percent of those that count."""
    total, completed = workout_days(calendar, first, last, today)
    return round(100 * completed / total, 1) if total else None
