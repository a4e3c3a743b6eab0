"""The page of a workout: the plan, its results, and removing items."""

from __future__ import annotations

from typing import Any

from tests.support import training
from tests.support.client import MONDAY, CoachClient
from tests.support.schedules import LAST_DAY
from tests.support.visitor import Visitor

SETS = [
    {"index": 1, "reps": 9, "load": 62.5, "rpe": 7},
    {"index": 2, "reps": 8, "load": 62.5, "rpe": 8.5, "rir": 1},
    {"index": 3, "reps": 2, "load": 62.5, "isCompleted": False},
    {"index": 4, "reps": 12, "load": 40},
]


def page_of(block: dict[str, Any]) -> str:
    return f"/app/customers/{block['customerId']}/blocks/{block['_id']}"


async def test_results_are_shown_next_to_the_plan(coach: CoachClient, owner_page: Visitor) -> None:
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
    page.says("1 8–10 × 60 kg 9 × 62.5 kg RPE 7", "2 8–10 × 60 kg 8 × 62.5 kg RPE 8.5, RIR 1")
    page.says("3 8–10 × 60 kg 2 × 62.5 kg (not completed)", "4 – 12 × 40 kg", "Felt <easy> at last", "✓ Completed")
    page.says("Round 1: Row 10 10 Round 1: Dip 10 10 Round 2: Row 10 11 Round 2: Dip 10 11")
    page.says("Mood? Good", "Where does it hurt? Knee, Back", "How was it? –")
    page.says("Body weight 79.25 kg", "Partly completed Rain")
    assert "CET" in page.text or "CEST" in page.text, "when it was done, where the client is"


async def test_logged_item_is_removed_only_after_confirmation(coach: CoachClient, owner_page: Visitor) -> None:
    ana, squat = await coach.create_customer("Ana"), await coach.create_exercise("Squat")
    block = await training.block_with(coach, ana, training.exercise_of(squat), training.task())
    lift, walk = block["items"]
    path = page_of(block)
    stale_page = await owner_page.get(path)
    (await training.log(coach, block, lift, customerSets=SETS)).ok()

    for log_page in (stale_page, None):
        confirmation = (
            await owner_page.submit(log_page, f"{path}/items/{lift['_id']}/delete")
            if log_page
            else await owner_page.get(f"{path}/items/{lift['_id']}/delete")
        )
        confirmation.ok().says(
            "Remove “Squat” from “Legs”", "The log of this item will be deleted", "9 × 62.5 kg", "3 personal records"
        )
    assert len((await training.read(coach, block))["items"]) == 2
    page = await owner_page.get(path)
    assert f"{path}/items/{lift['_id']}/delete" in page.links
    (await owner_page.submit(page, f"{path}/items/{walk['_id']}/delete")).ok().says("Item removed.")
    (await owner_page.submit(confirmation, f"{path}/items/{lift['_id']}/delete")).ok().says("Item removed.")

    assert (await training.read(coach, block))["items"] == []
    (await owner_page.get(f"/app/customers/{ana['_id']}/records")).says("No personal records yet")


async def test_invalid_reps_are_reported_once_at_their_field(coach: CoachClient, owner_page: Visitor) -> None:
    ana, squat = await coach.create_customer("Ana"), await coach.create_exercise("Garage Squat")
    block = await coach.schedule(ana)
    path = page_of(block)
    page = await owner_page.get(f"{path}?keywords=garage")

    invalid = await owner_page.submit(page, f"{path}/items", exerciseId=squat["_id"], low="12", high="8")

    invalid.ok(400).says("This must not be less than the minimum.")
    assert invalid.form(f"{path}/items").controls["high"]["aria-invalid"] == "true"
    assert "exerciseSets" not in invalid.text
    (await owner_page.submit(page, f"{path}/items", exerciseId=squat["_id"], sets="many")).ok(400).says("whole number")


async def test_deleted_exercise_is_reported_and_input_is_preserved(coach: CoachClient, owner_page: Visitor) -> None:
    ana, squat = await coach.create_customer("Ana"), await coach.create_exercise("Garage Squat")
    path = page_of(await coach.schedule(ana))
    page = await owner_page.get(f"{path}?keywords=garage")
    (await coach.delete(f"/exercises/{squat['_id']}")).ok(204)

    rejected = await owner_page.submit(page, f"{path}/items", exerciseId=squat["_id"], load="61,5")

    rejected.ok(404).says("Exercise not found: it has been deleted. Nothing was changed")


async def test_exercise_results_are_paginated(coach: CoachClient, owner_page: Visitor) -> None:
    ana = await coach.create_customer("Ana")
    for at in range(14):
        await coach.create_exercise(f"Quozzle press {at:02}")
    path = page_of(await coach.schedule(ana))

    first = (await owner_page.get(f"{path}?keywords=quozzle")).says("14 exercises, page 1 of 2", "Quozzle press 11")
    assert "Quozzle press 12" not in first.text
    second = await owner_page.get(next(link for link in first.links if "page=2" in link))
    second.says("Quozzle press 13")
    invalid = await owner_page.submit(second, f"{path}/items", exerciseId=None, sets="0")
    invalid.ok(400).says("This is required.", "Quozzle press 13")


async def test_rest_day_needs_no_name(coach: CoachClient, owner_page: Visitor) -> None:
    ana = await coach.create_customer("Ana")
    week = await owner_page.get(f"/app/customers/{ana['_id']}?week={MONDAY}")
    (await owner_page.submit(week, f"/app/customers/{ana['_id']}/blocks", date=MONDAY, name="", isRest="true")).says(
        "Rest day added."
    )
    (block,) = await coach.calendar(ana)
    assert (block["name"], block["isRest"]) == ("Rest", True)


