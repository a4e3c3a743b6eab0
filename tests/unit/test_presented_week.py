"""The week that peers of the benchmark derive, compared with the service's."""

from __future__ import annotations

from copy import deepcopy
from typing import Any, cast

import pytest

from benchmarks.presented_week import present_week
from coaching_service.core.auth import ALL_PERMISSIONS, Company, Principal
from coaching_service.core.ids import ObjectId
from coaching_service.library.exercises.models import ExerciseName
from coaching_service.training.workouts.items import service as items
from coaching_service.training.workouts.items.service import References

EXERCISE = ObjectId()
READER = Principal(
    id=EXERCISE,
    company=Company(EXERCISE, "Gym", "UTC", "lb"),
    role="OWNER",
    via="session",
    name="Olga",
    email=None,
    credential_id=EXERCISE,
    permissions=ALL_PERMISSIONS,
)
_SET = {"type": "reps_load", "index": 1, "isWarmup": False, "isAmrap": False, "perSide": False, "setKind": "normal"}
_UNSET = dict.fromkeys(("rest", "rpe", "rir", "tempo", "loadPercent", "load", "minPlannedReps", "maxPlannedReps"))


def _block(planned: dict[str, Any]) -> dict[str, Any]:
    exercise: Any = {"type": "EXERCISE", "exerciseId": EXERCISE, "exerciseSets": [{**_SET, **_UNSET, **planned}]}
    task: Any = {"type": "TASK", "taskFields": {"title": "Walk", "description": None}}
    stored = [items.create_item(exercise), items.create_item(task)]
    return {"_id": ObjectId(), "date": "2026-03-02", "version": 3, "items": stored}


@pytest.mark.parametrize(
    "planned",
    [
        {},
        {"minPlannedReps": 8, "maxPlannedReps": 10, "load": 60, "rest": 90},
        {"minPlannedReps": 12, "maxPlannedReps": 12, "load": 0, "rir": 2, "rpe": 8},
        {"minPlannedReps": 5},
        {"maxPlannedReps": 5},
        {"type": "time", "minPlannedSeconds": 30, "maxPlannedSeconds": 45},
        {"type": "distance", "plannedMeters": 400},
    ],
)
def test_items_are_those_of_the_service(planned: dict[str, Any]) -> None:
    block = _block(planned)
    exercise: ExerciseName = {"_id": EXERCISE, "name": "Squat", "defaultInstructions": None}
    expected = items.present_items(block["items"], 3, References({EXERCISE: exercise}, {}, {}), READER)
    [presented] = present_week([deepcopy(block)], "lb")
    presented["items"][0]["exercise"] = exercise
    for item in expected:
        for each in cast("list[dict[str, Any]]", item.get("exerciseSets", [])):
            each["variables"] = list(each["variables"])
    assert presented["items"] == expected


def test_blocks_have_their_order_in_the_day_and_whether_they_are_completed() -> None:
    blocks = [_block({}), _block({}), _block({}) | {"date": "2026-03-03"}]
    for item in blocks[1]["items"]:
        item["isCompleted"] = True
    blocks[2] |= {"items": [], "metadata": [{"key": "a", "value": "b"}], "externalId": "x"}
    first, second, third = present_week(blocks, "kg")
    assert [block["order"] for block in (first, second, third)] == [0, 1, 0]
    assert [block["isCompleted"] for block in (first, second, third)] == [False, True, False]
    assert (first["metadata"], third["metadata"]) == ({}, {"a": "b"})
    assert (first["externalId"], third["externalId"]) == (None, "x")
    assert [first[name] for name in ("assignmentId", "checkInId", "feeling")] == [None, None, None]
