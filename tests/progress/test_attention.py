"""Which clients need attention (contract 11): for each reason a story in which it appears, counts and disappears."""

from __future__ import annotations

from collections import Counter
from datetime import date, datetime, timedelta
from typing import Any

import pytest

from coaching_service import features
from coaching_service.core.database.transactions import in_transaction
from coaching_service.core.dates import midnight
from coaching_service.core.ids import ObjectId
from coaching_service.core.jobs.queue import Job, RunAgain, run_due
from coaching_service.progress.attention.reasons import WEIGHTS
from coaching_service.progress.attention.renewal import MARK_ALL_DUE, renew_batch
from coaching_service.progress.attention.service import store_figures
from coaching_service.progress.compliance.models import ClientTimezone
from tests.contract.test_queries import assert_efficient, profiling
from tests.support.client import UNKNOWN, CoachClient
from tests.support.results import clear_log, train
from tests.support.service_process import until
from tests.support.training import Json, block_with, client_path, employee_key, log, own_log, path_of, responses, task

ATTENTION = "/coach/attention"
JOB = Job(ObjectId(), {}, 1)
QUESTION: Json = {"label": "Hours of sleep?", "type": "number"}
FORM: Json = {"type": "FORM", "form": {"name": "Check-in", "questions": [QUESTION]}}


async def renew(coach: CoachClient) -> None:
    """Run the jobs that are due: figures are renewed within ten seconds. The application runs them as well."""

    async def all_are_marked() -> bool:
        await run_due(coach.ctx.services, {MARK_ALL_DUE: features.STEPS[MARK_ALL_DUE]})
        where = {"companyId": coach.ctx.company_id, "kind": MARK_ALL_DUE}
        return await coach.ctx.db["jobs"].find_one(where) is None

    await until(all_are_marked, "all clients are marked as due")
    while await renew_batch(coach.ctx.services, JOB) == RunAgain():
        pass


async def docs(coach: CoachClient, **query: Any) -> list[Json]:
    """The first part of the attention list, once it is renewed."""
    await renew(coach)
    result: list[Json] = (await coach.get(ATTENTION, **query)).ok()["docs"]
    return result


async def names(coach: CoachClient, **query: Any) -> list[str]:
    """The names of the first part of the attention list."""
    return [each["customer"]["name"] for each in await docs(coach, **query)]


async def entry_of(coach: CoachClient, customer: Json) -> Json:
    """The entry of a client; without a reason, one with the score 0."""
    listed = await docs(coach)
    of_client = [each for each in listed if each["customer"]["_id"] == customer["_id"]]
    return of_client[0] if of_client else {"score": 0, "reasons": []}


async def reason_of(coach: CoachClient, customer: Json, reason: str) -> Json | None:
    """A reason of a client, if the client has it; checks that the score is the sum of the weights."""
    entry = await entry_of(coach, customer)
    weights = [
        WEIGHTS[each["type"]] * (min(each["count"], 3) if each["type"] == "missed_workout" else 1)
        for each in entry["reasons"]
    ]
    assert entry["score"] == sum(weights)
    of_type = [each for each in entry["reasons"] if each["type"] == reason]
    return of_type[0] if of_type else None


async def count_of(coach: CoachClient, customer: Json, reason: str) -> int:
    """The count of a reason of a client; 0 if the client does not have it."""
    listed = await reason_of(coach, customer, reason)
    return listed["count"] if listed else 0


async def dismiss(coach: CoachClient, customer: Json, reason: str, until: str | None = None) -> Json:
    """Dismiss a reason."""
    result: Json = (await coach.put(f"{ATTENTION}/{customer['_id']}", {"reason": reason, "until": until})).ok()
    return result


async def set_stored(coach: CoachClient, customer: Json, **fields: Any) -> None:
    """Set stored fields of a client, as if time had passed, and have the figures renewed."""
    change = {"$set": {"figuresUntil": datetime(2000, 1, 1), **fields}}  # noqa: DTZ001 - as it is stored
    await coach.ctx.db["customers"].update_one({"_id": ObjectId(customer["_id"])}, change)


