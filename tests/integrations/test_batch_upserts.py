"""Workouts and logs of another system, many at once (contract 14, many at once)."""

from __future__ import annotations

import asyncio
from typing import Any

from tests.support.client import MONDAY, TUESDAY, UNKNOWN, CoachClient
from tests.support.sampled import MORE
from tests.support.schedules import THURSDAY, WEDNESDAY
from tests.support.training import (
    Json,
    assigned_sets,
    block_with,
    circuit_of,
    client_path,
    employee_key,
    exercise_of,
    form_of,
    log,
    metric_set,
    metrics_of,
    read,
    reminder,
    task,
    titles,
)


async def upsert(coach: CoachClient, client: Json, *blocks: Any, **options: Any) -> Json:
    answer: Json = (await coach.post(client_path(client, "wblocks/upsert"), {"blocks": list(blocks), **options})).ok()
    return answer


async def send_logs(coach: CoachClient, client: Json, *logs: Any, **options: Any) -> Json:
    answer: Json = (await coach.post(client_path(client, "logs/upsert"), {"logs": list(logs), **options})).ok()
    return answer


def outcomes(answer: Json) -> list[Any]:
    """What became of each entry: `created`, `updated` and `unchanged`, or the fields and codes of its errors."""
    return [
        each.get("result") or [(error["field"], error["code"]) for error in each["errors"]]
        for each in answer["results"]
    ]


async def test_each_workout_is_saved_whole_or_not_at_all(coach: CoachClient, other_company: CoachClient) -> None:
    ana, bo = await coach.create_customer("Ana"), await coach.create_customer("Bo")
    squat = await coach.create_exercise("Squat")
    (await coach.post(client_path(bo, "wblocks"), {"name": "Bo's", "date": MONDAY, "externalId": "bo:1"})).ok(201)
    (await other_company.create_customer("Other"))
    new = {"name": "Legs", "date": MONDAY, "items": [exercise_of(squat), task("Walk")]}
    entries = [
        {"externalId": "w:1", **new},
        {"externalId": "w:2", **new, "items": [task("Run"), exercise_of({"_id": UNKNOWN})]},
        {"externalId": "w:3", "name": "No date"},
        {"name": "No identifier", "date": MONDAY},
        {"externalId": "w:1", **new},
        {"externalId": "bo:1", **new},
        {"externalId": "w:4", **new, "items": [{"type": "TASK"}]},
        {"externalId": "w:5", "name": "Rest", "date": TUESDAY, "isRest": True},
    ]
    failed = [
        [("items.1.exerciseId", "EXERCISE_NOT_FOUND")],
        [("date", "REQUIRED")],
        [("externalId", "REQUIRED")],
        [("externalId", "DUPLICATE")],
        [("externalId", "EXTERNAL_ID_TAKEN")],
        [("items.0.taskFields", "REQUIRED")],
    ]
    dry = await upsert(coach, ana, *entries, dryRun=True)
    assert outcomes(dry) == ["created", *failed, "created"]
    assert (dry["results"][0]["_id"], await coach.calendar(ana)) == (None, [])

    reply = await coach.post(client_path(ana, "wblocks/upsert"), {"blocks": entries})
    answer = reply.ok()
    assert (outcomes(answer), answer["created"], answer["updated"]) == (["created", *failed, "created"], 2, 0)
    blocks = await coach.calendar(ana)
    assert [(block["externalId"], block["version"]) for block in blocks] == [("w:1", 0), ("w:5", 0)]
    assert [answer["results"][at]["_id"] for at in (0, 7)] == [block["_id"] for block in blocks]
    assert (await coach.get(client_path(ana))).ok()["customerRoleData"]["lastWorkoutDate"] == TUESDAY
    undone = (await coach.post(f"/coach/changes/{reply.headers['X-Change-Id']}/undo")).ok()  # one change
    assert (undone["failed"], await coach.calendar(ana)) == ([], [])


