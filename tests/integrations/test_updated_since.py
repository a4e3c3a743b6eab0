"""What has changed since a time, in every list that a program keeps a copy of (contract 14, changed since)."""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from typing import Any

import pytest

from coaching_service.core.database.documents import now
from tests.conftest import PASSWORD
from tests.core.test_uploads import form
from tests.support.client import MONDAY, SUNDAY, TUESDAY, CoachClient, Reply
from tests.support.media_files import picture
from tests.support.training import (
    Json,
    block_with,
    client_path,
    exercise_of,
    log,
    move,
    own_log,
    path_of,
    task,
)
from tests.support.updated_since import ACTIVE, PAGE, WEEK, Row, World, Write

DONE = {"customerSets": [{"reps": 5, "load": 100}], "isCompleted": True}


@pytest.fixture
async def world(coach: CoachClient) -> World:
    """A company whose records were changed long ago."""
    return World(coach)


async def test_every_write_of_a_client_appears(
    world: World, coach: CoachClient, interactive: CoachClient, anonymous: CoachClient
) -> None:
    ana, bo, squat = (
        await coach.create_customer("Ana"),
        await coach.create_customer("Bo"),
        await coach.create_exercise(),
    )
    a, b, path, own = ana["_id"], bo["_id"], client_path(ana), await coach.as_client(ana)
    email, by_id = f"ana@{a}.test", "/coach/customers/by-external-id/crm:1"
    fay = (await interactive.post("/coach/employees", {"name": "Fay", "email": f"fay@{a}.test", "permissions": []})).ok(
        201
    )["_id"]
    photo = partial(form, field="profilePhotoFile")
    block = await block_with(coach, ana, exercise_of(squat))

    def bulk(action: str, **fields: Any) -> Write:
        return lambda: coach.post(f"/coach/customers/bulk/{action}", {"ids": [a, b], **fields})

    rows: dict[str, Row] = {
        "create": (lambda: coach.post("/coach/customers", {"name": "Cy", "sendInvitation": False}), None),
        "upsert a new one": (lambda: coach.put(by_id, {"name": "Di", "sendInvitation": False}), None),
        "upsert": (lambda: coach.put(by_id, {"surname": "Doe"}), None),
        "change": (lambda: coach.patch(path, {"phone": "1"}), {a}),
        "change metadata": (lambda: coach.patch(path, {"metadata": {"plan": "gold"}}), {a}),
        "undo a change": (world.undoing(lambda: coach.patch(path, {"name": "Anna"})), {a}),
        "photo": (lambda: coach.send("PUT", f"{path}/profile-photo", data=photo(picture())), {a}),
        "own profile": (lambda: own.patch("/customer/me", {"phone": "2"}), {a}),
        "first access, with an address": (
            lambda: anonymous.post(
                "/auth/first-access", {"token": ana["firstAccessToken"], "password": PASSWORD, "email": email}
            ),
            {a},
        ),
        "bulk groups": (bulk("groups-add", groups=["Spring"]), {a, b}),
        "undo of bulk groups": (world.undoing(bulk("groups-remove", groups=["Spring"])), {a, b}),
        "bulk trainer": (bulk("assign-trainer", coachId=fay), {a, b}),
        "trainer removed": (lambda: interactive.delete(f"/coach/employees/{fay}"), {a, b}),
        "restore": (lambda: restored(coach, ana), {a}),
        "a log, of which only figures follow": (lambda: log(coach, block, block["items"][0], **DONE), set()),
    }
    await world.check("/coach/customers", ACTIVE, rows)
    archived: dict[str, Row] = {
        "archive": (lambda: coach.put("/coach/customers/archive", {"id": a}), {a}),
        "bulk archive": (bulk("archive"), {b}),
    }
    await world.check("/coach/customers", {**ACTIVE, "archived": "true"}, archived)
    await world.check("/coach/customers", ACTIVE, {"bulk restore": (bulk("unarchive"), {a, b})})
    matches = {**ACTIVE, "contains": "an", "groups": "Spring"}
    await world.check("/coach/customers", matches, {"change a match": (bulk("groups-add", groups=["X"]), {a})})


async def restored(coach: CoachClient, customer: Json) -> Reply:
    """Archive a client and restore it."""
    (await coach.put("/coach/customers/archive", {"id": customer["_id"]})).ok()
    return await coach.put("/coach/customers/unarchive", {"id": customer["_id"]})


