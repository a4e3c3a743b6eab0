"""Sets planned in percent, as many repetitions as possible, for each side, as drop and failure sets (contract 10)."""

from __future__ import annotations

from typing import Any

import pytest

from coaching_service.core.ids import ObjectId
from tests.conftest import NewCompany
from tests.support.client import MONDAY, SUNDAY, TUESDAY, UNKNOWN, CoachClient
from tests.support.results import completed_sets, list_history, read_progress, train
from tests.support.training import (
    Json,
    add,
    block_with,
    circuit_of,
    client_path,
    employee_key,
    exercise_of,
    log,
    path_of,
    read,
)


def percent(load_percent: float | None, reps: int = 5, **fields: Any) -> Json:
    """A set of five repetitions at a percentage."""
    return {"type": "reps_load", "minPlannedReps": reps, "loadPercent": load_percent, **fields}


async def set_max(coach: CoachClient, customer: Json, exercise: Json, value: float | None) -> Json:
    """Set a training maximum."""
    path = client_path(customer, "training-maxes", exercise["_id"])
    result: Json = (await coach.put(path, {"value": value})).ok()
    return result


async def list_maxes(coach: CoachClient, customer: Json) -> list[Json]:
    """The training maximums of a client."""
    result: list[Json] = (await coach.get(client_path(customer, "training-maxes"))).ok()
    return result


async def loads(coach: CoachClient, block: Json) -> list[float | None]:
    """The loads of the first item of a block, as they are read now."""
    return [each["load"] for each in (await read(coach, block))["items"][0]["exerciseSets"]]


def variable(planned: Json, key: str) -> Json | None:
    """The value of a variable of a planned set."""
    return next((each["value"] for each in planned["variables"] if each["key"] == key), None)


# Training maximum | percent | load: to the nearest 2.5 kg, half up.     By hand:
IN_KILOGRAMS = [
    (140, 75, 105),
    (100, 70, 70),
    (100, 72.5, 72.5),
    (105, 75, 80),  # 78.75 is 31.5 steps
    (102.5, 70, 72.5),  # 71.75 is 28.7 steps
    (101, 70, 70),  # 70.7 is 28.28 steps
    (0.1, 3, 0),
    (120, 110, 132.5),  # 132 is 52.8 steps
    (100_000, 200, 100_000),  # at most what a load may be
    (140, None, None),
]


@pytest.mark.parametrize(("maximum", "load_percent", "load"), IN_KILOGRAMS)
async def test_load_is_a_percentage_of_the_training_maximum(
    coach: CoachClient, maximum: float, load_percent: float | None, load: float | None
) -> None:
    ana, squat = await coach.create_customer(), await coach.create_exercise()
    await set_max(coach, ana, squat, maximum)

    block = await block_with(coach, ana, exercise_of(squat, percent(load_percent)))

    [planned] = block["items"][0]["exerciseSets"]
    assert (planned["load"], planned["loadPercent"]) == (load, load_percent)
    expected = None if load is None else {"type": "exact", "value": load}
    assert variable(planned, "load") == expected


async def test_load_in_pounds_is_rounded_to_five(new_company: NewCompany) -> None:
    """75 % of 230 lb is 172.5 lb: half up to 175; 72 % is 165.6: 165."""
    coach = await new_company(load_unit="lb")
    ana, squat = await coach.create_customer(), await coach.create_exercise()
    await set_max(coach, ana, squat, 230)
    block = await block_with(coach, ana, exercise_of(squat, percent(75), percent(72)))
    assert await loads(coach, block) == [175, 165]


