"""A client's personal records: entered by a coach, and derived from logs (contract 7)."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from coaching_service.core.ids import ObjectId
from coaching_service.progress.logs import service as logs
from coaching_service.progress.logs.schemas import ITEM_LOG
from coaching_service.settings import Settings
from tests.conftest import NewCompany
from tests.support.client import MONDAY, SUNDAY, TUESDAY, UNKNOWN, CoachClient
from tests.support.counted_commands import counting_commands
from tests.support.results import (
    WARM_UP,
    WORK,
    circuit_set,
    clear_log,
    completed_sets,
    incomplete_set,
    list_records,
    train,
)
from tests.support.sampled import MORE
from tests.support.training import (
    Json,
    block_with,
    circuit_of,
    client_path,
    exercise_of,
    feed,
    log,
    move,
    path_of,
    task,
)

# Completed sets (reps, load) | heaviest_load: value, reps | most_reps | estimated_1rm: value, reps.     By hand:
TABLE: list[tuple[list[tuple[int | None, float | None]], Any, Any, Any]] = [
    ([(5, 100)], (100, 5), (5, 5), (116.67, 5)),  # 100 x 7/6
    ([(1, 120), (5, 110), (12, 90)], (120, 1), (12, 12), (128.33, 5)),  # 120, 128.33, 126
    ([(1, 120), (3, 120)], (120, 3), (3, 3), (132, 3)),  # of equal loads the set with more reps; 120 x 1.1
    ([(13, 100), (2, 90)], (100, 13), (13, 13), (96, 2)),  # no estimate above 12 reps
    ([(30, None), (20, 10)], (10, 20), (30, 30), None),  # without a load only reps count
    ([(0, 150), (None, 80)], None, None, None),  # no completed repetition
    ([(15, 0)], None, (15, 15), None),  # no load
]


def logged_record(records: list[Json], record_type: str) -> tuple[float, int] | None:
    """Value and reps of the record of a type, if there is one."""
    of_type = [record for record in records if record["type"] == record_type]
    assert len(of_type) <= 1, "one record of each type and exercise"
    return (of_type[0]["value"], of_type[0]["reps"]) if of_type else None


async def heaviest(coach: CoachClient, customer: Json) -> tuple[float, str] | None:
    """Value and date of the heaviest load derived from logs."""
    read = [record for record in await list_records(coach, customer) if record["type"] == "heaviest_load"]
    return (read[0]["value"], read[0]["date"]) if read else None


async def enter_record(coach: CoachClient, customer: Json, exercise: Json, **fields: Any) -> Json:
    """Enter a record."""
    body = {"exerciseId": exercise["_id"], "type": "heaviest_load", "value": 100, "date": MONDAY, **fields}
    record: Json = (await coach.post(client_path(customer, "personal-records"), body)).ok(201)
    return record


async def list_record_events(coach: CoachClient, customer: Json) -> list[tuple[str, float, str]]:
    """Type, value and day of the records in the feed, in alphabetical order."""
    events = [event["data"] for event in await feed(coach, customer) if event["type"] == "personal_record"]
    return sorted((data["recordType"], data["value"], data["day"]) for data in events)


@pytest.mark.parametrize(("done", "load", "reps", "estimate"), TABLE)
async def test_records_are_derived_from_logs(
    coach: CoachClient, done: list[tuple[int | None, float | None]], load: Any, reps: Any, estimate: Any
) -> None:
    """Contract 7: heaviest_load, most_reps or estimated_1rm, `value`, `unit`, `reps`, `date`, `source`, `witemId`."""
    ana, squat = await coach.create_customer(), await coach.create_exercise()
    block = await train(coach, ana, squat, *done)

    read = await list_records(coach, ana)

    assert [logged_record(read, record_type) for record_type in ("heaviest_load", "most_reps", "estimated_1rm")] == [
        load,
        reps,
        estimate,
    ]
    for record in read:
        assert record["unit"] == ("count" if record["type"] == "most_reps" else "kg")
        assert (record["exerciseId"], record["exerciseName"]) == (squat["_id"], "Squat")
        assert (record["source"], record["date"], record["witemId"]) == ("log", MONDAY, block["items"][0]["_id"])


async def test_loads_are_in_the_unit_of_the_company(new_company: NewCompany) -> None:
    coach = await new_company(load_unit="lb")
    ana, squat = await coach.create_customer(), await coach.create_exercise()
    await train(coach, ana, squat, (5, 225))
    await enter_record(coach, ana, squat)
    assert sorted(record["unit"] for record in await list_records(coach, ana)) == ["count", "lb", "lb", "lb"]


async def test_warm_up_and_incomplete_sets_set_no_records(coach: CoachClient) -> None:
    ana, squat = await coach.create_customer(), await coach.create_exercise()
    block = await block_with(coach, ana, exercise_of(squat, WARM_UP, WORK))
    done = [*completed_sets((12, 200), (8, 60)), incomplete_set(9, 300)]
    (await log(coach, block, block["items"][0], customerSets=done)).ok()
    assert await heaviest(coach, ana) == (60, MONDAY)

    path = f"{path_of(block)}/witems/{block['items'][0]['_id']}"
    (await coach.patch(path, {"exerciseSets": [WORK, WORK | {"isWarmup": True}]})).ok()
    assert await heaviest(coach, ana) == (200, MONDAY), "the warm-up sets are those of the new plan"
    (await coach.patch(path, {"exerciseSets": [WARM_UP, WARM_UP]})).ok()
    assert await list_records(coach, ana) == []


async def test_circuit_sets_records_of_each_exercise(coach: CoachClient) -> None:
    ana, squat, press = await coach.create_customer(), await coach.create_exercise(), await coach.create_exercise("P")
    block = await block_with(coach, ana, circuit_of(squat, press))
    done = [
        circuit_set(1, squat, 10, 20),
        circuit_set(1, press, 8, 30),
        circuit_set(2, squat, 9, 24),
        circuit_set(2, press, 7, 32),
    ]
    (await log(coach, block, block["items"][0], customerSets=done)).ok()

    best = {(r["exerciseName"], r["type"]): (r["value"], r["reps"]) for r in await list_records(coach, ana)}

    assert best == {
        ("P", "heaviest_load"): (32, 7),
        ("P", "most_reps"): (8, 8),
        ("P", "estimated_1rm"): (39.47, 7),  # 32 x 37/30, after 38
        ("Squat", "heaviest_load"): (24, 9),
        ("Squat", "most_reps"): (10, 10),
        ("Squat", "estimated_1rm"): (31.2, 9),  # 24 x 1.3, after 26.67
    }


async def test_earliest_of_equal_sets_holds_the_record(coach: CoachClient) -> None:
    ana, squat = await coach.create_customer(), await coach.create_exercise()
    await train(coach, ana, squat, (5, 100), date=TUESDAY)
    await train(coach, ana, squat, (5, 100), date=SUNDAY)
    assert await heaviest(coach, ana) == (100, TUESDAY)
    first = await train(coach, ana, squat, (5, 100), date=MONDAY)
    assert await heaviest(coach, ana) == (100, MONDAY)
    await clear_log(coach, first)
    assert await heaviest(coach, ana) == (100, TUESDAY)


async def test_next_best_set_holds_the_record_when_the_best_is_removed(coach: CoachClient) -> None:
    """After clearing the log, a lower log, and deletion of the item or block."""
    ana, squat = await coach.create_customer(), await coach.create_exercise()
    loads = {f"2026-03-{day:02}": 150 - 10 * day for day in range(1, 7)}  # 140, 130, 120, 110, 100, 90
    blocks = [await train(coach, ana, squat, (5, load), date=date) for date, load in loads.items()]
    assert await heaviest(coach, ana) == (140, "2026-03-01")

    await clear_log(coach, blocks[0])
    assert await heaviest(coach, ana) == (130, "2026-03-02")
    (await log(coach, blocks[1], blocks[1]["items"][0], customerSets=completed_sets((5, 95)))).ok()
    assert await heaviest(coach, ana) == (120, "2026-03-03")
    (await coach.delete(f"{path_of(blocks[2])}/witems/{blocks[2]['items'][0]['_id']}")).ok(204)
    assert await heaviest(coach, ana) == (110, "2026-03-04")
    (await coach.delete(path_of(blocks[3]))).ok(204)
    assert await heaviest(coach, ana) == (100, "2026-03-05")
    (await log(coach, blocks[4], blocks[4]["items"][0], customerSets=[incomplete_set(5, 100)])).ok()
    assert await heaviest(coach, ana) == (95, "2026-03-02")
    await clear_log(coach, blocks[1])
    await clear_log(coach, blocks[5])
    assert await list_records(coach, ana) == []
    assert await list_record_events(coach, ana) == []


async def test_record_moves_with_its_session_to_another_date(coach: CoachClient) -> None:
    """Contract 7: a session counts on its block's `date`."""
    ana, squat = await coach.create_customer(), await coach.create_exercise()
    block = await train(coach, ana, squat, (5, 100))
    await train(coach, ana, squat, (5, 100), date=SUNDAY)
    (await coach.patch(path_of(block), {"date": TUESDAY})).ok()
    assert await heaviest(coach, ana) == (100, TUESDAY)
    assert ("heaviest_load", 100, TUESDAY) in await list_record_events(coach, ana)
    (await coach.patch(path_of(block), {"date": "2026-03-09"})).ok()
    assert await heaviest(coach, ana) == (100, SUNDAY), "the other set is now the earliest"
    other = await coach.schedule(ana, "2026-02-01")
    (await move(coach, block["items"][0], block, other, 0)).ok()
    assert await heaviest(coach, ana) == (100, "2026-02-01")


