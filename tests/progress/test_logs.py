"""Logs of every type of item, and of sessions."""

from __future__ import annotations

import asyncio
from typing import Any

from tests.support.client import UNKNOWN, CoachClient
from tests.support.training import (
    add,
    block_with,
    circuit_of,
    exercise_of,
    form_of,
    log,
    metric_set,
    metrics_of,
    one_of_each,
    path_of,
    read,
    task,
)

NORMAL = {"isWarmup": False, "setKind": "normal"}
DONE = {
    "index": 1,
    "reps": 8,
    "load": 62.5,
    "seconds": None,
    "meters": None,
    "rpe": 8,
    "rir": 2,
    **NORMAL,
    "isCompleted": True,
}


async def test_exercise_log_has_sets(coach: CoachClient) -> None:
    """Contract 5: `customerSets`: `index, exerciseId and round (circuits), reps, load, seconds, meters, rpe, rir,
    isWarmup, setKind, isCompleted`."""
    ana, squat = await coach.create_customer(), await coach.create_exercise()
    block = await block_with(coach, ana, exercise_of(squat))
    [item] = block["items"]
    sets = [{"reps": 8, "load": 62.5, "rpe": 8, "rir": 2}, {"seconds": 30.5, "meters": 400, "isCompleted": False}]

    logged = (await log(coach, block, item, customerSets=sets, comment="Felt light")).ok()

    nothing = dict.fromkeys(("reps", "load", "rpe", "rir", "seconds", "meters"))
    nowhere = {"exerciseId": None, "round": None, **NORMAL}
    assert logged["customerSets"] == [
        nowhere | DONE,
        nowhere | nothing | {"index": 2, "seconds": 30.5, "meters": 400, "isCompleted": False},
    ]
    assert (logged["isCompleted"], logged["comment"]) == (True, "Felt light")
    assert logged["completedAt"] is not None
    assert logged["exerciseSets"] == item["exerciseSets"], "the plan is unchanged"
    assert logged["version"] == block["version"] + 1
    now = await read(coach, block)
    assert (now["items"], now["isCompleted"]) == ([logged], True)


async def test_circuit_log_has_sets_by_exercise_and_round(coach: CoachClient) -> None:
    ana, squat, press = await coach.create_customer(), await coach.create_exercise(), await coach.create_exercise("P")
    block = await block_with(coach, ana, circuit_of(squat, press, rounds=2))
    [item] = block["items"]
    sets = [
        {"exerciseId": exercise["_id"], "round": number, "index": 1, "reps": 10 - number}
        for number in (1, 2)
        for exercise in (squat, press)
    ]

    logged = (await log(coach, block, item, customerSets=sets)).ok()

    assert [(s["exerciseId"], s["round"], s["index"], s["reps"]) for s in logged["customerSets"]] == [
        (squat["_id"], 1, 1, 9),
        (press["_id"], 1, 1, 9),
        (squat["_id"], 2, 1, 8),
        (press["_id"], 2, 1, 8),
    ]


async def test_circuit_sets_are_numbered_within_exercise_and_round(coach: CoachClient) -> None:
    ana, squat, press = await coach.create_customer(), await coach.create_exercise(), await coach.create_exercise("P")
    block = await block_with(coach, ana, circuit_of(squat, press))
    sets = [{"exerciseId": each["_id"], "round": n} for n in (1, 2) for each in (squat, press, squat)]

    logged = (await log(coach, block, block["items"][0], customerSets=sets)).ok()

    assert [s["index"] for s in logged["customerSets"]] == [1, 1, 2, 1, 1, 2]


async def test_circuit_set_outside_its_exercises_or_rounds_is_rejected(coach: CoachClient) -> None:
    ana, squat, other = await coach.create_customer(), await coach.create_exercise(), await coach.create_exercise("O")
    block = await block_with(coach, ana, circuit_of(squat, rounds=2))
    [item] = block["items"]
    good = {"exerciseId": squat["_id"], "round": 2, "index": 1}
    for sets, field in [
        ([good | {"exerciseId": other["_id"]}], "customerSets.0.exerciseId"),
        ([good, good | {"exerciseId": UNKNOWN}], "customerSets.1.exerciseId"),
        ([good | {"round": 3}], "customerSets.0.round"),
        ([good | {"round": 0}], "customerSets.0.round"),
        ([{"round": 1}], "customerSets.0.exerciseId"),
        ([good, good], "customerSets must have each index only once"),
    ]:
        error = (await log(coach, block, item, customerSets=sets)).refused(400)
        assert [message for message in error["message"] if message.startswith(field)], error
    assert await read(coach, block) == block