async def test_every_write_of_a_workout_appears(world: World, coach: CoachClient) -> None:
    ana, squat, row = (
        await coach.create_customer("Ana"),
        await coach.create_exercise(),
        await coach.create_exercise("Row"),
    )
    path, own = client_path(ana), await coach.as_client(ana)
    first = await block_with(coach, ana, exercise_of(squat), exercise_of(row), task())
    second = await block_with(coach, ana, task(), date=TUESDAY)
    a, b, at = first["_id"], second["_id"], path_of(first)
    program = (await coach.post("/coach/programs", {"name": "Base"})).ok(201)
    (await coach.post(f"/coach/programs/{program['_id']}/wblocks", {"name": "Push", "day": 2, "items": [task()]})).ok(
        201
    )
    template = (await coach.post("/coach/workout-templates", {"name": "Short", "items": [task()]})).ok(201)["_id"]
    item, other = first["items"][0], first["items"][1]
    by_id = f"{path}/wblocks/by-external-id/crm:1"
    on_friday = {"startDate": "2026-03-06", "programId": program["_id"]}
    check_in = {"taskFields": {"title": "Weigh"}, "everyDays": 7, "startDate": MONDAY}

    def schedule(action: str, **fields: Any) -> Write:
        return lambda: coach.post(f"{path}/schedule/{action}", {"startDate": MONDAY, "endDate": MONDAY, **fields})

    rows: dict[str, Row] = {
        "create": (lambda: coach.post(f"{path}/wblocks", {"name": "New", "date": MONDAY, "items": [task()]}), None),
        "upsert a new one": (lambda: coach.put(by_id, {"name": "New", "date": MONDAY}), None),
        "upsert": (lambda: coach.put(by_id, {"items": [task()]}), None),
        "change": (lambda: coach.patch(at, {"name": "Other"}), {a}),
        "another day": (lambda: coach.patch(path_of(second), {"date": "2026-03-04"}), {b}),
        "undo a change": (world.undoing(lambda: coach.patch(at, {"name": "Third"})), {a}),
        "undo a deletion": (world.undoing(lambda: coach.delete(path_of(second))), {b}),
        "add an item": (lambda: coach.post(f"{at}/witems", task("Run")), {a}),
        "change an item": (lambda: coach.patch(f"{at}/witems/{item['_id']}", {"supersetId": "A"}), {a}),
        "undo a change of an item": (
            world.undoing(lambda: coach.patch(f"{at}/witems/{item['_id']}", {"supersetId": "B"})),
            {a},
        ),
        "move within": (lambda: move(coach, item, first, first, 1), {a}),
        "move to another": (lambda: move(coach, first["items"][2], first, second, 0), {a, b}),
        "adjust": (schedule("adjust", progression={"load": {"add": 5}}), {a}),
        "replace an exercise": (schedule("replace-exercise", exerciseId=row["_id"], withExerciseId=squat["_id"]), {a}),
        "log an item": (lambda: log(coach, first, item, **DONE), {a}),
        "undo a log": (world.undoing(lambda: log(coach, first, item, isCompleted=False)), {a}),
        "own log": (lambda: own_log(own, first, other, **DONE), {a}),
        "log a session": (lambda: coach.put(f"{at}/log", {"sessionRpe": 7}), {a}),
        "own log of a session": (lambda: own.put(f"/customer/wblocks/{a}/log", {"durationMinutes": 45}), {a}),
        "remove an item": (lambda: coach.delete(f"{at}/witems/{other['_id']}"), {a}),
        "copy": (lambda: coach.post(f"{at}/copy", {"date": TUESDAY}), None),
        "shift": (lambda: coach.post(f"{path}/wblocks/shift", {"from": "2026-03-04", "days": 1}), {b}),
        "template": (
            lambda: coach.post(
                f"/coach/workout-templates/{template}/apply", {"customerId": ana["_id"], "date": MONDAY}
            ),
            None,
        ),
    }
    await world.check(f"{path}/wblock", WEEK, rows)

    async def count_new(write: Write, query: Json = WEEK) -> int:
        await world.age()
        since = await world.as_of(f"{path}/wblock", query)
        assert (await write()).status < 300
        return len(await world.read(f"{path}/wblock", since, query))

    two = {"blocks": [{"name": "A", "date": MONDAY}, {"name": "B", "date": SUNDAY}]}
    bulk = {"ids": [ana["_id"]], **on_friday}
    assign = {"customerId": ana["_id"], "startDate": "2026-03-06"}
    assert await count_new(lambda: coach.post(f"{path}/wblocks/batch", two)) == 2
    assert await count_new(schedule("copy", targetDate=SUNDAY, onConflict="add")) > 1
    assert await count_new(lambda: coach.post(f"/coach/programs/{program['_id']}/assign", assign)) == 1
    assert await count_new(lambda: coach.post("/coach/customers/bulk/assign-program", bulk)) == 1
    later = {"startDate": "2026-03-01", "endDate": "2027-03-01"}
    assert await count_new(lambda: coach.post(f"{path}/check-ins", check_in), later) >= 1

    # Of the blocks that appear, `order` is that among all blocks of their day.
    await world.age()
    since = await world.as_of(f"{path}/wblock", WEEK)
    last = (await coach.post(f"{path}/wblocks", {"name": "Last", "date": MONDAY})).ok(201)
    [changed] = (await coach.get(f"{path}/wblock", **WEEK, updatedSince=since)).ok()
    assert changed == last
    assert changed["order"] > 0
    at_once = (await coach.get(f"{path}/wblock", **WEEK, updatedSince=since, externalId="crm:1")).ok()
    assert at_once == []


