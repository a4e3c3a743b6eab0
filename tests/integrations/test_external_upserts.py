"""Creating and changing records by their identifiers in another system."""

from __future__ import annotations

import asyncio
from typing import Any
from urllib.parse import quote

import pytest

from tests.support.client import MONDAY, TUESDAY, CoachClient
from tests.support.training import Json, employee_key, exercise_of, metric_set, metrics_of

PATHS: dict[str, Json] = {
    "/coach/customers": {"name": "Ana", "sendInvitation": False},
    "/exercises": {"name": "Squat"},
    "/coach/programs": {"name": "Base"},
    "/coach/customers/{customer}/wblocks": {"name": "Legs", "date": MONDAY},
}
QUESTION = {"label": "How was it?", "type": "text"}
TASK = {"type": "TASK", "taskFields": {"title": "Walk"}}


@pytest.fixture(params=PATHS)
async def path(request: pytest.FixtureRequest, coach: CoachClient) -> str:
    """The path of each kind of record."""
    return str(request.param).replace("{customer}", (await coach.create_customer("Owner"))["_id"])


def body_of(path: str) -> dict[str, Any]:
    return PATHS["/coach/customers/{customer}/wblocks" if path.endswith("wblocks") else path]


async def test_the_first_request_creates_and_the_next_ones_change_what_is_sent(coach: CoachClient, path: str) -> None:
    by_id = f"{path}/by-external-id/crm:1@x"
    (await coach.put(by_id, {"metadata": {"k": "v"}})).refused(400, "name is required")
    created = (await coach.put(by_id, body_of(path) | {"metadata": {"k": "v"}, "externalId": "other"})).ok(201)
    assert (created["externalId"], created["metadata"], created["version"]) == ("crm:1@x", {"k": "v"}, 0)
    assert "firstAccessToken" not in created

    changed = (await coach.put(by_id, {"name": "New name", "version": 0})).ok(200)
    assert changed["_id"] == created["_id"]
    assert (changed["name"], changed["metadata"], changed["version"]) == ("New name", {"k": "v"}, 1)
    assert (await coach.put(by_id, {"name": "x", "version": 0})).refused(409)["code"] == "VERSION_CONFLICT"
    (await coach.put(f"{path}/by-external-id/a%20b", body_of(path))).refused(400, "externalId")
    (await coach.put(f"{path}/by-external-id/archive", body_of(path))).ok(201)
    assert (await coach.get(by_id)).ok()["name"] == "New name"
    assert (await coach.get(by_id, fields="name")).ok() == {"_id": created["_id"], "name": "New name"}
    (await coach.get(f"{path}/by-external-id/unknown")).refused(404)
    (await coach.get(f"{path}/by-external-id/a%20b")).refused(400, "externalId")


COMMON = (
    "auth0|5f7c8ec7c33c6c004bbafe82",
    "ana+test@example.com",
    "a/b",
    "a/../b",
    "dGVzdA==",
    "100%25",
    "x?y#z&k=v;w",
    '{"id":1}',
    "~" * 200,
)


async def test_identifiers_of_common_systems_are_accepted(coach: CoachClient, path: str) -> None:
    """Percent-encoded in the path and in the query, as they are in the body."""
    for external_id in COMMON:
        by_id = f"{path}/by-external-id/{quote(external_id, safe='')}"
        created = (await coach.put(by_id, body_of(path))).ok(201)
        assert created["externalId"] == external_id
        assert (await coach.put(by_id, body_of(path))).ok(200)["_id"] == created["_id"]
        if path == "/coach/customers":
            listed = (await coach.get(path, pageSize=1, pageNum=1, archived="false", externalId=external_id)).ok()
            assert [each["_id"] for each in listed["docs"]] == [created["_id"]]


async def test_ten_at_once_create_one(coach: CoachClient, path: str) -> None:
    by_id = f"{path}/by-external-id/x"
    replies = await asyncio.gather(*(coach.put(by_id, body_of(path)) for _ in range(10)))
    assert sorted(reply.status for reply in replies) == [200] * 9 + [201]
    assert len({reply.json["_id"] for reply in replies}) == 1


async def test_deleted_records_are_created_again(coach: CoachClient, path: str) -> None:
    by_id = f"{path}/by-external-id/x"
    first = (await coach.put(by_id, body_of(path))).ok(201)
    (await coach.delete(f"{path}/{first['_id']}")).ok(204)
    assert (await coach.put(by_id, body_of(path))).ok(201)["_id"] != first["_id"]


