"""What clients change of their calendar: workouts that they move, and workouts of their own (contract 20)."""

from __future__ import annotations

from datetime import date, timedelta
from typing import Any

import pytest

from tests.support.client import MONDAY, SUNDAY, TUESDAY, UNKNOWN, CoachClient, Reply
from tests.support.training import (
    Json,
    add,
    block_with,
    circuit_of,
    client_path,
    exercise_of,
    feed,
    feed_types,
    form_of,
    hide,
    log,
    metric_set,
    metrics_of,
    own_log,
    path_of,
    read,
    reminder,
    task,
)

EMPTY_SESSION = {"durationMinutes": None, "sessionRpe": None, "feeling": None, "comment": None}


def later(day: str, days: int) -> str:
    return str(date.fromisoformat(day) + timedelta(days=days))


async def move(client: CoachClient, block: Json, day: str, **more: Any) -> Reply:
    return await client.put(f"/customer/wblocks/{block['_id']}/date", {"date": day, **more})


async def create(client: CoachClient, *items: Json, day: str = MONDAY, name: str = "Run with friends") -> Json:
    created: Json = (await client.post("/customer/wblocks", {"name": name, "date": day, "items": items})).ok(201)
    return created


# --- moves -----------------------------------------------------------------------------------------------------------


async def test_a_client_moves_a_workout_and_the_planned_day_is_kept(coach: CoachClient) -> None:
    """The workout goes after those of the day; `plannedDate` is the coach's until the coach sets another date."""
    ana = await coach.create_customer()
    legs = await block_with(coach, ana, task(), name="Legs")
    others = [await block_with(coach, ana, task(), date=TUESDAY, name=name) for name in ("Push", "Pull")]
    client = await coach.as_client(ana)
    assert (legs["plannedDate"], legs["createdBy"]) == (None, None)

    moved = (await move(client, legs, TUESDAY, version=legs["version"])).ok()

    assert (moved["date"], moved["plannedDate"], moved["order"]) == (TUESDAY, MONDAY, 2)
    of_day = await coach.calendar(ana, TUESDAY, TUESDAY)
    assert [each["_id"] for each in of_day] == [*(each["_id"] for each in others), legs["_id"]]
    assert of_day[2] == moved
    assert [(item["_id"], item["order"]) for item in moved["items"]] == [(item["_id"], 0) for item in legs["items"]]

    again = (await move(client, legs, later(MONDAY, 7))).ok()
    assert (again["date"], again["plannedDate"]) == (later(MONDAY, 7), MONDAY)
    (await move(client, legs, later(MONDAY, 8))).refused(400, "date", "within 7 days of 2026-03-02")
    assert (await move(client, legs, later(MONDAY, -7))).ok()["plannedDate"] == MONDAY
    (await move(client, legs, later(MONDAY, -8))).refused(400, "date")

    by_coach = (await coach.patch(path_of(legs), {"date": TUESDAY})).ok()
    assert (by_coach["date"], by_coach["plannedDate"]) == (TUESDAY, None)
    assert (await move(client, legs, later(TUESDAY, 7))).ok()["plannedDate"] == TUESDAY
    (await coach.post(client_path(ana, "wblocks", "shift"), {"from": MONDAY, "days": 7})).ok()
    shifted = await read(coach, legs)
    assert (shifted["date"], shifted["plannedDate"]) == (later(TUESDAY, 14), None)


async def test_the_coach_reads_who_moved_a_workout_and_can_undo_only_own_changes(coach: CoachClient) -> None:
    ana = await coach.create_customer("Ana")
    legs, client = await block_with(coach, ana, task(), name="Legs"), await coach.as_client(ana)
    (await move(client, legs, TUESDAY)).ok()
    last = await move(client, legs, SUNDAY)
    await coach.wait_until_numbered(last.headers["X-Change-Id"])

    moves = [each for each in await feed(coach, ana) if each["type"] == "workout_moved"]
    data = {"wblockId": legs["_id"], "blockName": "Legs", "day": SUNDAY, "plannedDate": MONDAY}
    assert [each["data"] for each in moves] == [data], "the last move replaces the entry of the first"
    [entry] = (await coach.get("/coach/activity-feed", customerId=ana["_id"], types=["workout_moved"])).ok()["docs"]
    assert (entry["actor"]["type"], entry["actor"]["_id"], entry["customer"]["_id"]) == (
        "client",
        ana["_id"],
        ana["_id"],
    )
    events = (await coach.get("/coach/events", customerId=ana["_id"], types=["workout.updated"])).ok()["docs"]
    assert [(each["data"]["wblockId"], each["data"]["date"]) for each in events][-2:] == [
        (legs["_id"], TUESDAY),
        (legs["_id"], SUNDAY),
    ]
    assert [each["data"]["fields"] for each in events][-2:] == [["date", "order", "plannedDate"], ["date", "order"]]
    assert events[-1]["actor"]["type"] == "client"


