"""Circuits in the workout editor: name, rounds, and the sets and order of their exercises, are edited in place."""

from __future__ import annotations

from tests.support import training
from tests.support.client import CoachClient
from tests.support.visitor import Visitor
from tests.web.test_planning import legs, workout_path


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
