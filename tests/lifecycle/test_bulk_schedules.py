"""Operations on the schedules of many clients (contract 20)."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from coaching_service.people import jobs
from tests.support.client import MONDAY, UNKNOWN, CoachClient, Reply
from tests.support.jobs import finished
from tests.support.schedules import LAST_DAY
from tests.support.training import Json, block_with, client_path, employee_key, exercise_of, log, read, task

WEEK = {"startDate": MONDAY, "endDate": "2026-03-08"}
HEAVIER = {"progression": {"load": {"add": 2.5}}}
ASYNC = {"Prefer": "respond-async"}


async def bulk(coach: CoachClient, operation: str, body: Json, **headers: str) -> Reply:
    """Do an operation on the schedules of many clients."""
    return await coach.send("POST", f"/coach/customers/bulk/schedule-{operation}", json=body, headers=headers)


async def changed(coach: CoachClient, operation: str, body: Json) -> dict[str, tuple[int, list[str]]]:
    """By client, the number of changed workouts and the codes of the skipped ones; a dry run must say the same."""
    dry = (await bulk(coach, operation, {**body, "dryRun": True})).ok()
    result = (await bulk(coach, operation, body)).ok()
    assert dry == result
    assert (result["ok"], result["failed"]) == (result["requested"], [])
    return {
        each["customerId"]: (each["changed"], [skipped["code"] for skipped in each["skipped"]])
        for each in result["results"]
    }


def day(coach: CoachClient, offset: int) -> str:
    """A date some days from today."""
    return str(coach.ctx.caller.today() + timedelta(days=offset))


async def calendar(coach: CoachClient, customer: Json) -> list[Json]:
    """The workouts of a client, by day."""
    query = {"startDate": "2026-01-01", "endDate": "2026-12-31"}
    blocks: list[Json] = (await coach.get(client_path(customer, "wblock"), **query)).ok()
    return blocks


def planned(blocks: list[Json]) -> list[Json]:
    """What is planned in workouts, and their days."""
    names = ("_id", "exerciseId", "exerciseSets")
    items = [[{name: item.get(name) for name in names} for item in block["items"]] for block in blocks]
    return [
        {"_id": block["_id"], "date": block["date"], "items": each} for block, each in zip(blocks, items, strict=True)
    ]


def loads(blocks: list[Json]) -> list[list[float]]:
    """The planned loads of the first exercise of each workout."""
    return [[each["load"] for each in block["items"][0]["exerciseSets"]] for block in blocks]


class Clients:
    """Ana has done a workout, Bo has not; both have another one with nothing done on Wednesday."""

    ana: Json
    bo: Json
    squat: Json
    press: Json
    done: Json

    @property
    def ids(self) -> list[str]:
        """Both clients."""
        return [self.ana["_id"], self.bo["_id"]]


@pytest.fixture
async def clients(coach: CoachClient) -> Clients:
    these = Clients()
    these.ana, these.bo = [await coach.create_customer(name) for name in ("Ana", "Bo")]
    these.squat, these.press = [await coach.create_exercise(name) for name in ("Squat", "Press")]
    for customer in (these.bo, these.ana):
        these.done = await block_with(coach, customer, exercise_of(these.squat))
        await block_with(coach, customer, exercise_of(these.squat), date="2026-03-04", name="Again")
    await complete(coach, these.done)
    return these


async def complete(coach: CoachClient, block: Json) -> None:
    """Log the first item of a workout."""
    done = [{"index": 1, "reps": 8, "load": 60, "isCompleted": True}]
    (await log(coach, block, block["items"][0], isCompleted=True, customerSets=done)).ok()


async def test_loads_of_many_clients_are_adjusted_and_what_is_done_stays(coach: CoachClient, clients: Clients) -> None:
    assert await changed(coach, "adjust", {"ids": clients.ids, **WEEK, **HEAVIER}) == {
        clients.ana["_id"]: (1, ["DONE"]),
        clients.bo["_id"]: (2, []),
    }
    assert loads(await calendar(coach, clients.ana)) == [[60, 60, 60], [62.5, 62.5, 62.5]]
    assert loads(await calendar(coach, clients.bo)) == [[62.5, 62.5, 62.5]] * 2


async def test_skipped_workouts_are_named(coach: CoachClient, clients: Clients) -> None:
    result = (await bulk(coach, "adjust", {"ids": clients.ids, **WEEK, **HEAVIER, "dryRun": True})).ok()
    skipped = [{"wblockId": clients.done["_id"], "code": "DONE"}]
    assert result["results"] == [
        {"customerId": clients.ana["_id"], "changed": 1, "skipped": skipped},
        {"customerId": clients.bo["_id"], "changed": 2, "skipped": []},
    ]


async def test_workout_that_is_done_in_part_is_changed_and_named(coach: CoachClient) -> None:
    """What is done of it is not changed; a workout that has none of the exercise is not named."""
    ana, squat, press = (
        await coach.create_customer(),
        await coach.create_exercise("S"),
        await coach.create_exercise("P"),
    )
    block = await block_with(coach, ana, exercise_of(squat), exercise_of(squat), task())
    await complete(coach, block)
    await complete(coach, await block_with(coach, ana, exercise_of(press), date="2026-03-05"))
    body = {"ids": [ana["_id"]], "exerciseId": squat["_id"], "withExerciseId": press["_id"], "startDate": MONDAY}
    assert await changed(coach, "replace-exercise", body) == {ana["_id"]: (1, ["PARTLY_DONE"])}
    items = (await read(coach, block))["items"]
    assert [item.get("exerciseId") for item in items] == [squat["_id"], press["_id"], None]


async def test_days_are_cleared(coach: CoachClient, clients: Clients) -> None:
    result = await changed(coach, "clear", {"ids": clients.ids, **WEEK})
    assert result == {clients.ana["_id"]: (1, ["DONE"]), clients.bo["_id"]: (2, [])}
    assert [block["_id"] for block in await calendar(coach, clients.ana)] == [clients.done["_id"]]
    assert await calendar(coach, clients.bo) == []


async def test_workouts_are_shifted(coach: CoachClient, clients: Clients) -> None:
    result = await changed(coach, "shift", {"ids": clients.ids, "from": MONDAY, "days": 7})
    assert result == {clients.ana["_id"]: (1, ["DONE"]), clients.bo["_id"]: (2, [])}
    assert [block["date"] for block in await calendar(coach, clients.ana)] == [MONDAY, "2026-03-11"]
    assert [block["date"] for block in await calendar(coach, clients.bo)] == ["2026-03-09", "2026-03-11"]


async def test_days_are_copied(coach: CoachClient, clients: Clients) -> None:
    """Days that have workouts are left out with `skip`, and done ones stay with `replace`."""
    await block_with(coach, clients.bo, task(), date="2026-03-11")
    done = await block_with(coach, clients.ana, exercise_of(clients.squat), date="2026-03-10")
    await complete(coach, done)
    body = {"ids": clients.ids, **WEEK, **HEAVIER, "targetDate": "2026-03-09", "onConflict": "skip"}
    assert await changed(coach, "copy", body) == {clients.ana["_id"]: (2, []), clients.bo["_id"]: (1, ["DAY_TAKEN"])}
    assert [block["date"] for block in await calendar(coach, clients.bo)][2:] == ["2026-03-09", "2026-03-11"]
    replaced = await changed(coach, "copy", {**body, "ids": [clients.ana["_id"]], "onConflict": "replace"})
    assert replaced == {clients.ana["_id"]: (4, ["DONE"])}
    assert loads(await calendar(coach, clients.ana))[2:] == [[62.5] * 3, [60] * 3, [62.5] * 3]


async def test_one_undo_restores_all(coach: CoachClient, clients: Clients) -> None:
    operations: dict[str, Json] = {
        "adjust": {**WEEK, **HEAVIER},
        "replace-exercise": {
            "exerciseId": clients.squat["_id"],
            "withExerciseId": clients.press["_id"],
            "startDate": MONDAY,
        },
        "clear": WEEK,
        "shift": {"from": MONDAY, "days": -1},
        "copy": {**WEEK, "targetDate": "2026-04-06", "repeat": 2},
    }

    before = [planned(await calendar(coach, each)) for each in (clients.ana, clients.bo)]
    for operation, fields in operations.items():
        reply = await bulk(coach, operation, {"ids": clients.ids, **fields})
        assert reply.ok()["ok"] == 2, operation
        after = [planned(await calendar(coach, each)) for each in (clients.ana, clients.bo)]
        assert all(blocks != changed_blocks for blocks, changed_blocks in zip(before, after, strict=True)), operation
        undone = (await coach.undo(reply)).ok()
        assert (undone["ok"] > 0, undone["failed"]) == (True, []), operation
        assert [planned(await calendar(coach, each)) for each in (clients.ana, clients.bo)] == before, operation


async def test_everyone_whom_a_program_runs_for_is_selected(coach: CoachClient) -> None:
    """Current or upcoming, also without blocks yet; not ended, over, archived, or excluded."""
    program = (await coach.post("/coach/programs", {"name": "Base"})).ok(201)
    path = f"/coach/programs/{program['_id']}"
    for number in (1, 8):
        (await coach.post(f"{path}/wblocks", {"name": "Legs", "day": number})).ok(201)
    ids: dict[str, str] = {}
    for name, start in (("now", -3), ("later", 10), ("over", -60), ("ended", 0), ("archived", 0), ("none", None)):
        customer = await coach.create_customer(name)
        ids[name] = customer["_id"]
        if start is None:
            continue
        body = {"customerId": customer["_id"], "startDate": day(coach, start)}
        assigned = (await coach.post(f"{path}/assign", body)).ok(201)
        if name == "ended":
            await coach.post(client_path(customer, "programs", assigned["assignmentId"], "end"), {})
    (await coach.put("/coach/customers/archive", {"id": ids["archived"]})).ok()
    body = {"assignedProgramId": program["_id"], "from": day(coach, 0), "days": 1, "dryRun": True}

    async def selected(**more: Any) -> set[str]:
        result = (await bulk(coach, "shift", {**body, **more})).ok()
        return {
            next(name for name, each in ids.items() if each == change["customerId"]) for change in result["results"]
        }

    assert await selected() == {"now", "later"}
    assert await selected(excludeIds=[ids["now"]]) == {"later"}
    # Its last workout was moved to the past by the coach, and that of the other to the future.
    await coach.post(client_path({"_id": ids["now"]}, "wblocks/shift"), {"from": "2000-01-01", "days": -60})
    await coach.post(client_path({"_id": ids["over"]}, "wblocks/shift"), {"from": "2000-01-01", "days": 60})
    assert await selected() == {"over", "later"}
    key = await employee_key(coach, "customers.view", "customers.edit", scope="assigned")
    result = (await bulk(coach.with_key(key), "shift", body)).ok()
    assert (result["requested"], result["results"]) == (0, [])


async def test_identifiers_of_another_company_are_unknown(
    coach: CoachClient, other_company: CoachClient, clients: Clients
) -> None:
    theirs = (await other_company.post("/coach/programs", {"name": "P"})).ok(201)["_id"]
    foreign = (await other_company.create_exercise("Squat"))["_id"]
    squat, press = clients.squat["_id"], clients.press["_id"]
    swap = {"ids": clients.ids, "exerciseId": squat, "withExerciseId": press, "startDate": MONDAY}
    adjust = {"ids": clients.ids, **WEEK}
    for dry in (True, False):
        for operation, body in (
            ("shift", {"assignedProgramId": theirs, "from": MONDAY, "days": 1}),
            ("shift", {"assignedProgramId": UNKNOWN, "from": MONDAY, "days": 1}),
            ("replace-exercise", {**swap, "withExerciseId": foreign}),
            ("replace-exercise", {**swap, "exerciseId": foreign}),
            ("adjust", {**adjust, "progression": {"reps": {"add": 1}, "exerciseIds": [squat, foreign]}}),
        ):
            (await bulk(coach, operation, {**body, "dryRun": dry})).refused(404)
            (await bulk(coach, operation, {**body, "dryRun": dry}, **ASYNC)).refused(404)
    customer = (await other_company.create_customer())["_id"]
    result = (await bulk(coach, "clear", {"ids": [customer, *clients.ids], **WEEK})).ok()
    assert [(each["customerId"], each["code"]) for each in result["failed"]] == [(customer, "NOT_FOUND")]
    assert [each["customerId"] for each in result["results"]] == clients.ids


@pytest.mark.parametrize(
    ("selection", "word"),
    [
        ({}, "either ids or filter"),
        ({"ids": [UNKNOWN], "assignedProgramId": UNKNOWN}, "either ids or filter"),
        ({"filter": {"archived": False}, "assignedProgramId": UNKNOWN}, "either ids or filter"),
        ({"ids": [UNKNOWN], "excludeIds": [UNKNOWN]}, "excludeIds"),
        ({"assignedProgramId": "x"}, "assignedProgramId"),
        ({"ids": [UNKNOWN], "unknown": 1}, "unknown"),
    ],
)
async def test_selection_is_validated(coach: CoachClient, selection: Json, word: str) -> None:
    for operation, fields in (("clear", WEEK), ("shift", {"from": MONDAY, "days": 1})):
        (await bulk(coach, operation, {**selection, **fields})).refused(400, word)


@pytest.mark.parametrize(
    ("operation", "fields", "word"),
    [
        ("adjust", WEEK, "progression"),
        ("adjust", {"startDate": "2026-03-08", "endDate": MONDAY, **HEAVIER}, "endDate"),
        ("clear", {"startDate": MONDAY, "endDate": "2027-03-03"}, "endDate"),
        ("shift", {"from": MONDAY}, "days"),
        ("copy", WEEK, "targetDate"),
        ("replace-exercise", {"exerciseId": UNKNOWN, "startDate": MONDAY}, "withExerciseId"),
    ],
)
async def test_fields_are_those_of_the_operation_on_one_client(
    coach: CoachClient, operation: str, fields: Json, word: str
) -> None:
    (await bulk(coach, operation, {"ids": [UNKNOWN], **fields})).refused(400, word)


async def test_client_who_cannot_be_changed_fails_alone(coach: CoachClient, clients: Clients) -> None:
    await coach.schedule(clients.ana, LAST_DAY)
    result = (await bulk(coach, "shift", {"ids": clients.ids, "from": "2026-03-03", "days": 30})).ok()
    assert [(each["customerId"], each["code"]) for each in result["failed"]] == [(clients.ana["_id"], "BAD_REQUEST")]
    assert result["failed"][0]["message"] == (
        f"days leaves the calendar, which is from 1950-01-01 to {LAST_DAY}: {LAST_DAY} moved by 30 days"
    )
    assert [block["date"] for block in await calendar(coach, clients.bo)] == [MONDAY, "2026-04-03"]
    assert [block["date"] for block in await calendar(coach, clients.ana)] == [MONDAY, "2026-03-04"]


async def test_a_job_returns_the_same_and_is_undone_at_once(
    coach: CoachClient, clients: Clients, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs, "MAX_AT_ONCE", 1)
    body = {"ids": clients.ids, **WEEK, **HEAVIER}
    dry = (await bulk(coach, "adjust", {**body, "dryRun": True})).ok()
    accepted = await bulk(coach, "adjust", body)
    job = await finished(coach, accepted)
    assert job["result"] == {**dry, "batchId": accepted.headers["X-Change-Id"]}
    await finished(coach, await coach.undo(accepted))
    assert loads(await calendar(coach, clients.bo)) == [[60, 60, 60]] * 2


async def test_a_repetition_that_continues_has_the_same_results(coach: CoachClient, clients: Clients) -> None:
    """The response of the first request was lost before it was stored."""
    body, key = {"ids": clients.ids, **WEEK, **HEAVIER}, {"Idempotency-Key": "adjust"}
    first = (await bulk(coach, "adjust", body, **key)).ok()
    await coach.ctx.db["replays"].delete_one({"companyId": coach.ctx.company_id, "answer": {"$exists": True}})
    resumed = await bulk(coach, "adjust", body, **key)
    assert ("Idempotent-Replayed" not in resumed.headers, resumed.ok()) == (True, first)
    assert loads(await calendar(coach, clients.bo)) == [[62.5] * 3] * 2


async def test_a_result_lists_a_limited_number_of_workouts(
    coach: CoachClient, clients: Clients, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("coaching_service.lifecycle.customer_bulk.service._MAX_LISTED", 2)
    await complete(coach, await block_with(coach, clients.ana, exercise_of(clients.squat), date="2026-03-06"))
    result = (await bulk(coach, "clear", {"ids": clients.ids, **WEEK, "dryRun": True})).ok()
    assert [(len(each["skipped"]), each.get("moreSkipped")) for each in result["results"]] == [(1, 1), (0, None)]
