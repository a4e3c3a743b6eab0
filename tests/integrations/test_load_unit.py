"""The company's unit of loads: it changes while no load is stored, and otherwise by converting them all."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest
from aiohttp.test_utils import TestServer

from coaching_service import features
from coaching_service.core.database.context import Context, in_transaction
from coaching_service.core.errors import Conflict
from coaching_service.core.fields import input_of
from coaching_service.core.ids import ObjectId
from coaching_service.core.jobs import worker
from coaching_service.core.jobs.queue import Job
from coaching_service.integrations import load_unit
from coaching_service.people import account
from coaching_service.people.account import LoadConversion
from coaching_service.training import templates
from coaching_service.training.programs import ProgramPlan
from coaching_service.training.schedule import service as schedule
from coaching_service.training.templates import NewWorkoutTemplate, TemplateDetails
from coaching_service.training.workouts.blocks import batches
from coaching_service.training.workouts.blocks import items as block_items
from coaching_service.training.workouts.blocks import service as workouts
from coaching_service.training.workouts.blocks.service import ClientCalendar, ScheduleOwner
from coaching_service.training.workouts.items.models import NEW_ITEM, ItemInput
from tests.support.client import MONDAY, TUESDAY, UNKNOWN, CoachClient
from tests.support.mcp_client import McpHttpClient
from tests.support.results import train
from tests.support.sampled import some
from tests.support.service_process import until
from tests.support.training import Json, block_with, client_path, exercise_of, path_of, read

UNIT = "/coach/account/load-unit"
PLANNED: Json = {"type": "reps_load", "minPlannedReps": 5, "maxPlannedReps": 5, "load": 100}


async def run(coach: CoachClient, job: Json) -> Json:
    """Run a conversion, or its dry run, and return the finished job."""

    async def is_done() -> bool:
        await worker.run_due(coach.ctx.services, {load_unit.CONVERT: features.STEPS[load_unit.CONVERT]})
        return (await coach.get(f"/coach/jobs/{job['_id']}")).ok()["status"] == "done"

    await until(is_done, "the job is done")
    finished: Json = (await coach.get(f"/coach/jobs/{job['_id']}")).ok()
    return finished


async def convert(coach: CoachClient, unit: str, **options: Any) -> Json:
    """Convert all loads."""
    return await run(coach, (await coach.post(UNIT, {"loadUnit": unit, **options})).ok(202))


async def test_unit_changes_again_when_the_last_load_is_gone(coach: CoachClient) -> None:
    """By deleting the client, at once; a template, a program or a record keeps the unit until it is deleted."""
    ana, squat = await coach.create_customer(), await coach.create_exercise()
    await block_with(coach, ana, exercise_of(squat, PLANNED))
    await train(coach, ana, squat, (5, 120))
    (await coach.put(client_path(ana, "training-maxes", squat["_id"]), {"value": 140})).ok()
    change = {"loadUnit": "lb"}
    (await coach.patch("/coach/account", change)).refused(409, "loadUnit", "load-unit")
    (await coach.delete(client_path(ana))).ok(204)
    assert (await coach.patch("/coach/account", change)).ok()["loadUnit"] == "lb"

    template = {"name": "Legs", "type": "strength", "items": [exercise_of(squat, PLANNED)]}
    created = (await coach.post("/coach/workout-templates", template)).ok(201)
    (await coach.patch("/coach/account", {"loadUnit": "kg"})).refused(409)
    (await coach.delete(f"/coach/workout-templates/{created['_id']}")).ok(204)
    program = (await coach.post("/coach/programs", {"name": "Base"})).ok(201)
    block = (await coach.post(f"/coach/programs/{program['_id']}/wblocks", {"name": "A", "day": 1})).ok(201)
    items = f"/coach/programs/{program['_id']}/wblocks/{block['_id']}/witems"
    item = (await coach.post(items, exercise_of(squat, PLANNED))).ok(201)
    (await coach.patch("/coach/account", {"loadUnit": "kg"})).refused(409)
    (await coach.patch(f"{items}/{item['_id']}", {"exerciseSets": [{"type": "reps"}]})).ok()
    assert (await coach.patch("/coach/account", {"loadUnit": "kg"})).ok()["loadUnit"] == "kg"


async def test_conversion_is_counted_first_and_then_converts_everything(coach: CoachClient) -> None:
    """Sets planned and done, in clients' workouts, programs and templates; records, maximums and derived figures."""
    ana, squat, row = await coach.create_customer(), await coach.create_exercise(), await coach.create_exercise("Row")
    planned = await block_with(coach, ana, exercise_of(squat, PLANNED), date=TUESDAY)
    done = await train(coach, ana, squat, (5, 100), (3, 62.5), date=MONDAY, plan=({"type": "reps"},))
    entered = {"exerciseId": row["_id"], "type": "heaviest_load", "value": 60, "reps": 1, "date": MONDAY}
    (await coach.post(client_path(ana, "personal-records"), entered)).ok(201)
    (await coach.put(client_path(ana, "training-maxes", row["_id"]), {"value": 90})).ok()
    template = {"name": "Legs", "type": "strength", "items": [exercise_of(squat, PLANNED)]}
    template = (await coach.post("/coach/workout-templates", template)).ok(201)
    program = (await coach.post("/coach/programs", {"name": "Base"})).ok(201)
    block = (await coach.post(f"/coach/programs/{program['_id']}/wblocks", {"name": "A", "day": 1})).ok(201)
    items = f"/coach/programs/{program['_id']}/wblocks/{block['_id']}/witems"
    (await coach.post(items, exercise_of(squat, PLANNED))).ok(201)

    counted = await convert(coach, "lb", dryRun=True)
    expected = {"workouts": 3, "templates": 1, "personalRecords": 3, "trainingMaxes": 3, "loads": 11}
    assert counted["result"] == {"dryRun": True, "loadUnit": "lb", "converted": expected}
    assert (await coach.get("/coach/account")).ok()["loadUnit"] == "kg"
    assert (await read(coach, planned))["items"] == planned["items"]

    converted = await convert(coach, "lb")
    assert converted["result"] == {"dryRun": False, "loadUnit": "lb", "converted": expected}
    assert (converted["done"], converted["total"]) == (3, 3)
    assert (await coach.get("/coach/account")).ok()["loadUnit"] == "lb"
    after = await read(coach, planned)
    assert after["items"][0]["exerciseSets"][0]["load"] == 220.5
    assert after["version"] == planned["version"] + 1
    assert [each["load"] for each in (await read(coach, done))["items"][0]["customerSets"]] == [220.5, 137.8]
    records = {(each["exerciseName"], each["type"]): each for each in await records_of(coach, ana)}
    values = {key: (each["value"], each["unit"]) for key, each in records.items()}
    assert values == {
        (row["name"], "heaviest_load"): (132.3, "lb"),
        (squat["name"], "heaviest_load"): (220.5, "lb"),
        (squat["name"], "estimated_1rm"): (257.25, "lb"),
        (squat["name"], "most_reps"): (5, "count"),
    }
    [maximum] = (await coach.get(client_path(ana, "training-maxes"))).ok()
    assert maximum["value"] == 198.4
    [stored] = (await coach.get("/coach/workout-templates")).ok()
    assert (stored["_id"], stored["items"][0]["exerciseSets"][0]["load"]) == (template["_id"], 220.5)
    [day] = (await coach.get(f"/coach/programs/{program['_id']}/wblock", startDay=0, endDay=9)).ok()
    assert day["items"][0]["exerciseSets"][0]["load"] == 220.5
    load = (await coach.get(client_path(ana, "workload"), startDate=MONDAY, endDate=MONDAY)).ok()
    assert (load["loadUnit"], load["periods"][0]["volumeLoad"]) == ("lb", 5 * 220.5 + 3 * 137.8)

    await train(coach, ana, squat, (5, 225), date=TUESDAY)
    heaviest = [each["value"] for each in await records_of(coach, ana) if each["type"] == "heaviest_load"]
    assert sorted(heaviest) == [132.3, 225]
    (await coach.post(UNIT, {"loadUnit": "lb"})).refused(409, "already")