async def test_items_of_a_block_are_created_and_replaced_until_something_is_done(coach: CoachClient) -> None:
    customer = await coach.create_customer()
    path = f"/coach/customers/{customer['_id']}/wblocks"
    by_id = f"{path}/by-external-id/x"
    block = (await coach.put(by_id, {"name": "Legs", "date": MONDAY, "items": [TASK, TASK]})).ok(201)
    assert len(block["items"]) == 2
    assert len((await coach.put(by_id, {"date": TUESDAY})).ok()["items"]) == 2
    block = (await coach.put(by_id, {"items": [TASK]})).ok()
    assert (block["date"], len(block["items"])) == (TUESDAY, 1)
    unknown = {"type": "EXERCISE", "exerciseId": customer["_id"], "exerciseSets": [{"type": "reps"}]}
    (await coach.put(by_id, {"name": "Not stored", "items": [unknown]})).refused(404)

    log = f"{path}/{block['_id']}/witems/{block['items'][0]['_id']}/log"
    (await coach.put(log, {"isCompleted": True})).ok()
    refused = (await coach.put(by_id, {"name": "Not stored", "items": [TASK, TASK]})).refused(409)
    assert refused["code"] == "WORKOUT_LOGGED"
    assert (await coach.put(by_id, {"isRest": False})).ok()["name"] == "Legs"


async def test_items_of_a_block_keep_what_has_been_deleted_since(coach: CoachClient) -> None:
    """An exercise, a metric set and a form, in items that stay, and the first two in changed ones."""
    customer, squat, body = await coach.create_customer(), await coach.create_exercise(), await metric_set(coach)
    form = (await coach.post("/coach/forms", {"name": "Check-in", "questions": [QUESTION]})).ok(201)
    by_id = f"/coach/customers/{customer['_id']}/wblocks/by-external-id/x"
    items = [exercise_of(squat), metrics_of(body), {"type": "FORM", "form": {"formId": form["_id"]}}]
    before = (await coach.put(by_id, {"name": "Legs", "date": MONDAY, "items": items})).ok(201)
    for path in (f"/exercises/{squat['_id']}", f"/coach/metrics-sets/{body['_id']}", f"/coach/forms/{form['_id']}"):
        (await coach.delete(path)).ok(204)

    block = (await coach.put(by_id, {"items": [*items, TASK]})).ok()
    assert [item["_id"] for item in block["items"][:3]] == [item["_id"] for item in before["items"]]
    lighter = exercise_of(squat, {"type": "reps", "minPlannedReps": 5})
    block = (await coach.put(by_id, {"items": [TASK, lighter, metrics_of(body)]})).ok()
    assert [item["type"] for item in block["items"]] == ["TASK", "EXERCISE", "METRICS"]
    (await coach.put(by_id, {"items": [TASK]})).ok()
    (await coach.put(by_id, {"items": [TASK, lighter]})).refused(404, "items.1.exerciseId")


async def test_the_identifier_of_another_clients_block_is_taken(coach: CoachClient) -> None:
    paths = [f"/coach/customers/{(await coach.create_customer())['_id']}/wblocks/by-external-id/x" for _ in range(2)]
    body = {"name": "Legs", "date": MONDAY}
    (await coach.put(paths[0], body)).ok(201)
    assert (await coach.put(paths[1], body)).refused(409)["code"] == "EXTERNAL_ID_TAKEN"


async def test_an_employee_needs_the_permission_of_what_is_done_and_the_client_in_scope(coach: CoachClient) -> None:
    for path, area in (("/coach/customers", "customers"), ("/exercises", "exercises"), ("/coach/programs", "programs")):
        creator, editor = [coach.with_key(await employee_key(coach, f"{area}.{each}")) for each in ("create", "edit")]
        by_id = f"{path}/by-external-id/x"
        assert (await editor.put(by_id, body_of(path))).refused(403)["message"].find(f"{area}.create") > 0
        (await creator.put(by_id, body_of(path))).ok(201)
        assert (await creator.put(by_id, body_of(path))).refused(403)["message"].find(f"{area}.edit") > 0
        if path == "/coach/customers":
            assert (await editor.put(by_id, {"name": "x"})).refused(403)["code"] == "CUSTOMER_OUT_OF_SCOPE"
            editor = coach.with_key(await employee_key(coach, "customers.edit", scope="all"))
        (await editor.put(by_id, {"name": "x"})).ok(200)
        viewer = coach.with_key(await employee_key(coach, f"{area}.view", f"{area}.delete"))
        (await viewer.put(f"{path}/by-external-id/y", {"name": 1})).refused(403)


COMPLETE: dict[str, dict[str, Any]] = {
    "/coach/customers": {
        "name": "Ana",
        "surname": "Flores",
        "email": "Ana@Example.com",
        "birthday": "1990-02-03",
        "groups": ["B", "A"],
        "assignedTo": None,
        "sendInvitation": False,
    },
    "/exercises": {
        "name": "Squat",
        "aliases": ["Knee bend"],
        "tags": ["legs"],
        "videoLink": "https://example.com/squat",
        "media": [{"type": "image", "url": "https://example.com/squat.png"}],
    },
    "/coach/programs": {"name": "Base", "description": None, "tags": ["b", "a"]},
    "/coach/customers/{customer}/wblocks": {"name": "Legs", "date": MONDAY, "isRest": False},
}


