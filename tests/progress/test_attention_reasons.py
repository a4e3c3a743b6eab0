"""Each reason for attention (contract 11): a story in which it appears, counts and disappears."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from coaching_service.people.customers.models import WEIGHTS
from coaching_service.progress import form_responses
from tests.support.attention import (
    FORM,
    count_of,
    days_ago,
    dismiss,
    entry_of,
    names,
    reason_of,
    renew,
    set_stored,
    start_of,
)
from tests.support.client import CoachClient
from tests.support.results import clear_log, train
from tests.support.training import Json, block_with, client_path, log, own_log, path_of, responses, task


async def test_health_note(coach: CoachClient) -> None:
    ana = await coach.create_customer()
    path = client_path(ana, "notes")
    (await coach.post(path, {"content": "Likes rowing"})).ok(201)
    assert await count_of(coach, ana, "health_note") == 0
    knee = (await coach.post(path, {"content": "Knee pain", "isHealth": True})).ok(201)
    back = (await coach.post(path, {"content": "Back pain", "isHealth": True})).ok(201)
    reason = {"type": "health_note", "since": back["createdAt"], "count": 2, "quote": "Back pain"}
    assert await reason_of(coach, ana, "health_note") == reason
    (await coach.patch(f"{path}/{knee['_id']}", {"isHealth": False})).ok()
    assert await count_of(coach, ana, "health_note") == 1
    (await coach.delete(f"{path}/{back['_id']}")).ok(204)
    assert await count_of(coach, ana, "health_note") == 0


async def test_erasure_requested(coach: CoachClient) -> None:
    """Until the client is deleted, or the reason is dismissed; a coach who impersonates the client cannot ask."""
    ana, bo = await coach.create_customer("Ana"), await coach.create_customer("Bo")
    client = await coach.as_client(ana)
    assert await count_of(coach, ana, "erasure_requested") == 0
    first = (await client.post("/customer/me/erasure-request")).ok()
    assert (await client.post("/customer/me/erasure-request")).ok() == first
    reason = {"type": "erasure_requested", "since": first["erasureRequestedAt"], "count": 1, "quote": None}
    assert await reason_of(coach, ana, "erasure_requested") == reason
    assert await names(coach, reason="erasure_requested") == ["Ana"]
    await dismiss(coach, ana, "erasure_requested")
    assert await count_of(coach, ana, "erasure_requested") == 0

    other = await coach.as_client(bo)
    (await other.post("/customer/me/erasure-request")).ok()
    assert await count_of(coach, bo, "erasure_requested") == 1
    (await coach.delete(client_path(bo))).ok(204)
    await renew(coach)
    assert await names(coach, reason="erasure_requested") == []


async def test_unread_message(coach: CoachClient) -> None:
    ana = await coach.create_customer()
    client = await coach.as_client(ana)
    (await coach.post(client_path(ana, "messages"), {"text": "How are you?"})).ok(201)
    assert await count_of(coach, ana, "unread_message") == 0
    first = (await client.post("/customer/messages", {"text": "Fine"})).ok(201)
    second = (await client.post("/customer/messages", {"text": "And you?"})).ok(201)
    reason = {"type": "unread_message", "since": second["createdAt"], "count": 2, "quote": "And you?"}
    assert await reason_of(coach, ana, "unread_message") == reason
    (await client.delete(f"/customer/messages/{second['_id']}")).ok(204)
    reason = {"type": "unread_message", "since": first["createdAt"], "count": 1, "quote": "Fine"}
    assert await reason_of(coach, ana, "unread_message") == reason
    (await coach.put(client_path(ana, "messages", "read"))).ok()
    assert await count_of(coach, ana, "unread_message") == 0


async def test_check_in_to_review(coach: CoachClient) -> None:
    ana = await coach.create_customer()
    client, today = await coach.as_client(ana), days_ago(coach, 0)
    block = await block_with(coach, ana, FORM, FORM, date=today)
    assert await count_of(coach, ana, "check_in_to_review") == 0
    for item in block["items"]:
        answers = [{"questionId": item["form"]["questions"][0]["_id"], "value": 7}]
        (await own_log(client, block, item, isCompleted=True, answers=answers)).ok()
    newest = max(response["updatedAt"] for response in await responses(coach, ana))
    quote = "Check-in: Hours of sleep? 7"
    reason = {"type": "check_in_to_review", "since": newest, "count": 2, "quote": quote}
    assert await reason_of(coach, ana, "check_in_to_review") == reason
    for remaining, response in zip((1, 0), await responses(coach, ana), strict=True):
        (await coach.put(f"/coach/form-responses/{response['_id']}/reviewed", {"reviewed": True})).ok()
        assert await count_of(coach, ana, "check_in_to_review") == remaining


async def test_check_in_overdue(coach: CoachClient) -> None:
    """Forms of the 14 days before the client's today."""
    zone = "Pacific/Kiritimati"
    ana = await coach.create_customer(timezone=zone)
    blocks = [await block_with(coach, ana, FORM, date=days_ago(coach, days, zone)) for days in (15, 14, 1, 0, -1)]
    quote = f"Check-in of {days_ago(coach, 1, zone)}"
    reason = {"type": "check_in_overdue", "since": start_of(days_ago(coach, 14, zone), zone), "count": 2}
    reason["quote"] = quote
    assert await reason_of(coach, ana, "check_in_overdue") == reason
    (await log(coach, blocks[1], blocks[1]["items"][0], isCompleted=True, answers=[])).ok()
    reason = {"type": "check_in_overdue", "since": start_of(days_ago(coach, 1, zone), zone), "count": 1, "quote": quote}
    assert await reason_of(coach, ana, "check_in_overdue") == reason, "`since` is the first that is counted"
    (await coach.delete(path_of(blocks[2]))).ok(204)
    assert await count_of(coach, ana, "check_in_overdue") == 0


