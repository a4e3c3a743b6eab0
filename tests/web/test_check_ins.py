"""Recurring check-ins in the web application, the forms of clients in the inbox, and reviewed answers."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

from coaching_service.web.formatting import format_date
from tests.support.client import MONDAY, TUESDAY, CoachClient
from tests.support.schedules import EVER
from tests.support.training import Json, block_with, client_path, form_of, own_log, task
from tests.support.visitor import Visitor
from tests.web.conftest import Colleague

INBOX = "/app/inbox"


def path_of(customer: Json) -> str:
    """The path of the check-ins of a client."""
    return f"/app/customers/{customer['_id']}/check-ins"


async def create_form(coach: CoachClient, name: str = "Weekly") -> Json:
    """A form of the library with two questions."""
    questions = [{"label": "How was it?"}, {"label": "Where?", "type": "multi", "options": ["Gym", "Home"]}]
    form: Json = (await coach.post("/coach/forms", {"name": name, "questions": questions})).ok(201)
    return form


async def test_coach_adds_and_ends_a_check_in(coach: CoachClient, owner_page: Visitor) -> None:
    ana, weekly = await coach.create_customer("Ana"), await create_form(coach)
    page = (await owner_page.get(path_of(ana))).ok().says("No recurring check-ins yet", "Form: Weekly")

    page = await owner_page.submit(page, path_of(ana), content=f"form-{weekly['_id']}", rhythm="weekday-3")

    page.ok().says("Weekly is scheduled four weeks ahead.", "Weekly Form", "Every Wednesday", "No end")
    [check_in] = (await coach.get(client_path(ana, "check-ins"))).ok()
    today = str(coach.ctx.caller.today())
    assert (check_in["formId"], check_in["weekday"], check_in["startDate"]) == (weekly["_id"], 3, today)
    assert len(await coach.calendar(ana, *EVER)) == 4

    page = await owner_page.submit(page, f"{path_of(ana)}/{check_in['_id']}/end")

    page.ok().says("Check-in ended.", "No recurring check-ins yet", "Undo")
    assert await coach.calendar(ana, *EVER) == []
    later = await coach.post(client_path(ana, "notes"), {"content": "Later"})
    await coach.wait_until_numbered(later.headers["X-Change-Id"])
    (await owner_page.get(f"/app/customers/{ana['_id']}/history")).says("Check-in ended", "Check-in added")


async def test_coach_adds_a_habit_and_metrics(coach: CoachClient, owner_page: Visitor) -> None:
    ana = await coach.create_customer("Ana")
    unit = (await coach.get("/metrics-units")).ok()[0]["_id"]
    body = {"name": "Body", "metrics": [{"name": "Weight", "metricUnitId": unit}]}
    metric_set = (await coach.post("/coach/metrics-sets", body)).ok(201)
    last = str(coach.ctx.caller.today() + timedelta(days=1))
    page = await owner_page.get(path_of(ana))
    page = await owner_page.submit(page, path_of(ana), title="Walk", rhythm="days-1", until=last)
    page.ok().says("Walk Task", "Every day")
    page = await owner_page.submit(page, path_of(ana), content=f"metrics-{metric_set['_id']}", rhythm="days-14")
    page.ok().says("Body Metrics", "Every 14 days")
    assert [block["name"] for block in await coach.calendar(ana, *EVER)] == ["Walk", "Body", "Walk", "Body"]


async def test_nothing_is_added_or_moved_to_a_check_in(coach: CoachClient, owner_page: Visitor) -> None:
    ana = await coach.create_customer("Ana")
    today = str(coach.ctx.caller.today())
    body = {"taskFields": {"title": "Walk"}, "everyDays": 1, "startDate": today, "until": today}
    (await coach.post(client_path(ana, "check-ins"), body)).ok(201)
    legs = await block_with(coach, ana, task("Squat"), date=today)
    week = (await owner_page.get(f"/app/customers/{ana['_id']}")).says("Check-in", "Walk", "Move Squat")
    assert "Move Walk" not in week.text
    [check_in] = [block for block in await coach.calendar(ana, *EVER) if block["checkInId"]]
    assert f'value="{check_in["_id"]}"' not in week.html
    page = await owner_page.get(f"/app/customers/{ana['_id']}/blocks/{check_in['_id']}")
    page.ok().says("This is a recurring check-in")
    assert path_of(ana) in page.links and "Add an exercise" not in page.text
    page = await owner_page.get(f"/app/customers/{ana['_id']}/blocks/{legs['_id']}")
    assert f'value="{check_in["_id"]}"' not in page.ok().html


async def test_form_names_what_is_missing(coach: CoachClient, owner_page: Visitor) -> None:
    ana = await coach.create_customer("Ana")
    page = await owner_page.get(path_of(ana))
    yesterday = str(coach.ctx.caller.today() - timedelta(days=1))
    for typed, message in (
        ({"title": " "}, "should not be empty"),
        ({"title": "Walk", "until": yesterday}, "must not be before the first day"),
        ({"content": "form-x"}, "must be chosen"),
        ({"content": "form-66f0c0ffee0000000000abcd"}, "Form not found"),
        ({"title": "Walk", "startDate": ""}, "must be a date"),
    ):
        refused = await owner_page.submit(page, path_of(ana), **typed)
        assert refused.status in (400, 404), typed
        refused.says(message)
    assert (await coach.get(client_path(ana, "check-ins"))).ok() == []


async def test_inbox_lists_pending_forms_and_responses_to_review(coach: CoachClient, owner_page: Visitor) -> None:
    (await owner_page.get(INBOX)).says("All responses are reviewed.", "No form is waiting for an answer.")
    ana, weekly = await coach.create_customer("Ana", surname="Ruiz"), await create_form(coach)
    body = {"formId": weekly["_id"], "everyDays": 14, "startDate": str(coach.ctx.caller.today())}
    (await coach.post(client_path(ana, "check-ins"), body)).ok(201)
    first, second = await coach.calendar(ana, *EVER)
    overdue = str(coach.ctx.caller.today() - timedelta(days=2))
    (await coach.patch(client_path(ana, "wblocks", second["_id"]), {"date": overdue})).ok()
    page = (await owner_page.get(INBOX)).says("Ana Ruiz", "Weekly", "Overdue")
    assert {f"/app/customers/{ana['_id']}/blocks/{each['_id']}" for each in (first, second)} <= {*page.links}

    answers = [
        {"questionId": question["_id"], "value": value}
        for question, value in zip(weekly["questions"], ("<b>Hard</b>", ["Gym", "Home"]), strict=True)
    ]
    client = await coach.as_client(ana)
    (await own_log(client, second, second["items"][0], answers=answers)).ok()

    page = (await owner_page.get(INBOX)).says("How was it?", "<b>Hard</b>", "Gym, Home")
    assert "Overdue" not in page.text
    [response] = (await coach.get("/coach/form-responses")).ok()["docs"]
    page = await owner_page.submit(page, f"{INBOX}/responses/{response['_id']}/reviewed")
    page.ok().says("Marked as reviewed.", "All responses are reviewed.")
    assert (await coach.get("/coach/form-responses", reviewed="true")).ok()["docs"][0]["_id"] == response["_id"]


async def test_check_ins_without_permissions(coach: CoachClient, colleague: Colleague) -> None:
    """An employee who may see clients only: neither the forms of the inbox nor the form to add a check-in."""
    ana, weekly = await coach.create_customer("Ana"), await create_form(coach)
    body = {"formId": weekly["_id"], "weekday": 1, "startDate": str(coach.ctx.caller.today())}
    (await coach.post(client_path(ana, "check-ins"), body)).ok(201)
    viewer = await colleague("customers.view")
    page = (await viewer.get(path_of(ana))).ok().says("Weekly", "Every Monday")
    assert "Add a check-in" not in page.text and "/end" not in page.html
    assert "Pending check-ins" not in (await viewer.get(INBOX)).ok().text
    page = (await (await colleague("customers.view", "forms.view")).get(INBOX)).ok().says("Pending check-ins", "Ana")
    assert "Mark as reviewed" not in page.text


async def test_inbox_groups_overdue_forms_by_client_newest_first(coach: CoachClient, owner_page: Visitor) -> None:
    today = coach.ctx.caller.today()
    ana, bea = await coach.create_customer("Ana"), await coach.create_customer("Bea")
    for customer, days in ((ana, 30), (ana, 9), (bea, 2), (ana, 16), (bea, -3)):
        await block_with(coach, customer, form_of(), date=str(today - timedelta(days=days)))

    page = (await owner_page.get(INBOX)).ok()

    rows = [row for row in re.findall(r"<tr>.*?</tr>", page.html, re.DOTALL) if "/blocks/" in row]
    texts = [" ".join(re.sub(r"<[^>]+>", " ", row).split()) for row in rows]
    assert [text.partition(" ")[0] for text in texts] == ["Bea", "Ana", "Bea"]
    latest = format_date(today - timedelta(days=9))
    assert "Overdue" in texts[0] and f"3 overdue latest {latest}" in texts[1] and "verdue" not in texts[2]


async def answer(coach: CoachClient, customer: dict[str, Any], form: dict[str, Any], date: str, value: str) -> None:
    block = await coach.schedule(customer, date=date)
    path = f"/coach/customers/{customer['_id']}/wblocks/{block['_id']}/witems"
    item = (await coach.post(path, {"type": "FORM", "form": {"formId": form["_id"]}})).ok(201)
    answers = [{"questionId": form["questions"][0]["_id"], "value": value}]
    (await coach.put(f"{path}/{item['_id']}/log", {"isCompleted": True, "answers": answers})).ok()


async def test_answers_are_compared_and_reviewed(coach: CoachClient, owner_page: Visitor) -> None:
    ana, bea = await coach.create_customer("Ana"), await coach.create_customer("Bea")
    questions = {"name": "Check-in", "questions": [{"label": "Sleep?"}]}
    form = (await coach.post("/coach/forms", questions)).ok(201)
    path = f"/app/customers/{ana['_id']}/check-ins/responses"
    (await owner_page.get(path)).ok().says("No answers yet")
    await answer(coach, ana, form, MONDAY, "Badly")
    await answer(coach, ana, form, TUESDAY, "Well")

    page = await owner_page.get(path)
    page.ok().says("Sleep? Well Badly", "Last time Mon 2 Mar 2026")
    responses = (await coach.get("/coach/form-responses", customerId=ana["_id"])).ok()["docs"]
    latest = next(each for each in responses if each["date"] == TUESDAY)

    elsewhere = f"/app/customers/{bea['_id']}/check-ins/responses/{latest['_id']}/review"
    page.form(f"{path}/{latest['_id']}/review").action = elsewhere
    (await owner_page.submit(page, elsewhere)).ok(404)
    assert (await coach.get("/coach/form-responses", reviewed="false")).ok()["docs"] != []

    page = await owner_page.get(path)
    reviewed = await owner_page.submit(page, f"{path}/{latest['_id']}/review")
    reviewed.ok().says("Marked as reviewed.", "Reviewed")
    left = (await coach.get("/coach/form-responses", reviewed="false")).ok()["docs"]
    assert [each["date"] for each in left] == [MONDAY]