async def test_task_and_reminder_are_completed(coach: CoachClient) -> None:
    ana = await coach.create_customer()
    block = await block_with(coach, ana, *[item for item in await one_of_each(coach) if item["type"] in "TASKREMINDER"])
    for item in block["items"]:
        logged = (await log(coach, block, item, isCompleted=True, comment="ok")).ok()
        assert logged == item | {
            name: logged[name] for name in ("isCompleted", "completedAt", "comment", "updatedAt", "version")
        }
        assert (logged["isCompleted"], logged["comment"]) == (True, "ok")


async def test_form_log_has_answers_and_metrics_log_has_values(coach: CoachClient) -> None:
    ana, body = await coach.create_customer(), await metric_set(coach, "Weight", "Waist")
    block = await block_with(coach, ana, form_of(), metrics_of(body))
    form, metrics = block["items"]
    answers = [{"questionId": form["form"]["questions"][0]["_id"], "value": "Fine"}]
    values = [{"metricId": metric["_id"], "value": 70.5 + at} for at, metric in enumerate(body["metrics"])]

    assert (await log(coach, block, form, answers=answers)).ok()["answers"] == answers
    assert (await log(coach, block, metrics, values=values)).ok()["values"] == values
    assert [item["isCompleted"] for item in (await read(coach, block))["items"]] == [True, True]


async def test_empty_log_completes_any_item(coach: CoachClient) -> None:
    ana = await coach.create_customer()
    block = await block_with(coach, ana, *await one_of_each(coach))
    for item in block["items"]:
        logged = (await log(coach, block, item)).ok()
        assert (logged["isCompleted"], logged["comment"]) == (True, None)
    assert (await read(coach, block))["isCompleted"] is True


async def test_second_log_replaces_the_first_and_keeps_its_time(coach: CoachClient) -> None:
    ana, squat = await coach.create_customer(), await coach.create_exercise()
    block = await block_with(coach, ana, exercise_of(squat))
    [item] = block["items"]
    first = (await log(coach, block, item, customerSets=[{"reps": 8}], comment="a")).ok()

    second = (await log(coach, block, item, customerSets=[{"reps": 5}, {"reps": 4}])).ok()

    assert [each["reps"] for each in second["customerSets"]] == [5, 4]
    assert second["comment"] is None
    assert second["completedAt"] == first["completedAt"]


async def test_incomplete_log_clears_the_results(coach: CoachClient) -> None:
    ana = await coach.create_customer()
    block = await block_with(coach, ana, *await one_of_each(coach))
    for item in block["items"]:
        (await log(coach, block, item, comment="done")).ok()
        undone = (await log(coach, block, item, isCompleted=False)).ok()
        assert undone == item | {"updatedAt": undone["updatedAt"], "version": undone["version"]}
    assert (await read(coach, block))["isCompleted"] is False


async def test_block_is_completed_when_all_items_are(coach: CoachClient) -> None:
    ana = await coach.create_customer()
    block = await block_with(coach, ana, task("a"), task("b"))
    assert (await block_with(coach, ana))["isCompleted"] is False, "an empty block is not completed"
    seen = []
    for at, done in [(0, True), (1, True), (0, False), (0, True)]:
        (await log(coach, block, block["items"][at], isCompleted=done)).ok()
        seen.append((await read(coach, block))["isCompleted"])
    assert seen == [False, True, False, True]
    await add(coach, block, task("c"))
    assert (await read(coach, block))["isCompleted"] is False


INVALID_LOGS: list[tuple[dict[str, Any], str]] = [
    ({"isCompleted": "yes"}, "isCompleted"),
    ({"isCompleted": None}, "isCompleted"),
    ({"comment": 5}, "comment"),
    ({"comment": "x" * 10_001}, "comment"),
    ({"customerSets": {}}, "customerSets"),
    ({"customerSets": [5]}, "customerSets.0"),
    ({"customerSets": [{"reps": "8"}]}, "customerSets.0.reps"),
    ({"customerSets": [{"reps": 8.5}]}, "customerSets.0.reps"),
    ({"customerSets": [{"reps": -1}]}, "customerSets.0.reps"),
    ({"customerSets": [{"load": -1}]}, "customerSets.0.load"),
    ({"customerSets": [{"seconds": True}]}, "customerSets.0.seconds"),
    ({"customerSets": [{"rpe": 0}]}, "customerSets.0.rpe"),
    ({"customerSets": [{"rpe": 10.5}]}, "customerSets.0.rpe"),
    ({"customerSets": [{"index": 0}]}, "customerSets.0.index"),
    ({"customerSets": [{"index": 1}, {"index": 1}]}, "customerSets"),
    ({"customerSets": [{"index": 2}, {}]}, "customerSets"),
    ({"customerSets": [{}] * 201}, "customerSets"),
]