async def test_overdue_check_in_quotes_the_latest_form(coach: CoachClient, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also if there are more forms without an answer than are read for a list."""
    monkeypatch.setattr(form_responses, "_MOST_OVERDUE", 1)
    ana = await coach.create_customer()
    for days in (3, 1, 2):
        await block_with(coach, ana, FORM, date=days_ago(coach, days))
    reason = await reason_of(coach, ana, "check_in_overdue")
    assert reason is not None and (reason["count"], reason["quote"]) == (3, f"Check-in of {days_ago(coach, 1)}")


async def test_missed_workout(coach: CoachClient) -> None:
    """The same days count as in the compliance rate of 7 days; at most three of them add to the score."""
    ana = await coach.create_customer()
    blocks = {days: await block_with(coach, ana, task(), date=days_ago(coach, days)) for days in (7, 6, 5, 4, 3, 0)}
    await coach.schedule(ana, days_ago(coach, 2), "Empty")
    quote = ", ".join(f"Legs of {days_ago(coach, days)}" for days in (3, 4, 5, 6))
    reason = {"type": "missed_workout", "since": start_of(days_ago(coach, 6)), "count": 4, "quote": quote}
    assert await reason_of(coach, ana, "missed_workout") == reason, "the workout a week ago is not counted"
    done = blocks[4]
    (await log(coach, done, done["items"][0])).ok()
    quote = ", ".join(f"Legs of {days_ago(coach, days)}" for days in (3, 5, 6))
    reason = {"type": "missed_workout", "since": start_of(days_ago(coach, 6)), "count": 3, "quote": quote}
    assert await reason_of(coach, ana, "missed_workout") == reason, "the first that is counted, of whichever run"
    assert (await entry_of(coach, ana))["score"] == 60 + 15
    for days in (6, 3):
        (await log(coach, blocks[days], blocks[days]["items"][0])).ok()
    assert await count_of(coach, ana, "missed_workout") == 1
    (await coach.delete(path_of(blocks[5]))).ok(204)
    assert await count_of(coach, ana, "missed_workout") == 0


async def test_inactive(coach: CoachClient) -> None:
    """Who has not trained in the last days, or if never: was created before them."""
    ana, squat = await coach.create_customer(), await coach.create_exercise()
    assert await count_of(coach, ana, "inactive") == 0, "a new client"
    created = datetime.combine(coach.ctx.caller.today() - timedelta(days=7), datetime.min.time())
    await set_stored(coach, ana, createdAt=created)
    reason = {"type": "inactive", "since": start_of(days_ago(coach, 7)), "count": 1, "quote": "No session yet"}
    assert await reason_of(coach, ana, "inactive") == reason
    block = await train(coach, ana, squat, (5, 100), date=days_ago(coach, 6))
    assert await count_of(coach, ana, "inactive") == 0
    await clear_log(coach, block)
    assert await count_of(coach, ana, "inactive") == 1
    await train(coach, ana, squat, (5, 100), date=days_ago(coach, 30))
    quote = f"Last session on {days_ago(coach, 30)}"
    reason = {"type": "inactive", "since": start_of(days_ago(coach, 30)), "count": 1, "quote": quote}
    assert await reason_of(coach, ana, "inactive") == reason


async def test_low_compliance(coach: CoachClient) -> None:
    ana = await coach.create_customer()
    blocks = [await block_with(coach, ana, task(), date=days_ago(coach, days)) for days in (10, 11, 12, 13, 14)]
    quote = "0 % of the workout days of the last 30 days"
    reason = {"type": "low_compliance", "since": start_of(days_ago(coach, 0)), "count": 1, "quote": quote}
    assert await reason_of(coach, ana, "low_compliance") == reason
    for block, count in zip(blocks[:3], (1, 1, 0), strict=True):
        (await log(coach, block, block["items"][0])).ok()
        assert await count_of(coach, ana, "low_compliance") == count, "60 percent is not below 60"
    await clear_log(coach, blocks[0])
    assert await count_of(coach, ana, "low_compliance") == 1
    for block in blocks[3:]:
        (await coach.delete(path_of(block))).ok(204)
    assert await count_of(coach, ana, "low_compliance") == 0


async def test_nothing_scheduled(coach: CoachClient) -> None:
    """From today to three days ahead; a day of rest and an empty block are not workouts."""
    ana = await coach.create_customer()
    reason = {"type": "nothing_scheduled", "since": start_of(days_ago(coach, 0)), "count": 1}
    reason["quote"] = "Nothing was ever scheduled"
    assert await reason_of(coach, ana, "nothing_scheduled") == reason
    await block_with(coach, ana, task(), date=days_ago(coach, 1))
    rest = await block_with(coach, ana, task(), date=days_ago(coach, 0))
    (await coach.patch(path_of(rest), {"isRest": True})).ok()
    await coach.schedule(ana, days_ago(coach, 0), "Empty")
    later = await block_with(coach, ana, task(), date=days_ago(coach, -4))
    assert await count_of(coach, ana, "nothing_scheduled") == 1
    (await coach.patch(path_of(later), {"date": days_ago(coach, -3)})).ok()
    assert await count_of(coach, ana, "nothing_scheduled") == 0
    (await coach.delete(path_of(later))).ok(204)
    reason["quote"] = f"Last scheduled on {days_ago(coach, 0)}"
    assert await reason_of(coach, ana, "nothing_scheduled") == reason


async def test_program_ending(coach: CoachClient) -> None:
    """The last of the assigned programs ends within 7 days, wherever its blocks have been moved."""
    ana = await coach.create_customer()
    program = (await coach.post("/coach/programs", {"name": "Base"})).ok(201)
    await coach.post(f"/coach/programs/{program['_id']}/wblocks", {"name": "A", "day": 1})
    await coach.post(f"/coach/programs/{program['_id']}/wblocks", {"name": "B", "day": 3})

    async def assign(start: str) -> Json:
        body = {"customerId": ana["_id"], "startDate": start}
        assigned: Json = (await coach.post(f"/coach/programs/{program['_id']}/assign", body)).ok(201)
        return assigned

    assert await count_of(coach, ana, "program_ending") == 0
    first = await assign(days_ago(coach, -5))
    quote = f"Ends on {days_ago(coach, -7)}"
    reason = {"type": "program_ending", "since": start_of(days_ago(coach, 0)), "count": 1, "quote": quote}
    assert await reason_of(coach, ana, "program_ending") == reason
    [_, last] = await coach.calendar(ana, days_ago(coach, 0), days_ago(coach, -9))
    (await coach.patch(path_of(last), {"date": days_ago(coach, -8)})).ok()
    assert await count_of(coach, ana, "program_ending") == 0
    (await coach.patch(path_of(last), {"date": days_ago(coach, 0)})).ok()
    assert await count_of(coach, ana, "program_ending") == 1
    second = await assign(days_ago(coach, -10))
    assert await count_of(coach, ana, "program_ending") == 0, "another program follows"
    (await coach.post(client_path(ana, "programs", second["assignmentId"], "end"), {"removeUpcoming": True})).ok()
    assert await count_of(coach, ana, "program_ending") == 1
    (await coach.post(client_path(ana, "programs", first["assignmentId"], "end"), {"removeUpcoming": False})).ok()
    assert await count_of(coach, ana, "program_ending") == 0


async def test_program_ends_on_the_last_day_in_the_time_zone_of_the_company(coach: CoachClient) -> None:
    """A week before that day begins on the day before in UTC."""
    zone = "Pacific/Kiritimati"
    (await coach.patch("/coach/account", {"timezone": zone})).ok()
    ana = await coach.create_customer()
    program = (await coach.post("/coach/programs", {"name": "Base"})).ok(201)
    await coach.post(f"/coach/programs/{program['_id']}/wblocks", {"name": "A", "day": 1})
    body = {"customerId": ana["_id"], "startDate": days_ago(coach, -5, zone)}
    (await coach.post(f"/coach/programs/{program['_id']}/assign", body)).ok(201)
    reason = await reason_of(coach, ana, "program_ending")
    assert reason is not None and reason["quote"] == f"Ends on {days_ago(coach, -5, zone)}"


async def test_personal_record(coach: CoachClient) -> None:
    ana, squat = await coach.create_customer(), await coach.create_exercise()
    path = client_path(ana, "personal-records")
    record = {"exerciseId": squat["_id"], "type": "heaviest_load", "value": 100, "reps": 1}
    (await coach.post(path, {**record, "date": days_ago(coach, 7)})).ok(201)
    assert await count_of(coach, ana, "personal_record") == 0
    entered = (await coach.post(path, {**record, "date": days_ago(coach, 6)})).ok(201)
    quote = "Squat: heaviest load 100 kg"
    reason = {"type": "personal_record", "since": start_of(days_ago(coach, 6)), "count": 1, "quote": quote}
    assert await reason_of(coach, ana, "personal_record") == reason
    await train(coach, ana, squat, (5, 90), date=days_ago(coach, 30))
    block = await train(coach, ana, squat, (6, 120), date=days_ago(coach, 0))
    quote = "Squat: estimated 1RM 144 kg"
    reason = {"type": "personal_record", "since": start_of(days_ago(coach, 0)), "count": 4, "quote": quote}
    assert await reason_of(coach, ana, "personal_record") == reason, "heaviest load, repetitions, estimated maximum"
    await clear_log(coach, block)
    assert await count_of(coach, ana, "personal_record") == 1
    (await coach.delete(f"{path}/{entered['_id']}")).ok(204)
    assert await count_of(coach, ana, "personal_record") == 0


async def test_exercise_done_for_the_first_time_is_no_personal_record(coach: CoachClient) -> None:
    """A second workout of the same day improves nothing that was done before; an earlier session that is added does."""
    ana, squat, row = await coach.create_customer(), await coach.create_exercise(), await coach.create_exercise("Row")
    await train(coach, ana, squat, (5, 100), date=days_ago(coach, 1))
    await train(coach, ana, row, (8, 40), date=days_ago(coach, 0))
    await train(coach, ana, row, (9, 50), date=days_ago(coach, 0))
    assert await count_of(coach, ana, "personal_record") == 0
    await train(coach, ana, squat, (4, 110), date=days_ago(coach, 0))
    assert await count_of(coach, ana, "personal_record") == 2, "heaviest load and estimated maximum, not repetitions"
    await train(coach, ana, row, (7, 30), date=days_ago(coach, 20))
    assert await count_of(coach, ana, "personal_record") == 5


def test_pain_and_unread_messages_outrank_all_that_is_below_them() -> None:
    """Contract 11, by hand; missed workouts count up to three times."""
    assert WEIGHTS == {
        "health_note": 400,
        "erasure_requested": 400,
        "unread_message": 200,
        "check_in_to_review": 30,
        "check_in_overdue": 20,
        "missed_workout": 20,
        "inactive": 20,
        "low_compliance": 15,
        "nothing_scheduled": 15,
        "program_ending": 10,
        "returning": 10,
        "personal_record": 5,
        "unavailable": 0,
    }
    below = sum(weight for weight in WEIGHTS.values() if weight < 200) + 2 * WEIGHTS["missed_workout"]
    assert below < WEIGHTS["unread_message"]
    assert below + WEIGHTS["unread_message"] < WEIGHTS["health_note"]
