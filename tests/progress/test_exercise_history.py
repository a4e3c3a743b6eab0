"""A client's history of one exercise, by session (contract 7)."""

from __future__ import annotations

import pytest

from coaching_service.people import team
from coaching_service.people.sessions import service as sessions
from tests.conftest import NewCompany
from tests.support.client import MONDAY, SUNDAY, TUESDAY, UNKNOWN, CoachClient
from tests.support.results import (
    WARM_UP,
    WORK,
    circuit_set,
    clear_log,
    completed_sets,
    incomplete_set,
    list_history,
    read_progress,
    train,
)
from tests.support.training import Json, block_with, circuit_of, exercise_of, log, move, path_of, task

PAGE = {"pageSize": 50, "pageNum": 1}
NOTHING: Json = {"volumeLoad": 0, "bestSet": None, "estimatedOneRepMax": None}

# Sets done (reps, load) | volume load | the best, from 0 | its estimate | formula.     By hand:
TABLE = [
    ([(5, 100)], 500, 0, 116.67, "epley"),  # 100 x (1 + 5/30) = 100 x 7/6
    ([(1, 120)], 120, 0, 120, "load"),  # one repetition: the load itself
    ([(2, 90)], 180, 0, 96, "epley"),  # 90 x 32/30
    ([(12, 60)], 720, 0, 84, "epley"),  # 60 x 42/30
    ([(13, 60)], 780, 0, None, None),  # above 12: none, but the set is the best there is
    ([(8, 60), (8, 75), (6, 80)], 1560, 2, 96, "epley"),  # 76, 95, 96; volume 480 + 600 + 480
    ([(10, 75), (1, 99), (5, 85)], 1274, 0, 100, "epley"),  # 100, 99, 99.17; volume 750 + 99 + 425
    ([(20, 100), (5, 40)], 2200, 1, 46.67, "epley"),  # 20 repetitions estimate nothing
    ([(10, 60), (6, 200 / 3)], 1000, 1, 80, "epley"),  # 80 both: the heavier of equals
    ([(20, 40), (15, 50), (30, 50)], 3050, 2, None, None),  # the heaviest, then the most repetitions
    ([(12, None), (15, None)], 0, 1, None, None),  # without a load: the most repetitions
    ([(3, 22.7)], 68.1, 0, 24.97, "epley"),  # 68.1 and not 68.10000000000001
    ([(None, 60), (0, 80)], 0, 1, None, None),  # nothing was repeated: the heaviest
    ([(0, 0), (None, None)], 0, None, None, None),
]


@pytest.mark.parametrize(("done", "volume", "best", "estimate", "formula"), TABLE)
async def test_figures_of_a_session(
    coach: CoachClient,
    done: list[tuple[int | None, float | None]],
    volume: float,
    best: int | None,
    estimate: float | None,
    formula: str | None,
) -> None:
    """Contract 7: volume load = sum of reps x load; Epley for 2 to 12 reps, the load itself for 1, none above 12."""
    ana, squat = await coach.create_customer(), await coach.create_exercise()
    block = await train(coach, ana, squat, *done)

    [session] = await list_history(coach, ana, squat)

    assert session["sets"] == block["items"][0]["customerSets"]
    assert (session["date"], session["wblockId"], session["isCompleted"]) == (MONDAY, block["_id"], True)
    assert (session["volumeLoad"], session["loadUnit"]) == (volume, "kg")
    assert session["bestSet"] == (None if best is None else session["sets"][best])
    expected = {"value": estimate, "formula": formula, "setIndex": (best or 0) + 1}
    assert session["estimatedOneRepMax"] == (None if estimate is None else expected)


async def test_loads_are_in_the_unit_of_the_company(new_company: NewCompany) -> None:
    coach = await new_company(load_unit="lb")
    ana, squat = await coach.create_customer(), await coach.create_exercise()
    await train(coach, ana, squat, (5, 225))
    assert [session["loadUnit"] for session in await list_history(coach, ana, squat)] == ["lb"]


