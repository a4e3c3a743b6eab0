"""Adding exercises to a workout: which are suggested first, and which sets are planned."""

from __future__ import annotations

import re
from typing import Any

from tests.support import training
from tests.support.client import CoachClient
from tests.support.visitor import Visitor
from tests.web.test_planning import legs, workout_path
from tests.web.test_programs import base, page_of, workout


async def _suggested(page: Visitor, path: str, keywords: str = "") -> list[str]:
    shown = await page.get(f"/app/pick-exercise?keywords={keywords}")
    return re.findall(r'<span class="picker-name">([^<]+)<', shown.ok().html)


async def test_exercises_that_are_used_most_are_suggested_first(coach: CoachClient, owner_page: Visitor) -> None:
    squat, zercher = await coach.create_exercise("Squat"), await coach.create_exercise("Zercher squat")
    box, press = await coach.create_exercise("Box squat"), await coach.create_exercise("Zzz press")
    block = await legs(coach, *[training.exercise_of(each) for each in (zercher, press, box)])
    for each in (zercher, zercher, press):
        await training.add(coach, block, training.exercise_of(each))
    path = workout_path(block)

    assert (await _suggested(owner_page, path))[:3] == ["Zercher squat", "Zzz press", "Box squat"]
    assert (await _suggested(owner_page, path, "squat"))[:3] == ["Squat", "Zercher squat", "Box squat"]
    assert (await _suggested(owner_page, path, "zerchr"))[0] == "Zercher squat"
    assert await _suggested(owner_page, path, "nothing-like-it") == []
    (await coach.delete(f"/exercises/{press['_id']}")).ok(204)
    assert (await _suggested(owner_page, path))[:2] == ["Zercher squat", "Box squat"]
    assert squat["name"] in await _suggested(owner_page, path, "squat")


async def test_an_exercise_is_planned_as_in_the_clients_last_workout(coach: CoachClient, owner_page: Visitor) -> None:
    squat = await coach.create_exercise("Squat")
    sets: list[dict[str, Any]] = [
        {"type": "reps_load", "minPlannedReps": 5, "loadPercent": 80, "rest": 120, "tempo": "3010"},
        {"type": "reps_load", "minPlannedReps": 3, "load": 90, "isWarmup": True},
    ]
    client = await coach.create_customer("Ana")
    earlier = await training.block_with(coach, client, training.exercise_of(squat, *sets), date="2026-03-02")
    await training.block_with(coach, client, training.circuit_of(squat), date="2026-03-04")
    await training.block_with(coach, client, training.exercise_of(squat), date="2026-03-20")
    block = await training.block_with(coach, client, date="2026-03-09")
    path = f"{workout_path(block)}/exercises"
    page = await owner_page.get(f"{path}?keywords=squat")

    (await owner_page.submit(page, path, exerciseId=squat["_id"])).ok().says("Squat added.")
    (await owner_page.submit(page, path, exerciseId=block["_id"], submission="another")).ok(404)

    (item,) = (await training.read(coach, block))["items"]
    assert item["exerciseSets"] == earlier["items"][0]["exerciseSets"]


async def test_without_an_earlier_workout_three_sets_are_proposed(coach: CoachClient, owner_page: Visitor) -> None:
    squat = await coach.create_exercise("Squat")
    block = await workout(coach, await base(coach), 1, "Legs")
    path = f"{page_of({'_id': block['programId']}, block)}/exercises"
    page = await owner_page.get(f"{path}?keywords=squat")

    (await owner_page.submit(page, path, exerciseId=squat["_id"])).ok()
    (await owner_page.submit(page, path, exerciseId=squat["_id"], circuit="new", submission="second")).ok()

    item, circuit = (await training.read(coach, block))["items"]
    assert [each["minPlannedReps"] for each in item["exerciseSets"]] == [8, 8, 8]
    assert [each["minPlannedReps"] for each in circuit["circuitExercises"][0]["sets"]] == [8]
    again = {"circuit": circuit["_id"], "submission": "third"}
    (await owner_page.submit(page, path, exerciseId=squat["_id"], **again)).says("already contains this exercise")


async def test_an_item_is_duplicated_after_itself_and_undone(coach: CoachClient, owner_page: Visitor) -> None:
    block = await legs(coach, *await training.one_of_each(coach))
    (await training.log(coach, block, block["items"][0], isCompleted=True)).ok()
    path = workout_path(block)

    copied = await owner_page.get(path)
    for item in block["items"]:
        copied = await owner_page.submit(copied, f"{path}/items/{item['_id']}/duplicate")
        copied.ok().says("duplicated.")

    stored = (await training.read(coach, block))["items"]
    kinds = [(item["type"], item["isCompleted"]) for item in stored]
    assert [kind for kind, _ in kinds] == [item["type"] for item in block["items"] for _ in range(2)]
    assert [done for _, done in kinds] == [True] + [False] * 11
    for name in ("exerciseSets", "exerciseInstructions", "supersetId"):
        assert stored[1][name] == stored[0][name], name
    assert [each["sets"] for each in stored[3]["circuitExercises"]] == [
        each["sets"] for each in stored[2]["circuitExercises"]
    ]
    (undo,) = [form.action for form in copied.forms if form.action.endswith("/undo")]
    (await owner_page.submit(copied, undo)).ok()
    assert len((await training.read(coach, block))["items"]) == 11


async def test_the_last_time_and_the_maximum_are_beside_the_plan(coach: CoachClient, owner_page: Visitor) -> None:
    squat, press = await coach.create_exercise("Squat"), await coach.create_exercise("Press")
    client = await coach.create_customer("Ana")
    before = await training.block_with(coach, client, training.exercise_of(squat), date="2026-03-02")
    done = [
        {"index": index, "reps": reps, "load": 60, "isCompleted": reps > 0} for index, reps in enumerate((8, 8, 0), 1)
    ]
    (await training.log(coach, before, before["items"][0], isCompleted=False, customerSets=done)).ok()
    percents = [{"type": "reps_load", "minPlannedReps": 5, "loadPercent": 70}]
    items = [training.exercise_of(squat, *percents), training.exercise_of(press, *percents)]
    block = await training.block_with(coach, client, *items, date="2026-03-09")

    page = (await owner_page.get(workout_path(block))).ok()
    page.says("Last time, Mon 2 Mar 2026 : 8, 8 × 60 kg Estimated 1RM", "Set a training maximum", "= 52.5 kg")
    maximum = f"/coach/customers/{client['_id']}/training-maxes/{press['_id']}"
    (await coach.put(maximum, {"value": 50})).ok()
    page = (await owner_page.get(workout_path(block))).says("Training max 50 kg", "= 35 kg")
    card = f"{workout_path(block)}/items/{block['items'][1]['_id']}/card"
    sent = dict(page.form(card).fields) | {"sets.0.loadPercent": "90"}
    answer = await owner_page.send("POST", card, data=sent, headers={"Accept": "application/json"})
    assert '"loads":["= 45 kg"]' in answer.html
