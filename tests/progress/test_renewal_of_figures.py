"""The jobs that renew figures: changes before the day's backlog, several workers, interruptions.

They run on a database of their own, on which no application works.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from coaching_service import features
from coaching_service.core.database.context import Context, Services
from coaching_service.core.database.documents import now
from coaching_service.core.ids import ObjectId
from coaching_service.core.jobs import worker
from coaching_service.core.jobs.queue import Job, RunAgain, Step, Steps
from coaching_service.installation import migrations
from coaching_service.people import team
from coaching_service.people.customers import batch, derived_figures
from coaching_service.progress.attention import renewal
from coaching_service.progress.attention.renewal import FIND_DUE, RENEW_CHANGED, RENEW_DAILY
from coaching_service.settings import Settings
from tests.support.databases import INDEX_STATE, new_database, remove_documents
from tests.support.service_process import until

LONG_AGO = datetime(2000, 1, 1)  # noqa: DTZ001 - stored times are UTC without a time zone
KINDS = (FIND_DUE, RENEW_CHANGED, RENEW_DAILY)


@pytest.fixture(scope="module")
async def own_services(settings: Settings) -> AsyncIterator[Services]:
    """Services of a database for these tests."""
    async with new_database(settings, "renewal") as (_, services):
        yield services


@pytest.fixture
async def alone(own_services: Services) -> Services:
    """Services of an empty database."""
    await remove_documents(own_services.db, but_of=(INDEX_STATE, migrations.COLLECTION))
    return own_services


async def create_company(services: Services, clients: int) -> Context:
    """Create a company with clients that have been due since a midnight long ago."""
    email = f"{ObjectId()}@example.com"
    ctx = Context(services).acting_as(await team.create_company(Context(services), "Alpha", "Olga", email, "no hash"))
    for number in range(clients):
        await batch.create_customer(ctx, {"name": f"Client {number}"})
    change = {"$set": {"figuresUntil": LONG_AGO}, "$unset": {"figuresChangedAt": ""}}
    await services.db["customers"].update_many({"companyId": ctx.company_id}, change)
    return ctx


async def count_due(services: Services) -> dict[str, float]:
    """How many clients are due, by lane."""
    return {lane: (await derived_figures.count_due(services, lane))["count"] for lane in renewal.KINDS}


def steps_with(**replaced: Step) -> Steps:
    """The steps of the renewal, some of them replaced by kind."""
    return {kind: features.STEPS[kind] for kind in KINDS} | replaced


async def test_a_change_overtakes_the_backlog_of_the_day(alone: Services) -> None:
    """The worker renews a change, and a new client, while its renewal of the day does not end."""
    companies = [await create_company(alone, 2) for _ in range(3)]
    began = asyncio.Event()

    async def hang(_: Services, __: Job) -> RunAgain | None:
        began.set()
        await asyncio.Event().wait()
        return None

    async with worker.working(alone, steps_with(**{RENEW_DAILY: hang}), (FIND_DUE,), features.JOB_PLACES):
        await asyncio.wait_for(began.wait(), 60)
        new = await batch.create_customer(companies[2], {"name": "Newcomer"})

        async def is_renewed() -> bool:
            return (await count_due(alone))["changes"] == 0

        await until(is_renewed, "the new client has figures")
        assert await count_due(alone) == {"changes": 0, "daily": 6}
    stored = await alone.db["customers"].find_one({"_id": new["_id"]})
    assert stored is not None
    assert stored["attention"]["score"] == 15, "nothing is scheduled"
    assert "figuresChangedAt" not in stored


def test_renewals_have_places_of_their_own() -> None:
    assert features.JOB_PLACES == {"send_mail": 4, "send_push": 64, "renew_changed_figures": 2}
    assert {"renew_compliance", "renew_changed_figures", "renew_daily_figures"} <= set(features.STEPS)
    assert "renew_compliance" in features.STANDING_JOBS


async def test_two_workers_share_the_companies_and_renew_none_twice(alone: Services) -> None:
    companies = {(await create_company(alone, 3)).company_id for _ in range(4)}
    both_began, ran = asyncio.Barrier(2), Counter[ObjectId]()
    by_worker: list[set[ObjectId]] = [set(), set()]

    def step_of(number: int) -> Step:
        async def renew(services: Services, job: Job) -> RunAgain | None:
            assert job.company_id is not None
            ran[job.company_id] += 1
            by_worker[number].add(job.company_id)
            async with asyncio.timeout(60):
                await both_began.wait()  # each has a company at the same time
            return await renewal.renew_next(services, job, lane="daily")

        return renew

    async def none_is_due() -> bool:
        return (await count_due(alone))["daily"] == 0

    async with AsyncExitStack() as stack:
        for number in range(2):
            services = replace(alone, job_available=asyncio.Event())
            steps = steps_with(**{RENEW_DAILY: step_of(number)})
            await stack.enter_async_context(worker.working(services, steps, (FIND_DUE,)))
        await until(none_is_due, "all are renewed")
    assert ran == dict.fromkeys(companies, 1)
    assert [len(each) for each in by_worker] == [2, 2]


async def test_a_company_is_queued_once_and_not_while_it_is_renewed(alone: Services) -> None:
    ctx = await create_company(alone, 1)
    find = steps_with()[FIND_DUE]
    for _ in range(2):
        assert await find(alone, Job(ObjectId(), {}, 1)) == RunAgain(timedelta(seconds=3))
    jobs = await alone.db["jobs"].find({}).to_list(None)
    assert [(job["kind"], job["companyId"]) for job in jobs] == [(RENEW_DAILY, ctx.company_id)]
    await alone.db["jobs"].update_one({}, {"$set": {"lease": "of a worker", "attempts": 1}})
    await find(alone, Job(ObjectId(), {}, 1))
    [job] = await alone.db["jobs"].find({}).to_list(None)
    assert (job["lease"], job["attempts"]) == ("of a worker", 1)


async def test_a_worker_that_ends_in_the_middle_leaves_the_rest_to_another(
    alone: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After its lease the job goes on behind the clients that were renewed."""
    monkeypatch.setattr(renewal, "_BATCH", 2)
    ctx = await create_company(alone, 5)
    second = asyncio.Event()

    async def renew_first_batch(services: Services, job: Job) -> RunAgain | None:
        if job.arguments["last"] is not None:
            second.set()
            await asyncio.Event().wait()
        return await renewal.renew_next(services, job, lane="daily")

    async with worker.working(alone, steps_with(**{RENEW_DAILY: renew_first_batch}), (FIND_DUE,)):
        await asyncio.wait_for(second.wait(), 60)
    assert (await count_due(alone))["daily"] == 3
    before = await renewed_times(alone, ctx)
    daily = {RENEW_DAILY: features.STEPS[RENEW_DAILY]}
    assert await worker.run_due(alone, daily) == 0, "its lease has not ended"
    assert await worker.run_due(alone, daily, at=now() + timedelta(minutes=2)) == 2
    assert (await count_due(alone))["daily"] == 0
    assert await alone.db["jobs"].find_one({"kind": RENEW_DAILY}) is None
    assert before.items() <= (await renewed_times(alone, ctx)).items()