async def test_warm_up_and_incomplete_sets_do_not_count(coach: CoachClient) -> None:
    """Contract 7: completed sets that are not warm-up. 8 x 60 + 6 x 62.5 = 480 + 375 = 855; Epley 76, 75."""
    ana, squat = await coach.create_customer(), await coach.create_exercise()
    block = await block_with(coach, ana, exercise_of(squat, WARM_UP, WORK, WORK, WORK))
    done = [*completed_sets((12, 200), (8, 60)), incomplete_set(3, 100), *completed_sets((6, 62.5))]
    (await log(coach, block, block["items"][0], customerSets=done)).ok()

    [session] = await list_history(coach, ana, squat)

    assert [each["index"] for each in session["sets"]] == [1, 2, 3, 4], "every logged set is listed"
    assert (session["volumeLoad"], session["bestSet"]["index"]) == (855, 2)
    assert session["estimatedOneRepMax"] == {"value": 76, "formula": "epley", "setIndex": 2}

    planned = [WORK | {"index": 1}, WORK | {"index": 2, "isWarmup": True}]
    path = f"{path_of(block)}/witems/{block['items'][0]['_id']}"
    (await coach.patch(path, {"exerciseSets": planned})).ok()
    [session] = await list_history(coach, ana, squat)
    assert (session["volumeLoad"], session["bestSet"]["index"]) == (2775, 1), "12 x 200 + 6 x 62.5: another plan"


async def test_each_exercise_of_a_circuit_has_its_session(coach: CoachClient) -> None:
    """Contract 5: `customerSets` of circuits have `exerciseId` and `round`."""
    ana, squat, press = await coach.create_customer(), await coach.create_exercise(), await coach.create_exercise("P")
    block = await block_with(coach, ana, circuit_of(squat, press, rounds=2))
    done = [
        circuit_set(1, squat, 10, 20),
        circuit_set(1, press, 8, 30),
        circuit_set(2, squat, 9, 24),
        circuit_set(2, press, 7, 30),
    ]
    (await log(coach, block, block["items"][0], customerSets=done)).ok()

    [of_squat], [of_press] = await list_history(coach, ana, squat), await list_history(coach, ana, press)

    assert [(each["round"], each["reps"], each["load"]) for each in of_squat["sets"]] == [(1, 10, 20), (2, 9, 24)]
    assert (of_squat["volumeLoad"], of_press["volumeLoad"]) == (416, 450)  # 200 + 216, 240 + 210
    assert (of_squat["bestSet"]["round"], of_press["bestSet"]["round"]) == (2, 1)  # 31.2 after 26.67; 38 before 37
    assert of_squat["estimatedOneRepMax"] == {"value": 31.2, "formula": "epley", "setIndex": 1}


async def test_exercise_of_a_completed_circuit_without_sets_is_no_session(coach: CoachClient) -> None:
    """Contract 7: a session needs at least one completed set that is not warm-up."""
    ana, squat, press = await coach.create_customer(), await coach.create_exercise(), await coach.create_exercise("P")
    block = await block_with(coach, ana, circuit_of(squat, press))
    (await log(coach, block, block["items"][0], customerSets=[circuit_set(1, squat, 10, 20)])).ok()

    assert len(await list_history(coach, ana, squat)) == 1
    assert await list_history(coach, ana, press) == []
    assert await list_history(coach, ana, press, includeIncomplete="true") == [
        {
            "date": MONDAY,
            "wblockId": block["_id"],
            "isCompleted": True,
            "loadUnit": "kg",
            "sets": [],
            **NOTHING,
        }
    ]


async def test_warm_up_sets_alone_are_no_session(coach: CoachClient) -> None:
    """Contract 7: a session needs at least one completed set that is not warm-up."""
    ana, squat = await coach.create_customer(), await coach.create_exercise()
    block = await train(coach, ana, squat, (12, 20), plan=(WARM_UP, WORK))
    assert await list_history(coach, ana, squat) == []
    [incomplete] = await list_history(coach, ana, squat, includeIncomplete="true")
    assert (incomplete["wblockId"], len(incomplete["sets"])) == (block["_id"], 1)

    sets = completed_sets((12, 20), (8, 60))
    (await log(coach, block, block["items"][0], customerSets=sets)).ok()
    [session] = await list_history(coach, ana, squat)
    assert (session["date"], session["volumeLoad"]) == (MONDAY, 480)


