"""Blocks created with their items: one at a time or many, all or nothing."""

from __future__ import annotations

import pytest

from tests.support.client import MONDAY, SUNDAY, TUESDAY, UNKNOWN, CoachClient
from tests.support.schedules import batch, without_identity
from tests.support.training import (
    Json,
    circuit_of,
    client_path,
    employee_key,
    exercise_of,
    form_of,
    one_of_each,
    task,
    titles,
)


async def test_a_split_with_supersets_is_built_with_one_call_a_day(coach: CoachClient) -> None:
    """Build a 3-day split with supersets in one call a day."""
    ana = await coach.create_customer()
    names = ["Bench press", "Row", "Squat", "Leg curl", "Press", "Pull-up"]
    exercises = [await coach.create_exercise(name) for name in names]
    days = [("Push and pull", MONDAY), ("Legs", "2026-03-04"), ("Shoulders", "2026-03-06")]
    for index, (name, day) in enumerate(days):
        first, second = exercises[index * 2 : index * 2 + 2]
        items = [exercise_of(first, supersetId="A"), exercise_of(second, supersetId="A"), circuit_of(first, second)]

        created = (await coach.post(client_path(ana, "wblocks"), {"name": name, "date": day, "items": items})).ok(201)

        assert [item["type"] for item in created["items"]] == ["EXERCISE", "EXERCISE", "CIRCUIT"]
    blocks = await coach.calendar(ana)
    assert [(block["name"], block["date"]) for block in blocks] == days
    for index, block in enumerate(blocks):
        planned = [(item["exercise"]["name"], item["supersetId"]) for item in block["items"][:2]]
        assert planned == [(name, "A") for name in names[index * 2 : index * 2 + 2]]
        assert [each["load"] for each in block["items"][0]["exerciseSets"]] == [60, 60, 60]
        assert (await coach.get(client_path(ana))).ok()["customerRoleData"]["lastWorkoutDate"] == days[-1][1]


async def test_a_block_is_created_with_items_of_every_type(coach: CoachClient) -> None:
    ana = await coach.create_customer()
    items = await one_of_each(coach)
    created = (await coach.post(client_path(ana, "wblocks"), {"name": "All", "date": MONDAY, "items": items})).ok(201)
    assert [item["type"] for item in created["items"]] == [item["type"] for item in items]
    assert await coach.calendar(ana) == [created]


async def test_a_new_block_follows_those_of_its_day(coach: CoachClient) -> None:
    ana = await coach.create_customer()
    for name in ("A", "B"):
        await coach.schedule(ana, MONDAY, name)
    created = await batch(
        coach,
        ana,
        *({"name": name, "date": MONDAY, "items": [task(name)]} for name in ("C", "D")),
        {"name": "E", "date": TUESDAY},
    )
    assert [(block["name"], block["order"]) for block in created["created"]] == [("C", 2), ("D", 3), ("E", 0)]
    blocks = await coach.calendar(ana)
    assert [(block["name"], block["order"]) for block in blocks] == [("A", 0), ("B", 1), ("C", 2), ("D", 3), ("E", 0)]


async def test_a_program_block_is_created_with_items(coach: CoachClient) -> None:
    program = (await coach.post("/coach/programs", {"name": "Base"})).ok(201)
    path = f"/coach/programs/{program['_id']}/wblocks"
    block = {"name": "Day", "day": 3, "items": [task("Run")]}
    assert (await coach.post(path, {**block, "dryRun": True})).ok(200)["_id"] is None
    created = (await coach.post(path, block)).ok(201)
    assert (created["day"], titles(created)) == (3, ["Run"])
    assert (await coach.get(f"/coach/programs/{program['_id']}")).ok()["numberOfDaysWithWorkouts"] == 1


async def test_a_dry_run_shows_the_block_and_writes_nothing(coach: CoachClient) -> None:
    ana = await coach.create_customer()
    await coach.schedule(ana)
    block = {"name": "All", "date": MONDAY, "items": await one_of_each(coach)}
    before = await coach.calendar(ana)
    path = client_path(ana, "wblocks")

    shown = (await coach.post(path, {**block, "dryRun": True}, headers={"Idempotency-Key": "one"})).ok(200)

    assert await coach.calendar(ana) == before
    assert {shown["_id"], *(item["_id"] for item in shown["items"])} == {None}
    created = (await coach.post(path, block, headers={"Idempotency-Key": "one"})).ok(201)
    assert without_identity(shown) == without_identity(created), "the dry run ignored the key"
    assert shown["order"] == 1


