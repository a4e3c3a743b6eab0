"""What clients change of their calendar in their pages: moved workouts, and workouts of their own."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import time_machine

from coaching_service.core.ids import ObjectId
from coaching_service.web.formatting import format_date
from tests.support.client import CoachClient
from tests.support.fixed_clock import NOON, TODAY
from tests.support.training import block_with, exercise_of, hide, own_log, read, task
from tests.support.visitor import HtmlPage
from tests.web.conftest import ClientPage

Json = dict[str, Any]


def day(offset: int) -> str:
    return str(TODAY + timedelta(days=offset))


def workout(block: Json) -> str:
    return f"/train/workouts/{block['_id']}"


def days_offered(page: HtmlPage, block: Json) -> list[str]:
    assert page.form(f"{workout(block)}/move")
    return re.findall(r'name="date" value="([^"]+)"', page.html)


@time_machine.travel(NOON, tick=True)
async def test_a_workout_is_moved_without_script_to_one_of_the_days_shown(
    coach: CoachClient, client_page: ClientPage
) -> None:
    ana, squat = await coach.create_customer(), await coach.create_exercise("Squat")
    block = await block_with(coach, ana, exercise_of(squat), date=day(0), name="Legs")
    await hide(coach, ana, day(3))
    page = await client_page(coach, ana)
    for path in ("/train", workout(block)):
        shown = (await page.get(path)).ok().says("Move")
        assert days_offered(shown, block) == [day(each) for each in range(-7, 8) if each not in (0, 3)]

    moved = await page.submit(shown, f"{workout(block)}/move", date=day(1))
    moved.ok().says("Legs moved to tomorrow.", "Tomorrow", "moved from today")
    (await page.get(workout(block))).ok().says("Moved by you from Wed 5 Mar 2031")
    assert (await read(coach, block))["plannedDate"] == day(0)
    shown = await page.get(workout(block))
    assert day(0) in days_offered(shown, block)
    assert (await page.submit(shown, f"{workout(block)}/move", date=day(0))).ok().status == 200
    assert "moved from" not in (await page.get("/train/calendar")).text

    refused = await page.submit(shown, f"{workout(block)}/move", date=day(9))
    refused.ok(400).says("must be within 7 days of 2031-03-05")
    (await own_log(await coach.as_client(ana), block, block["items"][0], isCompleted=False, comment="Hard")).ok()
    assert "/move" not in (await page.get(workout(block))).ok().html, "something is done"


async def test_workouts_that_earlier_versions_stored_at_the_ends_of_the_calendar_are_shown(
    coach: CoachClient, client_page: ClientPage
) -> None:
    ana = await coach.create_customer()
    page = await client_page(coach, ana)
    for end, days in (("0001-01-01", ("0001-01-02", "0001-01-08")), ("9999-12-31", ("9999-12-24", "9999-12-30"))):
        block = await block_with(coach, ana, task(), date=day(0), name="Legs")
        await coach.ctx.db["workoutBlocks"].update_one({"_id": ObjectId(block["_id"])}, {"$set": {"date": end}})
        offered = days_offered((await page.get(workout(block))).ok().says("Legs"), block)
        assert (offered[0], offered[-1], len(offered)) == (*days, 7)


@time_machine.travel(NOON, tick=True)
async def test_an_own_workout_is_added_changed_and_deleted(coach: CoachClient, client_page: ClientPage) -> None:
    ana, _ = await coach.create_customer(), await coach.create_exercise("Squat")
    page = await client_page(coach, ana)
    assert "/train/add-workout" in (await page.get("/train")).ok().links
    assert f"/train/add-workout?date={day(0)}" in (await page.get("/train/calendar")).ok().links

    form = (await page.get(f"/train/add-workout?date={day(1)}")).ok()
    wrong = await page.submit(form, "/train/add-workout", name="Evening", text="Squat: 3x8\nform: Check-in")
    wrong.ok(400).says("must have only exercises, circuits and tasks")
    unpicked = await page.submit(form, "/train/add-workout", name="Evening", unpicked="Front squ", text="Squat: 3x8")
    unpicked.ok(400).says("pick an exercise of the list, or clear the field")
    assert ("unpicked", "Front squ") in unpicked.form("/train/add-workout").fields
    added = await page.submit(wrong, "/train/add-workout", name="Evening", text="Squat: 3x8 @60kg")
    added.ok().says("Evening added.", "Added by you", "Squat")
    [own] = await coach.calendar(ana, day(1), day(1))
    assert (own["createdBy"], own["name"], own["items"][0]["exerciseSets"][0]["load"]) == ("client", "Evening", 60)
    (await page.get(f"/train/calendar?week={day(1)}")).ok().says("Evening Planned · added by you")

    path = f"/train/own-workouts/{own['_id']}"
    assert path in added.links
    change = (await page.get(path)).ok()
    more = await page.submit(change, f"{path}/text", text="task: Stretch")
    more.ok().says("1 item added.", "Stretch")
    removed = await page.submit(more, f"{path}/items/{own['items'][0]['_id']}/remove")
    removed.ok().says("Removed.")
    saved = await page.submit(removed, path, name="Evening walk", date=day(2))
    saved.ok().says("Evening walk saved.", "Fri 7 Mar 2031")
    [own] = await coach.calendar(ana, day(2), day(2))
    assert [item["type"] for item in own["items"]] == ["TASK"]
    deleted = await page.submit(await page.get(path), f"{path}/delete")
    deleted.ok().says("Workout deleted.")
    assert await coach.calendar(ana, day(0), day(4)) == []


async def test_what_the_owner_turned_off_is_not_offered(
    coach: CoachClient, client_page: ClientPage, owner_page: Any
) -> None:
    ana, today = await coach.create_customer(), str(coach.ctx.caller.today())
    block = await block_with(coach, ana, task(), date=today, name="Legs")
    page = await client_page(coach, ana)
    settings = (await owner_page.get("/app/settings/company")).ok()
    settings.says("Clients may move their workouts", "Clients may add workouts of their own")
    saved = await owner_page.submit(settings, "/app/settings/company", clientsMayMove=None, clientsMayAdd=None)
    saved.ok().says("Changes saved.")
    account = (await coach.get("/coach/account")).ok()
    assert (account["clientsMayMove"], account["clientsMayAdd"]) == (False, False)

    for path in ("/train", "/train/calendar", workout(block)):
        shown = (await page.get(path)).ok().html
        assert "/move" not in shown
        assert "add-workout" not in shown
    (await page.get("/train/add-workout")).ok().says("Your coach plans your workouts")


async def test_the_coach_sees_what_the_client_moved_and_added(
    coach: CoachClient, client_page: ClientPage, owner_page: Any
) -> None:
    ana, today = await coach.create_customer("Ana"), coach.ctx.caller.today()
    later = today + timedelta(days=1)
    block = await block_with(coach, ana, task(), date=str(today), name="Legs")
    client = await coach.as_client(ana)
    (await client.put(f"/customer/wblocks/{block['_id']}/date", {"date": str(later)})).ok()
    own = (await client.post("/customer/wblocks", {"name": "Run", "date": str(later)})).ok(201)
    base, moved = f"/app/customers/{ana['_id']}", f"from {format_date(today)}"

    (await owner_page.get(f"{base}?week={later}")).ok().says(f"Moved by the client {moved}", "Added by the client")
    (await owner_page.get(f"{base}/month?month={later:%Y-%m}")).ok().says("Run by client")
    (await owner_page.get(f"{base}/blocks/{own['_id']}")).ok().says("Added by the client")
    changes = (await owner_page.get(f"{base}/notes")).ok()
    changes.says(f"Moved Legs {moved} to {format_date(later)}", "Added an own workout: Run")


@time_machine.travel(NOON, tick=True)
async def test_exercises_are_picked_and_a_past_workout_is_repeated(coach: CoachClient, client_page: ClientPage) -> None:
    ana, squat, run = (
        await coach.create_customer(),
        await coach.create_exercise("Squat", equipment="barbell"),
        await coach.create_exercise("Zz run", type="cardio"),
    )
    past = await block_with(coach, ana, exercise_of(squat), exercise_of(run), date=day(-1), name="Legs")
    own = await coach.as_client(ana)
    done = [{"index": at, "reps": reps, "load": 62.5, "isCompleted": True} for at, reps in enumerate((8, 8, 6), 1)]
    (await own_log(own, past, past["items"][0], isCompleted=True, customerSets=done)).ok()
    timed = [{"index": 1, "seconds": 1_620, "isCompleted": True}]
    (await own_log(own, past, past["items"][1], isCompleted=True, customerSets=timed)).ok()
    page = await client_page(coach, ana)

    form = (await page.get("/train/add-workout")).ok().says("Squat Barbell", "Repeat one", "Legs")
    found = (await page.get("/train/pick-exercise?keywords=zz&next=/train/add-workout")).ok()
    proposed = 'data-sets="1" data-measure="time" data-amount="27:00"'
    assert f'data-exercise="{run["_id"]}" data-name="Zz run" {proposed}' in (found.html)
    assert f"/train/add-workout?picked={run['_id']}" in found.links, "without a script it is added by its link"
    (await page.get("/train/pick-exercise?keywords=zz&next=https://example.com/")).ok().html.index("Zz run")
    (await page.get("/app/pick-exercise")).ok().says("No workout today")
    picked = (await page.get(f"/train/add-workout?picked={run['_id']}&picked={squat['_id']}")).ok()
    fields = dict(picked.form("/train/add-workout").fields)
    assert (fields["rows.0.amount"], fields["rows.1.load"]) == ("27:00", "62.5")

    rows = {
        **row(0, squat, sets="3", amount="8", load="62,5"),
        **row(1, squat, sets="1", amount="6", load="65"),
        **row(2, run, measure="time", amount="5:00"),
        **row(3, run, measure="distance", amount="400", load=""),
    }
    wrong = await page.submit(form, "/train/add-workout", **{**rows, "rows__2__amount": "5:xx"})
    wrong.ok(400).says("must be a time such as 27:00, or seconds", "Squat")
    added = await page.submit(wrong, "/train/add-workout", **rows)
    added.ok().says("My workout added.", "5:00", "400 m", "8 × 62.5 kg")
    [block] = await coach.calendar(ana, day(0), day(0))
    planned = [
        [
            (each["type"], each.get("minPlannedReps") or each.get("maxPlannedSeconds") or each.get("plannedMeters"))
            for each in item["exerciseSets"]
        ]
        for item in block["items"]
    ]
    assert planned == [[("reps_load", 8)] * 3 + [("reps_load", 6)], [("time", 300), ("distance", 400)]]
    (await page.submit(form, "/train/add-workout", **row(0, squat, load="500"))).ok(400).says("unusual")

    repeated = (await page.get(f"/train/add-workout?repeat={past['_id']}")).ok()
    fields = dict(repeated.form("/train/add-workout").fields)
    assert (fields["name"], fields["rows.0.sets"], fields["rows.0.amount"], fields["rows.1.sets"]) == (
        "Legs",
        "2",
        "8",
        "1",
    )
    assert (fields["rows.2.measure"], fields["rows.2.amount"]) == ("time", "27:00")
    other = await coach.create_customer("Bea")
    strange = await block_with(coach, other, exercise_of(squat), date=day(0))
    (await page.get(f"/train/add-workout?repeat={strange['_id']}")).ok(404)
    await hide(coach, ana, day(-1))
    assert "Repeat one" not in (await page.get("/train/add-workout")).ok().text, "the day is hidden"


def row(at: int, exercise: Json, *, sets: str = "1", measure: str = "reps", amount: str = "5", load: str = "") -> Json:
    """The fields of an exercise that was picked."""
    values = {"exerciseId": exercise["_id"], "name": exercise["name"], "sets": sets, "measure": measure}
    return {f"rows__{at}__{name}": value for name, value in {**values, "amount": amount, "load": load}.items()}