async def test_logged_sets_remain_when_the_plan_changes(coach: CoachClient) -> None:
    ana, squat, press = await coach.create_customer(), await coach.create_exercise(), await coach.create_exercise("P")
    block = await block_with(coach, ana, circuit_of(squat, press))
    done = [circuit_set(1, squat, 10, 20), circuit_set(1, press, 8, 30)]
    (await log(coach, block, block["items"][0], isCompleted=False, customerSets=done)).ok()
    only_squat = {"circuitExercises": circuit_of(squat)["circuitExercises"]}
    (await coach.patch(f"{path_of(block)}/witems/{block['items'][0]['_id']}", only_squat)).ok()

    for query in ({}, {"includeIncomplete": "true"}):
        [session] = await list_history(coach, ana, press, **query)
        assert (session["volumeLoad"], session["isCompleted"], len(session["sets"])) == (240, False, 1)


async def test_sessions_not_done_are_listed_only_on_request(coach: CoachClient) -> None:
    """Contract 7: `includeIncomplete` (boolean, default false)."""
    ana, squat = await coach.create_customer(), await coach.create_exercise()
    planned = await block_with(coach, ana, exercise_of(squat), date=SUNDAY)
    partly = await block_with(coach, ana, exercise_of(squat), date=TUESDAY)
    (await log(coach, partly, partly["items"][0], isCompleted=False, customerSets=completed_sets((8, 60)))).ok()
    await train(coach, ana, squat, (8, 60), date=MONDAY)

    for query in ({}, {"includeIncomplete": "false"}, {"includeIncomplete": "yes"}):
        sessions = await list_history(coach, ana, squat, **query)
        assert [(s["date"], s["isCompleted"]) for s in sessions] == [(TUESDAY, False), (MONDAY, True)]
    sessions = await list_history(coach, ana, squat, includeIncomplete="true")
    assert [(s["date"], s["isCompleted"]) for s in sessions] == [(SUNDAY, False), (TUESDAY, False), (MONDAY, True)]
    assert sessions[0] == {
        "date": SUNDAY,
        "wblockId": planned["_id"],
        "isCompleted": False,
        "loadUnit": "kg",
        "sets": [],
        **NOTHING,
    }
    await clear_log(coach, partly)
    assert [session["date"] for session in await list_history(coach, ana, squat)] == [MONDAY]
    assert (await read_progress(coach, ana, "exercise", squat["_id"], "history", **PAGE)).ok()["totalDocs"] == 1


async def test_block_is_one_session_for_several_items_of_the_exercise(coach: CoachClient) -> None:
    ana, squat = await coach.create_customer(), await coach.create_exercise()
    block = await block_with(coach, ana, exercise_of(squat), task(), circuit_of(squat), exercise_of(squat))
    for at, done in [(0, completed_sets((5, 100))), (2, [circuit_set(1, squat, 10, 20)])]:
        (await log(coach, block, block["items"][at], customerSets=done)).ok()
    [session] = await list_history(coach, ana, squat)
    assert (len(session["sets"]), session["volumeLoad"], session["isCompleted"]) == (2, 700, False)

    second = await train(coach, ana, squat, (3, 50))
    assert [s["wblockId"] for s in await list_history(coach, ana, squat)] == [second["_id"], block["_id"]]


async def test_session_counts_on_the_date_of_its_block(coach: CoachClient) -> None:
    """Contract 7: on its block's `date`, not on the time of the log."""
    ana, squat = await coach.create_customer(), await coach.create_exercise()
    block = await train(coach, ana, squat, (5, 100), date="2024-02-29")
    assert [session["date"] for session in await list_history(coach, ana, squat)] == ["2024-02-29"]
    (await coach.patch(path_of(block), {"date": "2031-12-31"})).ok()
    assert [session["date"] for session in await list_history(coach, ana, squat)] == ["2031-12-31"]
    other = await coach.schedule(ana, TUESDAY)
    (await move(coach, block["items"][0], block, other, 0)).ok()
    assert [(s["date"], s["wblockId"]) for s in await list_history(coach, ana, squat)] == [(TUESDAY, other["_id"])]
    (await coach.delete(path_of(other))).ok(204)
    assert await list_history(coach, ana, squat, includeIncomplete="true") == []


