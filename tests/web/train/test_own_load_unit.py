"""Loads in the unit that a client has chosen, in the pages for clients; REST has the company's."""

from __future__ import annotations

from tests.support import training
from tests.support.client import CoachClient
from tests.web.conftest import ClientPage

PLANNED = {"type": "reps_load", "minPlannedReps": 5, "maxPlannedReps": 5, "load": 100}


async def test_client_reads_and_enters_loads_in_their_own_unit(coach: CoachClient, client_page: ClientPage) -> None:
    ana, squat = await coach.create_customer("Ana"), await coach.create_exercise()
    today = str(coach.ctx.caller.today())
    block = await training.block_with(coach, ana, training.exercise_of(squat, PLANNED), date=today)
    own = await coach.as_client(ana)
    assert (await own.get("/customer/me")).ok()["loadUnit"] is None
    (await own.patch("/customer/me", {"loadUnit": "stone"})).refused(400, "loadUnit")
    assert (await own.patch("/customer/me", {"loadUnit": "lb"})).ok()["loadUnit"] == "lb"

    page, path = await client_page(coach, ana), f"/train/workouts/{block['_id']}"
    workout = (await page.get(path)).ok().says("220.5 lb")
    item = block["items"][0]["_id"]
    form = {"index": "1", "exerciseId": squat["_id"], "reps": "5", "load": "222,5", "isCompleted": "true"}
    (await page.submit(workout, f"{path}/items/{item}/sets", **form)).ok()
    stored = (await training.read(coach, block))["items"][0]
    assert stored["customerSets"][0]["load"] == 100.92, "222.5 lb"
    assert stored["exerciseSets"][0]["load"] == 100
    shown = (await page.get(path)).ok()
    assert shown.form(f"{path}/items/{item}/sets").controls["load"]["value"] == "222.5"
    (await page.get(f"{path}/summary")).ok().says("1,112 lb")
    (await page.get(f"/train/exercises/{squat['_id']}")).ok().says("222.5 lb")
    (await page.get("/train/progress")).ok().says("lb")

    settings = await page.get("/train/settings/preferences")
    (await page.submit(settings, "/train/settings/preferences", loadUnit="")).ok().says("Changes saved.")
    (await page.get(path)).ok().says("100 kg")


async def test_set_of_a_page_from_before_has_the_unit_of_that_page(coach: CoachClient, client_page: ClientPage) -> None:
    """A set that waited on the device is sent with the unit in which it was entered."""
    ana, squat = await coach.create_customer("Ana"), await coach.create_exercise()
    today = str(coach.ctx.caller.today())
    block = await training.block_with(coach, ana, training.exercise_of(squat, PLANNED), date=today)
    page, path = await client_page(coach, ana), f"/train/workouts/{block['_id']}"
    opened = await page.get(path)
    (await (await coach.as_client(ana)).patch("/customer/me", {"loadUnit": "lb"})).ok()
    item = block["items"][0]["_id"]
    form = {"index": "1", "exerciseId": squat["_id"], "reps": "5", "load": "105", "isCompleted": "true"}
    (await page.submit(opened, f"{path}/items/{item}/sets", **form)).ok()
    assert (await training.read(coach, block))["items"][0]["customerSets"][0]["load"] == 105
