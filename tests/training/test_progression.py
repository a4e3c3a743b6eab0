"""Progression of planned sets, compared with an independent calculation."""

from __future__ import annotations

import random
from decimal import Decimal
from fractions import Fraction
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coaching_service.core.ids import ObjectId
from coaching_service.training.schedule.models import Progression
from coaching_service.training.schedule.service import SetChange, change_load
from coaching_service.training.workouts.items.models import ExerciseItem, TaskItem
from coaching_service.training.workouts.sets import PlannedSet

BENCH, SQUAT = ObjectId(), ObjectId()


def in_hundredths(load: int, add: int, rounding: int) -> int:
    """A load plus `add`, all in hundredths, rounded half up to a multiple of `rounding`, not below 0.

    A change smaller than `rounding` is exact.
    """
    total = load + add
    if total < 0:
        return 0
    if abs(add) < rounding:
        return total
    below = total // rounding * rounding
    return below + rounding if (total - below) * 2 >= rounding else below


def test_200_random_loads_by_hand() -> None:
    """Progression by hand on 200 random loads. Whole hundredths, so that no fraction is involved."""
    randomizer = random.Random(17)
    for _ in range(200):
        load, add = randomizer.randrange(0, 40_000), randomizer.randrange(-5_000, 5_000)
        rounding = randomizer.choice([25, 50, 100, 125, 250, 500, 1_000])
        expected = in_hundredths(load, add, rounding)
        changed = change_load(load / 100, {"add": add / 100}, Decimal(rounding) / 100)
        assert round(changed * 100) == expected, (load, add, rounding)


@pytest.mark.parametrize(
    ("load", "change", "rounding", "expected"),
    [
        (60, {"add": 2.5}, "2.5", 62.5),
        (61, {"add": 0}, "2.5", 61),
        (61, {"add": 2.5}, "2.5", 62.5),  # 63.5
        (61.25, {"add": 2.5}, "2.5", 65),  # half up
        (61.25, {"add": -5}, "2.5", 57.5),  # 56.25, half up
        (62.5, {"add": 2.5}, "2.5", 65),
        (100, {"percent": 5}, "2.5", 105),
        (82.5, {"percent": 2.5}, "2.5", 84.5625),  # 2.0625 is smaller than 2.5
        (82.5, {"percent": 4}, "2.5", 85),  # 85.8
        (0.1, {"add": 0.2}, "0.1", 0.3),  # in binary 0.30000000000000004
        (1.005, {"add": 0.01}, "0.01", 1.02),  # in binary below the half
        (10, {"add": -20}, "2.5", 0),
        (80, {"percent": -100}, "2.5", 0),
        (45, {"add": 7}, "5", 50),
        (45, {"add": 7.5}, "5", 55),
        (0, {"add": 2.5}, "2.5", 2.5),
        (100_000, {"percent": 1_000}, "2.5", 100_000),
    ],
)
def test_loads_by_hand(load: float, change: Any, rounding: str, expected: float) -> None:
    assert change_load(load, change, Decimal(rounding)) == expected


@pytest.mark.parametrize(
    ("loads", "change", "rounding", "expected"),
    [
        ([12, 14, 16, 7, 9], {"add": 2}, "2.5", [14, 16, 18, 9, 11]),
        ([7], {"percent": -10}, "2.5", [6.3]),
        ([12, 14, 7], {"add": -1}, "2.5", [11, 13, 6]),
        ([35, 22.5], {"percent": 10}, "5", [38.5, 24.75]),
        ([1], {"add": -2}, "2.5", [0]),
        ([61, 82.5], {"add": 5}, None, [66, 87.5]),
        ([61, 82.5], {"percent": 10}, None, [67.1, 90.75]),
    ],
)
def test_a_change_smaller_than_the_rounding_is_exact(
    loads: list[float], change: Any, rounding: str | None, expected: list[float]
) -> None:
    """Contract 10: dumbbells between two multiples do not jump."""
    step = None if rounding is None else Decimal(rounding)
    assert [change_load(load, change, step) for load in loads] == expected


@settings(max_examples=200)
@given(
    st.integers(0, 100_000), st.integers(-10_000, 10_000) | st.none(), st.integers(-100, 1_000), st.integers(1, 2_000)
)
def test_a_changed_load_is_the_nearest_multiple_or_exact(
    cents: int, add: int | None, percent: int, rounding: int
) -> None:
    """Compared with fractions, which are exact."""
    change: Any = {"percent": percent} if add is None else {"add": add / 100}
    exact = Fraction(cents) * (100 + percent) / 100 if add is None else Fraction(cents + add)
    changed = change_load(cents / 100, change, Decimal(rounding) / 100)
    moved, wanted = Fraction(str(changed)) * 100 - cents, exact - cents
    assert moved * wanted >= 0, "never against the sign of the change"
    if abs(wanted) < rounding:
        assert Fraction(str(changed)) * 100 == max(exact, Fraction(0))
        return
    steps = Fraction(str(changed)) * 100 / rounding
    assert steps.denominator == 1 or changed == 100_000
    if changed < 100_000:
        difference = steps * rounding - max(exact, Fraction(0))
        assert -Fraction(rounding, 2) < difference <= Fraction(rounding, 2), "half goes up"