async def test_a_dry_run_of_a_batch_shows_the_blocks_and_writes_nothing(coach: CoachClient) -> None:
    ana = await coach.create_customer()
    items = await one_of_each(coach)
    blocks: list[Json] = [{"name": "A", "date": TUESDAY, "items": items}, {"name": "B", "date": MONDAY, "isRest": True}]
    shown = await batch(coach, ana, *blocks, dryRun=True)
    assert (await coach.calendar(ana), shown["dryRun"], shown["changeId"]) == ([], True, None)
    created = await batch(coach, ana, *blocks)
    assert without_identity(shown) == without_identity(created)
    assert (created["dryRun"], created["changed"], created["removed"]) == (False, [], [])
    assert await coach.calendar(ana) == [created["created"][1], created["created"][0]]


@pytest.mark.parametrize("many", [False, True])
async def test_an_unknown_reference_names_its_entry_and_nothing_is_created(coach: CoachClient, many: bool) -> None:
    ana, squat = await coach.create_customer(), await coach.create_exercise()
    wrong: list[tuple[Json, str]] = [
        (exercise_of({"_id": UNKNOWN}), "exerciseId: Exercise not found"),
        (circuit_of(squat, {"_id": UNKNOWN}), "circuitExercises.1.exerciseId: Exercise not found"),
        ({"type": "FORM", "form": {"formId": UNKNOWN}}, "form.formId: Form not found"),
        ({"type": "METRICS", "metricsFields": {"metricsSetId": UNKNOWN}}, "metricsFields.metricsSetId"),
    ]
    for item, message in wrong:
        block = {"name": "Legs", "date": MONDAY, "items": [task(), exercise_of(squat), item]}
        body = {"blocks": [{"name": "Fine", "date": MONDAY, "items": [task()]}, block]} if many else block
        prefix = "blocks.1.items.2." if many else "items.2."
        path = client_path(ana, "wblocks", *(["batch"] if many else []))
        for dry_run in (False, True):
            (await coach.post(path, {**body, "dryRun": dry_run})).refused(404, prefix + message)
    assert await coach.calendar(ana) == []


async def test_invalid_items_name_their_entry(coach: CoachClient) -> None:
    ana, squat = await coach.create_customer(), await coach.create_exercise()
    wrong = exercise_of(squat, {"type": "reps_load", "load": "heavy"})
    path = client_path(ana, "wblocks")
    (await coach.post(path, {"name": "A", "date": MONDAY, "items": [task(), wrong]})).refused(
        400, "items.1.exerciseSets.0.load must be a number"
    )
    entry = {"name": "A", "date": MONDAY, "items": [{"type": "TASK"}]}
    (await coach.post(f"{path}/batch", {"blocks": [entry]})).refused(400, "blocks.0.items.0.taskFields is required")
    for blocks in ([], [{"name": "A", "date": MONDAY}] * 101):
        (await coach.post(f"{path}/batch", {"blocks": blocks})).refused(400, "blocks")
    (await coach.post(path, {"name": "A", "date": MONDAY, "items": [task()] * 101})).refused(400, "items")
    (await coach.post(path, {"name": "A", "date": MONDAY, "dryRun": "yes"})).refused(400, "dryRun")
    assert await coach.calendar(ana) == []


async def test_a_library_form_is_copied_into_every_item(coach: CoachClient) -> None:
    ana = await coach.create_customer()
    form = (await coach.post("/coach/forms", {"name": "Check-in", "questions": [{"label": "Well?"}]})).ok(201)
    items = [{"type": "FORM", "form": {"formId": form["_id"]}}, form_of({"label": "Ready?", "type": "text"})]
    created = await batch(coach, ana, *({"name": day, "date": day, "items": items} for day in (MONDAY, TUESDAY)))
    for block in created["created"]:
        assert block["items"][0]["form"] == {"formId": form["_id"], "name": "Check-in", "questions": form["questions"]}
        assert block["items"][1]["form"]["questions"][0]["label"] == "Ready?"


