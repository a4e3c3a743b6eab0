"""Muscle-group volume (contract 7: a secondary muscle counts half)."""

from __future__ import annotations

from typing import Any

from tests.conftest import NewCompany
from tests.support.client import MONDAY, SUNDAY, TUESDAY, CoachClient
from tests.support.results import (
    WARM_UP,
    WORK,
    circuit_set,
    clear_log,
    completed_sets,
    incomplete_set,
    read_progress,
    read_volume,
    train,
)
from tests.support.training import Json, block_with, circuit_of, exercise_of, log, move, path_of, task

# By hand: the squat trains the quadriceps, the glutes half; the thrust the glutes, the hamstrings half.
#   squat    8 x 60, 8 x 60, 6 x 70    3 sets   22 reps   480 + 480 + 420 = 1380
#   thrust   10 x 80, 10 x 80          2 sets   20 reps   1600
SQUATS, THRUSTS = [(8, 60), (8, 60), (6, 70)], [(10, 80), (10, 80)]
BOTH = {
    "Glutes": (3.5, 31, 2290),  # 3/2 + 2, 22/2 + 20, 1380/2 + 1600
    "Quadriceps": (3, 22, 1380),
    "Hamstrings": (1, 10, 800),
}
FIGURES = ("sets", "reps", "volumeLoad")


async def create_exercise(coach: CoachClient, name: str, **roles: str) -> Json:
    """Create an exercise that trains the named muscles in these roles."""
    muscles = {muscle["name"]: muscle["_id"] for muscle in (await coach.get("/muscle-groups")).ok()}
    trains = [{"_id": muscles[muscle], "role": role} for muscle, role in roles.items()]
    return await coach.create_exercise(name, muscleGroups=trains)


async def create_squat(coach: CoachClient) -> Json:
    return await create_exercise(coach, "Squat", Quadriceps="primary", Glutes="secondary")


async def create_thrust(coach: CoachClient) -> Json:
    return await create_exercise(coach, "Thrust", Glutes="primary", Hamstrings="secondary")


def figures(muscles: dict[str, Json]) -> dict[str, tuple[Any, ...]]:
    return {name: tuple(muscle[figure] for figure in FIGURES) for name, muscle in muscles.items()}


async def test_secondary_muscle_counts_half(coach: CoachClient) -> None:
    ana, squat, thrust = await coach.create_customer(), await create_squat(coach), await create_thrust(coach)
    await train(coach, ana, squat, *SQUATS)
    await train(coach, ana, thrust, *THRUSTS, date=SUNDAY)

    answer = (await read_progress(coach, ana, "musclegroups", "volume", startDate=MONDAY, endDate=SUNDAY)).ok()

    assert {name: answer[name] for name in ("startDate", "endDate", "loadUnit")} == {
        "startDate": MONDAY,
        "endDate": SUNDAY,
        "loadUnit": "kg",
    }
    assert [muscle["name"] for muscle in answer["muscleGroups"]] == list(BOTH), "sorted by number of sets, most first"
    assert figures({muscle["name"]: muscle for muscle in answer["muscleGroups"]}) == BOTH
    known = {muscle["_id"] for muscle in (await coach.get("/muscle-groups")).ok()}
    assert {muscle["_id"] for muscle in answer["muscleGroups"]} <= known


async def test_loads_are_in_the_unit_of_the_company(new_company: NewCompany) -> None:
    coach = await new_company(load_unit="lb")
    ana = await coach.create_customer()
    answer = (await read_progress(coach, ana, "musclegroups", "volume", startDate=MONDAY, endDate=MONDAY)).ok()
    assert (answer["loadUnit"], answer["muscleGroups"]) == ("lb", [])


async def test_only_completed_sets_that_are_not_warm_up_count(coach: CoachClient) -> None:
    ana, squat = await coach.create_customer(), await create_squat(coach)
    block = await block_with(coach, ana, exercise_of(squat, WARM_UP, WORK, WORK), exercise_of(squat), task())
    done = [*completed_sets((12, 20), (8, 62.5)), incomplete_set(8, 60)]
    (await log(coach, block, block["items"][0], customerSets=done)).ok()
    (await log(coach, block, block["items"][1])).ok()
    (await log(coach, block, block["items"][2])).ok()
    assert figures(await read_volume(coach, ana)) == {"Quadriceps": (1, 8, 500), "Glutes": (0.5, 4, 250)}


async def test_sets_of_an_incomplete_item_count(coach: CoachClient) -> None:
    ana, squat = await coach.create_customer(), await create_squat(coach)
    block = await block_with(coach, ana, exercise_of(squat))
    (await log(coach, block, block["items"][0], isCompleted=False, customerSets=completed_sets((8, 60)))).ok()
    assert figures(await read_volume(coach, ana)) == {"Quadriceps": (1, 8, 480), "Glutes": (0.5, 4, 240)}


async def test_set_without_reps_or_load_counts_as_a_set(coach: CoachClient) -> None:
    ana, squat = await coach.create_customer(), await create_squat(coach)
    block = await block_with(coach, ana, exercise_of(squat, {"type": "time", "minPlannedSeconds": 30}))
    done = [{"seconds": 30}, {"reps": 5}, {"seconds": 30, "load": 20}]
    (await log(coach, block, block["items"][0], customerSets=done)).ok()
    assert figures(await read_volume(coach, ana)) == {"Quadriceps": (3, 5, 0), "Glutes": (1.5, 2.5, 0)}


