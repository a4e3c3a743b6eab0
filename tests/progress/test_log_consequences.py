"""Updates that follow from a log: metric history, form responses, the activity feed, the client's last activity."""

from __future__ import annotations

import asyncio
from typing import Any

from coaching_service.core.ids import ObjectId
from tests.support.client import MONDAY, SUNDAY, TUESDAY, UNKNOWN, CoachClient
from tests.support.training import (
    Json,
    add,
    assigned_sets,
    block_with,
    client_path,
    exercise_of,
    feed,
    feed_types,
    form_of,
    history,
    log,
    metric_set,
    metrics_of,
    move,
    one_of_each,
    own_log,
    path_of,
    read,
    responses,
    task,
)


def value_of(body: Json, value: float, at: int = 0) -> list[Json]:
    return [{"metricId": body["metrics"][at]["_id"], "value": value}]


def answer_to(item: Json, value: Any, at: int = 0) -> list[Json]:
    return [{"questionId": item["form"]["questions"][at]["_id"], "value": value}]


async def test_logged_values_are_in_the_history_on_the_date_of_the_session(coach: CoachClient) -> None:
    """Contract 7: a session counts on its block's `date`."""
    ana, body = await coach.create_customer(), await metric_set(coach)
    (await coach.post(client_path(ana, "metrics-sets"), {"metricsSetId": body["_id"]})).ok(201)
    block = await block_with(coach, ana, metrics_of(body), date="2024-02-29")
    [item] = block["items"]

    (await log(coach, block, item, values=value_of(body, 71.5))).ok()
    assert await history(coach, ana, body) == [{"date": "2024-02-29", "value": 71.5}]
    (await log(coach, block, item, values=value_of(body, 72))).ok()
    assert await history(coach, ana, body) == [{"date": "2024-02-29", "value": 72}], "a second log replaces the first"
    [tracked] = (await assigned_sets(coach, ana))[0]["metrics"]
    assert (tracked["initialValue"], tracked["currentValue"]) == (72, 72)

    (await log(coach, block, item, isCompleted=False)).ok()
    assert await history(coach, ana, body) == []
    [tracked] = (await assigned_sets(coach, ana))[0]["metrics"]
    assert (tracked["initialValue"], tracked["currentValue"]) == (None, None)


async def test_value_missing_from_a_new_log_is_deleted(coach: CoachClient) -> None:
    ana, body = await coach.create_customer(), await metric_set(coach, "Weight", "Waist")
    block = await block_with(coach, ana, metrics_of(body))
    [item] = block["items"]
    (await log(coach, block, item, values=value_of(body, 70) + value_of(body, 80, 1))).ok()

    (await log(coach, block, item, values=value_of(body, 81, 1))).ok()

    assert await history(coach, ana, body) == []
    assert await history(coach, ana, body, body["metrics"][1]) == [{"date": MONDAY, "value": 81}]


async def test_value_entered_after_a_log_remains_when_the_log_is_cleared(coach: CoachClient) -> None:
    ana, body = await coach.create_customer(), await metric_set(coach)
    path = client_path(ana, "metrics-sets")
    (await coach.post(path, {"metricsSetId": body["_id"]})).ok(201)
    block = await block_with(coach, ana, metrics_of(body))
    (await log(coach, block, block["items"][0], values=value_of(body, 70))).ok()
    (await coach.post(f"{path}/{body['_id']}/entries", value_of(body, 69)[0] | {"date": MONDAY})).ok(201)

    (await log(coach, block, block["items"][0], isCompleted=False)).ok()

    assert await history(coach, ana, body) == [{"date": MONDAY, "value": 69}]