async def records_of(coach: CoachClient, customer: Json) -> list[Json]:
    """The personal records of a client."""
    records: list[Json] = (await coach.get(client_path(customer, "personal-records"))).ok()
    return records


async def test_largest_loads_stay_within_what_is_accepted(coach: CoachClient) -> None:
    """Else the response of a workout would not be as it is declared, and no change of it be accepted."""
    ana, squat = await coach.create_customer(), await coach.create_exercise()
    planned = {**PLANNED, "load": 100_000}
    block = await block_with(coach, ana, exercise_of(squat, planned))
    (await coach.put(client_path(ana, "training-maxes", squat["_id"]), {"value": 100_000})).ok()
    await convert(coach, "lb")
    [item] = (await read(coach, block))["items"]
    assert item["exerciseSets"][0]["load"] == 100_000
    [training_max] = (await coach.get(client_path(ana, "training-maxes"))).ok()
    assert training_max["value"] == 100_000


async def test_other_operations_wait_while_loads_are_converted(
    coach: CoachClient, other_company: CoachClient, server: TestServer
) -> None:
    """503 with Retry-After for the coaches and clients of this company; the owner reads the progress."""
    ana = await coach.create_customer()
    own = await coach.as_client(ana)
    conversion: LoadConversion = {"jobId": ObjectId(), "loadUnit": "lb"}
    await account.begin_conversion(coach.ctx, conversion)
    for client, path in ((coach, client_path(ana)), (own, "/customer/today"), (coach, "/coach/account")):
        refused = await client.get(path)
        assert (refused.status, refused.headers["Retry-After"], refused.json["code"]) == (503, "5", "UNAVAILABLE"), path
    (await coach.post(UNIT, {"loadUnit": "lb"})).refused(503)
    (await coach.patch(client_path(ana), {"surname": "Ruiz"})).refused(503, "converted")
    (await coach.get(f"/coach/jobs/{UNKNOWN}")).refused(404)
    (await other_company.get("/coach/account")).ok()
    async with McpHttpClient(server, {"X-API-Key": coach.key or ""}) as assistant:
        answer = await assistant.call("get_attention")
    assert answer["isError"] and "converted" in str(answer["content"])

    await in_transaction(coach.ctx, lambda tx: account.end_conversion(tx, conversion))
    assert (await coach.get("/coach/account")).ok()["loadUnit"] == "lb"
    (await own.get("/customer/today")).ok()