async def test_known_workouts_get_what_is_sent_and_done_work_stays(coach: CoachClient) -> None:
    ana = await coach.create_customer()
    squat = await coach.create_exercise("Squat")
    items = [exercise_of(squat), task("Walk")]
    entries = [{"externalId": f"w:{day}", "name": day, "date": day, "items": items} for day in (MONDAY, TUESDAY)]
    await upsert(coach, ana, *entries)
    again = await upsert(coach, ana, *entries)
    assert (again["unchanged"], [each["version"] for each in again["results"]]) == (2, [0, 0])

    monday, _ = await coach.calendar(ana)
    (await log(coach, monday, monday["items"][1], isCompleted=True)).ok()
    changes: list[Json] = [
        {"externalId": f"w:{MONDAY}", "name": "Moved", "date": WEDNESDAY},
        {"externalId": f"w:{TUESDAY}", "items": [task("Row")], "version": 0},
        {"externalId": "w:new", "name": "New", "date": THURSDAY, "metadata": {"k": "v"}},
    ]
    assert outcomes(await upsert(coach, ana, *changes)) == ["updated", "updated", "created"]
    calendar = {block["date"]: block for block in await coach.calendar(ana)}
    assert list(calendar) == [TUESDAY, WEDNESDAY, THURSDAY]
    assert titles(calendar[TUESDAY]) == ["Row"]
    assert (calendar[WEDNESDAY]["name"], calendar[WEDNESDAY]["items"][1]["isCompleted"]) == ("Moved", True)
    refused = [
        {"externalId": f"w:{MONDAY}", "name": "Not this", "items": [task("Other")]},
        {"externalId": f"w:{TUESDAY}", "name": "Nor this", "version": 0},
        {"externalId": "w:new", "name": "But this"},
    ]
    codes = [[("", "WORKOUT_LOGGED")], [("", "VERSION_CONFLICT")], "updated"]
    assert outcomes(await upsert(coach, ana, *refused)) == codes
    assert [block["name"] for block in await coach.calendar(ana)] == [TUESDAY, "Moved", "But this"]
    [error] = outcomes(await upsert(coach, ana, {"externalId": "w:new", "name": "x"}, onConflict="error"))
    assert error == [("externalId", "EXTERNAL_ID_TAKEN")]

    (await coach.put("/coach/customers/archive", {"id": ana["_id"]})).ok()
    closed = await upsert(coach, ana, {"externalId": "w:new", "name": "x"}, {**changes[2], "externalId": "w:x"})
    assert outcomes(closed) == ["updated", [("", "CUSTOMER_ARCHIVED")]]


async def test_logs_of_every_type_are_saved_entry_by_entry(coach: CoachClient) -> None:
    ana = await coach.create_customer()
    squat, body = await coach.create_exercise("Squat"), await metric_set(coach, "Weight")
    question = {"label": "Sleep?", "type": "number"}
    items = [exercise_of(squat), circuit_of(squat), task(), form_of(question), metrics_of(body)]
    past = await block_with(coach, ana, *items)
    named = {"name": "Named", "date": TUESDAY, "externalId": "w:1", "items": [task("Walk"), task("Run")]}
    (await coach.post(client_path(ana, "wblocks"), named)).ok(201)
    ids = [item["_id"] for item in past["items"]]
    done = [
        {"witemId": ids[0], "customerSets": [{"reps": 5, "load": 100}]},
        {"witemId": ids[1], "customerSets": [{"exerciseId": squat["_id"], "round": 1, "reps": 5, "load": 50}]},
        {"witemId": ids[2], "isCompleted": False, "skipped": {"reason": "PAIN"}, "pain": "Left knee"},
        {"witemId": ids[3], "answers": [{"questionId": past["items"][3]["form"]["questions"][0]["_id"], "value": 7}]},
        {"witemId": ids[4], "values": [{"metricId": body["metrics"][0]["_id"], "value": 70}]},
    ]
    walk, run = (item["_id"] for item in (await coach.calendar(ana))[1]["items"])
    entries = [
        {"wblockId": past["_id"], "items": done},
        {"externalId": "w:1", "items": [{"witemId": walk}, {"witemId": run, "customerSets": 1, "skipped": 1}]},
        {"externalId": "w:none", "items": [{"witemId": walk}]},
        {"wblockId": past["_id"], "items": [{"witemId": ids[0], "comment": "Again"}]},
        {"items": [{"witemId": walk}]},
        {"wblockId": past["_id"], "externalId": "w:1", "items": []},
    ]
    failed = [
        [("items.1.skipped", "NOT_AN_OBJECT")],
        [("", "WORKOUT_BLOCK_NOT_FOUND")],
        [("wblockId", "DUPLICATE")],
        [("wblockId", "INVALID")],
        [("items", "EMPTY")],
    ]
    dry = await send_logs(coach, ana, *entries, dryRun=True)
    assert outcomes(dry) == ["created", *failed]
    assert await assigned_sets(coach, ana) == []

    answer = await send_logs(coach, ana, *entries)
    assert (outcomes(answer), answer["created"]) == (["created", *failed], 1)
    stored = await read(coach, past)
    version = past["version"] + 1
    assert (stored["version"], answer["results"][0]["version"]) == (version, version)
    assert [item["isCompleted"] for item in stored["items"]] == [True, True, False, True, True]
    assert not any(item["isCompleted"] for item in (await coach.calendar(ana))[1]["items"])
    assert [each["metrics"][0]["currentValue"] for each in await assigned_sets(coach, ana)] == [70]
    [note] = (await coach.get(client_path(ana, "notes"))).ok()
    assert (note["content"], note["isHealth"]) == ("Left knee", True)
    records = (await coach.get(client_path(ana, "personal-records"))).ok()
    assert {(each["type"], each["value"]) for each in records} >= {("heaviest_load", 100)}

    again = await send_logs(coach, ana, entries[0])
    assert (outcomes(again), again["results"][0]["version"]) == (["unchanged"], version)
    other = {
        "wblockId": past["_id"],
        "version": version,
        "items": [{**done[4], "values": [{**done[4]["values"][0], "value": 71}]}],
    }
    assert outcomes(await send_logs(coach, ana, other)) == ["updated"]
    assert outcomes(await send_logs(coach, ana, other | {"items": [{"witemId": ids[2]}]})) == [
        [("", "VERSION_CONFLICT")]
    ]
    wrong = {"wblockId": past["_id"], "items": [{"witemId": walk}]}
    assert outcomes(await send_logs(coach, ana, wrong)) == [[("items.0", "WORKOUT_ITEM_NOT_FOUND")]]