async def test_workout_that_is_moved_back_counts_as_not_moved(coach: CoachClient) -> None:
    ana = await coach.create_customer()
    legs, client = await block_with(coach, ana, task()), await coach.as_client(ana)
    for way in ([TUESDAY, MONDAY], [TUESDAY, SUNDAY, MONDAY]):
        for day in way:
            moved = (await move(client, legs, day)).ok()
        assert (moved["date"], moved["plannedDate"], await feed(coach, ana)) == (MONDAY, None, [])
    assert (await move(client, legs, TUESDAY)).ok()["plannedDate"] == MONDAY
    assert [each["type"] for each in await feed(coach, ana)] == ["workout_moved"]


async def test_moves_that_are_refused_change_nothing(coach: CoachClient) -> None:
    ana, ben = await coach.create_customer("Ana"), await coach.create_customer("Ben")
    legs = await block_with(coach, ana, task(), task("Stretch"))
    done = await block_with(coach, ana, task(), name="Done")
    rated = await block_with(coach, ana, task(), name="Rated")
    hidden = await block_with(coach, ana, task(), date=later(MONDAY, 3))
    client, other = await coach.as_client(ana), await coach.as_client(ben)
    (await own_log(client, done, done["items"][0], isCompleted=True)).ok()
    (await client.put(f"/customer/wblocks/{rated['_id']}/log", {**EMPTY_SESSION, "sessionRpe": 7})).ok()
    await hide(coach, ana, later(MONDAY, 3), later(MONDAY, 4))
    before = await coach.calendar(ana, MONDAY, SUNDAY)

    for block in (done, rated):
        assert (await move(client, block, TUESDAY)).refused(409)["code"] == "WORKOUT_LOGGED"
    (await move(client, legs, later(MONDAY, 4))).refused(400, "date")
    (await move(client, hidden, MONDAY)).refused(404)
    (await move(client, {"_id": UNKNOWN}, MONDAY)).refused(404)
    (await move(other, legs, TUESDAY)).refused(404)
    (await move(client, legs, "2026-3-3")).refused(400, "date")
    assert (await move(client, legs, TUESDAY, version=legs["version"] + 7)).refused(409)["code"] == "VERSION_CONFLICT"

    assert await coach.calendar(ana, MONDAY, SUNDAY) == before
    assert (await move(client, legs, MONDAY)).ok()["plannedDate"] is None, "to its own day: nothing moves"
    (await coach.patch("/coach/account", {"clientsMayMove": False})).ok()
    assert (await move(client, legs, TUESDAY)).refused(403)["code"] == "CLIENT_MOVES_OFF"
    assert (await read(coach, legs)) == legs


async def test_the_preview_of_a_return_equals_its_run_for_moved_workouts(coach: CoachClient) -> None:
    """What the client has moved has the coach's date again after the shift, in the preview too."""
    ana = await coach.create_customer()
    legs, client = await block_with(coach, ana, task()), await coach.as_client(ana)
    (await move(client, legs, TUESDAY)).ok()
    (await coach.post(client_path(ana, "availability"), {"kind": "ill", "from": MONDAY})).ok(201)
    path, body = client_path(ana, "schedule", "resume"), {"from": later(MONDAY, 3), "mode": "shift"}
    preview = (await coach.post(path, {**body, "dryRun": True})).ok()
    run = (await coach.post(path, body)).ok()
    [shown], [done] = preview["changed"], run["changed"]
    assert (done["date"], done["plannedDate"]) == (later(TUESDAY, 3), None)
    assert {name: (shown[name], done[name]) for name in done if shown[name] != done[name]}.keys() <= {
        "version",
        "updatedAt",
        "items",
    }


