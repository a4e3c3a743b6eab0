"""Locking a client in a transaction also checks the caller's access, in the same command."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from coaching_service.core.database.context import Context, in_transaction
from coaching_service.core.errors import Forbidden, NotFound
from coaching_service.core.ids import ObjectId
from coaching_service.people.customers import service as customers
from coaching_service.training.workouts.blocks import service as workouts
from coaching_service.training.workouts.blocks.service import ClientCalendar
from tests.contract.test_queries import profiling
from tests.support.client import CoachClient
from tests.support.stored import stored_document
from tests.support.training import add, exercise_of, log

Json = dict[str, Any]


def of_assigned(coach: CoachClient) -> Context:
    """A coach who may access only the clients assigned to them."""
    return coach.ctx.acting_as(replace(coach.ctx.caller, role="EMPLOYEE", customers_scope="assigned"))


async def stored(coach: CoachClient, customer: Json) -> Json:
    document: Json = await stored_document(coach.ctx.db["customers"], {"_id": ObjectId(customer["_id"])})
    return document


async def test_client_of_another_coach_cannot_be_locked(coach: CoachClient, other_company: CoachClient) -> None:
    ana = await coach.create_customer("Ana")
    own = await coach.create_customer("Bo", assignedTo=str(coach.ctx.caller.id))
    foreign = await other_company.create_customer("Cai")
    before = (await stored(coach, ana)).get("scheduleChanges")

    async def lock(ctx: Context, customer: Json) -> None:
        await in_transaction(ctx, lambda tx: customers.authorize_and_lock(tx, ObjectId(customer["_id"])))

    await lock(of_assigned(coach), own)
    with pytest.raises(Forbidden):
        await lock(of_assigned(coach), ana)
    for ctx in (coach.ctx, of_assigned(coach)):
        with pytest.raises(NotFound):
            await lock(ctx, foreign)
    assert (await stored(coach, ana)).get("scheduleChanges") == before, "not even that it was locked"


async def test_access_is_checked_also_if_the_client_is_locked_already(coach: CoachClient) -> None:
    ana = await coach.create_customer("Ana")
    own = await coach.create_customer("Bo", assignedTo=str(coach.ctx.caller.id))

    async def lock_twice(tx: Context, customer: Json) -> None:
        await customers.lock_and_mark_figures(tx, ObjectId(customer["_id"]))
        await customers.authorize_and_lock(tx, ObjectId(customer["_id"]))

    await in_transaction(of_assigned(coach), lambda tx: lock_twice(tx, own))
    with pytest.raises(Forbidden):
        await in_transaction(of_assigned(coach), lambda tx: lock_twice(tx, ana))


async def test_last_workout_date_is_extended_after_the_lock(coach: CoachClient) -> None:
    ana = await coach.create_customer("Ana")
    identifier = ObjectId(ana["_id"])

    async def extend(tx: Context, day: str) -> None:
        await customers.lock_and_mark_figures(tx, identifier)
        await customers.extend_last_workout_date(tx, identifier, day)

    for day, expected in (("2026-03-02", "2026-03-02"), ("2026-03-01", "2026-03-02"), ("2026-03-03", "2026-03-03")):
        await in_transaction(coach.ctx, partial(extend, day=day))
        assert (await stored(coach, ana))["customerRoleData"]["lastWorkoutDate"] == expected

    async def set_and_extend(tx: Context) -> None:
        await customers.set_last_workout_date(tx, identifier, None)
        await extend(tx, "2026-03-01")

    await in_transaction(coach.ctx, set_and_extend)
    assert (await stored(coach, ana))["customerRoleData"]["lastWorkoutDate"] == "2026-03-01", "not the date before"


async def test_access_takes_no_command_of_its_own(coach: CoachClient) -> None:
    """A week, an added item and a log read the client with the command that reads or locks it anyway."""
    ana = await coach.create_customer("Ana")
    item = exercise_of(await coach.create_exercise())
    block = await coach.schedule(ana)
    async with profiling(coach) as profile:
        added = await add(coach, block, item)
        (await log(coach, block, added, isCompleted=True)).ok()
        await coach.calendar(ana)
        entries = await profile()
        (await coach.get(f"/coach/customers/{ana['_id']}/wblocks/{block['_id']}")).ok()
        entries_of_a_read = await profile()
    assert not any(_is_access_check(entry, ana) for entry in entries)
    assert any(_is_access_check(entry, ana) for entry in entries_of_a_read), "such a check is recognised"


def _is_access_check(entry: Json, customer: Json) -> bool:
    command = entry["command"]
    is_of_client = command.get("filter", {}).get("_id") == ObjectId(customer["_id"])
    return is_of_client and command.get("projection") == {"customerRoleData.assignedTo": 1, "consent": 1}


async def test_week_is_read_in_a_transaction_too(coach: CoachClient, other_company: CoachClient) -> None:
    """MongoDB refuses there what otherwise reads the client with the same command."""
    ana, foreign = await coach.create_customer("Ana"), await other_company.create_customer("Cai")
    for day in ("2026-03-04", "2026-03-02"):
        await coach.schedule(ana, day)

    async def read(ctx: Context, customer: Json) -> list[str | None]:
        owner = ClientCalendar(ObjectId(customer["_id"]))
        return [block["date"] for block in await workouts.list_blocks(ctx, owner, "2026-03-02", "2026-03-08")]

    assert await read(coach.ctx, ana) == ["2026-03-02", "2026-03-04"]
    assert await in_transaction(coach.ctx, lambda tx: read(tx, ana)) == ["2026-03-02", "2026-03-04"]
    with pytest.raises(NotFound):
        await in_transaction(coach.ctx, lambda tx: read(tx, foreign))
