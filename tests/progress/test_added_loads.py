"""Estimates of exercises whose load is added to the body's: of the whole weight by the latest body weight of 30 days."""

from __future__ import annotations

from typing import Any

import pytest

from tests.progress.test_kinds_of_records import progress, train
from tests.support.client import MONDAY, TUESDAY, CoachClient
from tests.support.results import list_history, list_records
from tests.support.training import Json, block_with, client_path, exercise_of, metric_set

BEFORE, TOO_EARLY = "2026-01-31", "2026-01-30"  # 30 and 31 days before MONDAY, 2 March
WEDNESDAY = "2026-03-04"
PULL_UPS: list[Json] = [{"reps": 10}, {"reps": 8, "load": 10}, {"reps": 3, "load": 20}]


async def weigh(coach: CoachClient, customer: Json, metrics: Json, value: float, date: str) -> None:
    """Record a body weight."""
    body = {"metricId": metrics["metrics"][0]["_id"], "date": date, "value": value}
    (await coach.post(client_path(customer, "metrics-sets", metrics["_id"], "entries"), body)).ok(201)


async def body_weights(coach: CoachClient, customer: Json, name: str = "Body weight", short: str = "kg") -> Json:
    """Assign a set with a metric of body weight."""
    metrics: Json = await metric_set(coach, name, short=short)
    (await coach.post(client_path(customer, "metrics-sets"), {"metricsSetId": metrics["_id"]})).ok(201)
    return metrics


async def planned_load(coach: CoachClient, customer: Json, exercise: Json, percent: float, date: str) -> float | None:
    """The load of a set that is planned in percent."""
    plan = exercise_of(exercise, {"type": "reps_load", "minPlannedReps": 5, "loadPercent": percent})
    block = await block_with(coach, customer, plan, date=date)
    load: float | None = block["items"][0]["exerciseSets"][0]["load"]
    return load


async def estimates(coach: CoachClient, customer: Json, exercise: Json) -> tuple[Any, Any, Any]:
    """The estimate of the only session in history and progress, and the record."""
    [session], [point] = await list_history(coach, customer, exercise), await progress(coach, customer, exercise)
    records = {each["type"]: each["value"] for each in await list_records(coach, customer)}
    values = [each["estimatedOneRepMax"] and each["estimatedOneRepMax"]["value"] for each in (session, point)]
    return (*values, records.get("estimated_1rm"))


async def test_pull_ups_are_estimated_of_the_whole_weight(coach: CoachClient) -> None:
    """E20: 106.7, 114.0 and 110.0, so the second is the best; a percentage plans what is added."""
    ana, pull_up = await coach.create_customer(), await coach.create_exercise("Pull-up", loadType="added")
    metrics = await body_weights(coach, ana)
    await weigh(coach, ana, metrics, 90, TOO_EARLY)
    await train(coach, ana, pull_up, *PULL_UPS)
    assert await estimates(coach, ana, pull_up) == (None, None, None)
    assert await planned_load(coach, ana, pull_up, 90, TUESDAY) is None

    await weigh(coach, ana, metrics, 80, BEFORE)
    assert await estimates(coach, ana, pull_up) == (114, 114, 114)
    [session] = await list_history(coach, ana, pull_up)
    assert session["estimatedOneRepMax"] == {"value": 114, "formula": "epley_body_weight", "setIndex": 2}
    assert [session["bestSet"]["load"], session["volumeLoad"]] == [10, 140]
    heaviest = [each["value"] for each in await list_records(coach, ana) if each["type"] == "heaviest_load"]
    assert heaviest == [20], "of the added load"
    item = (await coach.calendar(ana, MONDAY, MONDAY))[0]["items"][0]
    assert item["exercise"]["loadType"] == "added"
    assert not {"addedExerciseIds", "bodyWeight"} & item.keys()


@pytest.mark.parametrize(("sets", "estimate"), [(PULL_UPS[:1], 106.67), (PULL_UPS[1:2], 114), (PULL_UPS[2:], 110)])
async def test_each_set_is_estimated_of_the_whole_weight(coach: CoachClient, sets: list[Json], estimate: float) -> None:
    ana, pull_up = await coach.create_customer(), await coach.create_exercise("Pull-up", loadType="added")
    await weigh(coach, ana, await body_weights(coach, ana), 80, MONDAY)
    await train(coach, ana, pull_up, *sets)
    assert await estimates(coach, ana, pull_up) == (estimate, estimate, estimate)


async def test_percentages_plan_what_is_added(coach: CoachClient) -> None:
    """Percent of the whole less the latest body weight of 30 days; a training maximum is of the added load."""
    ana, pull_up = await coach.create_customer(), await coach.create_exercise("Pull-up", loadType="added")
    metrics = await body_weights(coach, ana)
    await weigh(coach, ana, metrics, 80, MONDAY)
    await train(coach, ana, pull_up, *PULL_UPS)

    assert await planned_load(coach, ana, pull_up, 90, TUESDAY) == 22.5  # 102.6 less 80
    assert await planned_load(coach, ana, pull_up, 60, TUESDAY) == 0, "68.4 is less than the body weight"
    await weigh(coach, ana, metrics, 90, WEDNESDAY)
    assert await planned_load(coach, ana, pull_up, 90, WEDNESDAY) == 12.5  # 102.6 less 90
    assert await planned_load(coach, ana, pull_up, 90, "2026-04-04") is None, "31 days after the last body weight"
    path = client_path(ana, "training-maxes", pull_up["_id"])
    (await coach.put(path, {"value": 30})).ok()
    assert await planned_load(coach, ana, pull_up, 90, TUESDAY) == 27.5


async def test_estimates_follow_body_weights(coach: CoachClient) -> None:
    """Dips in lb: recorded later for an earlier date, replaced, deleted, and by an undo."""
    (await coach.patch("/coach/account", {"loadUnit": "lb"})).ok()
    ana, dip = await coach.create_customer(), await coach.create_exercise("Dip", loadType="added")
    await train(coach, ana, dip, {"reps": 1, "load": 45}, {"reps": 6, "load": 20})
    entered = {"exerciseId": dip["_id"], "type": "heaviest_load", "value": 60, "reps": 3, "date": TUESDAY}
    (await coach.post(client_path(ana, "personal-records"), entered)).ok(201)
    metrics = await body_weights(coach, ana, "Weight", "lb")

    await weigh(coach, ana, metrics, 180, BEFORE)
    assert await estimates(coach, ana, dip) == (240, 240, 240)  # 200 x 36/30 is better than 225
    # On Tuesday no body weight is known: what was entered has no estimate; 100 % is 240 less nothing that is known.
    assert await planned_load(coach, ana, dip, 100, TUESDAY) is None
    await weigh(coach, ana, metrics, 150, MONDAY)
    assert await estimates(coach, ana, dip) == (204, 204, 204)  # 170 x 36/30
    assert await planned_load(coach, ana, dip, 100, TUESDAY) == 80  # (150 + 60) x 33/30 = 231, less 150: 81

    path = client_path(ana, "metrics-sets", metrics["_id"], "metrics", metrics["metrics"][0]["_id"], "history", MONDAY)
    (await coach.delete(path)).ok(204)
    assert await estimates(coach, ana, dip) == (240, 240, 240)
