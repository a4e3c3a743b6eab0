"""Records, best sets and progress beyond loads and repetitions: times, distances, assistance, repetitions in reserve."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from coaching_service import features
from coaching_service.core.database.documents import now
from coaching_service.core.ids import ObjectId
from coaching_service.core.jobs.worker import run_due
from coaching_service.installation import migrations
from coaching_service.progress.personal_records import RENEW
from tests.support.client import MONDAY, SUNDAY, TUESDAY, CoachClient
from tests.support.results import circuit_set, list_history, list_records, read_progress
from tests.support.service_process import until
from tests.support.training import Json, block_with, circuit_of, client_path, exercise_of, feed, log

WEDNESDAY = "2026-03-04"
YEAR = {"startDate": "2026-01-01", "endDate": "2026-12-31"}
RENEWAL = {RENEW: features.STEPS[RENEW]}

# Completed sets | the records: type (and meters), value, unit | the best of the sets, from 0.
Set = dict[str, Any]
KINDS: list[tuple[list[Set], set[tuple[Any, ...]], int | None]] = [
    ([{"seconds": 60}, {"seconds": 90}], {("longest_time", None, 90, "s")}, 1),
    (  # an exercise with repetitions is not compared by its time
        [{"reps": 12, "seconds": 60}],
        {("most_reps", None, 12, "count")},
        0,
    ),
    (
        [{"meters": 400, "seconds": 95}, {"meters": 400, "seconds": 88.5}, {"meters": 200, "seconds": 40}],
        {
            ("farthest_distance", None, 400, "m"),
            ("fastest", 400, 88.5, "s"),
            ("fastest", 200, 40, "s"),
        },
        1,
    ),
    (  # a watch measures 5,013 and 5,048 m: both are 5 km
        [{"meters": 5048, "seconds": 1500}, {"meters": 5013, "seconds": 1440}],
        {("farthest_distance", None, 5048, "m"), ("fastest", 5000, 1440, "s")},
        0,
    ),
    (  # carries: the load counts with a distance or a time
        [{"meters": 40, "load": 24}, {"meters": 20, "load": 32}, {"seconds": 30, "load": 28}],
        {("heaviest_load", None, 32, "kg"), ("farthest_distance", None, 40, "m"), ("longest_time", None, 30, "s")},
        1,
    ),
    ([{"meters": 1000}], {("farthest_distance", None, 1000, "m")}, 0),
    ([{"load": 40}], set(), 0),
    ([{"reps": 0, "seconds": 0, "meters": 0}], set(), None),
]


async def train(coach: CoachClient, customer: Json, exercise: Json, *sets: Set, date: str = MONDAY) -> Json:
    """Create a block of one exercise and log its sets."""
    block = await block_with(coach, customer, exercise_of(exercise), date=date)
    (await log(coach, block, block["items"][0], customerSets=list(sets))).ok()
    return block


def facts(records: list[Json]) -> set[tuple[Any, ...]]:
    """Type, distance, value and unit of records."""
    return {(each["type"], each.get("meters"), each["value"], each["unit"]) for each in records}


async def progress(coach: CoachClient, customer: Json, exercise: Json, **query: Any) -> list[Json]:
    """A client's progress in an exercise in the year."""
    reply = await read_progress(coach, customer, "exercise", exercise["_id"], "progress", **YEAR, **query)
    points: list[Json] = reply.ok()
    return points


@pytest.mark.parametrize(("sets", "expected", "best"), KINDS)
async def test_times_and_distances_are_records_and_best_sets(
    coach: CoachClient, sets: list[Set], expected: set[tuple[Any, ...]], best: int | None
) -> None:
    ana, exercise = await coach.create_customer(), await coach.create_exercise()
    await train(coach, ana, exercise, *sets)

    assert facts(await list_records(coach, ana)) == expected
    [session] = await list_history(coach, ana, exercise)
    assert session["bestSet"] == (None if best is None else session["sets"][best])
    [point] = await progress(coach, ana, exercise)
    assert point["bestSet"] == session["bestSet"]
    assert {(each["type"], each["meters"], each["value"], each["unit"]) for each in point["bests"]} == expected


