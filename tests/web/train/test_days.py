"""The pages of a client about days: today, the calendar, what has been done, check-ins and the nutrition plan."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import aiohttp
import pytest
import time_machine

from coaching_service.web.formatting import label_day
from coaching_service.web.views import check_ins
from tests.core.test_uploads import PDF
from tests.support import training
from tests.support.client import CoachClient
from tests.support.fixed_clock import NOON, TODAY
from tests.support.training import block_with, client_path, exercise_of, form_of, hide, log, metrics_of, task
from tests.support.visitor import HtmlPage
from tests.web.conftest import ClientPage

Json = dict[str, Any]


def day(offset: int) -> str:
    return str(TODAY + timedelta(days=offset))


async def rest(coach: CoachClient, customer: Json, on: str) -> None:
    (await coach.post(client_path(customer, "wblocks"), {"name": "Rest", "date": on, "isRest": True})).ok(201)


def workout(block: Json) -> str:
    return f"/train/workouts/{block['_id']}"


def form_page_of(block: Json, at: int = 0) -> str:
    return f"{workout(block)}/items/{block['items'][at]['_id']}/form"


async def test_today_leads_in_one_tap_to_the_workout_and_to_what_is_due(
    coach: CoachClient, client_page: ClientPage
) -> None:
    ana, squat = await coach.create_customer(), await coach.create_exercise("Squat")
    body = await training.metric_set(coach, "Body weight", "Waist")
    (await coach.patch(client_path(ana), {"timezone": "Pacific/Kiritimati"})).ok()
    late = await block_with(coach, ana, form_of(), date=day(-2), name="Sunday check-in")
    block = await block_with(coach, ana, exercise_of(squat), metrics_of(body), task(), date=day(0), name="Legs")
    weekly = await block_with(coach, ana, form_of(), date=day(0), name="Weekly review")
    habit = {"taskFields": {"title": "Drink water"}, "everyDays": 1, "startDate": day(0)}
    (await coach.post(client_path(ana, "messages"), {"text": "Hello"})).ok(201)
    with time_machine.travel(f"{day(-1)}T12:00:00+00:00", tick=True):  # there it is the next day
        (await coach.post(client_path(ana, "check-ins"), habit)).ok(201)
        page = await (await client_page(coach, ana)).get("/train")

    page.ok().says("Wed 5 Mar 2031", "Legs 1 exercise · 3 sets · 1 task · 1 measurement Squat", "Start")
    page.says("Check-in Since Mon 3 Mar Overdue", "Body weight, Waist", "Drink water", "1 new message")
    assert {workout(block), form_page_of(late), form_page_of(weekly), "/train/messages"} <= set(page.links)
    assert "Weekly review" not in page.text, "a form is something to do, not a workout"
    assert f"{workout(block)}#item-{block['items'][1]['_id']}" in page.links
    assert {"/train/history", "/train/form-responses", "/train/plan"} <= set(page.links)
    assert page.links.count(workout(block)) == 1
    assert "None" not in page.text


@time_machine.travel(NOON, tick=True)
async def test_today_shows_whether_a_workout_was_started_or_is_done(
    coach: CoachClient, client_page: ClientPage
) -> None:
    ana, squat = await coach.create_customer(), await coach.create_exercise("Squat")
    block = await block_with(coach, ana, exercise_of(squat), task(), date=day(0), name="Legs")
    page = await client_page(coach, ana)
    (await page.get("/train")).ok().says("Start : Legs")

    (await log(coach, block, block["items"][0], customerSets=[{"reps": 8, "load": 60}] * 3)).ok()
    (await page.get("/train")).ok().says("1 of 2 done", "Continue : Legs")

    client = await coach.as_client(ana)
    skipped = {"skipped": {"reason": "No time"}}
    (await client.put(f"/customer/wblocks/{block['_id']}/witems/{block['items'][1]['_id']}/log", skipped)).ok()
    (await page.get("/train")).ok().says("See your workout : Legs")


@time_machine.travel(NOON, tick=True)
async def test_rest_day_shows_the_next_workout(coach: CoachClient, client_page: ClientPage) -> None:
    ana = await coach.create_customer()
    await rest(coach, ana, day(0))
    hidden = await block_with(coach, ana, task(), date=day(1), name="Hidden")
    following = await block_with(coach, ana, task(), date=day(2), name="Upper body")
    await hide(coach, ana, day(1))
    page = (await (await client_page(coach, ana)).get("/train")).ok().says("Rest day", "Upper body Fri 7 Mar")
    assert workout(following) in page.links
    assert workout(hidden) not in page.links


async def four_days(coach: CoachClient, ana: Json) -> dict[str, Json]:
    """A week with a workout done on Monday, partly done on Tuesday, planned for today, and missed the week before."""
    squat = await coach.create_exercise("Squat")
    blocks = {}
    for name, offset in (("Missed", -7), ("Done", -2), ("Part", -1), ("Planned", 0)):
        blocks[name] = await block_with(coach, ana, exercise_of(squat), task(), date=day(offset), name=f"{name} one")
    sets = [{"reps": 8, "load": 60}] * 3
    for item in blocks["Done"]["items"]:
        (await log(coach, blocks["Done"], item, **({"customerSets": sets} if item["type"] == "EXERCISE" else {}))).ok()
    (await log(coach, blocks["Part"], blocks["Part"]["items"][0], customerSets=sets[:1], isCompleted=False)).ok()
    await rest(coach, ana, day(1))
    return blocks


def spoken_days(page: HtmlPage) -> list[str]:
    """What screen readers announce for each day of the strip or month."""
    return re.findall(r'<span class="hidden-text">(\w{3} \d+ \w{3} \d{4}: [^<]+)</span>', page.html)


@time_machine.travel(NOON, tick=True)
async def test_week_and_month_show_what_became_of_each_day(coach: CoachClient, client_page: ClientPage) -> None:
    ana = await coach.create_customer()
    blocks = await four_days(coach, ana)
    page = await client_page(coach, ana)
    today = (await page.get("/train")).ok()
    assert spoken_days(today) == [
        "Mon 3 Mar 2031: Done",
        "Tue 4 Mar 2031: Partly done",
        "Wed 5 Mar 2031: Planned",
        "Thu 6 Mar 2031: Rest",
        "Fri 7 Mar 2031: nothing planned",
        "Sat 8 Mar 2031: nothing planned",
        "Sun 9 Mar 2031: nothing planned",
    ]
    assert f"/train/calendar?week={day(-2)}#day-{day(-2)}" in today.links

    week = (await page.get("/train/calendar")).ok()
    week.says("3 – 9 Mar 2031", "Done one Done", "Yesterday Part one Partly done Today", "Planned one Planned")
    assert {workout(blocks[name]) for name in ("Done", "Part", "Planned")} <= set(week.links)
    previous = (await page.get("/train/calendar?week=2031-02-28")).ok().says("24 Feb – 2 Mar 2031", "Missed one Missed")
    assert {"/train/calendar?week=2031-02-17", "/train/calendar?week=2031-03-03"} <= set(previous.links)

    month = (await page.get("/train/calendar?month=2031-03")).ok().says("March 2031")
    assert spoken_days(month)[:4] == [
        "Sat 1 Mar 2031: nothing planned",
        "Sun 2 Mar 2031: nothing planned",
        *spoken_days(today)[:2],
    ]
    assert {"/train/calendar?month=2031-02", "/train/calendar?month=2031-04"} <= set(month.links)
    for wrong in ("month=2031-13", "month=0001-01", "week=yesterday", "week=9999-12-31"):
        (await page.get(f"/train/calendar?{wrong}")).ok().says("3 – 9 Mar 2031")


@time_machine.travel(NOON, tick=True)
async def test_hidden_days_are_not_mentioned(coach: CoachClient, client_page: ClientPage) -> None:
    ana = await coach.create_customer()
    blocks = await four_days(coach, ana)
    answered = await block_with(coach, ana, form_of(), date=day(-3), name="Sunday")
    answer = {"questionId": answered["items"][0]["form"]["questions"][0]["_id"], "value": "A secret"}
    (await log(coach, answered, answered["items"][0], answers=[answer])).ok()
    page = await client_page(coach, ana)
    (await page.get("/train/form-responses")).ok().says("A secret")

    await hide(coach, ana, day(-3), day(0))
    shown = [await page.get(path) for path in ("/train", "/train/calendar", "/train/calendar?month=2031-03")]
    shown += [await page.get(path) for path in ("/train/history", "/train/history?month=2031-03")]
    shown += [await page.get("/train/form-responses")]
    for each in shown:
        assert not {workout(block) for block in blocks.values() if block is not blocks["Missed"]} & set(each.links)
        assert not re.search("Done one|Part one|Planned one|A secret|hidden from", each.text), each.path
    assert spoken_days(shown[0])[0] == "Mon 3 Mar 2031: nothing planned"
    (await page.get(form_page_of(answered))).ok(404)


@time_machine.travel(NOON, tick=True)
async def test_history_has_the_done_workouts_by_month(coach: CoachClient, client_page: ClientPage) -> None:
    ana, squat = await coach.create_customer(), await coach.create_exercise("Squat")
    page = await client_page(coach, ana)
    (await page.get("/train/history")).ok().says("No workouts yet")
    for name, on in (("Winter", "2030-12-31"), ("First", "2031-02-04"), ("Second", "2031-02-18"), ("Never", day(0))):
        block = await block_with(coach, ana, exercise_of(squat), date=on, name=name)
        if name != "Never":
            (await log(coach, block, block["items"][0], customerSets=[{"reps": 8, "load": 60}] * 3)).ok()
    done = {"durationMinutes": 51.6, "sessionRpe": 7.5, "feeling": 4}
    (await coach.put(client_path(ana, "wblocks", block["_id"], "log"), done)).ok()
    second = (await coach.get(client_path(ana, "wblock"), startDate="2031-02-18", endDate="2031-02-18")).ok()[0]
    (await coach.put(client_path(ana, "wblocks", second["_id"], "log"), done)).ok()

    latest = (await page.get("/train/history")).ok()
    second_row = "Tue 18 Feb Second 3 sets · 52 min · Effort 7.5 of 10 · Felt good"
    latest.says(f"February 2031 2 entries {second_row} Tue 4 Feb First 3 sets")
    assert "Never" not in latest.text
    assert [link for link in latest.links if "month=" in link] == ["/train/history?month=2030-12"]
    winter = (await page.get("/train/history?month=2030-12")).ok().says("Tue 31 Dec 2030 Winter")
    assert [link for link in winter.links if "month=" in link] == ["/train/history?month=2031-02"]
    (await page.get("/train/history?month=2031-01")).ok().says("No workout in this month.")


async def test_form_is_answered_read_and_corrected(coach: CoachClient, client_page: ClientPage) -> None:
    ana = await coach.create_customer()
    questions = [*training.QUESTIONS, {"label": "Steps?", "required": True}]
    questions[3] = {**questions[3], "required": True}
    block = await block_with(coach, ana, form_of(*questions), task(), name="Sunday")
    path = form_page_of(block)
    page = await client_page(coach, ana)
    empty = (await page.get(path)).ok().says("Check-in", "6 questions", "Hours of sleep?", "Where does it hurt?")

    typed: dict[str, Any] = {
        "answers__0__value": "Fine\n\nand <quick>",
        "answers__1__value": "7,5",
        "answers__2__chosen": "8",
        "answers__4__chosen": ["Knee", "Back"],
        "comment": "See you",
    }
    rejected = (await page.submit(empty, path, **typed)).ok(400).says("This must be answered.")
    resent = rejected.form(path)
    assert [
        pair for pair in resent.fields if pair[0].startswith("answers.") and pair[0].endswith(("chosen", "value"))
    ] == [
        ("answers.0.value", "Fine\n\nand <quick>"),
        ("answers.1.value", "7,5"),
        ("answers.2.value", ""),
        ("answers.2.chosen", "8"),
        ("answers.3.value", ""),
        ("answers.4.value", ""),
        ("answers.4.chosen", "Knee"),
        ("answers.4.chosen", "Back"),
        ("answers.5.value", ""),
    ]
    assert ("comment", "See you") in resent.fields
    wrong_number = await page.submit(
        rejected, path, answers__1__value="many", answers__3__chosen="Good", answers__5__value="9000"
    )
    assert wrong_number.ok(400).form(path).controls["answers.1.value"]["aria-invalid"] == "true"
    await page.submit(wrong_number, path, answers__1__value="7,5")
    (stored,) = (await coach.get(client_path(ana, "form-responses"))).ok()
    assert [answer["value"] for answer in stored["answers"]] == [
        "Fine\n\nand <quick>",
        7.5,
        8,
        "Good",
        ["Knee", "Back"],
        "9000",
    ]

    item = f"/customer/wblocks/{block['_id']}/witems/{block['items'][0]['_id']}/log"
    answers = [{"questionId": each["questionId"], "value": each["value"]} for each in stored["answers"]]
    (await (await coach.as_client(ana)).put(item, {"answers": answers, "comment": "See you", "pain": "Knee"})).ok()
    about = {"wblockId": block["_id"], "witemId": block["items"][0]["_id"]}
    (await coach.post(client_path(ana, "messages"), {"text": "Sleep more", "about": about})).ok(201)
    (await coach.post(client_path(ana, "messages"), {"text": "Something else"})).ok(201)
    read = (await page.get(path)).ok().says("7.5", "8 of 10", "Knee, Back", "See you", "Sleep more")
    assert "Something else" not in read.text
    assert f"{path}?edit=true" in read.links
    edit = await page.get(f"{path}?edit=true")
    assert ("answers.2.chosen", "8") in edit.form(path).fields
    await page.submit(edit, path, answers__2__chosen="9", answers__4__chosen=None)
    (again,) = (await coach.get(client_path(ana, "form-responses"))).ok()
    assert {answer["label"]: answer["value"] for answer in again["answers"]}["Energy?"] == 9
    assert "Where does it hurt?" not in {answer["label"] for answer in again["answers"]}
    logged = (await training.read(coach, block))["items"][0]
    assert (logged["comment"], logged["pain"]) == ("See you", "Knee")

    (await page.get(form_page_of(block, 1))).ok(404)


@time_machine.travel(NOON, tick=True)
async def test_answers_given_so_far_are_listed_with_what_the_coach_has_seen(
    coach: CoachClient, client_page: ClientPage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(check_ins, "_PAGE_SIZE", 2)
    ana = await coach.create_customer()
    page = await client_page(coach, ana)
    (await page.get("/train/form-responses")).ok().says("No check-ins yet")
    for offset in range(4):
        block = await block_with(coach, ana, form_of(), date=day(-offset))
        answer = {"questionId": block["items"][0]["form"]["questions"][0]["_id"], "value": f"Answer {offset}."}
        (await log(coach, block, block["items"][0], answers=[answer])).ok()
    newest = (await coach.get("/coach/form-responses", customerId=ana["_id"])).ok()["docs"][0]
    (await coach.put(f"/coach/form-responses/{newest['_id']}/reviewed", {"reviewed": True})).ok()
    first = (await page.get("/train/form-responses")).ok()
    first.says("Check-in Today · seen by your coach", "Answer 0.", "Answer 1.", "Page 1 of 2")
    assert len({link for link in first.links if link.endswith("/form")}) == 2
    assert "Answer 2." not in first.text
    second = (await page.get("/train/form-responses?page=2")).ok().says("Answer 3.")
    assert form_page_of(block) in second.links
    (await page.get("/train/form-responses?page=3")).ok().says("There is no page 3")


async def test_nutrition_plans_are_opened_the_latest_first(coach: CoachClient, client_page: ClientPage) -> None:
    ana = await coach.create_customer()
    page = await client_page(coach, ana)
    (await page.get("/train/plan")).ok().says("No plan yet")
    for name in ("autumn.pdf", "winter.pdf"):
        form = aiohttp.FormData(default_to_multipart=True)
        form.add_field("file", PDF, filename=name)
        (await coach.send("POST", client_path(ana, "nutrition-plans"), data=form)).ok(201)
    plans = (await page.get("/train/plan")).ok().says("winter.pdf Current plan", "Earlier plans autumn.pdf")
    files = [link for link in plans.links if link.startswith("/files/")]
    assert len(set(files)) == 2
    assert (await page.get(files[0])).ok().headers["Content-Type"] == "application/pdf"


def test_near_days_have_names() -> None:
    labels = [label_day(day(offset), TODAY) for offset in (-1, 0, 1, 2, -64)]
    assert labels == ["Yesterday", "Today", "Tomorrow", "Fri 7 Mar", "Tue 31 Dec 2030"]
