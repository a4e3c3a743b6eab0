"""The responses of all clients to forms, and their review."""

from __future__ import annotations

from typing import Any

from tests.support.client import MONDAY, SUNDAY, TUESDAY, UNKNOWN, CoachClient
from tests.support.training import Json, block_with, employee_key, feed_types, own_log, responses

INBOX = "/coach/form-responses"
QUESTION: Json = {"label": "Hours of sleep?", "type": "number"}


async def answer(
    coach: CoachClient, customer: Json, value: float = 7, *, date: str = MONDAY, form: Json | None = None
) -> tuple[Json, Json]:
    """Schedule a form and log the client's answer; returns the block, and the response in the client's list."""
    content = {"formId": form["_id"]} if form else {"name": "Check-in", "questions": [QUESTION]}
    block = await block_with(coach, customer, {"type": "FORM", "form": content}, date=date)
    await answer_again(coach, customer, block, value)
    return block, next(each for each in await responses(coach, customer) if each["date"] == date)


async def answer_again(coach: CoachClient, customer: Json, block: Json, value: float) -> None:
    """Log the client's answer to the form of a block."""
    [item] = block["items"]
    answers = [{"questionId": item["form"]["questions"][0]["_id"], "value": value}]
    client = await coach.as_client(customer)
    (await own_log(client, block, item, isCompleted=True, answers=answers)).ok()


async def docs(coach: CoachClient, **query: Any) -> list[Json]:
    """The first part of the inbox."""
    result: list[Json] = (await coach.get(INBOX, **query)).ok()["docs"]
    return result


async def review(coach: CoachClient, response: Json, *, reviewed: bool = True) -> Json:
    """Mark a response as reviewed, or not."""
    result: Json = (await coach.put(f"{INBOX}/{response['_id']}/reviewed", {"reviewed": reviewed})).ok()
    return result


async def test_inbox_has_responses_of_all_clients_newest_first(coach: CoachClient) -> None:
    ana, bo = await coach.create_customer("Ana", surname="Ruiz"), await coach.create_customer("Bo")
    _, later = await answer(coach, ana, date=SUNDAY)
    _, earlier = await answer(coach, bo)

    page = (await coach.get(INBOX)).ok()

    assert (page["nextCursor"], page["hasMore"]) == (None, False)
    assert page["docs"] == [
        {**later, "customer": {"_id": ana["_id"], "name": "Ana Ruiz"}},
        {**earlier, "customer": {"_id": bo["_id"], "name": "Bo"}},
    ]
    assert (later["reviewedAt"], later["reviewedBy"]) == (None, None)


async def test_reviewed_response_leaves_the_list_of_the_others(coach: CoachClient) -> None:
    ana = await coach.create_customer()
    _, first = await answer(coach, ana)
    _, second = await answer(coach, ana, date=TUESDAY)

    reviewed = await review(coach, first)

    assert reviewed["reviewedAt"] is not None
    assert reviewed["reviewedBy"] == str(coach.ctx.caller.id)
    assert [each["_id"] for each in await docs(coach, reviewed="false")] == [second["_id"]]
    assert await docs(coach, reviewed="true") == [reviewed]
    assert await review(coach, first) == reviewed  # repeating changes nothing
    assert (await review(coach, first, reviewed=False))["reviewedAt"] is None
    assert len(await docs(coach, reviewed="false")) == 2


async def test_review_is_an_event(coach: CoachClient) -> None:
    ana = await coach.create_customer()
    _, response = await answer(coach, ana)
    await review(coach, response)
    await review(coach, response)
    await review(coach, response, reviewed=False)
    events = (await coach.get("/coach/events", limit=100, types="form.reviewed", wait=5)).ok()["docs"]
    assert [(each["customerId"], each["data"]) for each in events] == [(ana["_id"], {"responseId": response["_id"]})]
    assert "form_submitted" in await feed_types(coach, ana)