async def test_better_times_replace_records_and_lost_ones_return(coach: CoachClient) -> None:
    """B16: 60 s, then 90 s."""
    ana, plank, run = await coach.create_customer(), await coach.create_exercise("Plank"), await coach.create_exercise()
    await train(coach, ana, plank, {"seconds": 60})
    longer = await train(coach, ana, plank, {"seconds": 90}, date=TUESDAY)
    await train(coach, ana, run, {"meters": 5000, "seconds": 1500})
    faster = await train(coach, ana, run, {"meters": 5000, "seconds": 1440}, date=TUESDAY)
    await train(coach, ana, run, {"meters": 5000, "seconds": 1600}, date=WEDNESDAY)

    assert facts(await list_records(coach, ana)) == {
        ("longest_time", None, 90, "s"),
        ("farthest_distance", None, 5000, "m"),
        ("fastest", 5000, 1440, "s"),
    }
    shown = [each["data"] for each in await feed(coach, ana) if each["type"] == "personal_record"]
    values = {(each["recordType"], each["value"], each["day"]) for each in shown}
    assert values == {
        ("longest_time", 90, TUESDAY),
        ("farthest_distance", 5000, MONDAY),
        ("fastest", 1440, TUESDAY),
    }, "the first time over a distance is no event, a faster one is"
    assert next(each["meters"] for each in shown if each["recordType"] == "fastest") == 5000
    weeks = await progress(coach, ana, plank, groupBy="week")
    assert [(each["date"], each["bests"][0]["value"]) for each in weeks] == [(MONDAY, 90)]

    for block in (longer, faster):
        (await log(coach, block, block["items"][0], isCompleted=False)).ok()
    assert facts(await list_records(coach, ana)) == {
        ("longest_time", None, 60, "s"),
        ("farthest_distance", None, 5000, "m"),
        ("fastest", 5000, 1500, "s"),
    }


async def test_records_of_times_and_distances_are_entered(coach: CoachClient) -> None:
    ana, run = await coach.create_customer(), await coach.create_exercise("Run")
    known = {"exerciseId": run["_id"], "date": MONDAY}
    entries = [
        ({"type": "fastest", "value": 1440, "meters": 5000}, "s"),
        ({"type": "longest_time", "value": 90}, "s"),
        ({"type": "farthest_distance", "value": 21097.5}, "m"),
        ({"type": "least_assistance", "value": 12.5, "reps": 8}, "kg"),
    ]
    for fields, unit in entries:
        record = (await coach.post(client_path(ana, "personal-records"), {**known, **fields})).ok(201)
        assert {**record, **fields, "unit": unit} == record
    read = await list_records(coach, ana)
    assert ["meters" in each for each in read] == [each["type"] == "fastest" for each in read]


# Sets: reps, load, RIR, RPE | estimate | formula.     By hand:
RESERVES = [
    (5, 100, None, 8, 123.33, "epley_rpe"),  # 7 possible: 100 x 37/30
    (5, 100, 2, None, 123.33, "epley_rir"),
    (5, 100, 2, 6, 123.33, "epley_rir"),  # what was counted is preferred to the effort
    (5, 100, None, 10, 116.67, "epley_rpe"),  # nothing in reserve
    (1, 100, 0, None, 100, "load"),
    (1, 100, None, 9.5, 105, "epley_rpe"),  # 100 x 31.5/30
    (8, 60, 4, None, 84, "epley_rir"),  # 12: 60 x 42/30
    (8, 60, 5, None, None, None),  # 13 possible repetitions estimate nothing
    (5, 100, None, None, 116.67, "epley"),
]