async def test_record_follows_a_change_of_exercise(coach: CoachClient) -> None:
    ana, squat, press = await coach.create_customer(), await coach.create_exercise(), await coach.create_exercise("P")
    await train(coach, ana, squat, (5, 80), date=TUESDAY)
    block = await train(coach, ana, squat, (5, 100))
    path = f"{path_of(block)}/witems/{block['items'][0]['_id']}"
    (await coach.patch(path, {"exerciseId": press["_id"]})).ok()
    best = {r["exerciseName"]: r["value"] for r in await list_records(coach, ana) if r["type"] == "heaviest_load"}
    assert best == {"P": 100, "Squat": 80}


async def test_copies_and_tasks_set_no_records(coach: CoachClient) -> None:
    ana, squat = await coach.create_customer(), await coach.create_exercise()
    block = await block_with(coach, ana, exercise_of(squat), task())
    (await log(coach, block, block["items"][0], customerSets=completed_sets((5, 100)))).ok()
    (await log(coach, block, block["items"][1])).ok()
    before = await list_records(coach, ana)
    copied = (await coach.post(f"{path_of(block)}/copy", {"date": SUNDAY})).ok(201)
    (await coach.delete(path_of(copied))).ok(204)
    assert await list_records(coach, ana) == before


async def test_feed_has_only_current_records(coach: CoachClient) -> None:
    """Contract 7: the feed's `personal_record`."""
    ana, squat = await coach.create_customer(), await coach.create_exercise()
    await train(coach, ana, squat, (20, 80))
    assert await list_record_events(coach, ana) == [("heaviest_load", 80, MONDAY), ("most_reps", 20, MONDAY)]
    firsts = [event["data"]["isFirst"] for event in await feed(coach, ana) if event["type"] == "personal_record"]
    assert firsts == [True, True]
    better = await train(coach, ana, squat, (15, 90), date=TUESDAY)
    assert await list_record_events(coach, ana) == [("heaviest_load", 90, TUESDAY), ("most_reps", 20, MONDAY)]
    newest = next(event for event in await feed(coach, ana) if event["type"] == "personal_record")
    about = {"exerciseId": squat["_id"], "exerciseName": "Squat", "value": 90, "unit": "kg", "reps": 15}
    assert newest["data"] == about | {"recordType": "heaviest_load", "day": TUESDAY, "isFirst": False}
    (await log(coach, better, better["items"][0], customerSets=completed_sets((15, 85)))).ok()
    assert await list_record_events(coach, ana) == [("heaviest_load", 85, TUESDAY), ("most_reps", 20, MONDAY)]
    await clear_log(coach, better)
    assert await list_record_events(coach, ana) == [("heaviest_load", 80, MONDAY), ("most_reps", 20, MONDAY)]