def planned(**fields: Any) -> Any:
    return {"index": 1, "type": "reps_load", "rest": 90, **fields}


def test_repetitions_do_not_fall_below_one() -> None:
    change = SetChange.of({"reps": {"add": -3}}, "kg")
    changed = change.change_set(planned(minPlannedReps=2, maxPlannedReps=8, load=61))
    assert changed == planned(minPlannedReps=1, maxPlannedReps=5, load=61), "loads are rounded only when they change"
    assert change.change_set(planned(minPlannedReps=None, maxPlannedReps=4)) == planned(
        minPlannedReps=None, maxPlannedReps=1
    )


@pytest.mark.parametrize("load", [{"add": 5}, {"percent": 10}])
def test_a_set_without_a_load_stays(load: Any) -> None:
    change = SetChange.of({"load": load}, "kg")
    timed = cast("PlannedSet", {"index": 1, "type": "time", "minPlannedSeconds": 30})
    for each in (planned(load=None, loadPercent=70), planned(load=None), timed):
        assert change.change_set(each) == each


@pytest.mark.parametrize(
    ("unit", "progression", "expected"),
    [
        ("kg", {}, 67.5),  # 66.5
        ("lb", {}, 65),
        ("kg", {"rounding": None}, 66.5),
        ("kg", {"rounding": 1}, 67),
    ],
)
def test_loads_are_rounded_for_the_unit_or_as_requested(unit: str, progression: Any, expected: float) -> None:
    wanted: Progression = {"load": {"add": 5.5}}
    wanted.update(progression)
    change = SetChange.of(wanted, unit)
    assert change.change_set(planned(load=61))["load"] == expected


@pytest.mark.parametrize(
    ("count", "sets", "expected"),
    [
        (3, {"add": 1}, 4),
        (3, {"add": -1}, 2),
        (3, {"add": -9}, 1),
        (3, {"add": 0}, 3),
        (98, {"add": 9}, 99),  # with the warm-up set 100, the most
        (3, {"percent": -33}, 2),
        (3, {"percent": -33.3}, 2),
        (4, {"percent": -33}, 3),
        (5, {"percent": -50}, 3),  # half up
        (2, {"percent": -100}, 1),
        (2, {"percent": 25}, 3),
    ],
)
def test_working_sets_are_added_and_removed(count: int, sets: Any, expected: int) -> None:
    """Contract 18: at least one set stays; warm-up sets are not counted."""
    warmup = planned(load=20, isWarmup=True)
    working = [planned(load=60 + number, isWarmup=False, index=2 + number) for number in range(count)]
    for before, place in ([warmup, *working], 0), ([*working, warmup], expected):
        item = cast("ExerciseItem", {"type": "EXERCISE", "exerciseId": SQUAT, "exerciseSets": before})
        after = SetChange.of({"sets": sets}, "kg").change_item(item).get("exerciseSets", before)
        assert len(after) == expected + 1
        assert after[place]["isWarmup"]
        if after != before:
            assert [each["index"] for each in after] == [*range(1, expected + 2)]
        remaining = [each["load"] for each in after if not each["isWarmup"]]
        assert remaining == [60 + min(number, count - 1) for number in range(expected)]


def test_sets_that_are_all_warm_up_stay() -> None:
    item: Any = {"type": "EXERCISE", "exerciseId": SQUAT, "exerciseSets": [planned(isWarmup=True)] * 2}
    assert SetChange.of({"sets": {"add": -1}}, "kg").change_item(item) == {}


def test_only_the_named_exercises_change() -> None:
    change = SetChange.of({"load": {"add": 5}, "exerciseIds": [BENCH]}, "kg")
    squat, bench = (
        cast("ExerciseItem", {"type": "EXERCISE", "exerciseId": each, "exerciseSets": [planned(load=60)]})
        for each in (SQUAT, BENCH)
    )
    assert change.change_item(squat) == {}
    assert change.change_item(bench) == {"exerciseSets": [planned(load=65)]}
    entries = [{"exerciseId": each, "sets": [planned(load=60)], "instructions": None} for each in (BENCH, SQUAT)]
    circuit: Any = {"type": "CIRCUIT", "circuitExercises": entries}
    assert change.change_item(circuit) == {"circuitExercises": [{**entries[0], "sets": [planned(load=65)]}, entries[1]]}
    assert change.change_item(cast("TaskItem", {"type": "TASK"})) == {}