async def test_response_has_the_text_of_the_questions_at_the_time(coach: CoachClient) -> None:
    ana = await coach.create_customer()
    form = (await coach.post("/coach/forms", {"name": "Check-in", "questions": [{"label": "Well?"}]})).ok(201)
    block = await block_with(coach, ana, {"type": "FORM", "form": {"formId": form["_id"]}}, date=TUESDAY)
    [item] = block["items"]

    (await log(coach, block, item, answers=answer_to(item, "Yes"))).ok()

    [response] = await responses(coach, ana)
    [question] = form["questions"]
    assert response == {
        "_id": response["_id"],
        "formId": form["_id"],
        "formName": "Check-in",
        "date": TUESDAY,
        "answers": [{"questionId": question["_id"], "label": "Well?", "value": "Yes"}],
        "createdAt": response["createdAt"],
        "updatedAt": response["createdAt"],
        "version": 0,
        "reviewedAt": None,
        "reviewedBy": None,
    }
    questions = [question | {"label": "Are you well?"}]
    (await coach.patch(f"/coach/forms/{form['_id']}", {"name": "Renamed", "questions": questions})).ok()
    (await coach.delete(f"/coach/forms/{form['_id']}")).ok(204)
    assert await responses(coach, ana) == [response]

    (await log(coach, block, item, answers=answer_to(item, "No"))).ok()
    [again] = await responses(coach, ana)
    assert (again["_id"], again["answers"][0]["value"]) == (response["_id"], "No")
    (await log(coach, block, item, isCompleted=False)).ok()
    assert await responses(coach, ana) == []


async def test_each_type_of_item_has_its_event_in_the_feed(coach: CoachClient) -> None:
    """Contract 7: types `workout_completed, item_logged, form_submitted, metric_recorded, ...`."""
    ana = await coach.create_customer()
    block = await block_with(coach, ana, *await one_of_each(coach))
    kinds = {"FORM": "form_submitted", "METRICS": "metric_recorded"}
    for at, item in enumerate(block["items"]):
        (await log(coach, block, item)).ok()
        newest = [event for event in await feed(coach, ana) if event["data"].get("witemId") == item["_id"]]
        assert [event["type"] for event in newest] == [kinds.get(item["type"], "item_logged")]
        about = newest[0]["data"]
        assert (about["wblockId"], about["blockName"], about["day"], about["itemType"]) == (
            *(block["_id"], "Legs", MONDAY),
            item["type"],
        )
        assert ("workout_completed" in await feed_types(coach, ana)) == (at == 5), "only when all items are completed"


async def test_feed_names_the_measured_metrics(coach: CoachClient) -> None:
    ana, body = await coach.create_customer(), await metric_set(coach)
    block = await block_with(coach, ana, metrics_of(body))
    [item] = block["items"]
    for value in (71.5, 72):
        (await log(coach, block, item, values=value_of(body, value))).ok()
    [measured] = [event["data"] for event in await feed(coach, ana) if event["type"] == "metric_recorded"]
    metric = body["metrics"][0]
    assert measured["measured"] == [
        {"metricName": metric["name"], "unit": metric["metricUnit"]["shortName"], "value": 72}
    ]


async def test_repeated_log_adds_no_second_event(coach: CoachClient) -> None:
    ana = await coach.create_customer()
    block = await block_with(coach, ana, task())
    for _ in range(3):
        (await log(coach, block, block["items"][0])).ok()
    assert await feed_types(coach, ana) == ["item_logged", "workout_completed"]


async def test_clearing_one_item_removes_the_completed_workout_from_the_feed(coach: CoachClient) -> None:
    ana = await coach.create_customer()
    block = await block_with(coach, ana, *await one_of_each(coach))
    for item in block["items"]:
        (await log(coach, block, item)).ok()
    assert await feed_types(coach, ana) == [
        "form_submitted",
        *["item_logged"] * 4,
        "metric_recorded",
        "workout_completed",
    ]

    (await log(coach, block, block["items"][3], isCompleted=False)).ok()
    assert await feed_types(coach, ana) == [*["item_logged"] * 4, "metric_recorded"]
    for item in block["items"]:
        (await log(coach, block, item, isCompleted=False)).ok()
    assert await feed_types(coach, ana) == []