async def test_every_write_of_a_program_appears(world: World, coach: CoachClient) -> None:
    ana = await coach.create_customer("Ana")
    await block_with(coach, ana, task())
    program = (await coach.post("/coach/programs", {"name": "Base"})).ok(201)
    p, path, by_id = program["_id"], f"/coach/programs/{program['_id']}", "/coach/programs/by-external-id/crm:1"
    from_calendar = {"customerId": ana["_id"], "startDate": MONDAY, "endDate": SUNDAY, "name": "Copied"}
    block = (await coach.post(f"{path}/wblocks", {"name": "Push", "day": 1, "items": [task()]})).ok(201)
    days = {"startDay": 1, "endDay": 1, "targetDay": 3}

    rows: dict[str, Row] = {
        "create": (lambda: coach.post("/coach/programs", {"name": "Next"}), None),
        "upsert a new one": (lambda: coach.put(by_id, {"name": "New"}), None),
        "upsert": (lambda: coach.put(by_id, {"tags": ["x"]}), None),
        "from a calendar": (lambda: coach.post("/coach/programs/from-calendar", from_calendar), None),
        "change": (lambda: coach.patch(path, {"description": "x"}), {p}),
        "undo a change": (world.undoing(lambda: coach.patch(path, {"name": "Top"})), {p}),
        "undo a deletion": (world.undoing(lambda: coach.delete(path)), {p}),
        "restore": (lambda: coach.put(f"{path}/unarchive"), set()),
    }
    await world.check("/coach/programs", ACTIVE, rows)
    matches = {**ACTIVE, "keywords": "base"}
    await world.check(
        "/coach/programs", matches, {"change a match": (lambda: coach.patch(path, {"name": "Base 2"}), {p})}
    )
    archiving: dict[str, Row] = {"archive": (lambda: coach.put(f"{path}/archive"), {p})}
    await world.check("/coach/programs", {**ACTIVE, "archived": "true"}, archiving)

    at = path_of(block)
    blocks: dict[str, Row] = {
        "create": (lambda: coach.post(f"{path}/wblocks", {"name": "Pull", "day": 2}), None),
        "change": (lambda: coach.patch(at, {"name": "Press"}), {block["_id"]}),
        "add an item": (lambda: coach.post(f"{at}/witems", task()), {block["_id"]}),
        "remove an item": (lambda: coach.delete(f"{at}/witems/{block['items'][0]['_id']}"), {block["_id"]}),
    }
    await world.check(f"{path}/wblock", {"startDay": 1, "endDay": 7}, blocks)
    await world.age()
    since = await world.as_of(f"{path}/wblock", {"startDay": 1, "endDay": 7})
    created = (await coach.post(f"{path}/copy-days", days)).ok(201)["created"]
    assert await world.read(f"{path}/wblock", since, {"startDay": 1, "endDay": 7}) == [created[0]["_id"]]


