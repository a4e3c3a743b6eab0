"""What a client does with the items of a workout besides logging sets, and finishing it, without scripts."""

from __future__ import annotations

from typing import Any

from tests.support.client import UNKNOWN, CoachClient
from tests.support.training import (
    Json,
    block_with,
    client_path,
    exercise_of,
    hide,
    log,
    metric_set,
    metrics_of,
    read,
    reminder,
    task,
)
from tests.support.visitor import HtmlPage, Visitor
from tests.web.conftest import ClientPage
from tests.web.train.test_workout import LAST_WEEK, send, set_forms, values, workout

TWO_SETS = [{"type": "reps_load", "minPlannedReps": 8, "load": 60}] * 2


async def stored_items(coach: CoachClient, block: Json) -> list[Json]:
    items: list[Json] = (await read(coach, block))["items"]
    return items


async def submit(browser: Visitor, page: HtmlPage, item: Json, form: str, **typed: Any) -> HtmlPage:
    return await browser.submit(page, f"{page.path.partition('#')[0]}/items/{item['_id']}/{form}", **typed)


async def test_skip_comment_and_pain_keep_the_sets(coach: CoachClient, client_page: ClientPage) -> None:
    ana, squat = await coach.create_customer("Ana"), await coach.create_exercise("Squat")
    block = await block_with(coach, ana, exercise_of(squat, *TWO_SETS))
    item, browser = block["items"][0], await client_page(coach, ana)
    page = await send(browser, set_forms((await browser.get(workout(block))).ok(), item)[0])
    assert (await submit(browser, page, item, "comment", comment="x" * 10_001)).ok(400).text.count("x" * 50)
    page = await submit(browser, page, item, "comment", comment="Slow today", pain="Left knee")
    page.ok().says("Saved. Your coach can read it.", "Slow today", "Left knee")
    notes = (await coach.get(client_path(ana, "notes"))).ok()
    assert "Left knee" in notes[0]["content"]
    page = await submit(browser, page, item, "skip", reason="No rack")
    page.ok().says("Skipped: No rack", "1 of 1 set")
    [stored] = await stored_items(coach, block)
    assert (stored["skipped"], stored["comment"], len(stored["customerSets"])) == (
        {"reason": "No rack"},
        "Slow today",
        1,
    )
    page = await submit(browser, page, item, "skip/undo")
    assert "Skipped:" not in page.ok().says("1 of 2 sets").text
    assert (await stored_items(coach, block))[0]["customerSets"] == stored["customerSets"]


async def test_swap_offers_similar_exercises_and_is_undone(coach: CoachClient, client_page: ClientPage) -> None:
    ana = await coach.create_customer("Ana")
    legs, arms = [[{"_id": each["_id"]}] for each in (await coach.get("/muscle-groups")).ok()[:2]]
    squat = await coach.create_exercise("Barbell squat of ours", muscleGroups=legs)
    press = await coach.create_exercise("Leg machine of ours", muscleGroups=legs)
    await coach.create_exercise("Curl of ours", muscleGroups=arms)
    for _ in range(3):  # planned often, so it comes first
        await block_with(coach, ana, exercise_of(press), date=LAST_WEEK)
    block = await block_with(coach, ana, exercise_of(squat, *TWO_SETS))
    item, browser = block["items"][0], await client_page(coach, ana)
    at = f"{workout(block)}/items/{item['_id']}/swap"
    await send(browser, set_forms((await browser.get(workout(block))).ok(), item)[0])

    offered = (await browser.get(at)).ok().says("Swap Barbell squat of ours", "Leg machine of ours")
    assert "Curl of ours" not in offered.text
    results = (await browser.get(f"{at}?keywords=curl+of+ours")).ok().says("Curl of ours")
    (await browser.submit(results, at, exerciseId=UNKNOWN)).ok(404)
    (await browser.submit(results, at, exerciseId=squat["_id"])).ok(400).says("another exercise than the planned one")
    page = await browser.submit(offered, at, exerciseId=press["_id"], reason="Rack taken")
    page.ok().says("Leg machine of ours", "Instead of Barbell squat of ours: Rack taken", "1 of 2 sets")
    first, second, _ = set_forms(page, item)
    assert [values(form)["exerciseId"] for form in (first, second)] == [squat["_id"], press["_id"]]
    assert values(second)["load"] == "", "the load was planned for the other exercise"
    page = await send(browser, second, load="50")
    page.ok().says("2 of 2 sets")
    stored = (await stored_items(coach, block))[0]
    assert [each["exerciseId"] for each in stored["customerSets"]] == [squat["_id"], press["_id"]]
    page = await submit(browser, page, item, "swap/undo")
    page.ok(409).says("You have logged sets of the other exercise. Take them back")
    page = await send(browser, set_forms(page, item)[1], isCompleted="false")
    page = await submit(browser, page, item, "swap/undo")
    assert "Instead of" not in page.ok().says("1 of 2 sets").text
    assert [each["exerciseId"] for each in (await stored_items(coach, block))[0]["customerSets"]] == [None]