async def test_load_follows_the_training_maximum_else_the_estimate(coach: CoachClient) -> None:
    """Contract 10: the training maximum, else the estimated 1RM, else null. 100 x (1 + 5/30) = 116.67."""
    ana, squat = await coach.create_customer(), await coach.create_exercise()
    block = await block_with(coach, ana, exercise_of(squat, percent(80)), date=SUNDAY)
    assert await loads(coach, block) == [None]

    trained = await train(coach, ana, squat, (5, 100))
    assert await loads(coach, block) == [92.5]  # 93.33 is 37.33 steps
    maximum = await set_max(coach, ana, squat, 150)
    assert await loads(coach, block) == [120]
    assert await list_maxes(coach, ana) == [maximum]
    assert (maximum["exerciseId"], maximum["value"]) == (squat["_id"], 150)

    removed = await set_max(coach, ana, squat, None)
    assert (removed["value"], await list_maxes(coach, ana)) == (None, [])
    assert await loads(coach, block) == [92.5]
    (await log(coach, trained, trained["items"][0], customerSets=completed_sets((5, 60)))).ok()
    assert await loads(coach, block) == [55]  # of 70: 56 is 22.4 steps
    (await coach.delete(path_of(trained))).ok(204)
    assert await loads(coach, block) == [None]


async def test_estimate_is_the_highest_of_the_records(coach: CoachClient) -> None:
    """Entered by a coach or logged; a heaviest load counts for its repetitions, one if they are not known."""
    ana, squat = await coach.create_customer(), await coach.create_exercise()
    block = await block_with(coach, ana, exercise_of(squat, percent(50)), date=SUNDAY)
    records = client_path(ana, "personal-records")

    async def enter(kind: str, value: float, reps: int | None = None) -> str:
        body = {"exerciseId": squat["_id"], "type": kind, "value": value, "reps": reps, "date": TUESDAY}
        return str((await coach.post(records, body)).ok(201)["_id"])

    await enter("heaviest_load", 80)
    assert await loads(coach, block) == [40]
    await enter("heaviest_load", 90, 10)  # 90 x 40/30 = 120
    assert await loads(coach, block) == [60]
    await enter("heaviest_load", 200, 13)
    await enter("most_reps", 300)
    assert await loads(coach, block) == [60]
    estimate = await enter("estimated_1rm", 130)
    assert await loads(coach, block) == [65]
    (await coach.patch(f"{records}/{estimate}", {"value": 140})).ok()
    assert await loads(coach, block) == [70]
    (await coach.delete(f"{records}/{estimate}")).ok(204)
    assert await loads(coach, block) == [60]
    await train(coach, ana, squat, (1, 160))
    assert await loads(coach, block) == [80]


async def test_maximums_are_those_of_the_client(coach: CoachClient) -> None:
    ana, ben, squat = await coach.create_customer(), await coach.create_customer("Ben"), await coach.create_exercise()
    await set_max(coach, ana, squat, 100)
    await set_max(coach, ben, squat, 200)
    blocks = [await block_with(coach, each, exercise_of(squat, percent(50))) for each in (ana, ben)]
    assert [await loads(coach, block) for block in blocks] == [[50], [100]]


async def test_percentages_work_in_circuits_and_for_time(coach: CoachClient) -> None:
    ana, squat, carry = await coach.create_customer(), await coach.create_exercise(), await coach.create_exercise("C")
    await set_max(coach, ana, squat, 100)
    await set_max(coach, ana, carry, 60)
    timed = {"type": "time_load", "minPlannedSeconds": 30, "loadPercent": 50}
    circuit = {**circuit_of(squat, carry), "circuitExercises": [
        {"exerciseId": squat["_id"], "sets": [percent(60), percent(40, setKind="drop")]},
        {"exerciseId": carry["_id"], "sets": [timed]},
    ]}  # fmt: skip

    block = await block_with(coach, ana, circuit)

    entries = block["items"][0]["circuitExercises"]
    assert [[each["load"] for each in entry["sets"]] for entry in entries] == [[60, 40], [30]]
    assert [entry["plannedSetsTotal"] for entry in entries] == [4, 2], "a drop set counts as a set"


