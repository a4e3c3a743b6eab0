"""The answers of a client on the coach's page: next to those of the time before, and reviewed."""

from __future__ import annotations

from typing import Any

from tests.support.client import MONDAY, TUESDAY, CoachClient
from tests.support.visitor import Visitor


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
