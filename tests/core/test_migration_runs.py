"""Migrations run once and in order, and continue after an interruption."""

from __future__ import annotations

import asyncio
import tomllib
from pathlib import Path

import pytest
from aiohttp.test_utils import TestServer

from coaching_service import __version__, runtime
from coaching_service.app import create_app
from coaching_service.core.database.context import Services
from coaching_service.installation import migrations
from coaching_service.installation.migrations import NewerDatabase, Step, find_pending, migrate, minor_version
from coaching_service.settings import Settings
from tests.support.client import CoachClient
from tests.support.commands import type_in
from tests.support.service_process import refused


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

        apply.__name__ = f"step {number}"
        return Step(number, apply, "0.2")

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


def test_numbers_of_steps_ascend() -> None:
    numbers = [step.number for step in migrations.STEPS]
    assert numbers == sorted({*numbers})
    assert all(minor_version(step.release) <= minor_version(__version__) for step in migrations.STEPS)


def test_steps_of_a_patch_version_only_add() -> None:
    """Step 24 stores types of records that 0.2 does not know (docs/upgrading.md): it refuses a database that has it."""
    assert [step.number for step in migrations.STEPS if step.release == "0.2"] == list(range(1, 17))
    assert {step.number: step.release for step in migrations.STEPS if step.number > 16}[24] == "0.3"


def test_package_has_the_version_of_the_service() -> None:
    package = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text("utf-8"))
    assert package["project"]["version"] == __version__


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


# --- databases of later versions ---------------------------------------------------------------------------------------


async def record_step_of(services: Services, release: str | None) -> None:
    """Record a migration that this version does not know."""
    record = {"_id": 9_999, "name": "of_later", "release": release}
    await services.db[migrations.COLLECTION].replace_one({"_id": 9_999}, record, upsert=True)


@pytest.mark.parametrize(
    ("release", "version", "is_refused"),
    [
        ("0.3", "0.3.0", False),
        ("0.3", "0.3.1.dev0", False),
        ("0.3", "0.2.9", True),
        ("0.10", "0.9.0", True),
        ("1.0", "0.99.1", True),
        ("0.3", "1.0.0", False),
    ],
)
async def test_migrations_of_later_minor_versions_are_refused(
    own_services: Services, release: str, version: str, *, is_refused: bool
) -> None:
    await record_step_of(own_services, release)
    try:
        await migrations.require_known(own_services.db, version=version)
    except NewerDatabase as error:
        assert is_refused
        assert f"migrated to {release} (step 9999 of_later), and this is version {version}: start {release}" in str(
            error
        )
    else:
        assert not is_refused


async def test_older_process_refuses_a_database_of_a_later_version(
    own_services: Services, settings: Settings, tmp_path: Path
) -> None:
    """It does not start, is not ready if it runs, and its commands change nothing."""
    own = settings.model_copy(update={"mongodb_database": own_services.db.name})
    await own_services.db.client.drop_database(own_services.db.name)
    await runtime.make_indexes(own_services)
    async with TestServer(create_app(own, own_services)) as server:
        operator = CoachClient(server, None, None)
        (await operator.get("/readyz")).ok()
        await record_step_of(own_services, "99.0")
        (await operator.get("/readyz")).refused(503, "migrated to 99.0")
        (await operator.get("/healthz")).ok()
        await operator.close()
    environment = {
        "MONGODB_URI": str(settings.mongodb_uri),
        "MONGODB_DATABASE": own_services.db.name,
        "SECRET_KEYS": ",".join(settings.secret_keys),
    }
    message = (
        f"The database was migrated to 99.0 (step 9999 of_later), and this is version {__version__}: "
        "start 99.0 or later, or restore the backup made before the migration"
    )
    assert await asyncio.to_thread(refused, tmp_path, **environment) == message
    for command in (["migrate"], ["ensure-indexes"], ["doctor", "--repair"]):
        result = await asyncio.to_thread(type_in, *command, **environment)
        result.refused(message, exit_code=2 if "doctor" in command else 1)
