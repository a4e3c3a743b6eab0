"""One workout in the application: what is planned, what the client did of it, and what goes when it goes."""

from __future__ import annotations

from typing import Any

from tests import training
from tests.client import MONDAY, CoachClient
from tests.web.visitor import Visitor

SETS = [
    {"index": 1, "reps": 9, "load": 62.5, "rpe": 7},
    {"index": 2, "reps": 8, "load": 62.5, "rpe": 8.5, "rir": 1},
    {"index": 3, "reps": 2, "load": 62.5, "isCompleted": False},
    {"index": 4, "reps": 12, "load": 40},
]


def page_of(block: dict[str, Any]) -> str:
    return f"/app/customers/{block['customerId']}/blocks/{block['_id']}"


async def test_what_was_done_stands_beside_what_was_planned(coach: CoachClient, owner_page: Visitor) -> None:
    ana = await coach.create_customer("Ana", timezone="Europe/Madrid")
    body = await training.metric_set(coach)
    squat = await coach.create_exercise("Squat")
    row, dip = await coach.create_exercise("Row"), await coach.create_exercise("Dip")
    block = await training.block_with(
        *(coach, ana, training.exercise_of(squat), training.circuit_of(row, dip)),
        *(training.form_of(), training.metrics_of(body), training.task()),
    )
    lift, circuit, form, measure, walk = block["items"]
    hurt, mood = form["form"]["questions"][4]["_id"], form["form"]["questions"][3]["_id"]
    (await training.log(coach, block, lift, customerSets=SETS, comment="Felt <easy>\nat last")).ok()
    rounds = [{"exerciseId": each["_id"], "round": at, "reps": 9 + at} for at in (1, 2) for each in (dip, row)]
    (await training.log(coach, block, circuit, customerSets=rounds)).ok()
    answers = [{"questionId": hurt, "value": ["Knee", "Back"]}, {"questionId": mood, "value": "Good"}]
    (await training.log(coach, block, form, answers=answers)).ok()
    values = [{"metricId": body["metrics"][0]["_id"], "value": 79.25}]
    (await training.log(coach, block, measure, values=values)).ok()
    (await training.log(coach, block, walk, isCompleted=False, comment="Rain")).ok()
    session = {"durationMinutes": 52, "sessionRpe": 7, "comment": "Good day"}
    (await coach.put(f"{training.path_of(block)}/log", session)).ok()

    page = (await owner_page.get(page_of(block))).ok()

    page.says("52 min duration", "7 of 10 session RPE", "Good day")
    page.says("1 8–10, 60 kg 9, 62.5 kg RPE 7", "2 8–10, 60 kg 8, 62.5 kg RPE 8.5, RIR 1")
    page.says("3 8–10, 60 kg 2, 62.5 kg (not completed)", "4 – 12, 40 kg", "Felt <easy> at last", "✓ Completed")
    page.says("Round 1: Row 10 10 Round 1: Dip 10 10 Round 2: Row 10 11 Round 2: Dip 10 11")
    page.says("Mood? Good", "Where does it hurt? Knee, Back", "How was it? –")
    page.says("Body weight 79.25 kg", "Partly completed Rain")
    assert "CET" in page.text or "CEST" in page.text, "when it was done, where the client is"


async def test_what_was_logged_goes_only_after_a_look_at_it(coach: CoachClient, owner_page: Visitor) -> None:
    ana, squat = await coach.create_customer("Ana"), await coach.create_exercise("Squat")
    block = await training.block_with(coach, ana, training.exercise_of(squat), training.task())
    lift, walk = block["items"]
    here = page_of(block)
    stale = await owner_page.get(here)
    (await training.log(coach, block, lift, customerSets=SETS)).ok()

    for opened in (stale, None):
        asked = (
            await owner_page.submit(opened, f"{here}/items/{lift['_id']}/delete")
            if opened
            else await owner_page.get(f"{here}/items/{lift['_id']}/delete")
        )
        asked.ok().says(
            "Remove Squat from Legs", "The log of this item will be deleted", "9, 62.5 kg", "3 personal records"
        )
    assert len((await training.read(coach, block))["items"]) == 2
    page = await owner_page.get(here)
    assert f"{here}/items/{lift['_id']}/delete" in page.links
    (await owner_page.submit(page, f"{here}/items/{walk['_id']}/delete")).ok().says("Item removed.")
    (await owner_page.submit(asked, f"{here}/items/{lift['_id']}/delete")).ok().says("Item removed.")

    assert (await training.read(coach, block))["items"] == []
    (await owner_page.get(f"/app/customers/{ana['_id']}/records")).says("No personal records yet")