async def test_reminder_time_is_formatted(coach: CoachClient, owner_page: Visitor) -> None:
    ana = await coach.create_customer("Ana")
    at = {"scheduledTime": "2026-11-19T08:00:00Z", "message": "Drink"}
    block = await training.block_with(coach, ana, training.reminder(), {"type": "REMINDER", "reminderFields": at})
    (await owner_page.get(page_of(block))).ok().says("08:30", "Thu 19 Nov 2026, 08:00 UTC")


async def test_search_results_stay_after_an_exercise_is_added(coach: CoachClient, owner_page: Visitor) -> None:
    ana = await coach.create_customer("Ana")
    front, back = await coach.create_exercise("Quozzle front"), await coach.create_exercise("Quozzle back")
    path = page_of(await coach.schedule(ana, "2026-03-04"))
    results_page = (await owner_page.get(f"{path}?keywords=quozzle")).says("Week of Mon 2 Mar 2026")
    assert not [name for name, _ in results_page.form(f"{path}/items").fields if name == "exerciseId"], (
        "nothing is chosen yet"
    )

    first_response = await owner_page.submit_only(results_page, f"{path}/items", exerciseId=front["_id"])
    assert first_response.headers["Location"] == f"{path}?keywords=quozzle&page=1#more"
    added = await owner_page.get(first_response.headers["Location"])
    added.says("Quozzle front added.", "1 item so far, the last is Quozzle front.")
    (await owner_page.submit(added, f"{path}/items", exerciseId=back["_id"])).says("Quozzle back added.")


async def test_items_cannot_be_added_to_a_rest_day(coach: CoachClient, owner_page: Visitor) -> None:
    ana = await coach.create_customer("Ana")
    legs = await training.block_with(coach, ana, training.task())
    client = f"/coach/customers/{ana['_id']}"
    rest = (await coach.post(f"{client}/wblocks", {"name": "Rest", "date": MONDAY, "isRest": True})).ok(201)

    for page in (page_of(legs), f"/app/customers/{ana['_id']}?week={MONDAY}"):
        assert f'<option value="{rest["_id"]}"' not in (await owner_page.get(page)).ok().html
    rest_page = (await owner_page.get(page_of(rest))).ok().says("This is a rest day")
    assert [form.action for form in rest_page.forms if "/items" in form.action or "/tasks" in form.action] == []


async def test_copy_proposes_the_next_week(coach: CoachClient, owner_page: Visitor) -> None:
    ana = await coach.create_customer("Ana")
    program = (await coach.post("/coach/programs", {"name": "Base"})).ok(201)
    blocks_path = f"/coach/programs/{program['_id']}/wblocks"
    program_path = f"/app/programs/{program['_id']}/blocks"
    for path, field, proposed in (
        (page_of(await coach.schedule(ana, "2026-02-25")), "date", "2026-03-04"),
        (page_of(await coach.schedule(ana, LAST_DAY)), "date", LAST_DAY),
        (f"{program_path}/{(await coach.post(blocks_path, {'name': 'Legs', 'day': 3})).ok(201)['_id']}", "day", "10"),
    ):
        page = await owner_page.get(path)
        assert dict(page.form(f"{path}/copy").fields)[field] == proposed


async def test_timed_exercise_is_planned_in_seconds(coach: CoachClient, owner_page: Visitor) -> None:
    path = page_of(await coach.schedule(await coach.create_customer("Ana")))
    plank = await coach.create_exercise("Quozzle plank", tags=["isometric"])
    stretch = await coach.create_exercise("Quozzle stretch", type="stretching")
    squat = await coach.create_exercise("Quozzle squat")
    page = (await owner_page.get(f"{path}?keywords=quozzle")).says("Quozzle plank 30–45 s", "Quozzle squat 8–10 reps")

    added = await owner_page.submit(page, f"{path}/items", exerciseId=plank["_id"])
    added.ok().says("3 × 30–45 s")
    added = await owner_page.submit(page, f"{path}/items", exerciseId=stretch["_id"], sets="2", low="40,5", load="5")
    added.ok().says("2 × 40.5 s × 5 kg")
    added = await owner_page.submit(page, f"{path}/items", exerciseId=squat["_id"], high="12")
    added.ok().says("3 × 12")
    invalid = await owner_page.submit(page, f"{path}/items", exerciseId=squat["_id"], low="7,5")
    invalid.ok(400).says("This must be a whole number.")


async def test_exercise_in_a_circuit_is_planned_with_one_set_per_round(coach: CoachClient, owner_page: Visitor) -> None:
    path = page_of(await coach.schedule(await coach.create_customer("Ana")))
    row, dip = await coach.create_exercise("Quozzle row"), await coach.create_exercise("Quozzle dip")
    page = await owner_page.get(f"{path}?keywords=quozzle")

    circuit = await owner_page.submit(page, f"{path}/items", exerciseId=row["_id"], circuit="new")
    circuit.ok().says("1 × 8–10")
    assert dict(circuit.form(f"{circuit.path}/circuit").fields)["rounds"] == "3"
    circuit_id = circuit.path.rpartition("/")[2]
    added = await owner_page.submit(page, f"{path}/items", exerciseId=dip["_id"], circuit=circuit_id)
    card = f"{path}/items/{circuit_id}/exercises/{dip['_id']}/card"
    rows = dict(added.ok().form(card).fields)
    assert (rows["sets.0.reps"], "sets.1.reps" in rows) == ("8-10", False)
