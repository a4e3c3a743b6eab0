"""The workout editor: the planned sets of each exercise are edited on its card, in the page of the workout."""

from __future__ import annotations

from typing import Any

from tests.support import training
from tests.support.client import CoachClient
from tests.support.visitor import Visitor
from tests.web.test_planning import EVERY_KIND, item_of, legs, workout_path
from tests.web.test_programs import base, page_of, workout


async def test_an_unchanged_card_changes_nothing(coach: CoachClient, owner_page: Visitor) -> None:
    squat = await coach.create_exercise("Squat")
    item = training.exercise_of(squat, *EVERY_KIND, supersetId="A", exerciseInstructions="Slowly\nand deep")
    block = await legs(coach, item)
    card = f"{item_of(block)}/card"
    page = await owner_page.get(workout_path(block))

    (await owner_page.submit(page, card)).ok().says("Changes saved.")

    (after,) = (await training.read(coach, block))["items"]
    for name in ("exerciseSets", "exerciseInstructions", "supersetId"):
        assert after[name] == block["items"][0][name], name


async def test_sets_are_edited_added_and_removed_on_the_card(coach: CoachClient, owner_page: Visitor) -> None:
    squat = await coach.create_exercise("Squat")
    block = await legs(coach, training.exercise_of(squat), training.exercise_of(squat))
    card = f"{item_of(block)}/card"
    page = await owner_page.get(workout_path(block))
    typed = {"sets__0__reps": "5", "sets__0__load": "82,5", "sets__0__rest": "120", "sets__1__out": "true"}
    typed |= {"sets__2__reps": "", "sets__2__load": "", "sets__2__time": "30-45", "sets__2__isWarmup": "true"}

    saved = await owner_page.submit(page, card, **typed, instructions="Slowly", supersetId="A")
    saved.ok().says("1 × 5 × 82.5 kg, rest 2:00", "1 × 30–45 s, warm-up", "Slowly", "A1")
    repeated = await owner_page.submit(saved, card, add="true")
    repeated.ok().says("Set added.", "2 × 30–45 s, warm-up")

    first, second = (await training.read(coach, block))["items"]
    assert [(each["index"], each["type"]) for each in first["exerciseSets"]] == [
        (1, "reps_load"),
        (3, "time"),
        (4, "time"),
    ]
    assert second["exerciseSets"] == block["items"][1]["exerciseSets"]


async def test_errors_of_a_card_keep_what_was_typed(coach: CoachClient, owner_page: Visitor) -> None:
    squat = await coach.create_exercise("Squat")
    block = await legs(coach, training.exercise_of(squat), training.exercise_of(squat))
    card = f"{item_of(block, 1)}/card"
    page = await owner_page.get(workout_path(block))
    wrong = {"sets__0__reps": "10-8", "sets__1__reps": "7,5", "sets__1__rpe": "11", "sets__2__distance": "400"}

    invalid = await owner_page.submit(page, card, **wrong, sets__0__loadPercent="70", instructions="Slowly")

    controls = invalid.ok(400).form(card).controls
    marked = {name for name, control in controls.items() if control.get("aria-invalid")}
    assert marked == {"sets.0.reps", "sets.1.reps", "sets.1.rpe", "sets.2.distance"}
    invalid.says("Reps: This must end with the greater number.", "RPE: This must not be greater than 10.")
    rows = invalid.html.split("data-row>")
    below = [row.partition('class="row-errors"')[2].count('class="error"') for row in rows if 'name="sets.' in row]
    assert sum(below) == len(marked), "each error is below the cells of its row"
    assert controls["sets.0.reps"]["value"] == "10-8"
    assert dict(invalid.form(card).fields)["instructions"] == "Slowly"
    assert not [c for c in invalid.form(f"{item_of(block)}/card").controls.values() if c.get("aria-invalid")]
    fixed = {"sets__0__reps": "8-10", "sets__1__reps": "7", "sets__1__rpe": "9"}
    two = await owner_page.submit(invalid, card, **fixed)
    two.ok(400).says("This must be empty if there is a load.", "This must be empty for a set with reps.")
    every_one = {f"sets__{at}__out": "true" for at in range(3)}
    (await owner_page.submit(page, card, **every_one)).ok(400).says("should not be empty")
    assert (await training.read(coach, block))["version"] == block["version"]


async def test_a_card_changed_by_another_user_shows_both_values(coach: CoachClient, owner_page: Visitor) -> None:
    squat = await coach.create_exercise("Squat")
    block = await legs(coach, training.exercise_of(squat))
    card = f"{item_of(block)}/card"
    page = await owner_page.get(workout_path(block))
    path = f"{training.path_of(block)}/witems/{block['items'][0]['_id']}"
    (await coach.patch(path, {"exerciseSets": [{"type": "reps_load", "minPlannedReps": 3, "load": 100}]})).ok()

    both = await owner_page.submit(page, card, sets__0__load="70")
    both.ok(409).says("This has been changed since", "Saved value: 100")
    (await owner_page.submit(both, card)).ok().says("Changes saved.")

    (item,) = (await training.read(coach, block))["items"]
    assert item["exerciseSets"][0]["load"] == 70
    (await coach.delete(path)).ok(204)
    (await owner_page.submit(both, card, sets__0__load="75")).ok(404).says("so nothing was saved")