async def completions(coach: CoachClient, customer: Json, block: Json) -> tuple[int, int]:
    """How many events say that a workout is completed, and how many entries of the feed."""
    where = {"companyId": coach.ctx.company_id, "customerId": ObjectId(customer["_id"])}
    events = [event for each in await coach.ctx.db["changes"].find(where).to_list(None) for event in each["events"]]
    ids = [event["data"]["wblockId"] for event in events if event["type"] == "workout.completed"]
    entries = [each for each in await feed(coach, customer) if each["type"] == "workout_completed"]
    about = [each["data"]["wblockId"] for each in entries]
    return ids.count(ObjectId(block["_id"])), about.count(block["_id"])


async def test_workout_is_completed_once_by_whatever_closes_its_last_open_item(coach: CoachClient) -> None:
    ana = await coach.create_customer()
    other = await block_with(coach, ana, task(), date=TUESDAY)
    block = await block_with(coach, ana, task(), task())
    done, last = block["items"]
    (await log(coach, block, done)).ok()
    assert await completions(coach, ana, block) == (0, 0)

    deleted = await coach.delete(f"{path_of(block)}/witems/{last['_id']}")
    assert await completions(coach, ana, block) == (1, 1)
    (await log(coach, block, done, comment="Again")).ok()
    assert await completions(coach, ana, block) == (1, 1), "it was completed before"
    (await log(coach, block, done)).ok()
    (await coach.undo(deleted)).refused(409)

    (await move(coach, other["items"][0], other, block, 0)).ok()
    assert await completions(coach, ana, block) == (1, 0), "an open item was moved in"
    (await move(coach, other["items"][0], block, other, 0)).ok()
    assert (await completions(coach, ana, block), await completions(coach, ana, other)) == ((2, 1), (0, 0))

    (await log(coach, other, other["items"][0])).ok()
    (await move(coach, other["items"][0], other, block, 0)).ok()
    assert (await completions(coach, ana, block), await completions(coach, ana, other)) == ((2, 1), (1, 0))

    withdrawn = await log(coach, block, done, isCompleted=False)
    assert await completions(coach, ana, block) == (2, 0)
    (await coach.undo(withdrawn)).ok()
    assert await completions(coach, ana, block) == (3, 1)
    completed_at = next(each["date"] for each in await feed(coach, ana) if each["type"] == "workout_completed")

    added = await coach.post(f"{path_of(block)}/witems", task())
    assert await completions(coach, ana, block) == (3, 0)
    (await coach.undo(added)).ok()
    assert await completions(coach, ana, block) == (4, 1)
    assert completed_at == next(each["date"] for each in await feed(coach, ana) if each["type"] == "workout_completed")

    removed = await coach.delete(path_of(block))
    assert await completions(coach, ana, block) == (4, 0)
    assert await feed_types(coach, ana) == [], "the logs of what is gone are gone too"
    (await coach.undo(removed)).ok()
    assert await completions(coach, ana, block) == (5, 1)
    assert await feed_types(coach, ana) == ["item_logged", "item_logged", "workout_completed"]


async def test_entries_of_the_feed_follow_what_is_moved_or_renamed(coach: CoachClient) -> None:
    """By whatever operation, and its undo: those of a completed workout, and those of its items."""
    ana, body = await coach.create_customer(), await metric_set(coach)
    block = await block_with(coach, ana, task(), metrics_of(body), form_of())
    other = await block_with(coach, ana, task(), date=SUNDAY, name="Arms")
    for item in block["items"]:
        (await log(coach, block, item)).ok()

    async def about(*names: str) -> set[tuple[str, ...]]:
        kinds = {"workout_completed", "item_logged", "form_submitted", "metric_recorded"}
        entries = await feed(coach, ana)
        assert {each["type"] for each in entries} == kinds
        return {tuple(each["data"][name] for name in names) for each in entries}

    dates = [each["date"] for each in await feed(coach, ana)]
    assert await about("day", "blockName") == {(MONDAY, "Legs")}
    moved = await coach.patch(path_of(block), {"date": TUESDAY})
    assert await about("day", "blockName") == {(TUESDAY, "Legs")}
    (await coach.undo(moved)).ok()
    assert await about("day", "blockName") == {(MONDAY, "Legs")}
    (await coach.patch(path_of(block), {"date": TUESDAY, "name": "Squats"})).ok()
    assert await about("day", "blockName") == {(TUESDAY, "Squats")}
    assert dates == [each["date"] for each in await feed(coach, ana)], "not when it was done"

    (await move(coach, block["items"][1], block, other, 0)).ok()
    assert await about("day", "blockName", "wblockId") == {
        (TUESDAY, "Squats", block["_id"]),
        (SUNDAY, "Arms", other["_id"]),
    }
    measured = [each["data"]["wblockId"] for each in await feed(coach, ana) if each["type"] == "metric_recorded"]
    assert measured == [other["_id"]]


