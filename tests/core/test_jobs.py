"""Background jobs: run once, retried, taken over; and what erasing a client removes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from functools import partial

import pytest
import time_machine

from coaching_service import features
from coaching_service.core.auth import Principal
from coaching_service.core.database.context import Context, Services, in_transaction
from coaching_service.core.database.documents import Document, now
from coaching_service.core.ids import ObjectId, stable_id
from coaching_service.core.jobs import worker
from coaching_service.core.jobs.queue import Job, RunAgain, Steps, enqueue
from coaching_service.core.jobs.worker import ensure_standing_jobs, run_due
from coaching_service.lifecycle import erasure
from coaching_service.people import team
from coaching_service.people.customers import batch as creation
from coaching_service.people.customers import service as customers
from coaching_service.settings import Settings
from tests.support.client import MONDAY, CoachClient
from tests.support.databases import new_database
from tests.support.service_process import until

Runs = list[Document]  # the arguments of each run


def recording(runs: Runs, *outcomes: RunAgain | Exception | None) -> Steps:
    """The step of a new kind of job that records its arguments; its runs have these `outcomes`, then None."""
    remaining = list(outcomes)

    async def step(_: Services, job: Job) -> RunAgain | None:
        runs.append(job.arguments)
        outcome = remaining.pop(0) if remaining else None
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    return {f"test {ObjectId()}": step}


def of_company(company_id: ObjectId | None, kind: str, arguments: Document) -> Document:
    """A stored job that is due."""
    times = {"runAfter": now(), "createdAt": now()}
    return {
        "companyId": company_id,
        "about": None,
        "kind": kind,
        "arguments": arguments,
        **times,
        "attempts": 0,
        "lease": None,
    }


def kind_of(steps: Steps) -> str:
    """The only kind of job among the steps."""
    (kind,) = steps
    return kind


async def queued(services: Services, steps: Steps) -> list[Document]:
    """The stored jobs of these kinds."""
    return await services.db["jobs"].find({"kind": {"$in": list(steps)}}).to_list(None)


# --- the queue -----------------------------------------------------------------------------------------------------


async def test_concurrent_workers_run_each_job_once(services: Services) -> None:
    runs: Runs = []
    steps = recording(runs)
    for number in range(20):
        await enqueue(Context(services), kind_of(steps), {"number": number})
    counts = await asyncio.gather(*(run_due(services, steps) for _ in range(5)))
    assert sorted(arguments["number"] for arguments in runs) == list(range(20))
    assert sum(counts) == 20
    assert await queued(services, steps) == []


async def test_worker_ignores_kinds_without_a_step(services: Services) -> None:
    runs: Runs = []
    steps = recording(runs)
    await enqueue(Context(services), kind_of(steps), {})
    assert await run_due(services, recording(runs)) == 0
    assert await run_due(services, steps) == 1


async def test_failed_step_is_retried_with_growing_delay_and_same_arguments(services: Services) -> None:
    """After one second, then after five."""
    runs: Runs = []
    steps = recording(runs, ZeroDivisionError(), ZeroDivisionError())
    await enqueue(Context(services), kind_of(steps), {"number": 1})
    due = now()
    for delay in (timedelta(seconds=1), timedelta(seconds=5)):
        started = now()
        assert await run_due(services, steps, at=due) == 1
        [job] = await queued(services, steps)
        due = job["runAfter"]
        assert started + delay <= due <= now() + delay
        assert await run_due(services, steps, at=due - timedelta(milliseconds=1)) == 0
    assert await run_due(services, steps, at=due) == 1
    assert runs == [{"number": 1}] * 3
    assert await queued(services, steps) == []


async def test_failing_job_does_not_delay_others(services: Services) -> None:
    runs: Runs = []
    failing, succeeding = recording(runs, ZeroDivisionError()), recording(runs)
    await enqueue(Context(services), kind_of(failing), {"number": 1})
    await enqueue(Context(services), kind_of(succeeding), {"number": 2})
    assert await run_due(services, failing | succeeding, at=now()) == 2
    assert [arguments["number"] for arguments in runs] == [1, 2]
    assert [job["kind"] for job in await queued(services, failing | succeeding)] == list(failing)


async def test_progress_is_passed_to_the_next_step(services: Services) -> None:
    runs: Runs = []
    steps = recording(runs, RunAgain(progress={"done": 1}), RunAgain(timedelta(minutes=2), {"done": 2}))
    await enqueue(Context(services), kind_of(steps), {"goal": 3})
    assert await run_due(services, steps) == 2
    assert await run_due(services, steps, at=now() + timedelta(seconds=100)) == 0
    assert await run_due(services, steps, at=now() + timedelta(seconds=121)) == 1
    assert runs == [{"goal": 3}, {"goal": 3, "done": 1}, {"goal": 3, "done": 2}]
    assert await queued(services, steps) == []


async def test_job_can_be_delayed(services: Services) -> None:
    steps = recording([])
    await enqueue(Context(services), kind_of(steps), {}, after=timedelta(hours=1))
    assert await run_due(services, steps, at=now() + timedelta(minutes=59)) == 0
    assert await run_due(services, steps, at=now() + timedelta(minutes=61)) == 1


async def test_job_of_a_dead_worker_is_claimed_after_its_lease(services: Services) -> None:
    """The lease lasts a minute."""
    runs: Runs = []
    [kind] = steps = recording(runs)
    started = asyncio.Event()

    async def never_ends(_: Services, __: Job) -> None:
        started.set()
        await asyncio.Event().wait()

    await enqueue(Context(services), kind, {"number": 1})
    worker = asyncio.create_task(run_due(services, {kind: never_ends}))
    await asyncio.wait_for(started.wait(), 60)
    worker.cancel()
    with pytest.raises(asyncio.CancelledError):
        await worker
    assert await run_due(services, steps, at=now() + timedelta(seconds=50)) == 0
    assert await run_due(services, steps, at=now() + timedelta(seconds=61)) == 1
    assert runs == [{"number": 1}]
    assert await queued(services, steps) == []


async def test_worker_that_lost_its_lease_changes_nothing(services: Services) -> None:
    [kind] = steps = recording([], RunAgain(timedelta(hours=1), {"taken over": True}))
    started, proceed = asyncio.Event(), asyncio.Event()

    async def slow(_: Services, __: Job) -> None:
        started.set()
        await proceed.wait()

    await enqueue(Context(services), kind, {})
    worker = asyncio.create_task(run_due(services, {kind: slow}))
    await asyncio.wait_for(started.wait(), 60)
    assert await run_due(services, steps, at=now() + timedelta(seconds=61)) == 1
    proceed.set()
    assert await worker == 1
    [job] = await queued(services, steps)
    assert job["arguments"] == {"taken over": True}
    assert await run_due(services, steps, at=now() + timedelta(minutes=61)) == 1


async def test_companies_take_turns_at_each_kind(services: Services) -> None:
    runs: Runs = []
    steps = recording(runs)
    first, second = ObjectId(), ObjectId()
    for number in range(5):
        await services.db["jobs"].insert_one(of_company(first, kind_of(steps), {"first": number}))
    await services.db["jobs"].insert_one(of_company(second, kind_of(steps), {"second": 0}))
    await services.db["jobs"].insert_one(of_company(None, kind_of(steps), {"none": 0}))
    assert await run_due(services, steps) == 7
    assert sorted(next(iter(each)) for each in runs[:3]) == ["first", "none", "second"]
    assert [each["first"] for each in runs if "first" in each] == [0, 1, 2, 3, 4]


async def test_a_job_that_a_process_holds_is_left_to_it_for_a_lease(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs: Runs = []
    steps = recording(runs, RunAgain(is_held=True), RunAgain(is_held=True))
    await services.db["jobs"].insert_one(of_company(ObjectId(), kind_of(steps), {}))
    assert await run_due(services, steps, limit=1) == 1
    with monkeypatch.context() as another_process:
        another_process.setattr(worker, "_PROCESS", "another")
        assert await run_due(services, steps) == 0
    assert await run_due(services, steps, limit=1) == 1, "its own process goes on at once"
    with monkeypatch.context() as another_process:
        another_process.setattr(worker, "_PROCESS", "another")
        await services.db["jobs"].update_many(
            {"kind": kind_of(steps)}, [{"$set": {"runAfter": {"$subtract": ["$runAfter", 61_000]}}}]
        )
        assert await run_due(services, steps) == 1, "the process that had it is gone"
    assert await queued(services, steps) == []


async def test_job_is_queued_only_if_its_transaction_commits(services: Services) -> None:
    runs: Runs = []
    steps = recording(runs)

    async def aborted(tx: Context) -> None:
        await enqueue(tx, kind_of(steps), {"number": 1})
        raise ZeroDivisionError

    async def committed(tx: Context) -> None:
        await enqueue(tx, kind_of(steps), {"number": 2})
        assert await run_due(services, steps) == 0, "not before it is committed"

    with pytest.raises(ZeroDivisionError):
        await in_transaction(Context(services), aborted)
    await in_transaction(Context(services), committed)
    assert await run_due(services, steps, at=now() + timedelta(hours=1)) == 1
    assert runs == [{"number": 2}]


async def test_arguments_are_stored_as_they_are(services: Services) -> None:
    """Jobs are written by expressions, but texts with a dollar sign are not field paths."""
    runs: Runs = []
    steps = recording(runs, RunAgain(progress={"note": "$$NOW"}))
    arguments = {"$where": "$kind", "nested": {"price": "$5"}}
    await enqueue(Context(services), kind_of(steps), arguments)
    assert await run_due(services, steps) == 2
    assert runs == [arguments, arguments | {"note": "$$NOW"}]


async def test_worker_runs_new_jobs_at_once_and_survives_a_failure(
    idle: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker, "POLL_SECONDS", 1000.0)  # jobs run because the worker is notified
    runs: Runs = []
    steps = recording(runs, ZeroDivisionError())
    async with worker.working(idle, steps):
        for number in range(3):
            await enqueue(Context(idle), kind_of(steps), {"number": number})
            await until(partial(runs.__contains__, {"number": number}), "the job is run")
    await enqueue(Context(idle), kind_of(steps), {"number": 3})
    assert {"number": 3} not in runs


@pytest.mark.parametrize("turns", range(5))
async def test_worker_stops_right_after_a_wake_up(idle: Services, monkeypatch: pytest.MonkeyPatch, turns: int) -> None:
    """However many iterations of the event loop are between the notification and the stop."""
    monkeypatch.setattr(worker, "POLL_SECONDS", 1000.0)
    async with asyncio.timeout(60) as limit:
        async with worker.working(idle, recording([])):
            await asyncio.sleep(0)
            await until(lambda: len(idle.job_available._waiters) == 1, "the worker waits for jobs")
            idle.job_available.set()
            for _ in range(turns):
                await asyncio.sleep(0)
    assert not limit.expired()


# --- clocks --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shift", [timedelta(days=1), timedelta(days=-1)], ids=["fast", "slow"])
async def test_jobs_follow_the_clock_of_the_database(services: Services, shift: timedelta) -> None:
    """A process whose clock is a day wrong queues and runs jobs at the right time, and so do all others."""
    runs: Runs = []
    steps = recording(runs, RunAgain(timedelta(hours=1)))
    job_name = f"test {ObjectId()}"
    with time_machine.travel(datetime.now().astimezone() + shift):
        await enqueue(Context(services), kind_of(steps), {"number": 1})
        await ensure_standing_jobs(services, [job_name])
        assert await run_due(services, steps) == 1
    [job] = await queued(services, steps)
    assert timedelta(minutes=59) < job["runAfter"] - now() < timedelta(minutes=61)
    assert await run_due(services, recording(runs) | {job_name: steps[next(iter(steps))]}) == 1, "the standing job"


async def test_standing_job_is_due_within_an_hour(services: Services) -> None:
    """Also if the clock of the database was a day fast when the job last ran."""
    runs: Runs = []
    steps = recording(runs)
    [kind] = steps
    await ensure_standing_jobs(services, steps)
    where = {"_id": stable_id("job", kind)}
    changes = {"$set": {"runAfter": now() + timedelta(days=1), "arguments": {"number": 1}}}
    await services.db["jobs"].update_one(where, changes)
    await ensure_standing_jobs(services, steps)
    assert await run_due(services, steps, at=now() + timedelta(minutes=61)) == 1
    assert runs == [{"number": 1}], "everything else stays"


# --- erasing a client ----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
async def idle(settings: Settings) -> AsyncIterator[Services]:
    """Services on a database of their own, without background workers."""
    async with new_database(settings, "idle") as (_, opened):
        yield opened


async def naming(services: Services, *words: str, of_company: ObjectId | None = None) -> list[str]:
    """The names of the collections with a document that contains any of the words; or one of the company, or of none."""
    where = {} if of_company is None else {"companyId": {"$in": [of_company, None]}}
    texts = [word.encode() for word in words]
    identifiers = [ObjectId(word).binary for word in words if ObjectId.is_valid(word)]
    names = set()
    for name in await services.db.list_collection_names():
        # Documents as they are stored: decoding them takes long.
        async for batch in services.db[name].find_raw_batches(where):
            lowered = batch.lower()
            if any(text in lowered for text in texts) or any(identifier in batch for identifier in identifiers):
                names.add(name)
    return sorted(names)


async def test_erasing_a_client_removes_all_its_records(coach: CoachClient) -> None:
    """The records of another client stay. Records written by a request that read the client just before are removed
    by a second pass."""
    services, company = coach.ctx.services, coach.ctx.company_id
    clients = []
    for name in ("Zebulon", "Yolanda"):
        details = {"name": name, "surname": "Quixote", "email": f"{name}@quixote.test", "sendInvitation": False}
        client = (await coach.post("/coach/customers", details, headers={"Idempotency-Key": name})).ok(201)
        path = f"/coach/customers/{client['_id']}/wblocks"
        block = (await coach.post(path, {"name": "Legs", "date": MONDAY}, headers={"Idempotency-Key": name})).ok(201)
        (await coach.post(f"{path}/{block['_id']}/witems", {"type": "TASK", "taskFields": {"title": "Walk"}})).ok(201)
        clients.append(client["_id"])
    erased, other = clients
    assert await naming(services, erased, "zebulon", of_company=company) == [
        "changes",
        "customers",
        "replays",
        "searchTexts",
        "workoutBlocks",
    ]
    before = await naming(services, other, "yolanda", of_company=company)
    [late] = await services.db["workoutBlocks"].find({"customerId": ObjectId(erased)}).to_list(None)

    (await coach.delete(f"/coach/customers/{erased}")).ok(204)
    (await coach.get(f"/coach/customers/{erased}")).refused(404)
    assert await coach.names() == ["Yolanda"]
    second_pass = {"arguments.customerId": ObjectId(erased), "arguments.isSecondPass": True}
    await until(lambda: services.db["jobs"].find_one(second_pass), "the service's worker has run the first pass")
    assert await naming(services, erased, "zebulon", of_company=company) == [
        "audit",
        "changes",
        "erasures",
        "jobs",
    ]  # that the client was deleted

    await services.db["workoutBlocks"].insert_one(late)
    # Without the standing jobs, some of which are due again within these minutes.
    steps = {kind: step for kind, step in features.STEPS.items() if kind not in features.STANDING_JOBS}
    assert await run_due(services, steps, at=now() + timedelta(minutes=3)) >= 2
    assert await naming(services, erased, "zebulon", of_company=company) == [
        "audit",
        "changes",
        "erasures",
    ]  # that the client was deleted
    assert (
        await naming(services, other, "yolanda", of_company=company)
        == before
        == ["changes", "customers", "replays", "searchTexts", "workoutBlocks"]
    )


async def test_erasing_continues_after_an_interruption(idle: Services) -> None:
    """A step removes at most 500 documents; after an interruption the next worker continues."""
    owner = await team.create_company(Context(idle), "One", "Olga", "olga@one.test", "correct horse battery")
    ctx = Context(idle, owner)
    client = (await creation.create_customer(ctx, {"name": "Zebulon"}))["_id"]
    await _blocks(idle, owner, client, 501)
    await customers.erase(ctx, client)
    assert await naming(idle, str(client), "zebulon") == [
        "audit",
        "changes",
        "erasures",
        "jobs",
        "workoutBlocks",
    ]

    async def interrupted(services: Services, job: Job) -> RunAgain | None:
        assert await erasure.erase_customer(services, job) == RunAgain()
        raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        await run_due(idle, {erasure.ERASE_CUSTOMER: interrupted})
    assert await idle.db["changes"].count_documents({"customerId": client}) == 0
    assert await idle.db["workoutBlocks"].count_documents({}) == 501
    assert await run_due(idle, features.STEPS) == 0, "its lease has not ended"

    assert await run_due(idle, features.STEPS, at=now() + timedelta(minutes=1, seconds=1)) == 3
    assert await naming(idle, str(client)) == ["audit", "changes", "erasures", "jobs"]
    assert await run_due(idle, features.STEPS, at=now() + timedelta(minutes=3)) == 1
    assert await naming(idle, str(client)) == [
        "audit",
        "changes",
        "erasures",
    ]  # that the client was deleted


async def _blocks(services: Services, owner: Principal, client: ObjectId, number: int) -> None:
    block = {"companyId": owner.company.id, "customerId": client, "date": MONDAY, "items": []}
    await services.db["workoutBlocks"].insert_many([{**block, "position": each} for each in range(number)])