@pytest.mark.parametrize(("reps", "load", "rir", "rpe", "estimate", "formula"), RESERVES)
async def test_repetitions_in_reserve_count_in_the_estimate(
    coach: CoachClient,
    reps: int,
    load: float,
    rir: float | None,
    rpe: float | None,
    estimate: float | None,
    formula: str | None,
) -> None:
    ana, squat = await coach.create_customer(), await coach.create_exercise()
    await train(coach, ana, squat, {"reps": reps, "load": load, "rir": rir, "rpe": rpe})

    [session], [point] = await list_history(coach, ana, squat), await progress(coach, ana, squat)
    expected = None if estimate is None else {"value": estimate, "formula": formula, "setIndex": 1}
    assert session["estimatedOneRepMax"] == point["estimatedOneRepMax"] == expected
    records = {each["type"]: each["value"] for each in await list_records(coach, ana)}
    assert records.get("estimated_1rm") == estimate
    plan = exercise_of(squat, {"type": "reps_load", "minPlannedReps": 5, "loadPercent": 100})
    planned = await block_with(coach, ana, plan, date=TUESDAY)
    nearest = None if estimate is None else 2.5 * int(estimate / 2.5 + 0.5)
    assert planned["items"][0]["exerciseSets"][0]["load"] == nearest, "percentages refer to the estimate"


async def test_less_assistance_is_better(coach: CoachClient) -> None:
    ana = await coach.create_customer()
    pull_up, squat = await coach.create_exercise("Pull-up", loadType="assistance"), await coach.create_exercise()
    assert [pull_up["loadType"], squat["loadType"]] == ["assistance", "load"]
    await train(coach, ana, pull_up, {"reps": 8, "load": 30}, {"reps": 5, "load": 20}, {"reps": 6, "load": 20})
    await train(coach, ana, pull_up, {"reps": 10, "load": 25}, date=TUESDAY)

    assert facts(await list_records(coach, ana)) == {
        ("least_assistance", None, 20, "kg"),
        ("most_reps", None, 10, "count"),
    }
    newest, first = await list_history(coach, ana, pull_up)
    assert [first["bestSet"]["index"], first["estimatedOneRepMax"], first["volumeLoad"]] == [3, None, 0]
    assert [newest["bestSet"]["load"], newest["volumeLoad"]] == [25, 0]
    workload = (await read_progress(coach, ana, "workload", startDate=MONDAY, endDate=MONDAY, groupBy="day")).ok()
    assert [workload["periods"][0][name] for name in ("sets", "reps", "volumeLoad")] == [3, 19, 0]
    await train(coach, ana, pull_up, {"reps": 3, "load": 0}, date=WEDNESDAY)  # without help
    best = [each for each in await list_records(coach, ana) if each["type"] == "least_assistance"]
    assert [(each["value"], each["reps"], each["date"]) for each in best] == [(0, 3, WEDNESDAY)]
    item = (await coach.calendar(ana, MONDAY, MONDAY))[0]["items"][0]
    assert item["exercise"]["loadType"] == "assistance"
    assert "assistedExerciseIds" not in item


async def test_entered_records_of_assistance_are_no_base_of_percentages(coach: CoachClient) -> None:
    """Contract 7: no estimated 1RM; also once the loads of the exercise have become assistance."""
    ana = await coach.create_customer()
    pull_up = await coach.create_exercise("Pull-up", loadType="assistance")
    for fields in ({"type": "heaviest_load", "value": 40, "reps": 1}, {"type": "estimated_1rm", "value": 50}):
        body = {"exerciseId": pull_up["_id"], "date": MONDAY, **fields}
        (await coach.post(client_path(ana, "personal-records"), body)).ok(201)

    async def planned_load() -> float | None:
        plan = exercise_of(pull_up, {"type": "reps_load", "minPlannedReps": 5, "loadPercent": 50})
        block = await block_with(coach, ana, plan, date=TUESDAY)
        load: float | None = block["items"][0]["exerciseSets"][0]["load"]
        return load

    assert await planned_load() is None
    for load_type, load in (("load", 25), ("assistance", None), ("load", 25)):
        (await coach.patch(f"/exercises/{pull_up['_id']}", {"loadType": load_type})).ok()
        await renew(coach)
        assert await planned_load() == load