async def test_completion_is_taken_back_with_the_last_done_item(coach: CoachClient) -> None:
    ana = await coach.create_customer()
    block = await block_with(coach, ana, task())
    [done] = block["items"]
    (await log(coach, block, done)).ok()
    added = await add(coach, block, task())
    (await coach.delete(f"{path_of(block)}/witems/{done['_id']}")).ok(204)
    assert (await completions(coach, ana, block), await feed_types(coach, ana)) == ((1, 0), [])
    (await log(coach, block, added)).ok()
    assert await completions(coach, ana, block) == (2, 1)


async def test_last_activity_is_that_of_the_client_not_of_a_coach(coach: CoachClient) -> None:
    """Contract 4: `lastActivityDate` is the time of the client's own latest action; what a coach logs never changes it.

    Contract 1: fields the service derives (`lastActivityDate`, ...) change neither `version` nor `updatedAt`.
    """
    ana = await coach.create_customer()
    block = await block_with(coach, ana, task(), task())
    first, second = block["items"]
    owner = await coach.interactive()
    tokens = (await owner.post(client_path(ana, "impersonate"))).ok()
    impersonated = coach.with_bearer(tokens["accessToken"])
    (await log(coach, block, first)).ok()
    (await coach.put(f"{path_of(block)}/log", {"sessionRpe": 5})).ok()
    (await own_log(impersonated, block, first)).ok()
    before = (await coach.get(client_path(ana))).ok()
    assert before["lastActivityDate"] is None

    client = await coach.as_client(ana)
    (await own_log(client, block, second)).ok()
    after = (await coach.get(client_path(ana))).ok()
    assert after["lastActivityDate"] > before["createdAt"]
    assert (after["version"], after["updatedAt"]) == (before["version"], before["updatedAt"])

    (await log(coach, block, first)).ok()
    assert (await coach.get(client_path(ana))).ok()["lastActivityDate"] == after["lastActivityDate"]
    (await client.put(f"/customer/wblocks/{block['_id']}/log", {"sessionRpe": 5})).ok()
    assert (await coach.get(client_path(ana))).ok()["lastActivityDate"] > after["lastActivityDate"]


REJECTED_LOGS: list[tuple[str, Json, int]] = [
    ("FORM", {"answers": [{"questionId": UNKNOWN, "value": "x"}]}, 404),
    ("FORM", {"answers": [{"questionId": "malformed", "value": "x"}]}, 400),
    ("FORM", {"answers": [{"value": "x"}]}, 400),
    ("METRICS", {"values": [{"metricId": UNKNOWN, "value": 1}]}, 404),
    ("METRICS", {"values": [{"metricId": "malformed", "value": 1}]}, 400),
    ("METRICS", {"values": [{"metricId": UNKNOWN, "value": "1"}]}, 400),
    ("METRICS", {"values": [{"metricId": UNKNOWN}]}, 400),
    ("CIRCUIT", {"customerSets": [{"exerciseId": UNKNOWN, "load": 5}]}, 400),
]