def days_ago(coach: CoachClient, days: int, timezone: str | None = None) -> str:
    """The local date so many days before today; negative days are in the future."""
    return str(coach.ctx.caller.today(timezone) - timedelta(days=days))


def start_of(day: str, timezone: str = "UTC") -> str:
    """The time at which a day begins, as it is sent."""
    return midnight(date.fromisoformat(day), timezone).isoformat(timespec="milliseconds") + "Z"


# --- one story for each reason ---------------------------------------------------------------------------------------


async def test_health_note(coach: CoachClient) -> None:
    ana = await coach.create_customer()
    path = client_path(ana, "notes")
    (await coach.post(path, {"content": "Likes rowing"})).ok(201)
    assert await count_of(coach, ana, "health_note") == 0
    knee = (await coach.post(path, {"content": "Knee pain", "isHealth": True})).ok(201)
    back = (await coach.post(path, {"content": "Back pain", "isHealth": True})).ok(201)
    reason = {"type": "health_note", "since": back["createdAt"], "count": 2}
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
    reason = {"type": "erasure_requested", "since": first["erasureRequestedAt"], "count": 1}
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
    reason = {"type": "unread_message", "since": second["createdAt"], "count": 2}
    assert await reason_of(coach, ana, "unread_message") == reason
    (await client.delete(f"/customer/messages/{second['_id']}")).ok(204)
    reason = {"type": "unread_message", "since": first["createdAt"], "count": 1}
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
    reason = {"type": "check_in_to_review", "since": newest, "count": 2}
    assert await reason_of(coach, ana, "check_in_to_review") == reason
    for remaining, response in zip((1, 0), await responses(coach, ana), strict=True):
        (await coach.put(f"/coach/form-responses/{response['_id']}/reviewed", {"reviewed": True})).ok()
        assert await count_of(coach, ana, "check_in_to_review") == remaining


async def test_check_in_overdue(coach: CoachClient) -> None:
    """Forms of the 14 days before the client's today."""
    zone = "Pacific/Kiritimati"
    ana = await coach.create_customer(timezone=zone)
    blocks = [await block_with(coach, ana, FORM, date=days_ago(coach, days, zone)) for days in (15, 14, 1, 0, -1)]
    reason = await reason_of(coach, ana, "check_in_overdue")
    assert reason == {"type": "check_in_overdue", "since": start_of(days_ago(coach, 14, zone), zone), "count": 2}
    (await log(coach, blocks[1], blocks[1]["items"][0], isCompleted=True, answers=[])).ok()
    assert await reason_of(coach, ana, "check_in_overdue") == {**reason, "count": 1}, "since it was found first"
    (await coach.delete(path_of(blocks[2]))).ok(204)
    assert await count_of(coach, ana, "check_in_overdue") == 0


async def test_missed_workout(coach: CoachClient) -> None:
    """The same days count as in the compliance rate of 7 days; at most three of them add to the score."""
    ana = await coach.create_customer()
    blocks = {days: await block_with(coach, ana, task(), date=days_ago(coach, days)) for days in (7, 6, 5, 4, 3, 0)}
    await coach.schedule(ana, days_ago(coach, 2), "Empty")
    reason = {"type": "missed_workout", "since": start_of(days_ago(coach, 7)), "count": 4}
    assert await reason_of(coach, ana, "missed_workout") == reason, "the run of missed days began a week ago"
    done = blocks[4]
    (await log(coach, done, done["items"][0])).ok()
    reason = {"type": "missed_workout", "since": start_of(days_ago(coach, 3)), "count": 3}
    assert await reason_of(coach, ana, "missed_workout") == reason, "the latest run is a single day"
    assert (await entry_of(coach, ana))["score"] == 60 + WEIGHTS["low_compliance"]
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
    reason = {"type": "inactive", "since": start_of(days_ago(coach, 7)), "count": 1}
    assert await reason_of(coach, ana, "inactive") == reason
    block = await train(coach, ana, squat, (5, 100), date=days_ago(coach, 6))
    assert await count_of(coach, ana, "inactive") == 0
    await clear_log(coach, block)
    assert await count_of(coach, ana, "inactive") == 1
    await train(coach, ana, squat, (5, 100), date=days_ago(coach, 30))
    reason = {"type": "inactive", "since": start_of(days_ago(coach, 30)), "count": 1}
    assert await reason_of(coach, ana, "inactive") == reason


