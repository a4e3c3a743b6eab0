"""The history of a company, and undo."""

from __future__ import annotations

from typing import Any

import pytest

from coaching_service.people.changes import service as changes
from coaching_service.people.team import CustomersScope
from tests.support.client import MONDAY, TUESDAY, UNKNOWN, CoachClient, Reply
from tests.support.training import (
    block_with,
    client_path,
    employee_key,
    feed_types,
    form_of,
    log,
    own_log,
    path_of,
    read,
    task,
)

Json = dict[str, Any]


def change_id(reply: Reply) -> str:
    """The change that a request has made."""
    return str(reply.headers["X-Change-Id"])


async def read_history(reader: CoachClient, **query: Any) -> list[str]:
    """The changes that a coach sees, newest first, read one at a time."""
    seen: list[str] = []
    page: Json = {"hasMore": True, "nextCursor": None}
    while page["hasMore"]:
        after = {"after": page["nextCursor"]} if page["nextCursor"] else {}
        page = (await reader.get("/coach/changes", limit=1, **query, **after)).ok()
        seen += [each["_id"] for each in page["docs"]]
    return seen


async def test_change_names_author_interface_and_operation(coach: CoachClient) -> None:
    ana = await coach.create_customer()
    created = await coach.post(client_path(ana, "notes"), {"content": "Hello"})
    note = created.ok(201)
    changed = await coach.patch(client_path(ana, "notes", note["_id"]), {"content": "Goodbye"})
    change = (await coach.get(f"/coach/changes/{change_id(changed)}")).ok()
    assert change["actor"] == {"type": "key", "_id": str(coach.ctx.caller.id), "name": "Olga Owner"}
    assert (change["via"], change["operation"], change["customerId"]) == ("apiKey", "updateNote", ana["_id"])
    assert change["summary"] == "1 note changed"
    [document] = change["documents"]
    assert (document["kind"], document["_id"], document["action"]) == ("note", note["_id"], "changed")
    assert (document["before"], document["after"]) == ({"content": "Hello"}, {"content": "Goodbye"})
    page = (await coach.get("/coach/changes", customerId=ana["_id"])).ok()
    assert [each["operation"] for each in page["docs"]] == ["updateNote", "createNote", "createCustomer"]
    assert page["docs"][0]["undoableUntil"] is not None
    assert page["docs"][2]["undoableUntil"] is None  # creating a client cannot be undone
    assert "documents" in page["docs"][0] and "before" not in page["docs"][0]["documents"][0]


async def test_history_is_read_by_cursor_newest_first(coach: CoachClient) -> None:
    """Also by an employee who may see only the first change, behind several pages."""
    program = await coach.post("/coach/programs", {"name": "Strength"})
    ana, bo = await coach.create_customer("Ana"), await coach.create_customer("Bo")
    notes = [change_id(await coach.post(client_path(each, "notes"), {"content": "a"})) for each in (ana, bo, ana, bo)]
    await coach.wait_until_numbered(notes[-1])

    created = [change_id(program), *notes]
    assert [each for each in await read_history(coach) if each in created] == created[::-1]
    of_ana = await read_history(coach, customerId=ana["_id"])
    assert of_ana[:-1] == [notes[2], notes[0]]
    scoped = coach.with_key(await employee_key(coach, "customers.view", "programs.view"))
    page = (await scoped.get("/coach/changes", limit=1)).ok()
    assert [each["_id"] for each in page["docs"]] == [change_id(program)]
    first = (await coach.get("/coach/changes", limit=1)).ok()
    (await coach.get("/coach/changes", limit=1, customerId=ana["_id"], after=first["nextCursor"])).refused(400)


