"""What the readings should say, worked out plainly from a client's calendar as it is read."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, timedelta
from typing import Any

from tests.training import Json

Calendar = list[Json]
SHARE = {"primary": 1, "secondary": 0.5}


def named(item: Json) -> set[str]:
    """The exercises an item plans."""
    planned = {item["exerciseId"]} if item["type"] == "EXERCISE" else set()
    return planned | {entry["exerciseId"] for entry in item.get("circuitExercises", [])}


def logged(item: Json) -> list[tuple[str, Json]]:
    """Every set that was logged, with its exercise."""
    return [(each["exerciseId"] or item["exerciseId"], each) for each in item.get("customerSets", [])]


def done(item: Json) -> set[str]:
    """The exercises of an item that are done: all of them when it is completed, else those with a completed set."""
    return (named(item) if item["isCompleted"] else set()) | {of for of, each in logged(item) if each["isCompleted"]}


def worked(item: Json) -> Iterator[tuple[str, int, float]]:
    """Exercise, repetitions and load of the completed sets that are not warm-up."""
    plans = [(item.get("exerciseId"), item.get("exerciseSets", []))]
    plans += [(entry["exerciseId"], entry["sets"]) for entry in item.get("circuitExercises", [])]
    warm_ups = {(of, planned["index"]) for of, sets in plans for planned in sets if planned["isWarmup"]}
    for of, each in logged(item):
        if each["isCompleted"] and (of, each["index"]) not in warm_ups:
            yield of, each["reps"] or 0, each["load"] or 0


def estimate(reps: int, load: float) -> float:
    """Epley for 2 to 12 repetitions, the load itself for one; 0 is none."""
    if reps == 1:
        return load
    return load + load * reps / 30 if 2 <= reps <= 12 else 0


def history(calendar: Calendar, exercise: str, *, planned_too: bool) -> list[Json]:
    """The sessions of an exercise, newest first; of the figures those that are not copied."""
    found = []
    for block in sorted(calendar, key=lambda block: (block["date"], block["_id"]), reverse=True):
        items = [item for item in block["items"] if exercise in named(item) | done(item)]
        if any(planned_too or exercise in done(item) for item in items):
            sets = [(reps, load) for item in items for of, reps, load in worked(item) if of == exercise]
            best = max((estimate(*each) for each in sets), default=0)
            session = {
                "date": block["date"],
                "wblockId": block["_id"],
                "isCompleted": all(item["isCompleted"] for item in items),
                "sets": [each for item in items for of, each in logged(item) if of == exercise],
                "volumeLoad": round(sum(reps * load for reps, load in sets), 6),
                "estimate": round(best, 2) or None,
            }
            found.append(session)
    return found


def records(calendar: Calendar) -> dict[tuple[str, str], tuple[Any, ...]]:
    """Value, repetitions, date and item of the best by exercise and kind: of equals the earliest, then the most
    repetitions."""
    best: dict[tuple[str, str], tuple[Any, ...]] = {}
    for block in calendar:
        for item in block["items"]:
            for of, reps, load in worked(item):
                values = {
                    "heaviest_load": load if reps else 0,
                    "most_reps": reps,
                    "estimated_1rm": round(estimate(reps, load), 2),
                }
                for kind, value in values.items():
                    found = (-value, block["date"], -reps, item["_id"])
                    if value:
                        best[of, kind] = min(found, best.get((of, kind), found))
    return {key: (-value, -reps, day, item) for key, (value, day, reps, item) in best.items()}


def volume(calendar: Calendar, exercises: list[Json], first: str, last: str) -> dict[str, list[float]]:
    """Sets, repetitions and volume load of each muscle by name."""
    muscles = {exercise["_id"]: exercise["muscleGroups"] for exercise in exercises}
    found: dict[str, list[float]] = {}
    for block in calendar:
        for item in block["items"] if first <= block["date"] <= last else ():
            for of, reps, load in worked(item):
                for muscle in muscles[of]:
                    so_far = found.setdefault(muscle["name"], [0, 0, 0])
                    share = SHARE[muscle["role"]]
                    for at, figure in enumerate((1, reps, reps * load)):
                        so_far[at] += share * figure
    return {name: [round(figure, 6) for figure in figures] for name, figures in found.items()}


def days(first: str, last: str) -> list[str]:
    """Every date from `first` to `last`."""
    begin, end = date.fromisoformat(first), date.fromisoformat(last)
    return [str(begin + timedelta(number)) for number in range((end - begin).days + 1)]


def back(day: str, number: int) -> str:
    """The date so many days before."""
    return str(date.fromisoformat(day) - timedelta(number))


def load_of(block: Json) -> float | None:
    """The session load of a block."""
    rpe, minutes = block["sessionRpe"], block["durationMinutes"]
    return None if rpe is None or minutes is None else rpe * minutes


def sessions(calendar: Calendar, first: str, last: str) -> Calendar:
    """The blocks with anything done, or rated."""
    return [
        block
        for block in calendar
        if first <= block["date"] <= last
        and (
            load_of(block) is not None
            or any(
                item["isCompleted"] or any(each["isCompleted"] for _, each in logged(item)) for item in block["items"]
            )
        )
    ]


def volume_load(blocks: Calendar) -> float:
    """The sum of repetitions x load."""
    return sum(reps * load for block in blocks for item in block["items"] for _, reps, load in worked(item))


def ratio(calendar: Calendar, day: str) -> tuple[float | None, str]:
    """The acute:chronic ratio on a day, and of which load."""
    month = sessions(calendar, back(day, 27), day)
    rated = bool(month) and all(load_of(block) is not None for block in month)
    week = [block for block in month if block["date"] >= back(day, 6)]
    acute, chronic = [
        sum(load_of(block) or 0 for block in blocks) if rated else volume_load(blocks) for blocks in (week, month)
    ]
    trained = [block["date"] for block in sessions(calendar, "0001-01-01", "9999-12-31")]
    early = not trained or back(day, 28) < min(trained)
    return None if early or not chronic else round(4 * acute / chronic, 2), "sessionLoad" if rated else "volumeLoad"


def period_of(day: str, group_by: str) -> str:
    """The first day of the period a day is in."""
    weekday = date.fromisoformat(day).weekday()
    return {"day": day, "week": back(day, weekday), "month": day[:8] + "01"}[group_by]


def workload(calendar: Calendar, first: str, last: str, group_by: str) -> list[tuple[Any, ...]]:
    """First day, sessions, sets, repetitions, volume load, session load and ratio of each period."""
    found = []
    for start in dict.fromkeys(period_of(day, group_by) for day in days(first, last)):
        inside = [day for day in days(first, last) if period_of(day, group_by) == start]
        blocks = sessions(calendar, inside[0], inside[-1])
        sets = [each for block in blocks for item in block["items"] for each in worked(item)]
        loads = [load for block in blocks if (load := load_of(block)) is not None]
        facts = (start, len(blocks), len(sets), sum(reps for _, reps, _ in sets), round(volume_load(blocks), 6))
        found.append((*facts, sum(loads) if loads else None, *ratio(calendar, inside[-1])))
    return found


def compliance(calendar: Calendar, first: str, last: str) -> list[tuple[Any, ...]]:
    """Date, workout day, rest day, completed, items and those completed of each day."""
    found = []
    for day in days(first, last):
        blocks = [block for block in calendar if block["date"] == day]
        items = [item for block in blocks for item in block["items"]]
        workout = any(block["items"] and not block["isRest"] for block in blocks)
        rest = not workout and any(block["isRest"] for block in blocks)
        completed = [item for item in items if item["isCompleted"]]
        found.append((day, workout, rest, workout and len(completed) == len(items), len(items), len(completed)))
    return found


def percentage(calendar: Calendar, first: str, last: str) -> float | None:
    """How many of the workout days were completed."""
    workouts = [day for day in compliance(calendar, first, last) if day[1]]
    return round(100 * sum(day[3] for day in workouts) / len(workouts), 1) if workouts else None