async def test_low_compliance(coach: CoachClient) -> None:
    ana = await coach.create_customer()
    blocks = [await block_with(coach, ana, task(), date=days_ago(coach, days)) for days in (10, 11, 12, 13, 14)]
    reason = {"type": "low_compliance", "since": start_of(days_ago(coach, 0)), "count": 1}
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
    """From today to three days ahead; a day of rest and an empty block are no workout."""
    ana = await coach.create_customer()
    reason = {"type": "nothing_scheduled", "since": start_of(days_ago(coach, 0)), "count": 1}
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
    reason = {"type": "program_ending", "since": start_of(days_ago(coach, 0)), "count": 1}
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


async def test_personal_record(coach: CoachClient) -> None:
    ana, squat = await coach.create_customer(), await coach.create_exercise()
    path = client_path(ana, "personal-records")
    record = {"exerciseId": squat["_id"], "type": "heaviest_load", "value": 100, "reps": 1}
    (await coach.post(path, {**record, "date": days_ago(coach, 7)})).ok(201)
    assert await count_of(coach, ana, "personal_record") == 0
    entered = (await coach.post(path, {**record, "date": days_ago(coach, 6)})).ok(201)
    reason = {"type": "personal_record", "since": start_of(days_ago(coach, 6)), "count": 1}
    assert await reason_of(coach, ana, "personal_record") == reason
    block = await train(coach, ana, squat, (5, 120), date=days_ago(coach, 0))
    reason = {"type": "personal_record", "since": start_of(days_ago(coach, 0)), "count": 4}
    assert await reason_of(coach, ana, "personal_record") == reason, "heaviest load, repetitions, estimated maximum"
    await clear_log(coach, block)
    assert await count_of(coach, ana, "personal_record") == 1
    (await coach.delete(f"{path}/{entered['_id']}")).ok(204)
    assert await count_of(coach, ana, "personal_record") == 0


# --- the list --------------------------------------------------------------------------------------------------------


async def test_list_has_the_highest_score_first(coach: CoachClient) -> None:
    ana = await coach.create_customer("Ana", surname="Ruiz", groups=["Team"])
    bo, cy = await coach.create_customer("Bo"), await coach.create_customer("Cy")
    await block_with(coach, cy, task(), date=days_ago(coach, 0))
    await block_with(coach, ana, task(), date=days_ago(coach, 0))
    done = await block_with(coach, ana, task(), date=days_ago(coach, 1))
    (await log(coach, done, done["items"][0])).ok()
    note = (await coach.post(client_path(ana, "notes"), {"content": "Knee", "isHealth": True})).ok(201)

    await renew(coach)
    page = (await coach.get(ATTENTION)).ok()

    assert (page["nextCursor"], page["hasMore"]) == (None, False)
    first, second = page["docs"]
    assert first == {
        "customer": {
            "_id": ana["_id"],
            "name": "Ana",
            "surname": "Ruiz",
            "profilePhotoUrl": None,
            "groups": ["Team"],
            "assignedTo": None,
            "lastTrainedDate": days_ago(coach, 1),
            "complianceRate7d": 100,
        },
        "score": 50,
        "reasons": [{"type": "health_note", "since": note["createdAt"], "count": 1}],
    }
    assert (second["customer"]["_id"], second["score"]) == (bo["_id"], WEIGHTS["nothing_scheduled"])


