"""Clients are asked about loads of sets that are probably typing errors."""

from __future__ import annotations

from tests.support import training
from tests.support.client import CoachClient
from tests.web.conftest import ClientPage

PLANNED = {"type": "reps_load", "minPlannedReps": 5, "maxPlannedReps": 5, "load": 20}


async def test_unusual_load_is_saved_once_it_is_confirmed(coach: CoachClient, client_page: ClientPage) -> None:
    """Above 500 kg, or five times the load of this exercise; loads of other exercises of a circuit do not count."""
    ana, squat, row = (
        await coach.create_customer("Ana"),
        await coach.create_exercise(),
        await coach.create_exercise("Row"),
    )
    today = str(coach.ctx.caller.today())
    circuit = training.circuit_of(squat, row)
    circuit["circuitExercises"][0]["sets"] = [PLANNED]
    block = await training.block_with(coach, ana, training.exercise_of(squat, PLANNED), circuit, date=today)
    page, path = await client_page(coach, ana), f"/train/workouts/{block['_id']}"
    opened = await page.get(path)
    single, in_circuit = (f"{path}/items/{item['_id']}/sets" for item in block["items"])
    form = {"index": "1", "exerciseId": squat["_id"], "reps": "5", "isCompleted": "true"}

    asked = await page.submit(opened, single, **form, load="101")
    asked.ok(400).says(
        "This load of 101 kg is more than five times the highest before, 20 kg.", "This is right, although"
    )
    assert (await training.read(coach, block))["items"][0]["customerSets"] == []
    (await page.submit(asked, single, **form, load="101", confirmed="true")).ok()
    (await page.submit(await page.get(path), single, **form, load="100")).ok()
    assert (await training.read(coach, block))["items"][0]["customerSets"][0]["load"] == 100

    of_row = {**form, "exerciseId": row["_id"], "round": "1"}
    (await page.submit(opened, in_circuit, **of_row, load="501")).ok(400).says("more than 500 kg")
    (await page.submit(opened, in_circuit, **of_row, load="500")).ok()


async def test_limit_is_in_the_unit_of_the_client(coach: CoachClient, client_page: ClientPage) -> None:
    """A set that a script has stored on the device is saved: the script has asked."""
    ana, squat = await coach.create_customer("Ana"), await coach.create_exercise()
    (await (await coach.as_client(ana)).patch("/customer/me", {"loadUnit": "lb"})).ok()
    today = str(coach.ctx.caller.today())
    block = await training.block_with(coach, ana, training.exercise_of(squat, {"type": "reps"}), date=today)
    page, path = await client_page(coach, ana), f"/train/workouts/{block['_id']}"
    opened, sets = await page.get(path), f"{path}/items/{block['items'][0]['_id']}/sets"
    assert 'data-usual="1100"' in opened.html
    form = {"index": "1", "exerciseId": squat["_id"], "reps": "5", "isCompleted": "true"}
    (await page.submit(opened, sets, **form, load="1101")).ok(400).says("1,101 lb is more than 1,100 lb")
    (await page.submit(opened, sets, **form, load="1100")).ok()
    later = f"{today}T23:59:00.000Z"
    (await page.submit(opened, sets, **{**form, "index": "2"}, load="1101", loggedAt=later)).ok()