async def test_interrupted_and_overtaken_steps_convert_each_load_once(
    coach: CoachClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each step ends after one client, and two run at the same time."""
    squat = await coach.create_exercise()
    clients = [await coach.create_customer(name) for name in ("Ana", "Bo", "Cy", "Di")]
    blocks = [await train(coach, client, squat, (5, 100)) for client in clients]
    monkeypatch.setattr(load_unit, "_STEP_SECONDS", 0)
    job = (await coach.post(UNIT, {"loadUnit": "lb"})).ok(202)
    step = Job(ObjectId(), {"jobId": ObjectId(job["_id"])}, 1, coach.ctx.company_id)

    async def is_done() -> bool:
        await asyncio.gather(*(load_unit.run_step(coach.ctx.services, step) for _ in range(2)))
        return (await coach.get(f"/coach/jobs/{job['_id']}")).ok()["status"] == "done"

    await until(is_done, "the job is done")
    for block in blocks:
        assert (await read(coach, block))["items"][0]["customerSets"][0]["load"] == 220.5
    back = await convert(coach, "kg")
    assert back["result"]["converted"]["workouts"] == 4
    assert (await read(coach, blocks[0]))["items"][0]["customerSets"][0]["load"] == 100


async def test_request_that_began_before_the_conversion_stores_no_load(coach: CoachClient) -> None:
    """Its company is the one from before the conversion, and the loads it sends are in the other unit."""
    ana, squat = await coach.create_customer(), await coach.create_exercise()
    block = await block_with(coach, ana, exercise_of(squat, PLANNED))
    begun_before = coach.ctx
    await convert(coach, "lb")
    item = cast("ItemInput", NEW_ITEM.load(exercise_of(squat, PLANNED)))
    calendar = ClientCalendar(ObjectId(ana["_id"]))
    with pytest.raises(Conflict) as refused:
        await block_items.create_item(begun_before, calendar, ObjectId(block["_id"]), item)
    assert refused.value.code == "LOAD_UNIT_CHANGED"
    template = input_of(NewWorkoutTemplate)().load(
        {"name": "Legs", "type": "strength", "items": [exercise_of(squat, PLANNED)]}
    )
    with pytest.raises(Conflict):
        await templates.create(begun_before, template)
    with pytest.raises(Conflict):
        await schedule.adjust(begun_before, calendar, MONDAY, MONDAY, {"load": {"add": 10}})
    assert (await read(coach, block))["items"][0]["exerciseSets"][0]["load"] == 220.5
    assert len((await read(coach, block))["items"]) == 1


@pytest.mark.parametrize("write", some(["copy", "template"], 1))
async def test_copy_that_read_loads_before_the_conversion_is_refused(
    coach: CoachClient, monkeypatch: pytest.MonkeyPatch, write: str
) -> None:
    """A copy of a program's workout, and a template of a workout: the loads are converted while they are written."""
    squat = await coach.create_exercise()
    program = (await coach.post("/coach/programs", {"name": "Base"})).ok(201)
    path = f"/coach/programs/{program['_id']}/wblocks"
    block = (await coach.post(path, {"name": "A", "day": 1, "items": [exercise_of(squat, PLANNED)]})).ok(201)
    read_plan, plan, block_id = workouts.get_plan, ProgramPlan(ObjectId(program["_id"])), ObjectId(block["_id"])

    async def read_and_convert(ctx: Context, owner: ScheduleOwner, block_id: ObjectId) -> Any:
        read = await read_plan(ctx, owner, block_id)
        monkeypatch.undo()
        await convert(coach, "lb")
        return read

    begun_before = coach.ctx
    monkeypatch.setattr(workouts, "get_plan", read_and_convert)
    with pytest.raises(Conflict) as refused:
        if write == "copy":
            await batches.copy(begun_before, plan, block_id, 2)
        else:
            details: TemplateDetails = {"name": "Legs", "type": None, "tags": []}
            await templates.create_from_block(begun_before, plan, block_id, details)
    assert refused.value.code == "LOAD_UNIT_CHANGED"


async def test_changes_with_loads_from_before_cannot_be_undone(coach: CoachClient) -> None:
    ana, squat = await coach.create_customer(), await coach.create_exercise()
    block = await block_with(coach, ana, exercise_of(squat, PLANNED))
    removed = (await coach.delete(path_of(block))).headers["X-Change-Id"]
    renamed = (await coach.patch(client_path(ana), {"surname": "Ruiz"})).headers["X-Change-Id"]
    await convert(coach, "lb")
    (await coach.post(f"/coach/changes/{removed}/undo")).refused(409)
    assert (await coach.get(f"/coach/changes/{removed}")).ok()["undoableUntil"] is None
    (await coach.post(f"/coach/changes/{renamed}/undo")).ok()
    later = await block_with(coach, ana, exercise_of(squat, PLANNED))
    removed = (await coach.delete(path_of(later))).headers["X-Change-Id"]
    (await coach.post(f"/coach/changes/{removed}/undo")).ok()
