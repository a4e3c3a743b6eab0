"""Functions of blocks, items and sets by hand, without a database."""

from __future__ import annotations

from typing import Any, cast

import pytest

from coaching_service.core.ids import ObjectId
from coaching_service.training.workouts.blocks.items import convert_items
from coaching_service.training.workouts.items import service as items
from coaching_service.training.workouts.items.models import ItemChange, ItemInput, WorkItem
from coaching_service.training.workouts.sets import record_distance

SQUAT, ROW = ObjectId(), ObjectId()


def _planned(load: float) -> dict[str, Any]:
    effort = {"rest": None, "rpe": None, "rir": None, "tempo": None, "isWarmup": False}
    return {"index": 1, "type": "reps_load", "minPlannedReps": 5, "maxPlannedReps": 5, "load": load, **effort}


def _item(**fields: Any) -> WorkItem:
    return items.create_item(cast("ItemInput", fields))


def test_loads_of_exercises_and_circuits_are_converted_and_counted() -> None:
    entries = [{"exerciseId": ROW, "sets": [_planned(20), _planned(30)], "instructions": None}]
    exercise = _item(type="EXERCISE", exerciseId=SQUAT, exerciseSets=[_planned(100)])
    circuit = _item(type="CIRCUIT", circuitName="Finisher", circuitExercises=entries, rounds=2)
    task = _item(type="TASK", taskFields={"title": "Walk", "description": None})

    converted, loads = convert_items([exercise, circuit, task], lambda load: load * 2)

    assert loads == 3
    assert converted[0]["type"] == "EXERCISE" and converted[0]["exerciseSets"][0]["load"] == 200
    assert converted[1]["type"] == "CIRCUIT"
    assert [each["load"] for each in converted[1]["circuitExercises"][0]["sets"]] == [40, 60]
    assert converted[2] is task


def test_a_change_sets_only_fields_of_the_type_of_the_item() -> None:
    task = _item(type="TASK", taskFields={"title": "Walk", "description": None})
    other = cast("ItemChange", {"exerciseSets": [_planned(100)], "rounds": 3})
    assert items.change_item(task, other) is task
    title = {"title": "Run", "description": None}
    changed = items.change_item(task, cast("ItemChange", {**other, "taskFields": title}))
    assert {**changed, "updatedAt": None} == {**task, "taskFields": title, "updatedAt": None}


@pytest.mark.parametrize(("meters", "expected"), [(999, 999), (1_000, 1_000), (1_099, 1_000), (5_148, 5_100)])
def test_long_distances_are_compared_in_steps_of_100_m(meters: float, expected: float) -> None:
    assert record_distance(meters) == expected