async def test_assistance_in_a_circuit_and_in_place_of_another_exercise(coach: CoachClient) -> None:
    ana = await coach.create_customer()
    pull_up, squat = await coach.create_exercise("Pull-up", loadType="assistance"), await coach.create_exercise()
    block = await block_with(coach, ana, circuit_of(pull_up, squat, rounds=1), exercise_of(squat))
    sets = [circuit_set(1, pull_up, 8, 30), circuit_set(1, squat, 10, 50)]
    (await log(coach, block, block["items"][0], customerSets=sets)).ok()
    swap = {"exerciseId": pull_up["_id"], "reason": None}
    (await log(coach, block, block["items"][1], customerSets=[{"reps": 5, "load": 20}], swappedFor=swap)).ok()

    [session] = await list_history(coach, ana, squat)
    assert session["volumeLoad"] == 500
    workload = (await read_progress(coach, ana, "workload", startDate=MONDAY, endDate=MONDAY, groupBy="day")).ok()
    assert [workload["periods"][0][name] for name in ("sets", "reps", "volumeLoad")] == [3, 23, 500]
    values = {
        (each["exerciseName"], *each_fact) for each in await list_records(coach, ana) for each_fact in facts([each])
    }
    assert ("Pull-up", "least_assistance", None, 20, "kg") in values
    assert ("Squat", "heaviest_load", None, 50, "kg") in values
    assert not any(name == "Pull-up" and kind in ("heaviest_load", "estimated_1rm") for name, kind, *_ in values)


async def test_shared_library_has_assisted_machines(coach: CoachClient) -> None:
    listed = (await coach.get("/exercises/unified", keywords="assisted", pageSize=20, pageNum=1)).ok()["docs"]
    kinds = {each["name"]: each["loadType"] for each in listed}
    assert kinds["Assisted Pull-Up Machine"] == kinds["Band-Assisted Pull-Up"] == "assistance"
    assert kinds["Band-Assisted Jump"] == "load"
    (squat,) = (await coach.get("/exercises/unified", keywords="Barbell Back Squat", pageSize=1, pageNum=1)).ok()[
        "docs"
    ]
    assert squat["loadType"] == "load"


async def figures(coach: CoachClient, customer: Json, *exercises: Json) -> list[Any]:
    """All figures that are stored of logs: records, training load, and the sessions of exercises."""
    records = await list_records(coach, customer)
    load = (await read_progress(coach, customer, "workload", startDate=MONDAY, endDate=SUNDAY, groupBy="day")).ok()
    shown = [{name: each[name] for name in ("type", "value", "reps", "date", "witemId", "unit")} for each in records]
    return [
        sorted(shown, key=str),
        load,
        *[await progress(coach, customer, each) for each in exercises],
        sorted(str(each["data"]) for each in await feed(coach, customer) if each["type"] == "personal_record"),
    ]


async def renew(coach: CoachClient) -> None:
    """Run the jobs that compute figures of the company again to their end."""
    own = {"kind": RENEW, "companyId": coach.ctx.company_id}

    async def is_done() -> bool:  # the service runs jobs, too, and may have one of them
        await run_due(coach.ctx.services, RENEWAL, at=now() + timedelta(hours=1))
        return await coach.ctx.services.db["jobs"].count_documents(own) == 0

    await until(is_done, "the jobs end")


async def test_figures_follow_a_change_of_what_loads_mean(coach: CoachClient) -> None:
    ana, exercise = await coach.create_customer(), await coach.create_exercise("Pull-up")
    other = await coach.create_exercise("Squat")
    await train(coach, ana, exercise, {"reps": 8, "load": 30})
    await train(coach, ana, exercise, {"reps": 8, "load": 20}, date=TUESDAY)
    await train(coach, ana, other, {"reps": 5, "load": 100})
    as_load = await figures(coach, ana, exercise, other)

    (await coach.patch(f"/exercises/{exercise['_id']}", {"loadType": "assistance"})).ok()
    await renew(coach)

    of_exercise = [each for each in await list_records(coach, ana) if each["exerciseId"] == exercise["_id"]]
    assert facts(of_exercise) == {("least_assistance", None, 20, "kg"), ("most_reps", None, 8, "count")}
    load = (await read_progress(coach, ana, "workload", startDate=MONDAY, endDate=TUESDAY, groupBy="day")).ok()
    assert [period["volumeLoad"] for period in load["periods"]] == [500, 0]
    shown = [each["data"]["recordType"] for each in await feed(coach, ana) if each["type"] == "personal_record"]
    assert "least_assistance" not in shown, "no event is new"

    (await coach.patch(f"/exercises/{exercise['_id']}", {"loadType": "load"})).ok()
    (await coach.patch(f"/exercises/{exercise['_id']}", {"name": "Chin-up"})).ok()
    assert await coach.ctx.services.db["jobs"].count_documents({"kind": RENEW, "companyId": coach.ctx.company_id}) == 1
    await renew(coach)
    again = await figures(coach, ana, exercise, other)
    assert again[:-1] == as_load[:-1]


