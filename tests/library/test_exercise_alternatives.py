"""Exercises to do in place of another one: by movement pattern, primary muscle and use."""

from __future__ import annotations

from typing import Any

from coaching_service.core.ids import ObjectId
from coaching_service.library.exercises import service as exercises
from tests.support.client import CoachClient
from tests.support.training import block_with, exercise_of


async def names_of(coach: CoachClient, exercise: dict[str, Any], count: int = 12) -> list[str]:
    return [each["name"] for each in await exercises.list_alternatives(coach.ctx, ObjectId(exercise["_id"]), count)]


async def shared(coach: CoachClient, keywords: str) -> dict[str, Any]:
    query = {"keywords": keywords, "type": "public", "pageSize": 1, "pageNum": 1}
    exercise: dict[str, Any] = (await coach.get("/exercises/unified", **query)).ok()["docs"][0]
    return exercise


async def test_pattern_and_muscle_come_before_either_alone(coach: CoachClient) -> None:
    squat = await shared(coach, "barbell back squat")
    muscles = {each["_id"] for each in squat["muscleGroups"] if each["role"] == "primary"}
    listed = await exercises.list_alternatives(coach.ctx, ObjectId(squat["_id"]), 500)
    ranks = [
        2 * (each.get("movementPattern") == squat["movementPattern"])
        + bool({str(m["_id"]) for m in each["muscleGroups"] if m["role"] == "primary"} & muscles)
        for each in listed
    ]
    assert ranks == sorted(ranks, reverse=True)
    assert set(ranks) == {1, 2, 3} or set(ranks) == {1, 3}
    assert squat["name"] not in [each["name"] for each in listed]
    assert len(await names_of(coach, squat, 5)) == 5


async def test_own_exercises_by_use_without_deleted_ones_and_those_of_others(
    coach: CoachClient, other_company: CoachClient
) -> None:
    first, second = (await coach.get("/muscle-groups")).ok()[:2]
    only, both = [{"_id": first["_id"]}], [{"_id": first["_id"]}, {"_id": second["_id"], "role": "secondary"}]
    planned = await coach.create_exercise("Aa planned", muscleGroups=both)
    often = await coach.create_exercise("Zz planned often", muscleGroups=only)
    deleted = await coach.create_exercise("Deleted", muscleGroups=only)
    await coach.create_exercise("Secondary", muscleGroups=[{"_id": first["_id"], "role": "secondary"}])
    await other_company.create_exercise("Of another company", muscleGroups=only)
    ana = await coach.create_customer()
    for _ in range(2):
        await block_with(coach, ana, exercise_of(often))
    (await coach.delete(f"/exercises/{deleted['_id']}")).ok(204)
    names = await names_of(coach, planned, 500)
    assert names[0] == "Zz planned often"
    assert not {"Aa planned", "Deleted", "Secondary", "Of another company"} & set(names)
    assert await names_of(other_company, planned) == []
