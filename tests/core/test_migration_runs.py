"""Migrations run once and in order, and continue after an interruption."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from coaching_service import runtime
from coaching_service.core.database import migrations
from coaching_service.core.database.context import Services
from coaching_service.core.database.migrations import Step, find_pending, migrate
from coaching_service.settings import Settings
from tests.application.test_command_line import type_in


async def test_steps_are_applied_once(old_database: Services) -> None:
    db = old_database.db
    await migrate(db, old_database.vault)
    await db["customers"].update_one({"name": "Ana"}, {"$set": {"customerRoleData.lastTrainedDate": "2026-11-22"}})
    before = await db["customers"].find({}).to_list(None)
    assert await migrate(db, old_database.vault) == []
    for step in migrations.STEPS:
        await step.apply(db, old_database.vault)
    assert await db["customers"].find({}).to_list(None) == before


async def test_interrupted_migration_continues_with_the_same_step(old_database: Services) -> None:
    db = old_database.db
    runs: list[int] = []

    def step(number: int, *, fails: bool = False) -> Step:
        async def apply(*_: object) -> None:
            runs.append(number)
            if fails and runs.count(number) == 1:
                raise ZeroDivisionError

        return Step(number, f"step {number}", apply)

    steps = [step(103), step(101), step(102, fails=True)]
    with pytest.raises(ZeroDivisionError):
        await migrate(db, old_database.vault, steps)
    assert [pending.number for pending in await find_pending(db, steps)] == [102, 103]
    assert await migrate(db, old_database.vault, steps) == ["step 102", "step 103"]
    assert runs == [101, 102, 102, 103]


async def test_new_database_needs_no_migration(own_services: Services) -> None:
    db = own_services.db
    await db.client.drop_database(db.name)
    await runtime.make_indexes(own_services)
    assert await find_pending(db) == []


async def test_existing_database_is_not_taken_for_a_new_one(old_database: Services) -> None:
    await runtime.make_indexes(old_database)
    assert await find_pending(old_database.db) == list(migrations.STEPS)


def test_numbers_of_steps_are_consecutive() -> None:
    assert [step.number for step in migrations.STEPS] == list(range(1, len(migrations.STEPS) + 1))
    modules = {file.stem for file in Path(migrations.__file__).parent.glob("step_*.py")}
    assert modules == {f"step_{step.number:04}_{step.name}" for step in migrations.STEPS}


async def test_command_applies_pending_steps(old_database: Services, settings: Settings) -> None:
    environment = {
        "MONGODB_URI": str(settings.mongodb_uri),
        "MONGODB_DATABASE": old_database.db.name,
        "SECRET_KEYS": ",".join(settings.secret_keys),
    }
    plan = (await asyncio.to_thread(type_in, "migrate", "--plan", **environment)).ok().splitlines()
    assert len(plan) == len(migrations.STEPS)
    assert plan[5].startswith(
        "  6  session_applications: The application that a sign-in session belongs to is stored as"
    )
    assert await find_pending(old_database.db) == list(migrations.STEPS), "a plan changes nothing"
    first = await asyncio.to_thread(type_in, "migrate", **environment)
    assert first.ok() == f"Applied: {', '.join(step.name for step in migrations.STEPS)}\n"
    assert (await asyncio.to_thread(type_in, "migrate", **environment)).ok() == "No migration is pending\n"