async def test_a_batch_is_executed_once_per_key(coach: CoachClient) -> None:
    ana = await coach.create_customer()
    body = {"blocks": [{"name": "A", "date": MONDAY, "items": [task()]}]}
    path = client_path(ana, "wblocks/batch")
    replies = [await coach.post(path, body, headers={"Idempotency-Key": "b"}) for _ in range(2)]
    assert replies[0].ok(201) == replies[1].ok(201)
    assert len(await coach.calendar(ana)) == 1


async def test_a_dry_run_needs_the_permission_of_the_operation(coach: CoachClient) -> None:
    ana = await coach.create_customer()
    key = await employee_key(coach, "customers.view", scope="all")
    block = {"name": "A", "date": MONDAY, "dryRun": True}
    (await coach.with_key(key).post(client_path(ana, "wblocks"), block)).refused(403)
    outside = await employee_key(coach, "customers.edit")
    (await coach.with_key(outside).post(client_path(ana, "wblocks"), block)).refused(403, "another coach")


async def test_the_first_load_of_a_batch_fixes_the_unit(coach: CoachClient) -> None:
    ana, squat = await coach.create_customer(), await coach.create_exercise()
    block = {"name": "A", "date": MONDAY, "items": [exercise_of(squat)]}
    await batch(coach, ana, block, dryRun=True)
    (await coach.patch("/coach/account", {"loadUnit": "lb"})).ok()
    await batch(coach, ana, block)
    (await coach.patch("/coach/account", {"loadUnit": "kg"})).refused(409, "loadUnit")
    assert [block["date"] for block in await coach.calendar(ana, MONDAY, SUNDAY)] == [MONDAY]


async def test_nothing_is_planned_for_an_archived_client(coach: CoachClient) -> None:
    """Each way to new workouts is 409, by a dry run too; what is there can be changed."""
    customer = await coach.create_customer()
    path = f"/coach/customers/{customer['_id']}"
    block = await coach.schedule(customer)
    program = (await coach.post("/coach/programs", {"name": "Base"})).ok(201)
    (await coach.post(f"/coach/programs/{program['_id']}/wblocks", {"name": "Legs", "day": 1})).ok(201)
    template = (await coach.post("/coach/workout-templates", {"name": "Short", "items": []})).ok(201)
    (await coach.put("/coach/customers/archive", {"id": customer["_id"]})).ok()

    new: dict[str, object] = {"name": "Legs", "date": MONDAY}
    attempts: list[tuple[str, str, dict[str, object]]] = [
        ("POST", f"{path}/wblocks", new),
        ("POST", f"{path}/wblocks", {**new, "dryRun": True}),
        ("POST", f"{path}/wblocks/batch", {"blocks": [new]}),
        ("PUT", f"{path}/wblocks/by-external-id/b1", new),
        ("POST", f"{path}/wblocks/{block['_id']}/copy", {"date": TUESDAY}),
        ("POST", f"{path}/schedule/copy", {"startDate": MONDAY, "endDate": MONDAY, "targetDate": TUESDAY}),
        ("POST", f"/coach/workout-templates/{template['_id']}/apply", {"customerId": customer["_id"], "date": MONDAY}),
        ("POST", f"/coach/programs/{program['_id']}/assign", {"customerId": customer["_id"], "startDate": MONDAY}),
    ]
    for method, where, body in attempts:
        refused = await coach.send(method, where, json=body)
        assert refused.refused(409, "restore the client")["code"] == "CUSTOMER_ARCHIVED", where
    bulk = {"ids": [customer["_id"]], "programId": program["_id"], "startDate": MONDAY}
    [failed] = (await coach.post("/coach/customers/bulk/assign-program", bulk)).ok()["failed"]
    assert (failed["code"], "archived" in failed["message"]) == ("CONFLICT", True)
    (await coach.patch(f"{path}/wblocks/{block['_id']}", {"name": "Arms"})).ok()
    (await coach.put("/coach/customers/unarchive", {"id": customer["_id"]})).ok()
    (await coach.post(f"{path}/wblocks", new)).ok(201)