async def test_an_identical_body_changes_nothing(coach: CoachClient, path: str) -> None:
    by_id, kind = (
        f"{path}/by-external-id/x",
        "/coach/customers/{customer}/wblocks" if path.endswith("wblocks") else path,
    )
    body = COMPLETE[kind] | {"metadata": {"a": "1", "b": "2"}}
    created = (await coach.put(by_id, body)).ok(201)

    changes = coach.ctx.db["changes"]
    count = await changes.count_documents({"companyId": coach.ctx.company_id})
    again = await coach.put(by_id, body | {"metadata": {"b": "2", "a": "1"}})
    assert again.ok(200) == created
    assert "X-Change-Id" not in again.headers
    (await coach.put(by_id, {**body, "version": 1})).refused(409)

    renamed = await coach.put(by_id, {**body, "name": "New name", "version": 0})
    assert (renamed.ok(200)["name"], renamed.json["version"]) == ("New name", 1)
    assert renamed.json.get("media") == created.get("media")
    assert await changes.count_documents({"companyId": coach.ctx.company_id}) == count + 1


async def test_equal_items_stay_and_others_are_replaced_in_one_change(coach: CoachClient) -> None:
    customer, exercise = await coach.create_customer(), await coach.create_exercise("Squat")
    form = (await coach.post("/coach/forms", {"name": "Week", "questions": [QUESTION]})).ok(201)
    [unit, *_] = (await coach.get("/metrics-units")).ok()
    metrics = {"name": "Body", "metrics": [{"name": "Weight", "metricUnitId": unit["_id"]}]}
    metric_set = (await coach.post("/coach/metrics-sets", metrics)).ok(201)
    sets = [{"type": "reps", "reps": 8, "load": 60}]
    circuit = {
        "circuitName": "C",
        "rounds": 2,
        "circuitExercises": [{"exerciseId": exercise["_id"], "sets": [{"type": "reps", "reps": 5}]}],
    }
    items: list[dict[str, Any]] = [
        {"type": "EXERCISE", "exerciseId": exercise["_id"], "exerciseSets": sets},
        {"type": "CIRCUIT", **circuit},
        TASK,
        {"type": "FORM", "form": {"formId": form["_id"]}},
        {"type": "FORM", "form": {"name": "Today", "questions": [QUESTION]}},
        {"type": "METRICS", "metricsFields": {"metricsSetId": metric_set["_id"]}},
        {"type": "REMINDER", "reminderFields": {"scheduledTime": "08:30", "message": "Drink"}},
    ]
    by_id = f"/coach/customers/{customer['_id']}/wblocks/by-external-id/x"
    body = {"name": "Legs", "date": MONDAY, "items": items}
    created = (await coach.put(by_id, body)).ok(201)
    (await coach.patch(f"/coach/forms/{form['_id']}", {"name": "Another week"})).ok()
    again = await coach.put(by_id, body)
    assert again.ok(200) == created
    assert "X-Change-Id" not in again.headers

    walk, run = TASK, {"type": "TASK", "taskFields": {"title": "Run"}}
    changed = await coach.put(
        by_id, body | {"name": "Leg day", "date": TUESDAY, "items": [*items[:2], run, *items[3:], walk]}
    )
    assert changed.ok(200)["version"] == created["version"] + 1
    before, after = [[item["_id"] for item in block["items"]] for block in (created, changed.json)]
    assert [new == old for new, old in zip(after, before, strict=False)] == [True, True, False, *[True] * 4]
    assert len(set(after)) == len(after) == 8
    assert (changed.json["name"], changed.json["date"]) == ("Leg day", TUESDAY)
    assert (changed.json["items"][2]["taskFields"]["title"], changed.json["items"][3]) == (
        "Run",
        created["items"][3] | {"version": 1},
    )
    (await coach.undo(changed)).ok()
    [undone] = (await coach.get(f"/coach/customers/{customer['_id']}/wblock", startDate=MONDAY, endDate=TUESDAY)).ok()
    assert [item["_id"] for item in undone["items"]] == before


async def test_a_block_of_which_something_is_done_may_be_sent_again(coach: CoachClient) -> None:
    customer = await coach.create_customer()
    path = f"/coach/customers/{customer['_id']}/wblocks"
    body = {"name": "Legs", "date": MONDAY, "items": [TASK, TASK]}
    block = (await coach.put(f"{path}/by-external-id/x", body)).ok(201)
    (await coach.put(f"{path}/{block['_id']}/witems/{block['items'][0]['_id']}/log", {"isCompleted": True})).ok()
    logged = (await coach.put(f"{path}/by-external-id/x", body)).ok(200)
    assert (logged["version"], [item["isCompleted"] for item in logged["items"]]) == (1, [True, False])
    assert (await coach.put(f"{path}/by-external-id/x", body | {"name": "Arms"})).ok(200)["version"] == 2