async def test_pages_contain_every_session_once_newest_first(coach: CoachClient) -> None:
    ana, squat = await coach.create_customer(), await coach.create_exercise()
    days = ["2025-12-30", "2025-12-30", "2025-12-31", "2026-01-01", "2026-01-01", "2026-01-01", "2026-02-01"]
    for day in days:
        await train(coach, ana, squat, (5, 100), date=day)
    path = ("exercise", squat["_id"], "history")
    for query in ({}, {"pageSize": 1}, {"pageNum": 1}, PAGE | {"pageSize": 51}, PAGE | {"pageSize": 0}):
        (await read_progress(coach, ana, *path, **query)).refused(400)
    (await read_progress(coach, ana, *path, pageSize=5)).refused(400, "Validation failed (numeric string is expected)")
    (await read_progress(coach, ana, *path, **PAGE, includeIncomplete="")).refused(400, "boolean string is expected")

    pages = [
        (await read_progress(coach, ana, *path, pageSize="2e0", pageNum=number)).ok() for number in (1, 2, 3, 4, 5)
    ]

    met = [session for page in pages for session in page["docs"]]
    assert [session["date"] for session in met] == sorted(days, reverse=True)
    assert len({session["wblockId"] for session in met}) == len(days)
    assert {(page["totalDocs"], page["totalPages"], page["limit"]) for page in pages} == {(7, 4, 2)}
    assert [page["nextPage"] for page in pages] == [2, 3, 4, None, None]
    (await read_progress(coach, ana, *path, pageSize=50, pageNum=2**53 - 1)).ok()


async def test_history_of_a_deleted_exercise_is_readable(coach: CoachClient, other_company: CoachClient) -> None:
    ana, squat = await coach.create_customer(), await coach.create_exercise()
    await train(coach, ana, squat, (5, 100))
    (await coach.delete(f"/exercises/{squat['_id']}")).ok(204)
    assert len(await list_history(coach, ana, squat)) == 1
    foreign = await other_company.create_exercise()
    unknown = (await read_progress(coach, ana, "exercise", UNKNOWN, "history", **PAGE)).refused(404, "Exercise")
    assert (await read_progress(coach, ana, "exercise", foreign["_id"], "history", **PAGE)).refused(404) == unknown
    (await read_progress(coach, ana, "exercise", "squat", "history", **PAGE)).refused(400, "exerciseId")


READINGS: list[tuple[str, Json]] = [
    (f"exercise/{UNKNOWN}/history", PAGE),
    ("personal-records", {}),
    ("activity-feed", {"page": 1, "limit": 10}),
    ("musclegroups/volume", {"startDate": MONDAY, "endDate": SUNDAY}),
    ("workload", {"startDate": MONDAY, "endDate": SUNDAY}),
    ("compliance", {}),
    ("form-responses", {}),
]


async def test_history_of_clients_outside_the_scope_is_rejected(coach: CoachClient, other_company: CoachClient) -> None:
    """Contract 1: another company's client is not found; a colleague's client, of one's own company, is 403."""
    ana = await coach.create_customer()
    permissions = ["customers.view", "forms.view"]
    eli = await team.create(coach.ctx, "Eli", f"eli{ana['_id']}@x.test", permissions, "assigned", "no hash")
    employee = coach.with_bearer((await sessions.create_session(coach.ctx, eli["_id"], "coach"))["accessToken"])

    for path, query in READINGS:
        (await read_progress(employee, ana, path, **query)).refused(403)
        foreign = (await read_progress(other_company, ana, path, **query)).refused(404, "Customer")
        assert (await read_progress(coach, {"_id": UNKNOWN}, path, **query)).refused(404) == foreign

    (await coach.patch(f"/coach/customers/{ana['_id']}", {"assignedTo": str(eli["_id"])})).ok()
    for path, query in READINGS:
        seen = await read_progress(employee, ana, path, **query)
        assert seen.status == (404 if UNKNOWN in path else 200), seen.json