async def test_figures_of_an_earlier_version_are_computed_again(only_coach: CoachClient) -> None:
    """What 0.2.0 stored: no times and distances, estimates without repetitions in reserve, assistance as volume."""
    coach = only_coach
    ana = await coach.create_customer()
    plank, squat = await coach.create_exercise("Plank"), await coach.create_exercise()
    pull_up = await coach.create_exercise("Pull-up", loadType="assistance")
    await train(coach, ana, plank, {"seconds": 60})
    await train(coach, ana, squat, {"reps": 5, "load": 100, "rpe": 8}, date=TUESDAY)
    assisted = await train(coach, ana, pull_up, {"reps": 8, "load": 30}, date=WEDNESDAY)
    exercises = (plank, squat, pull_up)
    expected = await figures(coach, ana, *exercises)
    db, company = coach.ctx.services.db, coach.ctx.company_id
    await _store_as_before(coach, ana, assisted)
    before = await figures(coach, ana, *exercises)
    assert before[:2] != expected[:2]

    for _ in range(2):  # a migration can be run again
        await migrations.training_load(db, coach.ctx.services.vault)
    assert await db["jobs"].count_documents({"kind": RENEW, "companyId": company}) == 1
    await renew(coach)

    after = await figures(coach, ana, *exercises)
    assert after[:-1] == expected[:-1]
    versions = [block["version"] for block in await coach.calendar(ana, MONDAY, SUNDAY)]
    assert versions == [block["version"] for block in await coach.calendar(ana, MONDAY, WEDNESDAY)]
    plan = exercise_of(squat, {"type": "reps_load", "minPlannedReps": 5, "loadPercent": 100})
    planned = await block_with(coach, ana, plan, date=SUNDAY)
    assert planned["items"][0]["exerciseSets"][0]["load"] == 122.5, "100 x 37/30 = 123.33"


async def _store_as_before(coach: CoachClient, customer: Json, assisted: Json) -> None:
    """Bring the stored figures of a client to the state in which 0.2.0 stored them."""
    db, customer_id = coach.ctx.services.db, ObjectId(customer["_id"])
    new_types = ["longest_time", "farthest_distance", "fastest", "least_assistance"]
    await db["workoutBlocks"].update_many(
        {"customerId": customer_id},
        {
            "$pull": {"done.exercises.$[].bests": {"kind": {"$in": new_types}}},
            "$unset": {"items.$[].assistedExerciseIds": ""},
        },
    )
    await db["workoutBlocks"].update_many(
        {"customerId": customer_id},
        {"$set": {"done.exercises.$[].bests.$[best].value": 116.67}},
        array_filters=[{"best.kind": "estimated_1rm"}],
    )
    volume = {"done.volumeLoad": 240, "done.exercises.0.volumeLoad": 240}
    tally = {"items.0.tally.volumeLoad": 240, "items.0.tally.exercises.0.volumeLoad": 240}
    await db["workoutBlocks"].update_one({"_id": ObjectId(assisted["_id"])}, {"$set": volume | tally})
    await db["personalRecords"].delete_many({"customerId": customer_id, "type": {"$in": new_types}})
    await db["personalRecords"].update_many(
        {"customerId": customer_id, "type": "estimated_1rm"}, {"$set": {"value": 116.67}}
    )
    await db["trainingMaxes"].update_many({"customerId": customer_id}, {"$set": {"value": 116.67}})