async def test_answers_to_writes_have_the_load(coach: CoachClient) -> None:
    ana, squat = await coach.create_customer(), await coach.create_exercise()
    await set_max(coach, ana, squat, 100)
    block = await coach.schedule(ana)
    added = await add(coach, block, exercise_of(squat, percent(50)))
    assert added["exerciseSets"][0]["load"] == 50
    path = f"{path_of(block)}/witems/{added['_id']}"
    changed = (await coach.patch(path, {"exerciseSets": [percent(60)]})).ok()
    assert changed["exerciseSets"][0]["load"] == 60
    logged = (await log(coach, block, added, customerSets=completed_sets((5, 60)))).ok()
    assert logged["exerciseSets"][0]["load"] == 60
    copied = (await coach.post(f"{path_of(block)}/copy", {"date": SUNDAY})).ok(201)
    assert copied["items"][0]["exerciseSets"][0]["load"] == 60
    calendar = (await coach.get(client_path(ana, "wblock"), startDate=SUNDAY, endDate=SUNDAY)).ok()
    assert calendar == [copied]


async def test_sets_can_be_sent_as_they_were_read(coach: CoachClient) -> None:
    """The load that was computed on read is not stored: it still follows the training maximum."""
    ana, squat = await coach.create_customer(), await coach.create_exercise()
    await set_max(coach, ana, squat, 100)
    block = await block_with(coach, ana, exercise_of(squat, percent(50)))
    item = block["items"][0]
    (await coach.patch(f"{path_of(block)}/witems/{item['_id']}", {"exerciseSets": item["exerciseSets"]})).ok()
    await set_max(coach, ana, squat, 200)
    assert await loads(coach, block) == [100]
    adjustment = {"startDate": MONDAY, "endDate": MONDAY, "progression": {"load": {"add": 10}}}
    adjusted = (await coach.post(client_path(ana, "schedule", "adjust"), adjustment)).ok()
    assert adjusted["items"] == 0, "sets without a load of their own stay"


async def test_programs_and_templates_have_no_load_until_they_are_applied(coach: CoachClient) -> None:
    ana, squat = await coach.create_customer(), await coach.create_exercise()
    await set_max(coach, ana, squat, 100)
    program = (await coach.post("/coach/programs", {"name": "Base"})).ok(201)
    planned = (await coach.post(f"/coach/programs/{program['_id']}/wblocks", {"name": "A", "day": 1})).ok(201)
    item = await add(coach, planned, exercise_of(squat, percent(50), percent(None, load=30)))
    assert [(each["load"], each["loadPercent"]) for each in item["exerciseSets"]] == [(None, 50), (30, None)]
    assert variable(item["exerciseSets"][0], "load") is None
    template = {"name": "A", "type": "strength", "items": [exercise_of(squat, percent(70))]}
    stored = (await coach.post("/coach/workout-templates", template)).ok(201)
    assert stored["items"][0]["exerciseSets"][0]["load"] is None

    body = {"customerId": ana["_id"], "startDate": SUNDAY}
    (await coach.post(f"/coach/programs/{program['_id']}/assign", body)).ok(201)
    applied = {"customerId": ana["_id"], "date": SUNDAY}
    (await coach.post(f"/coach/workout-templates/{stored['_id']}/apply", applied)).ok(201)

    calendar = (await coach.get(client_path(ana, "wblock"), startDate=SUNDAY, endDate=SUNDAY)).ok()
    assert [[each["load"] for each in block["items"][0]["exerciseSets"]] for block in calendar] == [[50, 30], [70]]


async def test_client_reads_the_load(coach: CoachClient) -> None:
    ana, squat = await coach.create_customer(), await coach.create_exercise()
    await set_max(coach, ana, squat, 100)
    await block_with(coach, ana, exercise_of(squat, percent(50)), date=SUNDAY)
    client = await coach.as_client(ana)
    [block] = (await client.get("/customer/wblock", startDate=SUNDAY, endDate=SUNDAY)).ok()
    assert block["items"][0]["exerciseSets"][0]["load"] == 50


