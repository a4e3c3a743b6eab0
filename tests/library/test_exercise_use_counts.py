"""How often exercises are planned: counted in memory, and stored every second."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
from bson import ObjectId

from coaching_service import runtime
from coaching_service.core.database.across_companies import store_now, storing
from coaching_service.core.database.context import Context
from coaching_service.library.exercises import store
from coaching_service.library.exercises.service import load_use_counts, store_counts
from coaching_service.settings import Settings
from tests.support.client import CoachClient
from tests.support.logs import recorded_logs
from tests.support.service_process import until
from tests.support.training import add, block_with, exercise_of

SQUAT, PRESS = ObjectId(), ObjectId()


@pytest.fixture
async def ctx(coach: CoachClient, settings: Settings) -> AsyncIterator[Context]:
    """The company's owner in a process of its own, which stores nothing by itself."""
    async with runtime.open_services(settings) as services:
        yield replace(coach.ctx, services=services)


async def test_planned_items_count_at_once_and_are_stored_within_seconds(coach: CoachClient) -> None:
    squat, client = await coach.create_exercise(), await coach.create_customer()
    await add(coach, await block_with(coach, client, exercise_of(squat)), exercise_of(squat))
    await block_with(coach, client, exercise_of(squat), exercise_of(squat))
    squat_id = ObjectId(squat["_id"])
    assert (await load_use_counts(coach.ctx))[squat_id] >= 3  # more while they are being stored

    async def is_stored() -> bool:
        stored, loaded = await store.find_uses(coach.ctx), await load_use_counts(coach.ctx)
        return stored == loaded == {squat_id: 3}

    await until(is_stored, "the uses are stored")


async def test_counts_are_added_to_those_that_are_stored(ctx: Context) -> None:
    ctx.services.exercise_uses.add(ctx.company_id, {SQUAT, PRESS})
    ctx.services.exercise_uses.add(ctx.company_id, {SQUAT})
    assert await store.find_uses(ctx) == {}
    await store_counts(ctx.services)
    await store_counts(ctx.services)
    assert await store.find_uses(ctx) == {SQUAT: 2, PRESS: 1}
    ctx.services.exercise_uses.add(ctx.company_id, {PRESS})
    assert await load_use_counts(ctx) == {SQUAT: 2, PRESS: 2}
    await store_counts(ctx.services)
    assert await store.find_uses(ctx) == {SQUAT: 2, PRESS: 2}


async def test_uses_are_not_missing_while_they_are_being_stored(ctx: Context) -> None:
    ctx.services.exercise_uses.add(ctx.company_id, {SQUAT})
    assert ctx.services.exercise_uses.take() == {ctx.company_id: {SQUAT: 1}}
    ctx.services.exercise_uses.add(ctx.company_id, {SQUAT, PRESS})
    assert await load_use_counts(ctx) == {SQUAT: 2, PRESS: 1}
    ctx.services.exercise_uses.end_storing()
    assert await load_use_counts(ctx) == {SQUAT: 1, PRESS: 1}


async def test_another_company_has_its_own_counts(ctx: Context, other_company: CoachClient) -> None:
    ctx.services.exercise_uses.add(ctx.company_id, {SQUAT})
    assert await load_use_counts(replace(other_company.ctx, services=ctx.services)) == {}
    await store_counts(ctx.services)
    assert await load_use_counts(other_company.ctx) == {}


async def test_nothing_is_stored_for_a_deleted_company(ctx: Context) -> None:
    deleted = ObjectId()
    ctx.services.exercise_uses.add(deleted, [SQUAT])
    ctx.services.exercise_uses.add(ctx.company_id, {PRESS})
    await store_counts(ctx.services)
    assert await store.find_uses(ctx) == {PRESS: 1}
    assert await ctx.db["exerciseUses"].count_documents({"companyId": deleted}) == 0


async def count_without_database(coach: CoachClient, settings: Settings, uri: str) -> str:
    """Count a use and try to store it; returns the logged reason why that failed."""
    async with runtime.open_services(settings.model_copy(update={"mongodb_uri": uri})) as services:
        services.exercise_uses.add(coach.ctx.company_id, {SQUAT})
        with recorded_logs() as entries:
            await store_now(services, store_counts)
        assert services.exercise_uses.take() == {}
    reasons = [str(entry["reason"]) for entry in entries if entry["event"] == "what was collected is not stored"]
    assert reasons, entries
    return reasons[0]


async def test_counts_are_lost_without_a_database(coach: CoachClient, settings: Settings) -> None:
    uri = "mongodb://127.0.0.1:9/?serverSelectionTimeoutMS=50&connectTimeoutMS=50"
    assert await count_without_database(coach, settings, uri)


async def test_nothing_waits_long_for_a_database_that_does_not_respond(coach: CoachClient, settings: Settings) -> None:
    async def read_only(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    server = await asyncio.start_server(read_only, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        limits = "serverSelectionTimeoutMS=120000&connectTimeoutMS=120000&timeoutMS=120000"
        uri = f"mongodb://127.0.0.1:{port}/?{limits}"
        reason = await count_without_database(coach, settings, uri)
    assert reason == "The database does not respond"


async def test_a_process_that_ends_stores_what_it_has_counted(coach: CoachClient, settings: Settings) -> None:
    async with runtime.open_services(settings) as services:
        services.exercise_uses.add(coach.ctx.company_id, {SQUAT})
    async with runtime.open_services(settings) as services:
        async with storing(services, store_counts, 1, start=asyncio.Event()):
            services.exercise_uses.add(coach.ctx.company_id, {SQUAT})
        assert await store.find_uses(coach.ctx) == {SQUAT: 2}