async def test_other_answers_have_to_be_reviewed_again(coach: CoachClient) -> None:
    ana = await coach.create_customer()
    block, response = await answer(coach, ana, 7)
    await review(coach, response)
    await answer_again(coach, ana, block, 7)
    assert [each["_id"] for each in await docs(coach, reviewed="true")] == [response["_id"]]
    await answer_again(coach, ana, block, 5)
    assert [each["answers"][0]["value"] for each in await docs(coach, reviewed="false")] == [5]


async def test_inbox_is_filtered_by_form_client_and_dates(coach: CoachClient) -> None:
    ana, bo = await coach.create_customer("Ana"), await coach.create_customer("Bo")
    form = (await coach.post("/coach/forms", {"name": "Weekly", "questions": [QUESTION]})).ok(201)
    _, weekly = await answer(coach, ana, form=form)
    _, other = await answer(coach, bo, date=TUESDAY)
    _, last = await answer(coach, bo, date=SUNDAY)

    assert [each["_id"] for each in await docs(coach, formId=form["_id"])] == [weekly["_id"]]
    assert [each["_id"] for each in await docs(coach, customerId=bo["_id"])] == [last["_id"], other["_id"]]
    assert [each["_id"] for each in await docs(coach, **{"from": TUESDAY})] == [last["_id"], other["_id"]]
    assert [each["_id"] for each in await docs(coach, to=TUESDAY)] == [other["_id"], weekly["_id"]]
    assert await docs(coach, formId=UNKNOWN) == await docs(coach, customerId=UNKNOWN) == []
    for query in ({"from": TUESDAY, "to": MONDAY}, {"formId": "x"}, {"limit": 0}, {"after": "x"}, {"reviewed": ""}):
        (await coach.get(INBOX, **query)).refused(400)


async def test_walking_the_parts_meets_every_response_once(coach: CoachClient) -> None:
    ana, bo = await coach.create_customer("Ana"), await coach.create_customer("Bo")
    for customer in (ana, bo):
        for date in (MONDAY, TUESDAY):
            await answer(coach, customer, date=date)
    for filters in ({}, {"from": MONDAY, "to": SUNDAY, "reviewed": "false"}):
        expected = [each["_id"] for each in await docs(coach, **filters)]
        assert len(expected) == 4
        met: list[str] = []
        after: Json = {}
        for _ in expected:
            part = (await coach.get(INBOX, limit=1, **filters, **after)).ok()
            met += [each["_id"] for each in part["docs"]]
            after = {"after": part["nextCursor"]}
        assert met == expected


async def test_employee_sees_and_reviews_assigned_clients_only(coach: CoachClient, other_company: CoachClient) -> None:
    eli = coach.with_key(await employee_key(coach, "customers.create", "forms.view", "forms.edit"))
    ana, bo = await coach.create_customer("Ana"), await eli.create_customer("Bo")
    _, of_ana = await answer(coach, ana)
    _, of_bo = await answer(coach, bo)
    assert [each["_id"] for each in await docs(eli)] == [of_bo["_id"]]
    assert await docs(eli, customerId=ana["_id"]) == []
    await review(eli, of_bo)
    (await eli.put(f"{INBOX}/{of_ana['_id']}/reviewed", {"reviewed": True})).refused(403)
    assert await docs(other_company) == []
    theirs = (await other_company.put(f"{INBOX}/{of_ana['_id']}/reviewed", {"reviewed": True})).refused(404)
    assert theirs == (await coach.put(f"{INBOX}/{UNKNOWN}/reviewed", {"reviewed": True})).refused(404)
    (await coach.put(f"{INBOX}/{of_ana['_id']}/reviewed", {})).refused(400, "reviewed")
    reader = coach.with_key(await employee_key(coach, "forms.view", scope="all"))
    (await reader.put(f"{INBOX}/{of_ana['_id']}/reviewed", {"reviewed": True})).refused(403, "forms.edit")