async def test_a_script_saves_a_card_and_receives_the_version(coach: CoachClient, owner_page: Visitor) -> None:
    squat = await coach.create_exercise("Squat")
    block = await workout(coach, await base(coach), 1, "Legs", training.exercise_of(squat))
    card = f"{page_of(coach_program(block), block)}/items/{block['items'][0]['_id']}/card"
    page = await owner_page.get(page_of(coach_program(block), block))
    sent = dict(page.form(card).fields) | {"sets.0.load": "75", "sets.3.reps": "12"}
    script = {"Accept": "application/json"}

    async def send(**changes: str) -> tuple[int, Any]:
        answer = await owner_page.send("POST", card, data=sent | changes, headers=script)
        return answer.status, answer.html

    status, first = await send()
    assert (status, '"indexes":[1,2,3,4]' in first) == (200, True), first
    assert await send() == (200, first.replace("saved.", "saved. The form was sent twice and processed once."))
    status, stale = await send(submission="another")
    assert (status, "VERSION_CONFLICT" in stale) == (409, True), stale
    block = await training.read(coach, block)
    assert f'"version":{block["version"]}' in first
    status, wrong = await send(submission="third", version=str(block["version"]), **{"sets.0.load": "much"})
    assert (status, '"sets.0.load":' in wrong) == (400, True), wrong
    assert block["items"][0]["exerciseSets"][0]["load"] == 75


def coach_program(block: dict[str, Any]) -> dict[str, Any]:
    return {"_id": block["programId"]}


async def test_a_circuit_is_edited_on_its_card(coach: CoachClient, owner_page: Visitor) -> None:
    squat, row = await coach.create_exercise("Squat"), await coach.create_exercise("Row")
    block = await legs(coach, training.task(), training.circuit_of(squat, row))
    path, script = workout_path(block), {"Accept": "application/json"}
    circuit = f"{path}/items/{block['items'][1]['_id']}"
    first = f"{circuit}/exercises/{squat['_id']}"
    page = await owner_page.get(path)

    named = await owner_page.submit(page, f"{circuit}/rounds", circuitName="Engine", rounds="4")
    named.ok().says("Changes saved.", "Engine, 4 rounds")
    typed = {"sets__0__reps": "12-15", "sets__0__load": "20"}
    changed = await owner_page.submit(named, f"{first}/card", **typed, instructions="Fast")
    repeated = await owner_page.submit(changed.ok(), f"{first}/card", add="true")
    repeated.ok().says("Set added.")
    sent = dict(repeated.form(f"{first}/card").fields) | {"sets.1.reps": "8", "sets.2.reps": "6"}
    answer = await owner_page.send("POST", f"{first}/card", data=sent, headers=script)
    assert '"indexes":[1,2,3]' in answer.html
    moved = await owner_page.submit(await owner_page.get(path), f"{first}/move", place="2")
    moved.ok().says("Moved.")

    (_, stored) = (await training.read(coach, block))["items"]
    assert (stored["circuitName"], stored["rounds"]) == ("Engine", 4)
    assert [each["exerciseId"] for each in stored["circuitExercises"]] == [row["_id"], squat["_id"]]
    entry = stored["circuitExercises"][1]
    assert [each["minPlannedReps"] for each in entry["sets"]] == [12, 8, 6]
    assert (entry["sets"][0]["load"], entry["instructions"]) == (20, "Fast")
    removed = await owner_page.submit(moved, f"{first}/remove")
    removed.ok().says("Exercise removed.")


async def test_errors_of_a_circuit_keep_what_was_typed(coach: CoachClient, owner_page: Visitor) -> None:
    squat, row = await coach.create_exercise("Squat"), await coach.create_exercise("Row")
    block = await legs(coach, training.circuit_of(squat, row))
    path = workout_path(block)
    circuit = f"{path}/items/{block['items'][0]['_id']}"
    card = f"{circuit}/exercises/{row['_id']}/card"
    page = await owner_page.get(path)

    wrong = await owner_page.submit(page, card, sets__0__reps="many")
    assert wrong.ok(400).form(card).controls["sets.0.reps"]["value"] == "many"
    assert not [
        c for c in wrong.form(f"{circuit}/exercises/{squat['_id']}/card").controls.values() if c.get("aria-invalid")
    ]
    (await owner_page.submit(page, f"{circuit}/rounds", rounds="0")).ok(400).says("must not be less than 1")
    change = {"circuitName": "Engine"}
    (await coach.patch(f"{training.path_of(block)}/witems/{block['items'][0]['_id']}", change)).ok()
    both = await owner_page.submit(page, card, sets__0__reps="9", submission="another")
    both.ok(409).says("This has been changed since", "Saved value: 10")
    (await owner_page.submit(page, f"{circuit}/rounds", rounds="5", submission="third")).ok(409)
    (await coach.delete(f"{training.path_of(block)}/witems/{block['items'][0]['_id']}")).ok(204)
    (await owner_page.submit(page, card, sets__0__reps="9", submission="fourth")).ok(404)