async def test_invalid_log_names_the_field(coach: CoachClient) -> None:
    ana, squat = await coach.create_customer(), await coach.create_exercise()
    block = await block_with(coach, ana, exercise_of(squat))
    for done, field in INVALID_LOGS:
        error = (await log(coach, block, block["items"][0], **done)).refused(400)

        assert [message for message in error["message"] if message.startswith(field + " ")], error
        assert await read(coach, block) == block


async def test_fields_of_other_types_are_ignored(coach: CoachClient) -> None:
    ana = await coach.create_customer()
    block = await block_with(coach, ana, task())
    logged = (await log(coach, block, block["items"][0], customerSets="x", answers=5, values=[None])).ok()
    assert not {"customerSets", "answers", "values"} & logged.keys()


async def test_null_list_is_an_empty_list(coach: CoachClient) -> None:
    ana = await coach.create_customer()
    items = [item for item in await one_of_each(coach) if item["type"] in ("EXERCISE", "CIRCUIT", "FORM", "METRICS")]
    block = await block_with(coach, ana, *items)
    for item in block["items"]:
        logged = (await log(coach, block, item, customerSets=None, answers=None, values=None)).ok()
        assert [logged[name] for name in ("customerSets", "answers", "values") if name in logged] == [[]]


async def test_item_is_found_only_in_its_block_and_client(coach: CoachClient) -> None:
    ana, bo = await coach.create_customer("Ana"), await coach.create_customer("Bo")
    block = await block_with(coach, ana, task())
    elsewhere, theirs = await coach.schedule(ana), await coach.schedule(bo)
    [item] = block["items"]
    (await log(coach, elsewhere, item)).refused(404, "Workout item")
    (await log(coach, theirs, item)).refused(404, "Workout item")
    (await log(coach, block | {"customerId": bo["_id"]}, item)).refused(404, "Workout block")
    (await log(coach, block, {"_id": UNKNOWN})).refused(404, "Workout item")
    assert await read(coach, block) == block


async def test_concurrent_logs_of_several_items_are_all_stored(coach: CoachClient) -> None:
    ana = await coach.create_customer()
    block = await block_with(coach, ana, *(task(str(n)) for n in range(12)))

    replies = await asyncio.gather(*(log(coach, block, item) for item in block["items"]))

    assert {reply.status for reply in replies} == {200}
    now = await read(coach, block)
    assert now["isCompleted"] is True
    assert now["version"] == block["version"] + 12


async def test_session_log_is_stored_with_the_block(coach: CoachClient) -> None:
    """Contract 5: PUT .../wblocks/{wid}/log `{durationMinutes, sessionRpe, comment}`."""
    ana = await coach.create_customer()
    block = await block_with(coach, ana, task())
    path = f"{path_of(block)}/log"

    noted = (await coach.put(path, {"durationMinutes": 55.5, "sessionRpe": 7, "comment": "Short of time"})).ok()

    assert (noted["durationMinutes"], noted["sessionRpe"], noted["comment"]) == (55.5, 7, "Short of time")
    assert (noted["isCompleted"], noted["items"]) == (False, [block["items"][0] | {"version": noted["version"]}])
    assert await read(coach, block) == noted
    again = (await coach.put(path, {"sessionRpe": 8})).ok()
    assert (again["durationMinutes"], again["sessionRpe"], again["comment"]) == (None, 8, None)
    for wrong in ("durationMinutes", "sessionRpe"):
        for value in (-1, 100_000, "5", True):
            (await coach.put(path, {wrong: value})).refused(400, wrong)
    (await coach.put(path, {"comment": []})).refused(400, "comment")
    (await coach.put(f"{path_of(block | {'_id': UNKNOWN})}/log", {})).refused(404, "Workout block")
    assert await read(coach, block) == again