async def test_record_is_entered_changed_and_deleted(coach: CoachClient) -> None:
    ana, squat = await coach.create_customer(), await coach.create_exercise()
    record = await enter_record(coach, ana, squat, reps=1, value=140)
    stamps = {key: record[key] for key in ("_id", "createdAt", "updatedAt")}
    best = {"exerciseId": squat["_id"], "exerciseName": "Squat", "type": "heaviest_load", "value": 140, "unit": "kg"}
    rest = {"reps": 1, "date": MONDAY, "source": "manual", "witemId": None, "version": 0}
    assert record == stamps | best | rest
    assert await list_record_events(coach, ana) == [("heaviest_load", 140, MONDAY)]
    path = client_path(ana, "personal-records", record["_id"])

    changed = (await coach.patch(path, {"value": 142.5, "reps": None, "version": 0})).ok()
    assert changed == record | {"value": 142.5, "reps": None, "version": 1, "updatedAt": changed["updatedAt"]}
    assert await list_record_events(coach, ana) == [("heaviest_load", 142.5, MONDAY)]
    for stale in ({"value": 1, "version": 0}, {"version": 0}):
        (await coach.patch(path, stale)).refused(409)
    assert (await coach.patch(path, {"type": "most_reps", "exerciseId": UNKNOWN, "source": "log"})).ok() == changed
    await train(coach, ana, squat, (5, 150))
    await train(coach, ana, squat, (5, 130), date=TUESDAY)
    assert changed in await list_records(coach, ana), "logs do not change entered records"
    assert [r["value"] for r in await list_records(coach, ana) if r["source"] == "log" and "load" in r["type"]] == [150]

    (await coach.delete(path)).ok(204)
    assert changed not in await list_records(coach, ana)
    assert ("heaviest_load", 142.5, MONDAY) not in await list_record_events(coach, ana)
    (await coach.delete(path)).refused(404, "Personal record")
    (await coach.patch(path, {"value": 1})).refused(404, "Personal record")