async def renewed_times(services: Services, ctx: Context) -> dict[ObjectId, datetime]:
    """When the clients of a company that are renewed are due again."""
    where = {"companyId": ctx.company_id, "figuresUntil": {"$gt": now()}}
    return {each["_id"]: each["figuresUntil"] async for each in services.db["customers"].find(where)}


@pytest.mark.parametrize("lane_field", ["figuresUntil", "figuresChangedAt"])
@pytest.mark.parametrize("state", ["suspended", "erased"])
async def test_a_company_that_is_not_active_is_postponed_and_its_job_ends(
    alone: Services, state: str, lane_field: str
) -> None:
    ctx = await create_company(alone, 2)
    customers, own = alone.db["customers"], {"companyId": ctx.company_id}
    await customers.update_many(own, {"$set": {lane_field: LONG_AGO}})
    if state == "suspended":
        await alone.db["companies"].update_one(
            {"_id": ctx.company_id}, {"$set": {"suspension": {"at": now(), "reason": "x"}}}
        )
    else:
        await alone.db["companies"].delete_one({"_id": ctx.company_id})
    await features.STEPS[FIND_DUE](alone, Job(ObjectId(), {}, 1))
    assert await worker.run_due(alone, steps_with()) >= 1
    assert await alone.db["jobs"].find_one({}) is None
    assert await count_due(alone) == {"changes": 0, "daily": 0}
    async for client in customers.find(own):
        assert now() < client[lane_field] <= now() + timedelta(hours=1)
        assert "attention" not in client


async def test_archived_clients_and_those_of_tomorrow_are_not_due(alone: Services) -> None:
    ctx = await create_company(alone, 3)
    ids = [each["_id"] async for each in alone.db["customers"].find({"companyId": ctx.company_id}, {"_id": 1})]
    changes: list[dict[str, Any]] = [
        {"customerRoleData.isArchived": True, "figuresChangedAt": LONG_AGO},
        {"figuresUntil": now() + timedelta(hours=1)},
        {"figuresUntil": LONG_AGO},
    ]
    for customer_id, change in zip(ids, changes, strict=True):
        await alone.db["customers"].update_one({"_id": customer_id}, {"$set": change})
    assert await count_due(alone) == {"changes": 0, "daily": 1}
    due = await derived_figures.count_due(alone, "daily")
    assert due["oldestSeconds"] > 20 * 365 * 86_400
