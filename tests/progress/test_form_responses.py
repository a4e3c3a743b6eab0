"""Answers to every type of question, required questions, and stored responses."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.client import MONDAY, SUNDAY, TUESDAY, UNKNOWN, CoachClient, Reply
from tests.support.training import (
    QUESTIONS,
    Json,
    add,
    block_with,
    client_path,
    employee_key,
    feed_types,
    form_of,
    log,
    own_log,
    path_of,
    read,
    responses,
)

TYPES = [question["type"] for question in QUESTIONS]


def answer(item: Json, value: Any, at: int = 0) -> Json:
    return {"questionId": item["form"]["questions"][at]["_id"], "value": value}


async def answered(coach: CoachClient, question: Json, value: Any) -> Reply:
    """Log an answer to a form of one question."""
    block = await block_with(coach, await coach.create_customer(), form_of(question))
    return await log(coach, block, block["items"][0], answers=[answer(block["items"][0], value)])


VALID: list[tuple[str, Any]] = [
    ("text", "Fine"),
    ("text", ""),
    ("text", "x" * 10_000),
    ("text", "line one\nline two <b>"),
    ("number", 7),
    ("number", 7.5),
    ("number", -3),
    ("number", 0),
    ("rating", 1),
    ("rating", 10),
    ("choice", "Good"),
    ("multi", ["Knee"]),
    ("multi", ["Back", "Knee"]),
    ("multi", []),
    *((kind, None) for kind in TYPES),
]
INVALID: list[tuple[str, Any]] = [
    ("text", 5),
    ("text", ["Fine"]),
    ("text", {"a": 1}),
    ("text", "x" * 10_001),
    ("number", "7"),
    ("number", True),
    ("number", [7]),
    ("number", 1e16),
    ("rating", 0),
    ("rating", 11),
    ("rating", 5.5),
    ("rating", "5"),
    ("rating", True),
    ("choice", "good"),
    ("choice", "Knee"),
    ("choice", ["Good"]),
    ("choice", 0),
    ("multi", "Knee"),
    ("multi", ["Knee", "Neck"]),
    ("multi", ["Knee", "Knee"]),
    ("multi", [["Knee"]]),
    ("multi", [{}]),
    ("multi", {"Knee": True}),
]


async def test_valid_answers_are_accepted_and_others_rejected_with_their_position(coach: CoachClient) -> None:
    """Contract 6: questions `type: text, number, rating, choice, multi`."""
    client = await coach.create_customer()
    blocks = {kind: await block_with(coach, client, form_of(QUESTIONS[at])) for at, kind in enumerate(TYPES)}

    async def send(kind: str, value: Any) -> Reply:
        [item] = blocks[kind]["items"]
        return await log(coach, blocks[kind], item, answers=[answer(item, value)])

    for kind, value in INVALID:
        [message] = (await send(kind, value)).refused(400)["message"]
        assert message.startswith("answers.0.value must "), (kind, value)
    for kind, value in VALID:
        logged = (await send(kind, value)).ok()
        assert [each["value"] for each in logged["answers"]] == [value], kind


async def test_every_invalid_answer_is_named_and_nothing_is_stored(coach: CoachClient) -> None:
    ana = await coach.create_customer()
    block = await block_with(coach, ana, form_of())
    [item] = block["items"]
    wrong = [answer(item, "Fine", 0), answer(item, "many", 1), answer(item, 5, 2), answer(item, "So so", 3)]

    error = (await log(coach, block, item, answers=wrong)).refused(400)

    assert [message.split()[0] for message in error["message"]] == ["answers.1.value", "answers.3.value"]
    for answers, status, words in [
        ([answer(item, "a"), answer(item, "b")], 400, "only once"),
        ([answer(item, "a"), {"questionId": UNKNOWN, "value": "b"}], 404, "Question"),
        ([{"questionId": item["form"]["questions"][0]["_id"]}], 400, "answers.0.value"),
        ([{"value": "a"}], 400, "answers.0.questionId"),
        ("a", 400, "answers"),
        ([answer(item, "a")] * 101, 400, "answers"),
    ]:
        (await log(coach, block, item, answers=answers)).refused(status, words)
    assert await read(coach, block) == block
    assert (await responses(coach, ana), await feed_types(coach, ana)) == ([], [])


REQUIRED = [question | {"required": True} for question in QUESTIONS]
GOOD = ["Fine", 8, 5, "Good", ["Knee"]]


@pytest.mark.parametrize(("at", "blank"), [(0, ""), (0, "  \n"), *((at, None) for at in range(5)), (4, [])])
async def test_completed_form_requires_answers_to_required_questions(coach: CoachClient, at: int, blank: Any) -> None:
    """Contract 6: questions `{..., required}`. Contract 1: required strings are not empty after trimming."""
    ana = await coach.create_customer()
    block = await block_with(coach, ana, form_of(*REQUIRED))
    [item] = block["items"]
    question = item["form"]["questions"][at]["_id"]
    answers_to_all = [answer(item, value, number) for number, value in enumerate(GOOD)]

    for incomplete in (
        answers_to_all[:at] + answers_to_all[at + 1 :],
        [*answers_to_all[:at], answer(item, blank, at), *answers_to_all[at + 1 :]],
    ):
        error = (await log(coach, block, item, answers=incomplete)).refused(400)
        assert error["message"] == [f"answers must answer the required question {question}"]
    assert await read(coach, block) == block
    (await log(coach, block, item)).refused(400)

    partial = (await log(coach, block, item, isCompleted=False, answers=answers_to_all[:at])).ok()
    assert (partial["isCompleted"], len(partial["answers"])) == (False, at)
    done = (await log(coach, block, item, answers=answers_to_all)).ok()
    assert (done["isCompleted"], done["answers"]) == (True, answers_to_all)
    [response] = await responses(coach, ana)
    assert [each["value"] for each in response["answers"]] == GOOD
    assert [each["label"] for each in response["answers"]] == [question["label"] for question in QUESTIONS]


async def test_zero_and_no_are_answers(coach: CoachClient) -> None:
    number = {"label": "How many?", "type": "number", "required": True}
    assert (await answered(coach, number, 0)).ok()["isCompleted"] is True


async def test_responses_are_listed_by_the_date_of_the_session(coach: CoachClient) -> None:
    """Contract 7: form responses: GET /form-responses (`from`, `to`): plain array, newest first."""
    ana, bo = await coach.create_customer("Ana"), await coach.create_customer("Bo")
    for customer, date, value in [(ana, TUESDAY, "t"), (ana, SUNDAY, "s"), (ana, MONDAY, "m"), (bo, MONDAY, "bo")]:
        block = await block_with(coach, customer, form_of(QUESTIONS[0]), date=date)
        (await log(coach, block, block["items"][0], answers=[answer(block["items"][0], value)])).ok()

    async def values(**query: str) -> list[str]:
        return [response["answers"][0]["value"] for response in await responses(coach, ana, **query)]

    assert await values() == ["s", "t", "m"]
    assert await values(**{"from": TUESDAY}) == ["s", "t"]
    assert await values(to=TUESDAY) == ["t", "m"]
    assert await values(**{"from": MONDAY, "to": MONDAY}) == ["m"]
    assert await values(**{"from": "2026-03-04", "to": "2026-03-07"}) == []
    path = client_path(ana, "form-responses")
    (await coach.get(path, **{"from": TUESDAY, "to": MONDAY})).refused(400, "to", "before")
    (await coach.get(path, **{"from": "yesterday"})).refused(400, "from")
    (await coach.get(path, to="2026-02-29")).refused(400, "to")
    scoped = coach.with_key(await employee_key(coach, "forms.view"))
    (await scoped.get(path)).refused(403)
    (await coach.get(client_path({"_id": UNKNOWN}, "form-responses"))).refused(404, "Customer")


async def test_response_to_a_form_without_library_entry_has_its_name(coach: CoachClient) -> None:
    ana = await coach.create_customer()
    block = await block_with(coach, ana, form_of(QUESTIONS[0]))
    client = await coach.as_client(ana)
    (await own_log(client, block, block["items"][0], answers=[answer(block["items"][0], "Fine")])).ok()
    [response] = await responses(coach, ana)
    assert (response["formId"], response["formName"]) == (None, "Check-in")


async def test_form_can_be_sent_as_it_was_read(coach: CoachClient) -> None:
    """A null field in a response can be sent back: it means unset."""
    ana = await coach.create_customer()
    block = await block_with(coach, ana, form_of())
    again = await add(coach, block, {"type": "FORM", "form": block["items"][0]["form"]})
    first, second = block["items"][0]["form"], again["form"]
    assert (second["formId"], second["name"]) == (None, first["name"])
    assert [q["label"] for q in second["questions"]] == [q["label"] for q in first["questions"]]
    changed = {"form": {**first, "name": "Renamed"}}
    item = (await coach.patch(f"{path_of(block)}/witems/{again['_id']}", changed)).ok()
    assert item["form"]["name"] == "Renamed"


async def test_each_client_has_their_own_response_to_a_library_form(coach: CoachClient) -> None:
    form = (await coach.post("/coach/forms", {"name": "Weekly", "questions": QUESTIONS})).ok(201)
    for name in ("Ana", "Bo"):
        customer = await coach.create_customer(name)
        block = await block_with(coach, customer, {"type": "FORM", "form": {"formId": form["_id"]}})
        [item] = block["items"]
        assert [q["_id"] for q in item["form"]["questions"]] == [q["_id"] for q in form["questions"]]
        (await log(coach, block, item, answers=[answer(item, name)])).ok()
        assert [r["answers"][0]["value"] for r in await responses(coach, customer)] == [name]