async def test_record_derived_from_a_log_cannot_be_changed(coach: CoachClient) -> None:
    ana, squat = await coach.create_customer(), await coach.create_exercise()
    await train(coach, ana, squat, (20, 80))
    before = await list_records(coach, ana)
    for record in before:
        path = client_path(ana, "personal-records", record["_id"])
        (await coach.patch(path, {"value": 999})).refused(409, "log")
        (await coach.delete(path)).refused(409, "log")
    assert await list_records(coach, ana) == before


async def test_malformed_identifier_is_the_documented_500(coach: CoachClient) -> None:
    """Contract 3: 500 `{code, message}`; nothing is written."""
    ana, bo, squat = await coach.create_customer(), await coach.create_customer("Bo"), await coach.create_exercise()
    record = await enter_record(coach, ana, squat)
    for wrong in ("x", "123", record["_id"][:-1], record["_id"] + "0", "g" * 24):
        path = client_path(ana, "personal-records", wrong)
        for answer in (await coach.patch(path, {"value": 1}), await coach.delete(path)):
            failure = answer.refused(500)
            assert failure.keys() == {"code", "message"}
            assert failure["code"] == "PERSONAL_RECORD_ID_INVALID"
    for owner, identifier in [(ana, UNKNOWN), (bo, record["_id"])]:
        (await coach.delete(client_path(owner, "personal-records", identifier))).refused(404)
    (await coach.delete(f"/coach/customers/x/personal-records/{record['_id']}")).refused(400, "customerId")
    assert await list_records(coach, ana) == [record]


INCOMPLETE: list[tuple[Json, int, str]] = [
    *[({"value": value}, 400, "value") for value in (None, "100", -1, 1e9, True)],
    *[({"date": date}, 400, "date") for date in (None, "2026-02-29", "02.03.2026", 20260302)],
    *[({"type": kind}, 400, "type") for kind in (None, "slowest", 1)],
    *[({"reps": reps}, 400, "reps") for reps in (1.5, -1, "5")],
    ({"type": "fastest"}, 400, "meters is required for fastest"),
    ({"type": "longest_time", "meters": 400}, 400, "meters is only for fastest"),
    ({"type": "most_reps", "value": 3.5}, 400, "value must be a whole number"),
    ({"exerciseId": "x"}, 400, "exerciseId"),
    ({"exerciseId": UNKNOWN}, 404, "Exercise"),
]