async def test_check_ins_stay_on_their_day(coach: CoachClient) -> None:
    ana = await coach.create_customer()
    start = later(str(coach.ctx.caller.today()), 1)
    body = {"taskFields": {"title": "Weigh"}, "everyDays": 7, "startDate": start}
    (await coach.post(client_path(ana, "check-ins"), body)).ok(201)
    [block, *_] = await coach.calendar(ana, start, later(start, 6))
    refused = (await move(await coach.as_client(ana), block, later(start, 1))).refused(409)
    assert refused["code"] == "CHECK_IN_BLOCK"


async def test_an_impersonating_coach_moves_as_the_client_does(coach: CoachClient, interactive: CoachClient) -> None:
    ana = await coach.create_customer()
    legs = await block_with(coach, ana, task())
    tokens = (await interactive.post(client_path(ana, "impersonate"))).ok()
    client = coach.with_bearer(tokens["accessToken"])
    assert (await move(client, legs, TUESDAY)).ok()["plannedDate"] == MONDAY


# --- workouts of the client's own ------------------------------------------------------------------------------------


async def test_a_client_adds_changes_and_deletes_an_own_workout(coach: CoachClient) -> None:
    ana, squat = await coach.create_customer(), await coach.create_exercise("Squat")
    planned = await block_with(coach, ana, task())
    client = await coach.as_client(ana)

    own = await create(client, exercise_of(squat), circuit_of(squat), task("Stretch"))

    assert (own["createdBy"], own["plannedDate"], own["isRest"], own["order"]) == ("client", None, False, 1)
    assert [item["type"] for item in own["items"]] == ["EXERCISE", "CIRCUIT", "TASK"]
    assert own["items"][0]["exercise"]["name"] == "Squat"
    assert await read(coach, own) == own
    assert (await client.get("/customer/wblock", startDate=MONDAY, endDate=MONDAY)).ok() == [planned, own]
    assert "workout_added" in await feed_types(coach, ana)

    path = f"/customer/wblocks/{own['_id']}"
    changed = (await client.patch(path, {"name": "Run", "date": TUESDAY, "version": own["version"]})).ok()
    assert (changed["name"], changed["date"], changed["plannedDate"]) == ("Run", TUESDAY, None)
    assert changed["items"] == [{**item, "version": changed["version"]} for item in own["items"]]
    replaced = (await client.patch(path, {"items": [task("Stretch"), exercise_of(squat)]})).ok()
    assert [item["type"] for item in replaced["items"]] == ["TASK", "EXERCISE"]
    assert (await move(client, own, later(TUESDAY, 30))).ok()["plannedDate"] is None, (
        "its day is the client's to choose"
    )
    [entry] = [each for each in await feed(coach, ana) if each["type"] == "workout_added"]
    assert (entry["data"]["blockName"], entry["data"]["day"]) == ("Run", later(TUESDAY, 30))

    (await client.delete(path)).ok(204)
    assert (await client.get("/customer/wblock", startDate=MONDAY, endDate=MONDAY)).ok() == [planned]
    assert "workout_added" not in await feed_types(coach, ana)
    (await client.delete(path)).refused(404)


async def test_own_workouts_that_are_refused(coach: CoachClient) -> None:
    ana, ben = await coach.create_customer("Ana"), await coach.create_customer("Ben")
    squat = await coach.create_exercise("Squat")
    planned = await block_with(coach, ana, task())
    client, other = await coach.as_client(ana), await coach.as_client(ben)
    own = await create(client, exercise_of(squat))
    path = f"/customer/wblocks/{own['_id']}"
    workout = {"name": "Run", "date": TUESDAY}
    body = await metric_set(coach)

    for item in (form_of(), metrics_of(body), reminder()):
        (await client.post("/customer/wblocks", {**workout, "items": [item]})).refused(400, "items")
        (await client.patch(path, {"items": [item]})).refused(400, "items")
    unknown = exercise_of({"_id": UNKNOWN})
    (await client.post("/customer/wblocks", {**workout, "items": [exercise_of(squat), unknown]})).refused(
        404, "items.1"
    )
    (await client.post("/customer/wblocks", {**workout, "name": " "})).refused(400, "name")
    (await client.post("/customer/wblocks", {"name": "Run"})).refused(400, "date")
    (await client.post("/customer/wblocks", {**workout, "dryRun": True})).refused(400, "dryRun")
    await hide(coach, ana, TUESDAY)
    (await client.post("/customer/wblocks", workout)).refused(400, "date")
    (await client.patch(path, {"date": TUESDAY})).refused(400, "date")
    for reply in (
        await client.patch(f"/customer/wblocks/{planned['_id']}", {"name": "Mine"}),
        await client.delete(f"/customer/wblocks/{planned['_id']}"),
    ):
        assert reply.refused(403)["code"] == "PLANNED_BY_COACH"
    (await other.patch(path, {"name": "Ben's"})).refused(404)
    (await other.delete(path)).refused(404)
    assert (await client.patch(path, {"name": "X", "version": 9})).refused(409)["code"] == "VERSION_CONFLICT"
    (await own_log(client, own, own["items"][0], isCompleted=True, customerSets=[{"index": 1, "reps": 8}])).ok()
    assert (await client.patch(path, {"items": []})).refused(409)["code"] == "WORKOUT_LOGGED"

    (await coach.patch("/coach/account", {"clientsMayAdd": False})).ok()
    for reply in (
        await client.post("/customer/wblocks", {**workout, "date": MONDAY}),
        await client.patch(path, {"name": "Run"}),
        await client.delete(path),
    ):
        assert reply.refused(403)["code"] == "CLIENT_WORKOUTS_OFF"
    assert (await read(coach, own))["name"] == "Run with friends"