async def test_filters_combine_and_reasons_are_all_listed(coach: CoachClient) -> None:
    me = str(coach.ctx.caller.id)
    ana = await coach.create_customer("Ana", groups=["Team", "Run"], assignedTo=me)
    await coach.create_customer("Bo", groups=["Run"])
    await coach.create_customer("Cy", assignedTo=me)
    (await coach.post(client_path(ana, "notes"), {"content": "Knee", "isHealth": True})).ok(201)
    assert await names(coach) == ["Ana", "Bo", "Cy"]
    [entry] = await docs(coach, reason="health_note")
    assert [each["type"] for each in entry["reasons"]] == ["health_note", "nothing_scheduled"]
    assert await names(coach, reason=["health_note", "nothing_scheduled"]) == ["Ana", "Bo", "Cy"]
    assert await names(coach, reason="erasure_requested") == []
    assert await names(coach, groups=["Team", "Run"]) == ["Ana", "Bo"]
    assert await names(coach, assignedTo=me) == ["Ana", "Cy"]
    assert await names(coach, assignedTo="none") == ["Bo"]
    assert await names(coach, assignedTo=me, reason="nothing_scheduled", groups="Run") == ["Ana"]
    assert await names(coach, assignedTo=UNKNOWN) == await names(coach, groups="None") == []
    for query, field in (({"reason": "tired"}, "reason"), ({"assignedTo": "x"}, "assignedTo"), ({"limit": 0}, "limit")):
        assert field in str((await coach.get(ATTENTION, **query)).refused(400)["message"])


async def test_walking_the_parts_meets_every_client_once(coach: CoachClient) -> None:
    for number in range(7):
        client = await coach.create_customer(f"Client {number}", groups=["Team"])
        for _ in range(number % 3):
            (await coach.post(client_path(client, "notes"), {"content": "Knee", "isHealth": True})).ok(201)
    for query in ({}, {"reason": ["nothing_scheduled", "health_note"]}, {"groups": "Team"}, {"assignedTo": "none"}):
        expected = await names(coach, **query)
        assert len(expected) == 7
        for limit in (1, 2, 3):
            walked, page = [], (await coach.get(ATTENTION, limit=limit, **query)).ok()
            while page["hasMore"]:
                walked += page["docs"]
                page = (await coach.get(ATTENTION, limit=limit, after=page["nextCursor"], **query)).ok()
            assert [each["customer"]["name"] for each in [*walked, *page["docs"]]] == expected
    cursor = (await coach.get(ATTENTION, limit=1)).ok()["nextCursor"]
    (await coach.get(ATTENTION, limit=1, after=cursor, reason="inactive")).refused(400, "after")


async def test_archived_erased_and_unassigned_clients_are_left_out(
    coach: CoachClient, other_company: CoachClient
) -> None:
    eli = coach.with_key(await employee_key(coach, "customers.create", "customers.view", "customers.edit"))
    ana, bo, cy = [await client.create_customer(name) for client, name in ((coach, "Ana"), (eli, "Bo"), (coach, "Cy"))]
    assert await names(coach) == ["Ana", "Bo", "Cy"]
    (await coach.put("/coach/customers/archive", {"id": ana["_id"]})).ok()
    (await coach.delete(client_path(cy))).ok(204)
    dan = await coach.create_customer("Dan")
    assert await names(coach) == ["Bo", "Dan"]
    assert await names(eli) == ["Bo"]
    assert await names(eli, reason="nothing_scheduled") == ["Bo"]
    assert await names(eli, assignedTo="none") == await names(other_company) == []
    await dismiss(eli, bo, "nothing_scheduled")
    body = {"reason": "nothing_scheduled"}
    (await eli.put(f"{ATTENTION}/{dan['_id']}", body)).refused(403)
    (await other_company.put(f"{ATTENTION}/{dan['_id']}", body)).refused(404)
    (await coach.put(f"{ATTENTION}/{cy['_id']}", body)).refused(404)
    (await coach.put("/coach/customers/unarchive", {"id": ana["_id"]})).ok()
    assert await names(coach) == ["Ana", "Dan"]


async def test_lists_examine_few_keys(coach: CoachClient) -> None:
    me = str(coach.ctx.caller.id)
    for number in range(90):
        fields = {"groups": ["Team"] if number % 9 == 0 else [], "assignedTo": me if number % 9 == 1 else None}
        client = await coach.create_customer(f"Client {number}", **fields)
        if number % 9 == 2:
            (await coach.post(client_path(client, "notes"), {"content": "Knee", "isHealth": True})).ok(201)
    await renew(coach)
    async with profiling(coach) as profile:
        for query in ({}, {"reason": ["health_note", "inactive"]}, {"groups": "Team"}, {"assignedTo": me}):
            page = (await coach.get(ATTENTION, limit=5, **query)).ok()
            assert (await coach.get(ATTENTION, limit=5, after=page["nextCursor"], **query)).ok()["docs"]
        entries = await profile()
    assert_efficient(entries)


