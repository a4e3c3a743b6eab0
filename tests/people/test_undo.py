"""Who may undo what, and undoing at the same time."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from coaching_service.core.errors import Conflict
from coaching_service.core.ids import ObjectId
from coaching_service.people import api_keys
from coaching_service.people.changes import service as changes
from tests.support.client import MONDAY, SUNDAY, CoachClient
from tests.support.stored import stored_document
from tests.support.training import (
    add,
    block_with,
    client_path,
    employee_key,
    exercise_of,
    log,
    metric_set,
    metrics_of,
    path_of,
    read,
    task,
)


async def test_of_two_undos_at_once_one_succeeds(coach: CoachClient) -> None:
    ana = await coach.create_customer()
    block = await block_with(coach, ana, task("a"))
    removed = await coach.delete(f"{path_of(block)}/witems/{block['items'][0]['_id']}")
    replies = await asyncio.gather(*(coach.undo(removed) for _ in range(4)))
    assert sorted(reply.status for reply in replies) == [200, 409, 409, 409]
    assert {reply.json["code"] for reply in replies if reply.status == 409} == {"VERSION_CONFLICT"}
    assert len((await read(coach, block))["items"]) == 1
    [undone] = [reply.json["changeId"] for reply in replies if reply.status == 200]
    await coach.wait_until_numbered(undone)
    page = (await coach.get("/coach/changes", limit=100)).ok()["docs"]
    assert sum(change["operation"] == "undoChange" for change in page) == 1


async def test_undo_and_a_change_at_once_lose_nothing(coach: CoachClient) -> None:
    ana = await coach.create_customer()
    block = await block_with(coach, ana, task("a"))
    renamed = await coach.patch(path_of(block), {"name": "Arms"})
    undone, _ = await asyncio.gather(coach.undo(renamed), add(coach, block, task("b")))
    stored = await read(coach, block)
    assert len(stored["items"]) == 2
    assert stored["name"] == ("Legs" if undone.status == 200 else "Arms")
    assert undone.status in (200, 409)


async def test_undo_of_an_assignment_of_metrics_needs_the_permission_for_metrics(coach: CoachClient) -> None:
    ana, body = await coach.create_customer(), await metric_set(coach)
    assigned = await coach.post(client_path(ana, "metrics-sets"), {"metricsSetId": body["_id"]})
    viewer = ("customers.view", "metrics.view")
    editor = coach.with_key(await employee_key(coach, *viewer, "customers.edit", scope="all"))
    (await editor.undo(assigned)).refused(403, "metrics.edit")
    blind = coach.with_key(await employee_key(coach, "customers.view", "metrics.edit", scope="all"))
    (await blind.undo(assigned)).refused(404)
    measurer = coach.with_key(await employee_key(coach, *viewer, "metrics.edit", scope="all"))
    (await measurer.undo(assigned)).ok()


async def test_undo_of_a_log_with_metrics_needs_the_permission_for_the_client(coach: CoachClient) -> None:
    ana, body = await coach.create_customer(), await metric_set(coach)
    block = await block_with(coach, ana, metrics_of(body))
    values = [{"metricId": body["metrics"][0]["_id"], "value": 70}]
    logged = await log(coach, block, block["items"][0], isCompleted=True, values=values)
    measurer = coach.with_key(await employee_key(coach, "customers.view", "metrics.edit", scope="all"))
    (await measurer.undo(logged)).refused(403, "customers.edit")
    editor = coach.with_key(await employee_key(coach, "customers.view", "customers.edit", scope="all"))
    (await editor.undo(logged)).ok()


async def test_undo_of_an_override_needs_the_permission_to_edit(coach: CoachClient) -> None:
    shared = await coach.ctx.db["exercises"].find_one({"companyId": None, "deletedAt": None})
    assert shared is not None
    saved = await coach.put(f"/exercises/{shared['_id']}/override", {"aliases": ["Mine"]})
    editor = coach.with_key(await employee_key(coach, "exercises.view", "exercises.edit"))
    (await editor.undo(saved)).ok()


@pytest.mark.parametrize("kind", ["note", "client"])
async def test_changes_of_a_deleted_client_are_not_found(coach: CoachClient, kind: str) -> None:
    client = await coach.post("/coach/customers", {"name": "Ana"})
    note = await coach.post(client_path(client.json, "notes"), {"content": "Hello"})
    (await coach.delete(client_path(client.json))).ok(204)
    (await coach.undo(note if kind == "note" else client)).refused(404)


async def test_messages_to_many_clients_cannot_be_undone(coach: CoachClient) -> None:
    ids = [(await coach.create_customer(name))["_id"] for name in ("Ana", "Bo")]
    sent = await coach.post("/coach/customers/bulk/message", {"ids": ids, "text": "Hello"})
    sent.ok()
    assert (await coach.undo(sent)).refused(409)["code"] == "NOT_UNDOABLE"


async def test_undo_of_a_batch_names_its_changes_and_can_be_undone(coach: CoachClient) -> None:
    clients = [await coach.create_customer(name) for name in ("Ana", "Bo", "Cy")]
    ids = [client["_id"] for client in clients]
    program = (await coach.post("/coach/programs", {"name": "Base"})).ok(201)
    (await coach.post(f"/coach/programs/{program['_id']}/wblocks", {"name": "Legs", "day": 1})).ok(201)
    body = {"ids": ids, "programId": program["_id"], "startDate": MONDAY}
    assigned = await coach.post("/coach/customers/bulk/assign-program", body)

    async def state() -> list[tuple[int, int]]:
        """Of each client, the numbers of workouts and of entries of the feed."""
        feeds = [await coach.get(client_path(client, "activity-feed"), page=1, limit=9) for client in clients]
        return [
            (len(await coach.calendar(client)), len(feed.ok()["docs"]))
            for client, feed in zip(clients, feeds, strict=True)
        ]

    before = await state()
    assert before == [(1, 1)] * 3
    undone = await coach.undo(assigned)
    assert (undone.ok()["failed"], await state()) == ([], [(0, 0)] * 3)
    stored = await coach.ctx.db["changes"].find({"batchId": ObjectId(assigned.headers["X-Change-Id"])}).to_list(None)
    undoes = await coach.ctx.db["changes"].find({"_id": {"$in": [each["undoneBy"] for each in stored]}}).to_list(None)
    assert {(each["undoOf"], str(each["batchId"])) for each in undoes} == {
        (each["_id"], undone.json["changeId"]) for each in stored
    }
    assert (await coach.undo(undone)).ok()["failed"] == []
    assert await state() == before


async def test_undo_of_a_batch_needs_the_permission(coach: CoachClient) -> None:
    ids = [(await coach.create_customer(name))["_id"] for name in ("Ana", "Bo")]
    archived = await coach.post("/coach/customers/bulk/archive", {"ids": ids})
    viewer = coach.with_key(await employee_key(coach, "customers.view", scope="all"))
    (await viewer.undo(archived)).refused(403, "customers.edit")


async def test_a_changed_coach_cannot_undo_what_is_no_longer_in_scope(coach: CoachClient) -> None:
    ana = await coach.create_customer()
    key = await employee_key(coach, "customers.view", "customers.edit")
    employee = coach.with_key(key)
    eli = await coach.ctx.db["coaches"].find_one({"companyId": coach.ctx.company_id, "name": "Eli"})
    assert eli is not None
    (await coach.patch(client_path(ana), {"assignedTo": str(eli["_id"])})).ok()
    note = await employee.post(client_path(ana, "notes"), {"content": "Hello"})
    note.ok(201)
    (await coach.patch(client_path(ana), {"assignedTo": None})).ok()
    (await employee.undo(note)).refused(404)


async def test_an_assistant_undoes_only_what_was_changed_with_its_own_credential(coach: CoachClient) -> None:
    ana = await coach.create_customer()
    other = coach.with_key(str((await api_keys.create(coach.ctx, "Other"))["key"]))
    foreign = await other.post(client_path(ana, "notes"), {"content": "From another key"})
    credential = (await stored_document(coach.ctx.db["changes"], {"_id": ObjectId(foreign.headers["X-Change-Id"])}))[
        "credentialId"
    ]
    own = replace(coach.ctx, interface="assistant", operation="undo")
    with pytest.raises(Conflict) as refused:
        await changes.undo_change(own, ObjectId(foreign.headers["X-Change-Id"]))
    assert refused.value.code == "NOT_UNDOABLE"
    same = own.acting_as(replace(own.caller, credential_id=credential))
    assert (await changes.undo_change(same, ObjectId(foreign.headers["X-Change-Id"])))["ok"] == 1


async def test_a_conflict_names_every_document_that_has_changed_since(coach: CoachClient) -> None:
    customer, exercise = await coach.create_customer(), await coach.create_exercise()
    client = f"/coach/customers/{customer['_id']}"
    blocks = [await coach.schedule(customer, name=name) for name in ("One", "Two", "Three")]
    for block in blocks:
        (await coach.post(f"{client}/wblocks/{block['_id']}/witems", exercise_of(exercise))).ok(201)
    body = {"startDate": MONDAY, "endDate": SUNDAY, "progression": {"load": {"add": 5}}}
    adjusted = await coach.post(f"{client}/schedule/adjust", body)
    for block in blocks[:2]:
        (await coach.patch(f"{client}/wblocks/{block['_id']}", {"name": "Renamed"})).ok()

    refused = (await coach.undo(adjusted)).refused(409)

    assert refused["code"] == "VERSION_CONFLICT"
    assert refused["documents"] == [{"kind": "workout", "_id": block["_id"]} for block in blocks[:2]]
    assert all(block["_id"] in refused["message"] for block in blocks[:2])
    assert [block["name"] for block in await coach.calendar(customer)] == ["Renamed", "Renamed", "Three"]