async def test_what_is_wrong_with_repetitions_is_said_once_and_where(coach: CoachClient, owner_page: Visitor) -> None:
    ana, squat = await coach.create_customer("Ana"), await coach.create_exercise("Garage Squat")
    block = await coach.schedule(ana)
    here = page_of(block)
    page = await owner_page.get(f"{here}?keywords=garage")

    wrong = await owner_page.submit(
        page, f"{here}/items", exerciseId=squat["_id"], minPlannedReps="12", maxPlannedReps="8"
    )

    wrong.ok(400).says("This must not be greater than the maximum.")
    assert wrong.form(f"{here}/items").controls["minPlannedReps"]["aria-invalid"] == "true"
    assert "exerciseSets" not in wrong.text
    (await owner_page.submit(page, f"{here}/items", exerciseId=squat["_id"], sets="")).ok(400).says("whole number")


async def test_an_exercise_that_is_gone_is_said_and_the_form_kept(coach: CoachClient, owner_page: Visitor) -> None:
    ana, squat = await coach.create_customer("Ana"), await coach.create_exercise("Garage Squat")
    here = page_of(await coach.schedule(ana))
    page = await owner_page.get(f"{here}?keywords=garage")
    (await coach.delete(f"/exercises/{squat['_id']}")).ok(204)

    told = await owner_page.submit(page, f"{here}/items", exerciseId=squat["_id"], load="61,5")

    told.ok(404).says("Exercise not found: it has been deleted. Nothing was changed")


async def test_every_exercise_found_can_be_reached(coach: CoachClient, owner_page: Visitor) -> None:
    ana = await coach.create_customer("Ana")
    for at in range(14):
        await coach.create_exercise(f"Quozzle press {at:02}")
    here = page_of(await coach.schedule(ana))

    first = (await owner_page.get(f"{here}?keywords=quozzle")).says("14 exercises, page 1 of 2", "Quozzle press 11")
    assert "Quozzle press 12" not in first.text
    second = await owner_page.get(next(link for link in first.links if "page=2" in link))
    second.says("Quozzle press 13")
    wrong = await owner_page.submit(second, f"{here}/items", exerciseId=None, sets="0")
    wrong.ok(400).says("This is required.", "Quozzle press 13")


async def test_a_day_of_rest_needs_no_name(coach: CoachClient, owner_page: Visitor) -> None:
    ana = await coach.create_customer("Ana")
    week = await owner_page.get(f"/app/customers/{ana['_id']}?week={MONDAY}")
    (await owner_page.submit(week, f"/app/customers/{ana['_id']}/blocks", date=MONDAY, name="", isRest="true")).says(
        "Rest day added."
    )
    (block,) = await coach.calendar(ana)
    assert (block["name"], block["isRest"]) == ("Rest", True)


async def test_a_reminder_s_time_is_told_in_words(coach: CoachClient, owner_page: Visitor) -> None:
    ana = await coach.create_customer("Ana")
    at = {"scheduledTime": "2026-11-19T08:00:00Z", "message": "Drink"}
    block = await training.block_with(coach, ana, training.reminder(), {"type": "REMINDER", "reminderFields": at})
    (await owner_page.get(page_of(block))).ok().says("08:30", "Thu 19 Nov 2026, 08:00 UTC")


async def test_one_exercise_after_the_other_is_found_and_added(coach: CoachClient, owner_page: Visitor) -> None:
    ana = await coach.create_customer("Ana")
    front, back = await coach.create_exercise("Quozzle front"), await coach.create_exercise("Quozzle back")
    here = page_of(await coach.schedule(ana, "2026-03-04"))
    found = (await owner_page.get(f"{here}?keywords=quozzle")).says("Week of Mon 2 Mar 2026")
    assert not [name for name, _ in found.form(f"{here}/items").fields if name == "exerciseId"], "nothing is chosen yet"

    once = await owner_page.submit(found, f"{here}/items", follow=False, exerciseId=front["_id"])
    assert once.headers["Location"] == f"{here}?keywords=quozzle&page=1#more"
    added = await owner_page.get(once.headers["Location"])
    added.says("Quozzle front added.", "1 item so far, the last is Quozzle front.")
    (await owner_page.submit(added, f"{here}/items", exerciseId=back["_id"])).says("Quozzle back added.")


async def test_nothing_is_put_into_a_day_of_rest(coach: CoachClient, owner_page: Visitor) -> None:
    ana = await coach.create_customer("Ana")
    legs = await training.block_with(coach, ana, training.task())
    client = f"/coach/customers/{ana['_id']}"
    rest = (await coach.post(f"{client}/wblocks", {"name": "Rest", "date": MONDAY, "isRest": True})).ok(201)

    for page in (page_of(legs), f"/app/customers/{ana['_id']}?week={MONDAY}"):
        assert f'<option value="{rest["_id"]}"' not in (await owner_page.get(page)).ok().html
    seen = (await owner_page.get(page_of(rest))).ok().says("This is a rest day")
    assert [form.action for form in seen.forms if "/items" in form.action or "/tasks" in form.action] == []