async def test_circuits_count_by_exercise(coach: CoachClient) -> None:
    """Squat 10 x 20, 8 x 20: 2, 18, 360. Thrust 10 x 50: 1, 10, 500."""
    ana, squat, thrust = await coach.create_customer(), await create_squat(coach), await create_thrust(coach)
    block = await block_with(coach, ana, circuit_of(squat, thrust))
    done = [circuit_set(1, squat, 10, 20), circuit_set(1, thrust, 10, 50), circuit_set(2, squat, 8, 20)]
    (await log(coach, block, block["items"][0], customerSets=done)).ok()
    expected = {"Quadriceps": (2, 18, 360), "Glutes": (2, 19, 680), "Hamstrings": (0.5, 5, 250)}
    assert figures(await read_volume(coach, ana)) == expected


async def test_session_counts_on_the_date_of_its_block_with_both_ends_included(coach: CoachClient) -> None:
    ana, squat = await coach.create_customer(), await create_squat(coach)
    blocks = [await train(coach, ana, squat, (8, 60), date=date) for date in (MONDAY, TUESDAY, SUNDAY)]

    async def done(start: str, end: str) -> float:
        return float((await read_volume(coach, ana, start, end)).get("Quadriceps", {"sets": 0})["sets"])

    assert [await done(MONDAY, SUNDAY), await done(MONDAY, TUESDAY), await done(TUESDAY, TUESDAY)] == [3, 2, 1]
    assert await done("2026-03-04", "2026-03-07") == 0
    (await coach.patch(path_of(blocks[0]), {"date": "2026-03-05"})).ok()
    assert [await done(MONDAY, MONDAY), await done("2026-03-04", "2026-03-07")] == [0, 1]
    (await move(coach, blocks[1]["items"][0], blocks[1], blocks[2], 0)).ok()
    assert [await done(TUESDAY, TUESDAY), await done(SUNDAY, SUNDAY)] == [0, 2]
    await clear_log(coach, blocks[2])
    assert await done("0001-01-01", "9999-12-31") == 2
    (await coach.delete(path_of(blocks[2]))).ok(204)
    assert await done("0001-01-01", "9999-12-31") == 1


async def test_training_of_other_clients_is_not_counted(coach: CoachClient) -> None:
    ana, bo, squat = await coach.create_customer(), await coach.create_customer("Bo"), await create_squat(coach)
    await train(coach, bo, squat, (8, 60))
    assert await read_volume(coach, ana) == {}


async def test_exercise_without_muscles_trains_none(coach: CoachClient) -> None:
    ana, walk = await coach.create_customer(), await coach.create_exercise("Walk")
    await train(coach, ana, walk, (8, 60))
    assert await read_volume(coach, ana) == {}


async def test_shared_and_deleted_exercises_count(coach: CoachClient) -> None:
    ana, squat = await coach.create_customer(), await create_squat(coach)
    page = {"pageSize": 1, "pageNum": 1, "type": "public", "keywords": "Barbell Bench Press"}
    [bench] = (await coach.get("/exercises/unified", **page)).ok()["docs"]
    for exercise in (squat, bench):
        await train(coach, ana, exercise, (8, 60))
    (await coach.delete(f"/exercises/{squat['_id']}")).ok(204)
    share = {"primary": (1, 8, 480), "secondary": (0.5, 4, 240)}
    of_bench = {muscle["name"]: share[muscle["role"]] for muscle in bench["muscleGroups"]}
    assert figures(await read_volume(coach, ana)) == {"Quadriceps": (1, 8, 480), "Glutes": (0.5, 4, 240)} | of_bench


async def test_volume_load_is_rounded(coach: CoachClient) -> None:
    """3 x 22.7 + 3 x 0.1 = 68.4, half of it 34.2; in binary fractions it would be 68.39999999999999 or so."""
    ana, squat = await coach.create_customer(), await create_squat(coach)
    await train(coach, ana, squat, (3, 22.7), (3, 0.1))
    assert [muscle["volumeLoad"] for muscle in (await read_volume(coach, ana)).values()] == [68.4, 34.2]


WRONG_DATES: list[tuple[Json, str]] = [
    ({}, "startDate"),
    ({"startDate": MONDAY}, "endDate"),
    ({"endDate": MONDAY}, "startDate"),
    ({"startDate": SUNDAY, "endDate": MONDAY}, "endDate"),
    ({"startDate": "2026-02-29", "endDate": SUNDAY}, "startDate"),
    ({"startDate": "", "endDate": SUNDAY}, "startDate"),
    ({"startDate": [MONDAY, MONDAY], "endDate": SUNDAY}, "startDate"),
]


async def test_both_dates_are_required_in_order(coach: CoachClient) -> None:
    """Contract 7: `startDate`, `endDate` required."""
    ana = await coach.create_customer()
    for path in ("musclegroups/volume", "workload"):
        for query, word in WRONG_DATES:
            (await read_progress(coach, ana, path, **query)).refused(400, word)