async def test_every_set_states_its_kind(coach: CoachClient) -> None:
    ana, squat = await coach.create_customer(), await coach.create_exercise()
    drop = {"type": "reps", "minPlannedReps": 8, "setKind": "drop", "perSide": True}
    block = await block_with(coach, ana, exercise_of(squat, {"type": "time", "minPlannedSeconds": 30}, drop))
    sets = block["items"][0]["exerciseSets"]
    assert [(each["isAmrap"], each["perSide"], each["setKind"]) for each in sets] == [
        (False, False, "normal"),
        (False, True, "drop"),
    ]
    assert [sorted(each.keys() & {"load", "loadPercent"}) for each in sets] == [[], []]


async def test_sets_stored_before_have_the_new_fields(coach: CoachClient) -> None:
    ana, squat = await coach.create_customer(), await coach.create_exercise()
    block = await block_with(coach, ana, exercise_of(squat, {"type": "reps_load", "minPlannedReps": 8, "load": 60}))
    stored = coach.ctx.services.collection("workoutBlocks")
    names = ("isAmrap", "perSide", "setKind", "loadPercent")
    fields = {f"items.0.exerciseSets.0.{name}": "" for name in names}
    result = await stored.update_one({"_id": ObjectId(block["_id"])}, {"$unset": fields})
    assert result.modified_count == 1
    assert (await read(coach, block))["items"] == block["items"]


# isAmrap | minimum, maximum | the variable `reps`
REPS = [
    (True, 8, None, {"type": "range", "min": 8, "max": None}),
    (True, 8, 8, {"type": "range", "min": 8, "max": None}),
    (True, 8, 10, {"type": "range", "min": 8, "max": None}),
    (True, None, 10, {"type": "range", "min": 10, "max": None}),
    (True, None, None, None),
    (False, 8, 8, {"type": "exact", "value": 8}),
]


@pytest.mark.parametrize(("is_amrap", "minimum", "maximum", "reps"), REPS)
async def test_repetitions_of_an_amrap_set_are_a_minimum(
    coach: CoachClient, is_amrap: bool, minimum: int | None, maximum: int | None, reps: Json | None
) -> None:
    ana, squat = await coach.create_customer(), await coach.create_exercise()
    planned = {"type": "reps", "isAmrap": is_amrap, "minPlannedReps": minimum, "maxPlannedReps": maximum}
    block = await block_with(coach, ana, exercise_of(squat, planned))
    [stored] = block["items"][0]["exerciseSets"]
    assert variable(stored, "reps") == reps
    assert (stored["isAmrap"], stored["minPlannedReps"], stored["maxPlannedReps"]) == (is_amrap, minimum, maximum)


async def test_drop_and_failure_sets_count_in_figures(coach: CoachClient) -> None:
    """5 x 100 + 6 x 80 + 12 x 60 = 500 + 480 + 720; sides count once, as they were logged."""
    ana, squat = await coach.create_customer(), await coach.create_exercise()
    plan = (percent(80), percent(60, setKind="drop"), percent(40, setKind="failure", isAmrap=True, perSide=True))
    await train(coach, ana, squat, (5, 100), (6, 80), (12, 60), plan=plan)
    [session] = await list_history(coach, ana, squat)
    assert session["volumeLoad"] == 1700
    query = {"startDate": "2026-03-02", "endDate": "2026-03-02"}
    [period] = (await read_progress(coach, ana, "workload", **query)).ok()["periods"]
    assert (period["sets"], period["reps"], period["volumeLoad"]) == (3, 23, 1700)


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"loadPercent": 201}, "loadPercent"),
        ({"loadPercent": -1}, "loadPercent"),
        ({"loadPercent": "70"}, "loadPercent"),
        ({"isAmrap": 1}, "isAmrap"),
        ({"perSide": "yes"}, "perSide"),
        ({"setKind": "cluster"}, "setKind"),
    ],
)
async def test_invalid_fields_are_named(coach: CoachClient, fields: Json, field: str) -> None:
    ana, squat = await coach.create_customer(), await coach.create_exercise()
    block = await coach.schedule(ana)
    item = exercise_of(squat, {"type": "reps_load", "minPlannedReps": 5, **fields})
    refusal = (await coach.post(f"{path_of(block)}/witems", item)).refused(400)
    assert [error["field"] for error in refusal["errors"]] == [f"exerciseSets.0.{field}"]