async def test_a_full_day_fails_only_what_does_not_fit_in_it(coach: CoachClient) -> None:
    """Contract 18: 10 reminders and 20 workouts a day, also of what is moved to it or gets other items."""
    ana = await coach.create_customer()
    full, other = [("", "TOO_MANY_REMINDERS")], {"externalId": "w:0", "name": "A", "date": TUESDAY}

    def entry(number: int, reminders: int, date: str = MONDAY) -> Json:
        return {"externalId": f"w:{number}", "name": "A", "date": date, "items": [reminder()] * reminders}

    entries = [other, entry(1, 6), entry(2, 5), entry(3, 4), entry(4, 1)]
    expected = ["created", "created", full, "created", full]
    assert outcomes(await upsert(coach, ana, *entries, dryRun=True)) == expected
    assert outcomes(await upsert(coach, ana, *entries)) == expected
    changes = [{**entry(0, 1), "name": "B"}, entry(3, 3), entry(2, 1), {"externalId": "w:0", "date": MONDAY}]
    assert outcomes(await upsert(coach, ana, *changes[:3], onConflict="update")) == [full, "updated", "created"]
    assert outcomes(await upsert(coach, ana, changes[3], onConflict="update")) == ["updated"]
    many = [{"externalId": f"m:{number}", "name": "M", "date": MONDAY} for number in range(17)]
    answer = outcomes(await upsert(coach, ana, *many))
    assert answer == ["created"] * 16 + [[("", "TOO_MANY_WORKOUTS")]]
    assert len(await coach.calendar(ana, MONDAY, MONDAY)) == 20


async def test_who_may_send_them_and_what_is_refused(coach: CoachClient, other_company: CoachClient) -> None:
    ana = await coach.create_customer()
    entry = {"externalId": "w:1", "name": "A", "date": MONDAY}
    reader = coach.with_key(await employee_key(coach, "customers.view", scope="all"))
    scoped = coach.with_key(await employee_key(coach, "customers.edit", "customers.view"))
    log_entry = {"externalId": "w", "items": [{"witemId": UNKNOWN}]}
    for address, name, sent in (("wblocks/upsert", "blocks", entry), ("logs/upsert", "logs", log_entry)):
        path, body = client_path(ana, address), {name: [sent]}
        (await reader.post(path, body)).refused(403)
        (await scoped.post(path, body)).refused(403)
        (await other_company.post(path, body)).refused(404)
        (await coach.post(path, {**body, "onconflict": "update"})).refused(400)
        (await coach.post(path, {name: []})).refused(400)
        (await coach.post(path, {name: [sent] * 101})).refused(400)
    (await coach.post(client_path(ana, "wblocks/upsert"), {"blocks": [{**entry, "nmae": 1}]})).refused(400, "nmae")
    long = [{"externalId": f"w:{at}", "items": [{"witemId": UNKNOWN}] * 100} for at in range(11)]
    (await coach.post(client_path(ana, "logs/upsert"), {"logs": long})).refused(400, "1000")


async def test_many_batches_for_the_same_clients_at_once_wait_for_one_another(coach: CoachClient) -> None:
    """Some batches of workouts for each of some clients, and as many of these clients: none is refused."""
    number_of_clients, turns = (5, 6) if MORE > 1 else (2, 4)
    clients = [
        await coach.create_customer(f"Client {number}", externalId=f"c:{number}") for number in range(number_of_clients)
    ]
    squat = await coach.create_exercise("Squat")

    def workouts(number: int) -> list[Json]:
        item = exercise_of(squat, exerciseInstructions=f"Batch {number}")
        return [{"externalId": f"w:{at}", "name": f"{at}", "date": MONDAY, "items": [item]} for at in range(4)]

    async def send(client: Json, number: int) -> list[Any]:
        entries = [{**each, "externalId": f"{client['_id']}:{each['externalId']}"} for each in workouts(number)]
        return outcomes(await upsert(coach, client, *entries))

    async def change(number: int) -> list[Any]:
        entries = [{"externalId": client["externalId"], "phone": str(number)} for client in clients]
        body = {"customers": entries, "onConflict": "update"}
        return outcomes((await coach.post("/coach/customers/batch", body)).ok())

    requests = [send(client, number) for number in range(turns) for client in clients]
    answers = await asyncio.gather(*requests, *map(change, range(turns)))
    assert {outcome for answer in answers for outcome in answer} <= {"created", "updated", "unchanged"}
    for client in clients:
        assert len(await coach.calendar(client)) == 4
