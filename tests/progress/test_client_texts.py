"""A client's own words in a log are never changed by a coach: contract, section 12."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.client import CoachClient
from tests.support.training import (
    Json,
    block_with,
    client_path,
    exercise_of,
    form_of,
    log,
    own_log,
    path_of,
    read,
    responses,
    task,
)

COMMENT = "My knee hurt"


async def refuse(coach: CoachClient, block: Json, item: Json, **done: Any) -> None:
    before = await read(coach, block)
    assert (await log(coach, block, item, **done)).refused(409)["code"] == "CLIENT_TEXT"
    assert await read(coach, block) == before, "nothing is written"


@pytest.mark.parametrize("sent", [{}, {"comment": None}, {"comment": ""}, {"comment": COMMENT}])
@pytest.mark.parametrize("is_completed", [True, False])
async def test_log_of_a_coach_keeps_the_comment_of_the_client(
    coach: CoachClient, sent: Json, is_completed: bool
) -> None:
    ana, squat = await coach.create_customer(), await coach.create_exercise()
    block = await block_with(coach, ana, exercise_of(squat))
    [item], client = block["items"], await coach.as_client(ana)
    (await own_log(client, block, item, comment=COMMENT, customerSets=[{"index": 1, "reps": 8}])).ok()

    logged = (
        await log(coach, block, item, isCompleted=is_completed, customerSets=[{"index": 1, "reps": 9}], **sent)
    ).ok()

    assert (logged["comment"], logged["customerSets"][0]["reps"]) == (COMMENT, 9)
    assert logged["isCompleted"] is is_completed
    assert "clientTexts" not in str(await read(coach, block))
    await refuse(coach, block, item, comment="It did not")
    assert (await own_log(client, block, item, comment="Better")).ok()["comment"] == "Better"
    await refuse(coach, block, item, comment=COMMENT)
    assert (await own_log(client, block, item)).ok()["comment"] is None
    assert (await log(coach, block, item, comment="Mine now")).ok()["comment"] == "Mine now"


async def test_comment_of_a_coach_is_replaced_as_before(coach: CoachClient) -> None:
    ana = await coach.create_customer()
    block = await block_with(coach, ana, task())
    [item], client = block["items"], await coach.as_client(ana)
    (await log(coach, block, item, comment="Slowly")).ok()
    assert (await log(coach, block, item, comment="Fast")).ok()["comment"] == "Fast"
    assert (await own_log(client, block, item, comment="Fast")).ok()["comment"] == "Fast"
    assert (await log(coach, block, item, comment="Slower")).ok()["comment"] == "Slower", "sent back, not written"
    assert (await log(coach, block, item)).ok()["comment"] is None
    (await own_log(client, block, item, comment=COMMENT)).ok()
    (await own_log(client, block, item, comment=COMMENT)).ok()
    await refuse(coach, block, item, comment="x")


async def test_words_written_while_impersonating_are_not_those_of_the_client(
    coach: CoachClient, interactive: CoachClient
) -> None:
    ana = await coach.create_customer()
    block = await block_with(coach, ana, task(), task("Run"))
    first, second = block["items"]
    client = await coach.as_client(ana)
    impersonation = coach.with_bearer((await interactive.post(client_path(ana, "impersonate"))).ok()["accessToken"])
    (await own_log(impersonation, block, first, comment="As Ana")).ok()
    (await log(coach, block, first, comment="As the coach")).ok()
    (await own_log(client, block, second, comment=COMMENT)).ok()
    assert (await own_log(impersonation, block, second, comment="x")).refused(409)["code"] == "CLIENT_TEXT"
    assert (await own_log(impersonation, block, second)).ok()["comment"] == COMMENT


async def test_text_answers_of_the_client_are_kept(coach: CoachClient) -> None:
    ana = await coach.create_customer()
    block = await block_with(
        coach,
        ana,
        form_of(
            {"label": "How was it?", "type": "text", "required": True},
            {"label": "Energy?", "type": "rating"},
            {"label": "Anything else?", "type": "text"},
        ),
    )
    [item], client = block["items"], await coach.as_client(ana)
    text, rating, other = (question["_id"] for question in item["form"]["questions"])
    words = {"questionId": text, "value": "Hard"}
    (await own_log(client, block, item, answers=[words, {"questionId": rating, "value": 3}])).ok()

    answer_lists = [
        (await log(coach, block, item, answers=answers)).ok()["answers"]
        for answers in (
            [{"questionId": rating, "value": 9}],
            [{"questionId": text, "value": None}, {"questionId": rating, "value": 9}],
            [words, {"questionId": rating, "value": 9}],
        )
    ]

    for answers in answer_lists:
        assert {answer["questionId"]: answer["value"] for answer in answers} == {text: "Hard", rating: 9}
    for changed in ("Easy", 5):
        await refuse(coach, block, item, answers=[{"questionId": text, "value": changed}])
    (await log(coach, block, item, answers=[{"questionId": other, "value": "By phone"}])).ok()
    (await log(coach, block, item, answers=[{"questionId": other, "value": "By mail"}])).ok()
    (await log(coach, block, item, isCompleted=False)).ok()
    assert [answer["value"] for answer in (await read(coach, block))["items"][0]["answers"]] == ["Hard"]
    (await log(coach, block, item)).ok()
    [response] = await responses(coach, ana)
    assert [answer["value"] for answer in response["answers"] if answer["value"] is not None] == ["Hard"]


@pytest.mark.parametrize("sent", [{}, {"comment": None}, {"comment": COMMENT}])
async def test_session_comment_of_the_client_is_kept(coach: CoachClient, sent: Json) -> None:
    ana = await coach.create_customer()
    block, client = await block_with(coach, ana, task()), await coach.as_client(ana)
    path = f"{path_of(block)}/log"
    own_path = f"/customer/wblocks/{block['_id']}/log"
    (await client.put(own_path, {"comment": COMMENT, "sessionRpe": 5})).ok()

    logged = (await coach.put(path, {"durationMinutes": 40, **sent})).ok()

    assert (logged["comment"], logged["durationMinutes"], logged["sessionRpe"]) == (COMMENT, 40, None)
    assert (await coach.put(path, {"comment": "x"})).refused(409)["code"] == "CLIENT_TEXT"
    assert await read(coach, block) == logged
    assert (await client.put(own_path, {"comment": None})).ok()["comment"] is None
    assert (await coach.put(path, {"comment": "x"})).ok()["comment"] == "x"
    assert (await coach.put(path, {})).ok()["comment"] is None


async def test_copy_of_a_logged_workout_has_no_words_of_the_client(coach: CoachClient) -> None:
    ana = await coach.create_customer()
    block, client = await block_with(coach, ana, task()), await coach.as_client(ana)
    (await own_log(client, block, block["items"][0], comment=COMMENT)).ok()
    copied = (await coach.post(f"{path_of(block)}/copy", {"date": "2026-03-09"})).ok(201)
    assert copied["items"][0]["comment"] is None
    (await log(coach, copied, copied["items"][0], comment="x")).ok()