async def test_training_maximum_of_unknown_clients_and_exercises_is_not_found(
    coach: CoachClient, other_company: CoachClient
) -> None:
    ana, squat = await coach.create_customer(), await coach.create_exercise()
    (await coach.put(client_path(ana, "training-maxes", UNKNOWN), {"value": 100})).refused(404)
    (await coach.put(client_path({"_id": UNKNOWN}, "training-maxes", squat["_id"]), {"value": 100})).refused(404)
    foreign = await other_company.create_exercise()
    (await coach.put(client_path(ana, "training-maxes", foreign["_id"]), {"value": 100})).refused(404)
    for body in ({}, {"value": -1}, {"value": "100"}, {"value": True}):
        (await coach.put(client_path(ana, "training-maxes", squat["_id"]), body)).refused(400, "value")
    eli = coach.with_key(await employee_key(coach, "customers.view", "customers.edit"))
    (await eli.get(client_path(ana, "training-maxes"))).refused(403)
    (await eli.put(client_path(ana, "training-maxes", squat["_id"]), {"value": 100})).refused(403)


async def test_training_maximum_fixes_the_unit_of_load(coach: CoachClient) -> None:
    ana, squat = await coach.create_customer(), await coach.create_exercise()
    session = await coach.interactive()
    await set_max(coach, ana, squat, None)
    (await session.patch("/coach/account", {"loadUnit": "lb"})).ok()
    (await session.patch("/coach/account", {"loadUnit": "kg"})).ok()
    await set_max(coach, ana, squat, 100)
    (await session.patch("/coach/account", {"loadUnit": "lb"})).refused(409)


async def test_carries_are_planned_with_a_distance_and_a_load(coach: CoachClient) -> None:
    carry = await coach.create_exercise("Farmer carry")
    ana = await coach.create_customer()
    planned = {"type": "distance_load", "plannedMeters": 40, "load": 24}
    block = await block_with(coach, ana, exercise_of(carry, planned, {**planned, "load": None, "loadPercent": 50}))

    first, second = block["items"][0]["exerciseSets"]
    assert {name: first[name] for name in planned} == planned
    assert first["variables"] == [
        {"key": "load", "unit": "kg", "value": {"type": "exact", "value": 24}},
        {"key": "distance", "unit": "m", "value": {"type": "exact", "value": 40}},
    ]
    assert [second["load"], second["loadPercent"]] == [None, 50], "without a training maximum"
    wrong = exercise_of(carry, {**planned, "plannedMeters": -1})
    (await coach.post(f"{path_of(block)}/witems", wrong)).refused(400, "plannedMeters")
    change = {"startDate": MONDAY, "endDate": MONDAY, "progression": {"load": {"add": 5}}}
    (await coach.post(client_path(ana, "schedule", "adjust"), change)).ok()
    (changed,) = (await coach.calendar(ana, MONDAY, MONDAY))[0]["items"]
    assert changed["exerciseSets"][0]["load"] in (29, 30), "29, or to the nearest 2.5 kg"


async def test_negative_zero_is_zero(coach: CoachClient) -> None:
    """As some programs send it; it would be shown as -0."""
    client, exercise = await coach.create_customer(), await coach.create_exercise()
    block = await block_with(coach, client, exercise_of(exercise, {**percent(None), "load": -0.0, "rir": -0.0}))
    [stored] = block["items"][0]["exerciseSets"]
    maximum = await set_max(coach, client, exercise, -0.0)
    assert str([stored["load"], stored["rir"], maximum["value"]]) == "[0.0, 0.0, 0.0]"