async def test_incomplete_record_is_rejected(coach: CoachClient) -> None:
    ana, squat = await coach.create_customer(), await coach.create_exercise()
    for wrong, status, word in INCOMPLETE:
        body = {"exerciseId": squat["_id"], "type": "heaviest_load", "value": 100, "date": MONDAY} | wrong
        (await coach.post(client_path(ana, "personal-records"), body)).refused(status, word)
        assert (await list_records(coach, ana), await list_record_events(coach, ana)) == ([], [])


async def test_record_has_the_current_name_of_its_exercise_also_when_deleted(coach: CoachClient) -> None:
    """Contract 6: a deleted exercise keeps its name."""
    ana, squat, press = await coach.create_customer(), await coach.create_exercise(), await coach.create_exercise("A")
    block = await train(coach, ana, squat, (20, None))
    await enter_record(coach, ana, press, type="most_reps", value=30)
    assert [record["exerciseName"] for record in await list_records(coach, ana)] == ["A", "Squat"]
    (await coach.patch(f"/exercises/{press['_id']}", {"name": "zercher squat"})).ok()
    assert [record["exerciseName"] for record in await list_records(coach, ana)] == ["Squat", "zercher squat"]
    for exercise in (squat, press):
        (await coach.delete(f"/exercises/{exercise['_id']}")).ok(204)
    (await log(coach, block, block["items"][0], customerSets=completed_sets((25, None)))).ok()
    assert [record["exerciseName"] for record in await list_records(coach, ana)] == ["Squat", "zercher squat"]
    assert await list_record_events(coach, ana) == [("most_reps", 25, MONDAY), ("most_reps", 30, MONDAY)]


async def test_records_are_right_after_concurrent_deletions(coach: CoachClient) -> None:
    ana, squat = await coach.create_customer(), await coach.create_exercise()
    for _ in range(2 if MORE > 1 else 1):
        blocks = [await train(coach, ana, squat, (5, load), date=TUESDAY) for load in (130, 120, 110)]
        lowest = await train(coach, ana, squat, (5, 50))
        gone = [coach.delete(f"{path_of(block)}/witems/{block['items'][0]['_id']}") for block in blocks]
        assert {reply.status for reply in await asyncio.gather(*gone)} == {204}
        assert await heaviest(coach, ana) == (50, MONDAY)
        (await coach.delete(path_of(lowest))).ok(204)


async def test_a_log_takes_as_many_commands_for_the_records_of_eight_exercises_as_of_two(
    coach: CoachClient, settings: Settings
) -> None:
    ana = await coach.create_customer()
    squats = [await coach.create_exercise(f"Squat {number}") for number in range(10)]
    await train(coach, ana, await coach.create_exercise("Press"), (5, 50))  # the unit of loads is fixed
    sent = []
    with counting_commands(settings, coach.ctx.services, of_last_transaction=True) as (services, commands):
        ctx = replace(coach.ctx, services=services)
        for exercises in (squats[:2], squats[2:]):
            block = await block_with(coach, ana, circuit_of(*exercises))
            [item] = block["items"]
            for load in (50, 60):
                sets = [circuit_set(1, exercise, 5, load) for exercise in exercises]
                body = ITEM_LOG.load({"isCompleted": True, "customerSets": sets})
                commands.clear()
                await logs.log_sent_item(ctx, ObjectId(ana["_id"]), ObjectId(block["_id"]), ObjectId(item["_id"]), body)
                sent.append(commands.copy())
    assert await coach.ctx.db["personalRecords"].count_documents({"customerId": ObjectId(ana["_id"])}) == 33
    for first, second in (sent[::2], sent[1::2]):
        assert first == second
        assert first.total() < 23, "the look-ups of first results, proposals and videos included"