async def test_an_own_workout_counts_in_compliance_only_when_it_is_completed(coach: CoachClient) -> None:
    """It is no workout day, missed or not, until all its items are completed."""
    ana, squat = await coach.create_customer(), await coach.create_exercise("Squat")
    client = await coach.as_client(ana)
    monday = await block_with(coach, ana, task())
    own, both = [await create(client, exercise_of(squat), task(), day=day) for day in (TUESDAY, MONDAY)]
    await coach.get(client_path(ana))

    async def days() -> list[tuple[bool, bool]]:
        query = {"from": MONDAY, "to": TUESDAY}
        listed = (await coach.get(client_path(ana, "compliance"), **query)).ok()["dailyCompliance"]
        return [(day["isWorkoutDay"], day["isCompleted"]) for day in listed]

    assert await days() == [(True, False), (False, False)]
    (await log(coach, monday, monday["items"][0], isCompleted=True)).ok()
    assert await days() == [(True, True), (False, False)], "the own workout of the day does not make it incomplete"
    (await own_log(client, own, own["items"][0], isCompleted=True, customerSets=[{"index": 1, "reps": 8}])).ok()
    assert await days() == [(True, True), (False, False)], "partly done"
    (await own_log(client, own, own["items"][1], isCompleted=True)).ok()
    assert await days() == [(True, True), (True, True)]
    assert both["date"] == MONDAY


async def test_an_own_workout_does_not_extend_what_the_coach_has_scheduled(coach: CoachClient) -> None:
    ana = await coach.create_customer()
    await block_with(coach, ana, task())
    client = await coach.as_client(ana)
    own = await create(client, task(), day=SUNDAY)
    assert (await coach.get(client_path(ana))).ok()["customerRoleData"]["lastWorkoutDate"] == MONDAY
    (await client.patch(f"/customer/wblocks/{own['_id']}", {"date": later(SUNDAY, 7)})).ok()
    assert (await coach.get(client_path(ana))).ok()["customerRoleData"]["lastWorkoutDate"] == MONDAY


async def test_a_copy_of_an_own_workout_is_the_coachs(coach: CoachClient) -> None:
    ana = await coach.create_customer()
    own = await create(await coach.as_client(ana), task())
    copied = (await coach.post(f"{path_of(own)}/copy", {"date": TUESDAY})).ok(201)
    assert copied["createdBy"] is None
    body = {"startDate": MONDAY, "endDate": MONDAY, "targetDate": later(MONDAY, 7)}
    [created] = (await coach.post(client_path(ana, "schedule", "copy"), body)).ok(201)["created"]
    assert created["createdBy"] is None
    await add(coach, own, task("By the coach"))
    assert (await read(coach, own))["createdBy"] == "client"


@pytest.mark.parametrize("name", ["clientsMayMove", "clientsMayAdd"])
async def test_the_owner_decides_what_clients_may_do(coach: CoachClient, name: str) -> None:
    assert (await coach.get("/coach/account")).ok()[name] is True
    assert (await coach.patch("/coach/account", {name: False})).ok()[name] is False
    assert (await coach.patch("/coach/account", {"timezone": "Asia/Tokyo"})).ok()[name] is False
    (await coach.patch("/coach/account", {name: "no"})).refused(400, name)
