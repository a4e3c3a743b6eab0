"""Estimates of exercises whose load is added to the body's: of the whole weight by the latest body weight of 30 days."""

from __future__ import annotations

from typing import Any

import pytest

from coaching_service.core.ids import ObjectId
from coaching_service.installation import migrations
from coaching_service.library.metric_sets import MetricUnit
from coaching_service.progress.metrics.service import is_body_weight
from tests.integrations.test_load_unit import convert
from tests.progress.test_kinds_of_records import progress, renew, train
from tests.support.client import MONDAY, TUESDAY, CoachClient
from tests.support.results import circuit_set, list_history, list_records
from tests.support.training import (
    Json,
    block_with,
    circuit_of,
    client_path,
    exercise_of,
    feed,
    log,
    metric_set,
    metrics_of,
    path_of,
)
from tests.support.transfer import import_file

UNIT: MetricUnit = {"_id": ObjectId(), "name": "Unit", "shortName": "kg"}
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
    await weigh(coach, ana, metrics, 8_000, WEDNESDAY)  # a typing error counts for nothing
    assert await planned_load(coach, ana, pull_up, 90, WEDNESDAY) == 22.5
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
    deleted = await coach.delete(path)
    deleted.ok(204)
    assert await estimates(coach, ana, dip) == (240, 240, 240)
    (await coach.undo(deleted)).ok()
    assert await estimates(coach, ana, dip) == (204, 204, 204)
    entries = [each["data"]["recordType"] for each in await feed(coach, ana) if each["type"] == "personal_record"]
    assert "estimated_1rm" not in entries, "a body weight is no event of training"


async def test_estimates_follow_dates_and_logged_body_weights(coach: CoachClient) -> None:
    """A session moved out of the 30 days, and a body weight that is logged with a workout and moves with it."""
    ana, pull_up = await coach.create_customer(), await coach.create_exercise("Pull-up", loadType="added")
    metrics = await body_weights(coach, ana)
    weighing = await block_with(coach, ana, metrics_of(metrics), date=BEFORE)
    value = {"metricId": metrics["metrics"][0]["_id"], "value": 80}
    (await log(coach, weighing, weighing["items"][0], values=[value])).ok()
    in_circuit = await block_with(coach, ana, circuit_of(pull_up, rounds=1), date=MONDAY)
    (await log(coach, in_circuit, in_circuit["items"][0], customerSets=[circuit_set(1, pull_up, 8, 10)])).ok()
    assert await estimates(coach, ana, pull_up) == (114, 114, 114)

    (await coach.patch(path_of(in_circuit), {"date": TUESDAY})).ok()
    assert await estimates(coach, ana, pull_up) == (None, None, None)
    (await coach.patch(path_of(weighing), {"date": "2026-02-01"})).ok()
    assert await estimates(coach, ana, pull_up) == (114, 114, 114)
    (await log(coach, weighing, weighing["items"][0], values=[])).ok()
    assert await estimates(coach, ana, pull_up) == (None, None, None)


async def test_conversion_converts_body_weights_of_sessions(coach: CoachClient) -> None:
    """Also of sessions in which nothing was added."""
    ana, pull_up = await coach.create_customer(), await coach.create_exercise("Pull-up", loadType="added")
    metrics = await body_weights(coach, ana)
    await weigh(coach, ana, metrics, 80, MONDAY)
    await train(coach, ana, pull_up, PULL_UPS[0])
    await convert(coach, "lb")
    assert await estimates(coach, ana, pull_up) == (235.2, 235.2, 235.2)  # 176.4 x 40/30
    assert await planned_load(coach, ana, pull_up, 100, TUESDAY) == 60  # 235.2 less 176.4: 58.8
    await weigh(coach, ana, metrics, 90, MONDAY)
    assert await estimates(coach, ana, pull_up) == (264.53, 264.53, 264.53)  # 198.4 x 40/30


async def test_imported_sessions_and_those_of_earlier_versions_are_estimated(only_coach: CoachClient) -> None:
    """Pull-ups of a file become those of the shared library; the job of an upgrade copies the body weights."""
    coach = only_coach
    ana = await coach.create_customer()
    await weigh(coach, ana, await body_weights(coach, ana), 80, BEFORE)
    rows = b"date,exercise,weight,weight unit,reps\n2026-03-02,Pull-Up,,kg,10\n2026-03-02,Pull-Up,10,kg,8\n"
    assert (await import_file(coach, rows, name="sets.csv", customerId=ana["_id"]))["errors"] == []
    [item] = (await coach.calendar(ana, MONDAY, MONDAY))[0]["items"]
    pull_up = item["exercise"]
    assert pull_up["loadType"] == "added"
    assert await estimates(coach, ana, pull_up) == (114, 114, 114)

    db, customer = coach.ctx.services.db, {"customerId": ObjectId(ana["_id"])}
    await db["bodyWeights"].delete_many(customer)
    before = {"items.$[].addedExerciseIds": "", "items.$[].bodyWeight": ""}
    await db["workoutBlocks"].update_many(customer, {"$unset": before})
    for _ in range(2):  # a migration can be run again
        await migrations.training_load(db, coach.ctx.services.vault)
    await renew(coach)
    assert await estimates(coach, ana, pull_up) == (114, 114, 114)
    assert await planned_load(coach, ana, pull_up, 90, MONDAY) == 22.5


def test_metrics_of_body_weight_are_known_by_name_and_unit() -> None:
    def is_known(name: str, unit: str) -> bool:
        return is_body_weight({"_id": ObjectId(), "name": name, "metricUnit": {**UNIT, "shortName": unit}})

    assert all(
        is_known(name, "kg") for name in ("Body weight", "Body-Weight (kg)", "WEIGHT", "bodyweight", "Peso corporal")
    )
    assert is_known("Weight (morning)", "lb")
    assert is_known("Morning weight", "kg")
    assert not any(is_known(name, "kg") for name in ("Goal weight", "Lean mass", "Squat", "Weight of the bar"))
    assert not is_known("Body weight", "%")


async def test_shared_library_has_added_loads(coach: CoachClient) -> None:
    kinds: dict[str, str] = {}
    for words in ("pull-up", "chin-up", "dip"):
        listed = (await coach.get("/exercises/unified", keywords=words, pageSize=50, pageNum=1)).ok()["docs"]
        kinds |= {each["name"]: each["loadType"] for each in listed}
    added = {"Pull-Up", "Chin-Up", "Weighted Pull-Up", "Neutral-Grip Pull-Up", "Chest Dip", "Triceps Dip", "Ring Dip"}
    assert {name: kinds[name] for name in added} == dict.fromkeys(added, "added")
    assert [kinds[name] for name in ("Machine Dip", "Bench Dip", "Side Plank Hip Dip")] == ["load"] * 3
    assert kinds["Band-Assisted Pull-Up"] == kinds["Assisted Pull-Up Machine"] == "assistance"
