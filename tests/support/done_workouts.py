"""Sessions that the exports of other services have: some made by hand with the truth about them, and generated ones."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from itertools import groupby
from random import Random
from typing import Literal

KG_OF_LB = 0.45359237
Unit = Literal["kg", "lb"]


@dataclass(frozen=True)
class Done:
    """A set that was done. `kg`, `lb`: the load as files in these units have it; negative: assistance."""

    exercise: str
    reps: int | None = None
    kg: float | None = None
    lb: float | None = None
    kind: Literal["normal", "warmup", "drop", "failure"] = "normal"
    rpe: float | None = None
    seconds: int | None = None
    km: float | None = None
    miles: float | None = None
    notes: str = ""
    superset: str = ""


@dataclass(frozen=True)
class Workout:
    """A session that was done."""

    day: str
    start: str
    end: str
    title: str
    notes: str
    minutes: int
    sets: tuple[Done, ...]

    @property
    def exercises(self) -> Iterator[tuple[str, list[Done]]]:
        """The exercises with their sets."""
        return ((name, list(sets)) for name, sets in groupby(self.sets, key=lambda each: each.exercise))


BENCH, SQUAT, DEADLIFT = "Bench Press (Barbell)", "Squat (Barbell)", "Deadlift (Barbell)"
# Made by hand: 35 sets with everything that a set can have, 30 of them with repetitions.
BY_HAND: tuple[Workout, ...] = (
    Workout(
        "2025-03-28",
        "17:29",
        "18:31",
        "Push 💪",
        "Felt strong",
        62,
        (
            Done(BENCH, 10, 20, 45, "warmup"),
            Done(BENCH, 8, 60, 135, rpe=7.5),
            Done(BENCH, 8, 62.5, 140, rpe=8),
            Done(BENCH, 5, 65, 145, "failure", rpe=10),
            Done(BENCH, 9, 50, 110, "drop"),
            Done("Incline Press (Dumbbell)", 10, 22.5, 50, superset="1"),
            Done("Incline Press (Dumbbell)", 9, 22.5, 50, superset="1"),
            Done("Lateral Raise (Dumbbell)", 15, 7.5, 15, superset="1"),
            Done("Lateral Raise (Dumbbell)", 14, 7.5, 15, superset="1"),
            Done("Push Up", 20),
            Done("Push Up", 18),
        ),
    ),
    Workout(
        "2025-03-31",
        "07:05",
        "07:53",
        "Lower A",
        "Slept badly, knee ok",
        48,
        (
            Done(SQUAT, 5, 60, 135, "warmup"),
            Done(SQUAT, 5, 100, 225, rpe=8),
            Done(SQUAT, 5, 100, 225, rpe=8.5),
            Done(SQUAT, 5, 102.5, 230, rpe=9),
            Done("Leg Press (Machine)", 10, 120, 265, notes="seat 4"),
            Done("Leg Press (Machine)", 10, 120, 265, notes="seat 4"),
            Done("Leg Press (Machine)", 10, 125, 275, notes="seat 4"),
            Done("Plank", seconds=45),
            Done("Plank", seconds=60),
        ),
    ),
    Workout(
        "2025-03-31",
        "18:30",
        "19:05",
        "Run",
        "",
        35,
        (
            Done("Running", km=5.2, miles=3.23, seconds=1710),
            Done("Rowing Machine", km=2, miles=1.24, seconds=480),
        ),
    ),
    Workout(
        "2025-06-05",
        "07:30",
        "08:20",
        "Pull",
        "",
        50,
        (
            Done("Pull Up (Assisted)", 8, -20, -45),
            Done("Pull Up (Assisted)", 6, -15, -35),
            Done(DEADLIFT, 5, 140, 315),
            Done(DEADLIFT, 3, 160, 355, rpe=9),
            Done(DEADLIFT, 1, 170, 375, rpe=9.5),
            Done("Hanging Leg Raise", 12),
            Done("Hanging Leg Raise", 10),
            Done("Farmers Walk", kg=32, lb=70, km=0.04, miles=0.025),
        ),
    ),
    Workout(
        "2025-12-08",
        "09:15",
        "10:00",
        "Full",
        "",
        45,
        (
            Done(SQUAT, 5, 105, 235),
            Done(SQUAT, 5, 105, 235),
            Done(SQUAT, 5, 105, 235),
            Done(SQUAT, 5, 105, 235),
            Done(SQUAT, 4, 105, 235),
        ),
    ),
)
# What the sets of BY_HAND are when they are stored, made by hand: (date, start, exercise, kind, repetitions, kg of a
# file in kg, kg of a file in lb, meters of a file in km, meters of a file in miles, seconds, RPE).
Stored = tuple[
    str, str, str, str, int | None, float | None, float | None, float | None, float | None, int | None, float | None
]
TRUTH: tuple[Stored, ...] = (
    ("2025-03-28", "17:29", BENCH, "warmup", 10, 20, 20.41, None, None, None, None),
    ("2025-03-28", "17:29", BENCH, "normal", 8, 60, 61.23, None, None, None, 7.5),
    ("2025-03-28", "17:29", BENCH, "normal", 8, 62.5, 63.5, None, None, None, 8),
    ("2025-03-28", "17:29", BENCH, "failure", 5, 65, 65.77, None, None, None, 10),
    ("2025-03-28", "17:29", BENCH, "drop", 9, 50, 49.9, None, None, None, None),
    ("2025-03-28", "17:29", "Incline Press (Dumbbell)", "normal", 10, 22.5, 22.68, None, None, None, None),
    ("2025-03-28", "17:29", "Incline Press (Dumbbell)", "normal", 9, 22.5, 22.68, None, None, None, None),
    ("2025-03-28", "17:29", "Lateral Raise (Dumbbell)", "normal", 15, 7.5, 6.8, None, None, None, None),
    ("2025-03-28", "17:29", "Lateral Raise (Dumbbell)", "normal", 14, 7.5, 6.8, None, None, None, None),
    ("2025-03-28", "17:29", "Push Up", "normal", 20, None, None, None, None, None, None),
    ("2025-03-28", "17:29", "Push Up", "normal", 18, None, None, None, None, None, None),
    ("2025-03-31", "07:05", SQUAT, "warmup", 5, 60, 61.23, None, None, None, None),
    ("2025-03-31", "07:05", SQUAT, "normal", 5, 100, 102.06, None, None, None, 8),
    ("2025-03-31", "07:05", SQUAT, "normal", 5, 100, 102.06, None, None, None, 8.5),
    ("2025-03-31", "07:05", SQUAT, "normal", 5, 102.5, 104.33, None, None, None, 9),
    ("2025-03-31", "07:05", "Leg Press (Machine)", "normal", 10, 120, 120.2, None, None, None, None),
    ("2025-03-31", "07:05", "Leg Press (Machine)", "normal", 10, 120, 120.2, None, None, None, None),
    ("2025-03-31", "07:05", "Leg Press (Machine)", "normal", 10, 125, 124.74, None, None, None, None),
    ("2025-03-31", "07:05", "Plank", "normal", None, None, None, None, None, 45, None),
    ("2025-03-31", "07:05", "Plank", "normal", None, None, None, None, None, 60, None),
    ("2025-03-31", "18:30", "Running", "normal", None, None, None, 5200, 5198.18, 1710, None),
    ("2025-03-31", "18:30", "Rowing Machine", "normal", None, None, None, 2000, 1995.59, 480, None),
    ("2025-06-05", "07:30", "Pull Up (Assisted)", "normal", 8, 20, 20.41, None, None, None, None),
    ("2025-06-05", "07:30", "Pull Up (Assisted)", "normal", 6, 15, 15.88, None, None, None, None),
    ("2025-06-05", "07:30", DEADLIFT, "normal", 5, 140, 142.88, None, None, None, None),
    ("2025-06-05", "07:30", DEADLIFT, "normal", 3, 160, 161.03, None, None, None, 9),
    ("2025-06-05", "07:30", DEADLIFT, "normal", 1, 170, 170.1, None, None, None, 9.5),
    ("2025-06-05", "07:30", "Hanging Leg Raise", "normal", 12, None, None, None, None, None, None),
    ("2025-06-05", "07:30", "Hanging Leg Raise", "normal", 10, None, None, None, None, None, None),
    ("2025-06-05", "07:30", "Farmers Walk", "normal", None, 32, 31.75, 40, 40.23, None, None),
    ("2025-12-08", "09:15", SQUAT, "normal", 5, 105, 106.59, None, None, None, None),
    ("2025-12-08", "09:15", SQUAT, "normal", 5, 105, 106.59, None, None, None, None),
    ("2025-12-08", "09:15", SQUAT, "normal", 5, 105, 106.59, None, None, None, None),
    ("2025-12-08", "09:15", SQUAT, "normal", 5, 105, 106.59, None, None, None, None),
    ("2025-12-08", "09:15", SQUAT, "normal", 4, 105, 106.59, None, None, None, None),
)


def generated_workouts() -> Iterator[Workout]:
    """Sessions before those made by hand, always the same, on days of their own."""
    random, day = Random(40), date(2025, 3, 20)
    names = (BENCH, SQUAT, DEADLIFT, "Bent Over Row (Barbell)", "Hammer Curl (Dumbbell)", "Triceps Pushdown (Cable)")
    while True:
        day -= timedelta(days=random.randint(1, 3))
        sets: list[Done] = []
        for name in random.sample(names, 4):
            kg = random.randint(8, 60) * 2.5
            sets += [Done(name, random.randint(3, 12), kg, round(kg / KG_OF_LB)) for _ in range(random.randint(2, 4))]
        yield Workout(day.isoformat(), "18:00", "19:00", f"Day {random.choice('ABC')}", "", 60, tuple(sets))


def random_workouts(random: Random, count: int) -> Iterator[Workout]:
    """Sessions with anything that a set may have, on a day each; the sets of an exercise have the same amounts."""
    day = date(2025, 1, 2)
    for _ in range(count):
        day += timedelta(days=random.randint(1, 9))
        minutes, hour = random.randint(20, 130), random.randint(6, 20)
        end = hour * 60 + minutes
        sets: list[Done] = []
        for name in random.sample(("Squat", "Row", "Dip", "Plank", "Run", "Carry", "Press"), random.randint(1, 5)):
            sets += _random_sets(random, name)
        title, note = random.choice(("Upper A", "Lower B", "Day 3")), random.choice(("", "Slept badly", "ok"))
        start = f"{hour:02}:{random.choice((0, 5, 29)):02}"
        end += int(start[3:])
        yield Workout(day.isoformat(), start, f"{end // 60:02}:{end % 60:02}", title, note, minutes, tuple(sets))


def _random_sets(random: Random, name: str) -> list[Done]:
    kg = random.choice(
        (random.randint(1, 120) * 2.5, random.randint(1, 900) / 4, random.randint(100, 1500) / 10, 1250.5)
    )
    lb = round(kg / KG_OF_LB, 1)
    sets: list[Done] = []
    for _ in range(random.randint(1, 5)):
        reps, rpe = random.randint(1, 30), random.choice((None, None, 7.5, 8, 9.5))
        kind: Literal["normal", "warmup"] = "warmup" if random.random() < 0.3 else "normal"
        seconds, km = random.choice((20, 45, 600, 1710, 5400)), random.choice((0.4, 1.5, 5.2, 21.1, 42.195))
        sets.append(
            {
                "Dip": Done(name, reps, rpe=rpe, kind=kind),
                "Plank": Done(name, seconds=seconds),
                "Run": Done(name, seconds=seconds, km=km, miles=round(km / 1.609344, 3)),
                "Carry": Done(name, kg=kg, lb=lb, km=km, miles=round(km / 1.609344, 3)),
            }.get(name, Done(name, reps, kg, lb, kind, rpe))
        )
    return sets