# --- dismissing ------------------------------------------------------------------------------------------------------


async def test_dismissed_reason_comes_back_when_something_new_happens(coach: CoachClient) -> None:
    ana = await coach.create_customer()
    path = client_path(ana, "notes")
    knee = (await coach.post(path, {"content": "Knee pain", "isHealth": True})).ok(201)
    entry = await dismiss(coach, ana, "health_note")
    assert [each["type"] for each in entry["reasons"]] == ["nothing_scheduled"], "of the reasons that apply now"
    assert (entry["customer"]["_id"], entry["score"]) == (ana["_id"], 15)
    assert await entry_of(coach, ana) == entry
    back = (await coach.post(path, {"content": "Back pain", "isHealth": True})).ok(201)
    reason = {"type": "health_note", "since": back["createdAt"], "count": 2}
    assert await reason_of(coach, ana, "health_note") == reason
    await dismiss(coach, ana, "health_note")
    (await coach.delete(f"{path}/{back['_id']}")).ok(204)
    assert await count_of(coach, ana, "health_note") == 0, "the older note had been dismissed as well"
    (await coach.patch(f"{path}/{knee['_id']}", {"isHealth": False})).ok()
    (await coach.put(f"{ATTENTION}/{ana['_id']}", {"reason": "health_note"})).refused(409, "this reason")


async def test_dismissed_reason_comes_back_on_the_date(coach: CoachClient) -> None:
    """The date is local to the client; the renewal at midnight brings the reason back."""
    zone = "Pacific/Kiritimati"
    ana = await coach.create_customer(timezone=zone)
    assert (await dismiss(coach, ana, "nothing_scheduled", days_ago(coach, -1, zone)))["reasons"] == []
    assert await names(coach) == []
    dismissals = coach.ctx.db["attentionDismissals"]
    await dismissals.update_one({"customerId": ObjectId(ana["_id"])}, {"$set": {"until": days_ago(coach, 0, zone)}})
    assert await names(coach) == [], "once a local day"
    await set_stored(coach, ana)
    assert await names(coach) == ["Ana"]
    await dismiss(coach, ana, "nothing_scheduled", days_ago(coach, -1, zone))
    ended = await dismiss(coach, ana, "nothing_scheduled", days_ago(coach, 0, zone))
    assert [each["type"] for each in ended["reasons"]] == ["nothing_scheduled"], "a past date ends a dismissal"


async def test_dismissed_missed_workouts_come_back_with_the_next_run(coach: CoachClient) -> None:
    ana = await coach.create_customer()
    blocks = {days: await block_with(coach, ana, task(), date=days_ago(coach, days)) for days in (5, 4, 3)}
    await dismiss(coach, ana, "missed_workout")
    assert await count_of(coach, ana, "missed_workout") == 0
    await block_with(coach, ana, task(), date=days_ago(coach, 2))
    assert await count_of(coach, ana, "missed_workout") == 0, "still the same run, as during a holiday"
    (await log(coach, blocks[3], blocks[3]["items"][0])).ok()
    assert await count_of(coach, ana, "missed_workout") == 3


async def test_dismissal_can_be_undone_and_is_in_the_history(coach: CoachClient) -> None:
    ana = await coach.create_customer()
    body = {"reason": "nothing_scheduled", "until": None}
    reply = await coach.put(f"{ATTENTION}/{ana['_id']}", body)
    change_id = reply.headers["X-Change-Id"]
    assert await names(coach) == []
    change = (await coach.get(f"/coach/changes/{change_id}")).ok()
    assert (change["operation"], change["customerId"]) == ("dismissAttention", ana["_id"])
    (await coach.post(f"/coach/changes/{change_id}/undo")).ok()
    assert await names(coach) == ["Ana"]