async def test_tasks_reminders_and_measurements(coach: CoachClient, client_page: ClientPage) -> None:
    ana = await coach.create_customer("Ana")
    body = await metric_set(coach, "Body weight", "Muscle")
    block = await block_with(coach, ana, task(), reminder(), metrics_of(body))
    browser = await client_page(coach, ana)
    only_measured = await block_with(coach, ana, metrics_of(body), date=LAST_WEEK)
    assert "Finish workout" not in (await browser.get(workout(only_measured))).ok().text
    walk, drink, measure = block["items"]
    page = (await browser.get(workout(block))).ok().says("Walk", "Drink water", "08:30", "Body weight kg")
    for item in (walk, drink):
        page = (await submit(browser, page, item, "completion", isCompleted="true")).ok()
    page = await submit(browser, page, walk, "completion", isCompleted="false")
    wrong = await submit(browser, page.ok(), measure, "metrics", values__0__value="a lot", values__1__value="30")
    wrong.ok(400).says("This must be a number")
    assert 'value="a lot"' in wrong.html
    page = await submit(browser, page, measure, "metrics", values__0__value="72,5")
    page.ok().says("Saved.")
    stored = await stored_items(coach, block)
    assert [each["isCompleted"] for each in stored] == [False, True, True]
    assert [each["value"] for each in stored[2]["values"]] == [72.5]


async def test_finished_workout_has_a_summary_with_records(coach: CoachClient, client_page: ClientPage) -> None:
    ana, squat = await coach.create_customer("Ana"), await coach.create_exercise("Squat")
    new = await coach.create_exercise("Never done")
    earlier = await block_with(coach, ana, exercise_of(squat), date=LAST_WEEK)
    (await log(coach, earlier, earlier["items"][0], customerSets=[{"reps": 8, "load": 60}])).ok()
    block = await block_with(coach, ana, exercise_of(squat, *TWO_SETS), exercise_of(new, *TWO_SETS))
    browser = await client_page(coach, ana)
    page = (await browser.get(workout(block))).ok()
    minutes = ["2026-03-02T08:00:00Z", "2026-03-02T08:10:00Z", "2026-03-02T08:30:00Z", "2026-03-02T08:44:30Z"]
    forms = [form for item in block["items"] for form in set_forms(page, item)[:2]]
    for form, time, load in zip(forms, minutes, ("60", "70", "20", "20"), strict=True):
        page = (await send(browser, form, loggedAt=time, load=load)).ok()
    finish = f"{workout(block)}/finish"
    assert dict(page.form(finish).fields)["durationMinutes"] == "45"
    wrong = await browser.submit(page, finish, durationMinutes="long", sessionRpe="8", comment="Strong")
    wrong.ok(400).says("This must be a number")
    assert dict(wrong.form(finish).fields)["comment"] == "Strong"
    done = await browser.submit(page, finish, durationMinutes="", sessionRpe="8", feeling="4", comment="Strong")
    done.ok().says("Workout done: Legs", "2 new records!", "heaviest set: 70 kg for 8 reps", "Sets 4 of 4")
    done.says("Volume 1,360 kg", "45 min", "8 of 10", "Good", "Strong", "Back to Today")
    assert done.text.count("Never done") == 1, "in the list of exercises; the first time is no record"
    stored = await read(coach, block)
    assert [stored[name] for name in ("durationMinutes", "sessionRpe", "feeling", "comment")] == [45, 8, 4, "Strong"]
    again = (await browser.get(workout(block))).ok()
    corrected = await browser.submit(again, finish, sessionRpe="9")
    corrected.ok().says("9 of 10", "Good")


async def test_pages_of_hidden_workouts_are_not_found(coach: CoachClient, client_page: ClientPage) -> None:
    ana, squat = await coach.create_customer("Ana"), await coach.create_exercise("Squat")
    block = await block_with(coach, ana, exercise_of(squat), task())
    await hide(coach, ana, block["date"])
    browser = await client_page(coach, ana)
    token = (await browser.get("/train")).html.partition('data-csrf="')[2].partition('"')[0]
    at, item = workout(block), block["items"][0]["_id"]
    for path in ("summary", f"items/{item}/swap"):
        (await browser.get(f"{at}/{path}")).ok(404)
    sent: dict[str, dict[str, str]] = {
        "finish": {"sessionRpe": "5"},
        f"items/{item}/skip": {"reason": "x"},
        f"items/{item}/comment": {"comment": "x"},
        f"items/{block['items'][1]['_id']}/completion": {"isCompleted": "true"},
    }
    for path, data in sent.items():
        (await browser.send("POST", f"{at}/{path}", data={"csrf": token, **data})).ok(404)
    assert (await read(coach, block))["items"] == block["items"]