@pytest.mark.parametrize("scope", ["assigned", "all"])
async def test_history_goes_on_behind_many_changes_that_the_caller_may_not_see(
    coach: CoachClient, scope: CustomersScope, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Changes of clients outside the scope, or of an area without the permission; a client out of scope has none.

    They are read in one request or, if they are more than it may read, in several, which find nothing at first.
    """
    ana, program = await coach.create_customer(), await coach.post("/coach/programs", {"name": "Strength"})
    note = await coach.post(client_path(ana, "notes"), {"content": "a"})
    path, body = {
        "assigned": (client_path(ana, "notes"), {"content": "b"}),
        "all": ("/coach/programs", {"name": "Endurance"}),
    }[scope]
    hidden = [await coach.post(path, body) for _ in range(8)]
    await coach.wait_until_numbered(change_id(hidden[-1]))
    permissions = ("customers.view", "programs.view") if scope == "assigned" else ("customers.view",)
    reader = coach.with_key(await employee_key(coach, *permissions, scope=scope))

    seen = await read_history(reader)

    assert seen[0] == change_id(program if scope == "assigned" else note)
    assert not {change_id(each) for each in hidden} & set(seen)
    assert bool(await read_history(reader, customerId=ana["_id"])) is (scope == "all")
    monkeypatch.setattr(changes, "_MAX_READS", 1)
    assert await read_history(reader) == seen


async def test_requests_that_change_nothing_have_no_change(coach: CoachClient) -> None:
    ana = await coach.create_customer()
    (await coach.put("/coach/customers/archive", {"id": ana["_id"]})).ok()
    again = await coach.put("/coach/customers/archive", {"id": ana["_id"]})
    again.ok()
    assert "X-Change-Id" not in again.headers
    assert "X-Change-Id" not in (await coach.get(client_path(ana))).headers


async def test_changed_fields_are_restored(coach: CoachClient) -> None:
    ana = await coach.create_customer("Ana", phone="123")
    renamed = await coach.patch(client_path(ana), {"name": "Anna", "phone": None})
    renamed.ok()
    result = (await coach.undo(renamed)).ok()
    assert (result["ok"], result["failed"]) == (1, [])
    restored = (await coach.get(client_path(ana))).ok()
    assert (restored["name"], restored["phone"], restored["version"]) == ("Ana", "123", 2)
    assert await coach.names(contains="Ana") == ["Ana"]
    assert await coach.names(contains="Anna") == []
    assert (await coach.get(f"/coach/changes/{change_id(renamed)}")).ok()["undoneBy"] == result["changeId"]
    (await coach.undo(renamed)).refused(409)


async def test_archive_is_undone_with_the_counts(coach: CoachClient) -> None:
    ana = await coach.create_customer()
    archived = await coach.put("/coach/customers/archive", {"id": ana["_id"]})
    assert (await coach.customers())["totalDocs"] == 0
    (await coach.undo(archived)).ok()
    assert (await coach.customers())["totalDocs"] == 1
    assert (await coach.customers(archived="true"))["totalDocs"] == 0


async def test_undo_can_be_undone_and_changes_are_undone_in_reverse(coach: CoachClient) -> None:
    ana = await coach.create_customer()
    block = await block_with(coach, ana, task("a"))
    before = await read(coach, block)
    added = await coach.post(f"{path_of(block)}/witems", task("b"))
    moved = await coach.patch(path_of(block), {"date": TUESDAY, "name": "Tuesday"})
    removed = await coach.delete(f"{path_of(block)}/witems/{block['items'][0]['_id']}")
    deleted = await coach.delete(path_of(block))
    undone = await coach.undo(deleted)
    undone.ok()
    assert [item["taskFields"]["title"] for item in (await read(coach, block))["items"]] == ["b"]
    (await coach.undo(moved)).refused(409)  # the item was removed since
    (await coach.undo(removed)).ok()
    (await coach.undo(moved)).ok()
    (await coach.undo(added)).ok()
    assert without_versions(await read(coach, block)) == without_versions(before)
    (await coach.post(f"/coach/changes/{undone.json['changeId']}/undo")).refused(409)  # changed since


async def test_undo_of_an_undo_changes_again(coach: CoachClient) -> None:
    ana = await coach.create_customer("Ana")
    renamed = await coach.patch(client_path(ana), {"name": "Bea"})
    undone = await coach.undo(renamed)
    (await coach.undo(undone)).ok()
    assert (await coach.get(client_path(ana))).ok()["name"] == "Bea"
    (await coach.undo(renamed)).ok()
    assert (await coach.get(client_path(ana))).ok()["name"] == "Ana"


async def test_log_of_a_coach_is_undone_with_what_follows(coach: CoachClient) -> None:
    ana = await coach.create_customer()
    block = await block_with(coach, ana, task("a"))
    logged = await log(coach, block, block["items"][0], isCompleted=True)
    logged.ok()
    assert await feed_types(coach, ana) == ["item_logged", "workout_completed"]
    (await coach.undo(logged)).ok()
    assert (await read(coach, block))["isCompleted"] is False
    assert await feed_types(coach, ana) == []


async def test_own_log_of_a_client_cannot_be_undone(coach: CoachClient) -> None:
    ana = await coach.create_customer()
    block = await block_with(coach, ana, task("a"))
    client = await coach.as_client(ana)
    logged = await own_log(client, block, block["items"][0], isCompleted=True)
    logged.ok()
    assert (await coach.undo(logged)).refused(409)["code"] == "NOT_UNDOABLE"
    change = (await coach.get(f"/coach/changes/{change_id(logged)}")).ok()
    assert (change["via"], change["actor"]["type"], change["undoableUntil"]) == ("client", "client", None)
    assert change["documents"][0]["before"] is None


async def test_bulk_is_one_batch(coach: CoachClient) -> None:
    ids = [(await coach.create_customer(name))["_id"] for name in ("Ana", "Bea", "Cai")]
    added = await coach.post("/coach/customers/bulk/groups-add", {"ids": ids, "groups": ["Team"]})
    added.ok()
    (await coach.patch(f"/coach/customers/{ids[1]}", {"groups": ["Other"]})).ok()
    result = (await coach.undo(added)).ok()
    assert (result["ok"], [(each["documentId"], each["code"]) for each in result["failed"]]) == (
        2,
        [(ids[1], "VERSION_CONFLICT")],
    )
    groups = [customer["customerRoleData"]["groups"] for customer in (await coach.customers())["docs"]]
    assert groups == [[], ["Other"], []]
    last = await coach.patch(f"/coach/customers/{ids[0]}", {"name": "Ann"})
    await coach.wait_until_numbered(change_id(last))
    page = (await coach.get("/coach/changes", limit=100)).ok()
    assert sum(change["batchId"] == change_id(added) for change in page["docs"]) == 3


async def test_undo_needs_the_permission_and_the_client_in_scope(
    coach: CoachClient, other_company: CoachClient
) -> None:
    ana = await coach.create_customer()
    renamed = await coach.patch(client_path(ana), {"name": "Bea"})
    viewer = coach.with_key(await employee_key(coach, "customers.view", scope="all"))
    (await viewer.undo(renamed)).refused(403, "customers.edit")
    scoped = coach.with_key(await employee_key(coach, "customers.view", "customers.edit"))
    unknown = (await coach.post(f"/coach/changes/{UNKNOWN}/undo")).refused(404)
    assert (await scoped.undo(renamed)).refused(404) == unknown
    assert (await other_company.undo(renamed)).refused(404) == unknown
    (await other_company.get(f"/coach/changes/{change_id(renamed)}")).refused(404)
    program = await coach.post("/coach/programs", {"name": "Strength"})
    editor = coach.with_key(await employee_key(coach, "customers.view", "programs.view", "programs.edit"))
    (await editor.undo(program)).refused(403, "programs.delete")


async def test_undo_of_a_deletion_needs_the_permission_to_create(coach: CoachClient) -> None:
    """Of one that removes the document and of one that marks it as deleted; to edit and to delete are not enough."""
    form = {"name": "F", "questions": [{"label": "Q", "type": "text"}]}
    created = {
        "programs": ("/coach/programs", {"name": "Strength"}),
        "exercises": ("/exercises", {"name": "Sled push"}),
        "forms": ("/coach/forms", form),
        "metrics": ("/coach/metrics-sets", await new_metric_set(coach)),
    }
    for area, (path, body) in created.items():
        deleted = await coach.delete(f"{path}/{(await coach.post(path, body)).ok(201)['_id']}")
        granted = [f"{area}.{action}" for action in ("view", "edit", "delete")]
        editor = coach.with_key(await employee_key(coach, "customers.view", *granted, scope="all"))
        (await editor.undo(deleted)).refused(403, f"{area}.create")
        creator = coach.with_key(await employee_key(coach, "customers.view", *granted, f"{area}.create", scope="all"))
        (await creator.undo(deleted)).ok()


async def new_metric_set(coach: CoachClient) -> Json:
    """A metric set to create."""
    unit = (await coach.get("/metrics-units")).ok()[0]["_id"]
    return {"name": "Body", "metrics": [{"name": "Weight", "metricUnitId": unit}]}


async def test_undo_of_a_review_needs_the_permission_for_forms(coach: CoachClient) -> None:
    """The undo of a log, which stores a response with the workout, needs that for clients."""
    ana = await coach.create_customer()
    block = await block_with(coach, ana, form_of())
    question = block["items"][0]["form"]["questions"][0]["_id"]
    logged = await log(coach, block, block["items"][0], answers=[{"questionId": question, "value": "Well"}])
    [response] = (await coach.get("/coach/form-responses")).ok()["docs"]
    reviewed = await coach.put(f"/coach/form-responses/{response['_id']}/reviewed", {"reviewed": True})
    editor = coach.with_key(await employee_key(coach, "customers.view", "customers.edit", "forms.view", scope="all"))
    (await editor.undo(reviewed)).refused(403, "forms.edit")
    reviewer = coach.with_key(await employee_key(coach, "customers.view", "forms.view", "forms.edit", scope="all"))
    (await reviewer.undo(reviewed)).ok()
    (await reviewer.undo(logged)).refused(403, "customers.edit")


async def test_change_is_not_shown_without_the_clients_of_its_events(coach: CoachClient) -> None:
    """That a client outside the scope was deleted belongs to no client any more, but its event names the client."""
    ana = await coach.create_customer()
    deleted = await coach.delete(client_path(ana))
    await coach.wait_until_numbered(change_id(deleted))
    scoped = coach.with_key(await employee_key(coach, "customers.view", "customers.edit"))
    (await scoped.get(f"/coach/changes/{change_id(deleted)}")).refused(404)
    assert (await scoped.get("/coach/changes")).ok()["docs"] == []
    assert (await scoped.get("/coach/events")).ok()["docs"] == []
    everyone = coach.with_key(await employee_key(coach, "customers.view", scope="all"))
    assert change_id(deleted) in [each["_id"] for each in (await everyone.get("/coach/changes")).ok()["docs"]]


async def test_deleted_client_leaves_only_that_it_was_deleted(coach: CoachClient) -> None:
    ana = await coach.create_customer("Ana")
    deleted = await coach.delete(client_path(ana))
    change = (await coach.get(f"/coach/changes/{change_id(deleted)}")).ok()
    assert (change["customerId"], change["undoableUntil"]) == (None, None)
    assert change["documents"] == [
        {"kind": "customer", "_id": ana["_id"], "action": "deleted", "before": None, "after": None}
    ]
    assert (await coach.undo(deleted)).refused(409)["code"] == "NOT_UNDOABLE"


async def test_deleted_library_entries_are_restored(coach: CoachClient) -> None:
    exercise = await coach.create_exercise("Sled push")
    form = (await coach.post("/coach/forms", {"name": "F", "questions": [{"label": "Q", "type": "text"}]})).ok(201)
    program = (await coach.post("/coach/programs", {"name": "Strength"})).ok(201)
    day = (await coach.post(f"/coach/programs/{program['_id']}/wblocks", {"name": "Push", "day": 1})).ok(201)
    deletions = [
        await coach.delete(path)
        for path in (
            f"/exercises/{exercise['_id']}",
            f"/coach/forms/{form['_id']}",
            f"/coach/programs/{program['_id']}",
        )
    ]
    for deleted in deletions:
        (await coach.undo(deleted)).ok()
    assert (await coach.get(f"/exercises/{exercise['_id']}")).ok()["name"] == "Sled push"
    assert (await coach.get(f"/coach/forms/{form['_id']}")).ok()["questions"] == form["questions"]
    blocks = (await coach.get(f"/coach/programs/{program['_id']}/wblock", startDay=1, endDay=7)).ok()
    assert [block["_id"] for block in blocks] == [day["_id"]]


async def test_large_patch_is_stored_in_parts(coach: CoachClient, monkeypatch: Any) -> None:
    monkeypatch.setattr("coaching_service.core.changes.log.MAX_PATCH_BYTES", 1_500)
    ana = await coach.create_customer()
    blocks = [{"name": f"Block {n}", "date": MONDAY, "items": [task("x" * 200)]} for n in range(6)]
    created = await coach.post(client_path(ana, "wblocks/batch"), {"blocks": blocks})
    created.ok(201)
    stored = await coach.ctx.db["changes"].find_one(
        {"companyId": coach.ctx.company_id, "operation": {"$ne": "createCustomer"}}
    )
    assert stored is not None and stored["parts"] > 1 and "patch" not in stored
    (await coach.undo(created)).ok()
    calendar = await coach.get(client_path(ana, "wblock"), startDate=MONDAY, endDate=MONDAY)
    assert calendar.ok() == []


def without_versions(block: Json) -> Json:
    """A block without what an undo changes."""
    items = [{name: value for name, value in item.items() if name != "version"} for item in block["items"]]
    return {name: value for name, value in block.items() if name not in ("version", "updatedAt")} | {"items": items}