async def test_every_write_of_an_exercise_appears(world: World, coach: CoachClient) -> None:
    await coach.ctx.db["exercises"].update_many({"companyId": None}, {"$set": {"updatedAt": now() - timedelta(days=1)}})
    squat = await coach.create_exercise("Garage squat")
    s, path, by_id = squat["_id"], f"/exercises/{squat['_id']}", "/exercises/by-external-id/crm:1"
    shared = (await coach.get("/exercises/unified", **PAGE, keywords="goblet squat")).ok()["docs"][0]
    g, of_shared = shared["_id"], f"/exercises/{shared['_id']}"
    media: list[str] = []

    async def upload(to: str) -> Reply:
        reply = await coach.send("POST", f"{to}/media", data=form(picture(), "file"))
        media.append(reply.json["_id"])
        return reply

    rows: dict[str, Row] = {
        "create": (lambda: coach.post("/exercises", {"name": "Row"}), None),
        "upsert a new one": (lambda: coach.put(by_id, {"name": "New"}), None),
        "upsert": (lambda: coach.put(by_id, {"tags": ["x"]}), None),
        "change": (lambda: coach.patch(path, {"level": "beginner"}), {s}),
        "undo a change": (world.undoing(lambda: coach.patch(path, {"name": "Squat"})), {s}),
        "undo a deletion": (world.undoing(lambda: coach.delete(path)), {s}),
        "upload": (lambda: upload(path), {s}),
        "remove an upload": (lambda: coach.delete(f"{path}/media/{media[0]}"), {s}),
    }
    await world.check("/exercises", PAGE, rows)
    overriding: dict[str, Row] = {
        "undo the first override": (
            world.undoing(lambda: coach.put(f"{of_shared}/override", {"aliases": ["Zq"]})),
            {g},
        ),
        "override": (lambda: coach.put(f"{of_shared}/override", {"videoLink": "https://example.com/v"}), {g}),
        "upload to a shared one": (lambda: upload(of_shared), {g}),
        "remove the override": (lambda: coach.delete(f"{of_shared}/override"), {g}),
        "own one": (lambda: coach.patch(path, {"level": "expert"}), {s}),
    }
    await world.check("/exercises/unified", PAGE, overriding)
    matches: dict[str, Row] = {
        "override": (lambda: coach.put(f"{of_shared}/override", {"aliases": ["Zqcup"]}), {g}),
        "own one": (lambda: coach.patch(path, {"level": None}), {s}),
    }
    await world.check("/exercises/unified", {**PAGE, "keywords": "squat"}, matches)

    await world.age()
    (await coach.put(f"{of_shared}/override", {"aliases": ["Zqmug"]})).ok()
    newest = (await coach.get("/exercises/unified", **PAGE, sort="updatedAt", keywords="goblet")).ok()["docs"]
    assert newest[-1]["_id"] == g
    assert [each["updatedAt"] for each in newest] == sorted(each["updatedAt"] for each in newest)


@pytest.mark.parametrize("path", ["/coach/forms", "/coach/metrics-sets", "/coach/workout-templates"])
async def test_every_write_of_a_library_entry_appears(world: World, coach: CoachClient, path: str) -> None:
    unit = (await coach.get("/metrics-units")).ok()[0]["_id"]
    fields: Json = {
        "/coach/forms": {"questions": [{"label": "Well?"}]},
        "/coach/metrics-sets": {"metrics": [{"name": "Weight", "metricUnitId": unit}]},
        "/coach/workout-templates": {"items": [task()]},
    }[path]
    entry = (await coach.post(path, {"name": "First", **fields})).ok(201)
    at = f"{path}/{entry['_id']}"
    rows: dict[str, Row] = {
        "create": (lambda: coach.post(path, {"name": "Second", **fields}), None),
        "change": (lambda: coach.patch(at, {"name": "Third"}), {entry["_id"]}),
        "change what it holds": (lambda: coach.patch(at, fields), {entry["_id"]}),
        "undo a change": (world.undoing(lambda: coach.patch(at, {"name": "Fourth"})), {entry["_id"]}),
        "undo a deletion": (world.undoing(lambda: coach.delete(at)), {entry["_id"]}),
    }
    await world.check(path, {}, rows)