@pytest.mark.parametrize(
    ("body", "field"),
    [({}, "reason"), ({"reason": "tired"}, "reason"), ({"reason": "inactive", "until": "soon"}, "until")],
)
async def test_bad_dismissal_names_the_field(coach: CoachClient, body: Json, field: str) -> None:
    ana = await coach.create_customer()
    (await coach.put(f"{ATTENTION}/{ana['_id']}", body)).refused(400, field)


# --- settings and renewal --------------------------------------------------------------------------------------------


async def test_settings_renew_all_clients_in_the_background(coach: CoachClient) -> None:
    """Contract 11: `attention {inactiveDays (7), complianceBelow (60), horizonDays (3)}`."""
    ana, squat = await coach.create_customer(), await coach.create_exercise()
    await train(coach, ana, squat, (5, 100), date=days_ago(coach, 8))
    half = await block_with(coach, ana, task(), date=days_ago(coach, 9))
    await block_with(coach, ana, task(), date=days_ago(coach, -5))
    reasons = {each["type"] for each in (await entry_of(coach, ana))["reasons"]}
    assert reasons == {"inactive", "low_compliance", "nothing_scheduled"}
    account = (await coach.get("/coach/account")).ok()
    assert account["attention"] == {"inactiveDays": 7, "complianceBelow": 60, "horizonDays": 3}

    changed = (await coach.patch("/coach/account", {"attention": {"inactiveDays": 9}})).ok()
    assert changed["attention"] == {"inactiveDays": 9, "complianceBelow": 60, "horizonDays": 3}
    assert {each["type"] for each in (await entry_of(coach, ana))["reasons"]} == reasons - {"inactive"}
    (await coach.patch("/coach/account", {"attention": {"complianceBelow": 50, "horizonDays": 5}})).ok()
    assert await names(coach) == []
    assert half["items"]
    for bad in ({"inactiveDays": 0}, {"complianceBelow": 101}, {"horizonDays": -1}, {"inactiveDays": "7"}):
        (await coach.patch("/coach/account", {"attention": bad})).refused(400, next(iter(bad)))


async def test_time_zones_move_the_day(coach: CoachClient) -> None:
    """A change of the time zone, of the client or the company, renews the reasons at once."""
    ana = await coach.create_customer(timezone="Pacific/Pago_Pago")
    await block_with(coach, ana, task(), date=days_ago(coach, -3, "Pacific/Kiritimati"))
    scheduled = 0 if days_ago(coach, 0, "Pacific/Pago_Pago") == days_ago(coach, 0, "Pacific/Kiritimati") else 1
    assert await count_of(coach, ana, "nothing_scheduled") == scheduled
    (await coach.patch(client_path(ana), {"timezone": "Pacific/Kiritimati"})).ok()
    assert await count_of(coach, ana, "nothing_scheduled") == 0
    (await coach.patch(client_path(ana), {"timezone": None})).ok()
    (await coach.patch("/coach/account", {"timezone": "Pacific/Pago_Pago"})).ok()
    assert await count_of(coach, ana, "nothing_scheduled") == scheduled


async def test_client_that_needs_nobody_is_not_listed(coach: CoachClient) -> None:
    ana = await coach.create_customer()
    block = await block_with(coach, ana, task(), date=days_ago(coach, 0))
    (await log(coach, block, block["items"][0])).ok()
    assert await docs(coach) == []


async def test_many_clients_are_renewed_with_a_fixed_number_of_queries(coach: CoachClient) -> None:
    async def count_queries(clients: int) -> int:
        """The number of queries of the transaction that renews so many clients."""
        created = [await coach.create_customer(f"Client {number}") for number in range(clients)]
        for customer in created:
            (await coach.post(client_path(customer, "notes"), {"content": "Knee", "isHealth": True})).ok(201)
        due: list[ClientTimezone] = [{"_id": ObjectId(customer["_id"]), "timezone": None} for customer in created]
        async with profiling(coach) as profile:
            await in_transaction(coach.ctx, lambda tx: store_figures(tx, due))
            entries = await profile()
        transactions = Counter(
            (entry["command"]["lsid"]["id"], entry["command"]["txnNumber"])
            for entry in entries
            if entry["op"] in ("query", "command") and "txnNumber" in entry["command"]
        )
        return max(transactions.values())

    assert 5 < await count_queries(1) == await count_queries(20) < 15
