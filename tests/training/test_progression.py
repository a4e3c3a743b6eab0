"""Progression of planned sets, compared with an independent calculation."""

from __future__ import annotations

import random
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coaching_service.core.ids import ObjectId
from coaching_service.training.schedule.progression import SetChange, change_load

BENCH, SQUAT = ObjectId(), ObjectId()


def in_hundredths(load: int, add: int, rounding: int) -> int:
    """A load plus `add`, all in hundredths, rounded half up to a multiple of `rounding`, not below 0."""
    total = load + add
    if total < 0:
        return 0
    below = total // rounding * rounding
    return below + rounding if (total - below) * 2 >= rounding else below


def test_200_random_loads_by_hand() -> None:
    """Issue 17: progression by hand on 200 random loads. Whole hundredths, so that no fraction is involved."""
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
        (61, {"add": 0}, "2.5", 60),
        (61.25, {"add": 0}, "2.5", 62.5),  # half up
        (62.5, {"add": 2.5}, "2.5", 65),
        (100, {"percent": 5}, "2.5", 105),
        (82.5, {"percent": 2.5}, "2.5", 85),
        (0.1, {"add": 0.2}, "0.1", 0.3),  # in binary 0.30000000000000004
        (1.005, {"add": 0}, "0.01", 1.01),  # in binary below the half
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


@settings(max_examples=200)
@given(
    st.integers(0, 100_000), st.integers(-10_000, 10_000) | st.none(), st.integers(-100, 1_000), st.integers(1, 2_000)
)
def test_a_changed_load_is_the_nearest_multiple(cents: int, add: int | None, percent: int, rounding: int) -> None:
    """Compared with fractions, which are exact."""
    change: Any = {"percent": percent} if add is None else {"add": add / 100}
    exact = Fraction(cents) * (100 + percent) / 100 if add is None else Fraction(cents + add)
    changed = change_load(cents / 100, change, Decimal(rounding) / 100)
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
    for each in (
        planned(load=None, loadPercent=70),
        planned(load=None),
        {"index": 1, "type": "time", "minPlannedSeconds": 30},
    ):
        assert change.change_set(each) == each


@pytest.mark.parametrize(("unit", "expected"), [("kg", 62.5), ("lb", 65)])
def test_the_default_rounding_is_that_of_the_unit(unit: str, expected: float) -> None:
    assert SetChange.of({"load": {"add": 2.5}}, unit).change_set(planned(load=60))["load"] == expected


def test_only_the_named_exercises_change() -> None:
    change = SetChange.of({"load": {"add": 5}, "exerciseIds": [BENCH]}, "kg")
    exercise: Any = {"type": "EXERCISE", "exerciseId": SQUAT, "exerciseSets": [planned(load=60)]}
    assert change.change_item(exercise) == {}
    assert change.change_item({**exercise, "exerciseId": BENCH}) == {"exerciseSets": [planned(load=65)]}
    entries = [{"exerciseId": each, "sets": [planned(load=60)], "instructions": None} for each in (BENCH, SQUAT)]
    circuit: Any = {"type": "CIRCUIT", "circuitExercises": entries}
    assert change.change_item(circuit) == {"circuitExercises": [{**entries[0], "sets": [planned(load=65)]}, entries[1]]}
    assert change.change_item({"type": "TASK"}) == {}  # type: ignore[typeddict-item]