async def test_rejected_log_stores_nothing(coach: CoachClient) -> None:
    ana = await coach.create_customer()
    block = await block_with(coach, ana, *await one_of_each(coach))
    items = {item["type"]: item for item in block["items"]}

    for kind, done, status in REJECTED_LOGS:
        (await log(coach, block, items[kind], **done)).refused(status)
        assert await read(coach, block) == block, done

    assert (await feed_types(coach, ana), await responses(coach, ana)) == ([], [])
    assert (await coach.get(client_path(ana))).ok()["lastActivityDate"] is None


async def test_log_with_one_invalid_value_stores_no_value(coach: CoachClient) -> None:
    ana, body, other = await coach.create_customer(), await metric_set(coach), await metric_set(coach)
    block = await block_with(coach, ana, metrics_of(body))
    [item] = block["items"]

    (await log(coach, block, item, values=value_of(body, 70) + value_of(other, 1))).refused(404, "Metric")
    twice = (await log(coach, block, item, values=value_of(body, 70) + value_of(body, 71))).refused(400)

    assert twice["message"] == ["values must name each metric only once"]
    assert await history(coach, ana, body) == []
    assert await read(coach, block) == block


async def test_logged_load_locks_the_load_unit_of_the_company(coach: CoachClient) -> None:
    """Contract 2: `loadUnit` (409 once any load is stored)."""
    ana, squat = await coach.create_customer(), await coach.create_exercise()
    block = await block_with(coach, ana, exercise_of(squat, {"type": "reps", "minPlannedReps": 5}))
    (await log(coach, block, block["items"][0], customerSets=[{"reps": 5, "rpe": 11, "load": 50}])).refused(400)
    (await coach.patch("/coach/account", {"loadUnit": "lb"})).ok()
    (await log(coach, block, block["items"][0], customerSets=[{"reps": 5, "load": 50}])).ok()
    (await coach.patch("/coach/account", {"loadUnit": "kg"})).refused(409)


async def test_concurrent_logs_of_the_last_items_complete_the_workout(coach: CoachClient) -> None:
    ana = await coach.create_customer()
    for name in "abcd":
        block = await block_with(coach, ana, task(), task(), task(), name=name)
        await asyncio.gather(*(log(coach, block, item) for item in block["items"]))
    assert (await feed_types(coach, ana)).count("workout_completed") == 4


async def test_results_move_with_their_session_to_another_date(coach: CoachClient) -> None:
    """Contract 7: a session counts on its block's `date`, not on the time of the log."""
    ana, body = await coach.create_customer(), await metric_set(coach)
    block = await block_with(coach, ana, metrics_of(body), form_of())
    metrics, form = block["items"]
    (await log(coach, block, metrics, values=value_of(body, 70))).ok()
    (await log(coach, block, form, answers=answer_to(form, "Fine"))).ok()

    (await coach.patch(path_of(block), {"date": TUESDAY})).ok()
    assert await history(coach, ana, body) == [{"date": TUESDAY, "value": 70}]
    assert [response["date"] for response in await responses(coach, ana)] == [TUESDAY]

    later = await block_with(coach, ana, date="2026-03-05")
    for item in block["items"]:
        (await move(coach, item, block, later, 0)).ok()
    assert await history(coach, ana, body) == [{"date": "2026-03-05", "value": 70}]
    assert [response["date"] for response in await responses(coach, ana)] == ["2026-03-05"]


async def test_results_remain_when_the_block_is_deleted(coach: CoachClient) -> None:
    ana, body = await coach.create_customer(), await metric_set(coach)
    block = await block_with(coach, ana, metrics_of(body))
    form = await add(coach, block, form_of())
    (await log(coach, block, block["items"][0], values=value_of(body, 70))).ok()
    (await log(coach, block, form, answers=answer_to(form, "Fine"))).ok()
    (await coach.delete(path_of(block))).ok(204)
    assert await history(coach, ana, body) == [{"date": MONDAY, "value": 70}]
    assert len(await responses(coach, ana)) == 1
