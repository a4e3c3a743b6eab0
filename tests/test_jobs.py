"""Work in the background: run once, tried again, taken over; and what erasing a client removes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from coaching_service import features, runtime
from coaching_service.core.auth.principal import Principal
from coaching_service.core.database.context import Context, Services
from coaching_service.core.database.documents import Document, now
from coaching_service.core.database.transactions import in_transaction
from coaching_service.core.ids import ObjectId
from coaching_service.core.jobs import queue
from coaching_service.core.jobs.queue import Job, RunAgain, Steps, enqueue, run_due
from coaching_service.lifecycle.erasure import service as erasure
from coaching_service.people.customers import erasing
from coaching_service.people.customers import service as customers
from coaching_service.people.team import service as team
from coaching_service.settings import Settings
from tests.client import MONDAY, CoachClient
from tests.reliability.service import until

Diary = list[Document]


def writing(diary: Diary, *answers: RunAgain | Exception | None) -> Steps:
    """Steps of a kind of its own, which note their arguments and answer each of `answers` in turn, then None."""
    left = list(answers)

    async def step(services: Services, job: Job) -> RunAgain | None:
        diary.append(job.arguments)
        answer = left.pop(0) if left else None
        if isinstance(answer, Exception):
            raise answer
        return answer

    return {f"story {ObjectId()}": step}


async def queued(services: Services, steps: Steps) -> list[Document]:
    """The jobs of these kinds that are not done."""
    return await services.db["jobs"].find({"kind": {"$in": list(steps)}}).to_list(None)


# --- the queue -----------------------------------------------------------------------------------------------------


async def test_each_job_is_run_once_however_many_work(services: Services) -> None:
    diary: Diary = []
    steps = writing(diary)
    for number in range(20):
        await enqueue(Context(services), *steps, {"number": number})
    ran = await asyncio.gather(*(run_due(services, steps) for _ in range(5)))
    assert sorted(job["number"] for job in diary) == list(range(20))
    assert sum(ran) == 20
    assert await queued(services, steps) == []


async def test_a_job_is_left_to_those_who_know_its_kind(services: Services) -> None:
    diary: Diary = []
    steps = writing(diary)
    await enqueue(Context(services), *steps, {})
    assert await run_due(services, writing(diary)) == 0
    assert await run_due(services, steps) == 1


async def test_a_step_that_fails_is_tried_again_later_and_keeps_its_arguments(services: Services) -> None:
    """Later and later: after a second, then after five."""
    diary: Diary = []
    steps = writing(diary, ZeroDivisionError(), ZeroDivisionError())
    await enqueue(Context(services), *steps, {"number": 1})
    due = now()
    for wait in (timedelta(seconds=1), timedelta(seconds=5)):
        begun = now()
        assert await run_due(services, steps, at=due) == 1
        [job] = await queued(services, steps)
        due = job["runAfter"]
        assert begun + wait <= due <= now() + wait
        assert await run_due(services, steps, at=due - timedelta(milliseconds=1)) == 0
    assert await run_due(services, steps, at=due) == 1
    assert diary == [{"number": 1}] * 3
    assert await queued(services, steps) == []


async def test_one_that_fails_does_not_hold_up_the_others(services: Services) -> None:
    diary: Diary = []
    failing, fine = writing(diary, ZeroDivisionError()), writing(diary)
    await enqueue(Context(services), *failing, {"number": 1})
    await enqueue(Context(services), *fine, {"number": 2})
    assert await run_due(services, failing | fine, at=now()) == 2
    assert [job["number"] for job in diary] == [1, 2]
    assert [job["kind"] for job in await queued(services, failing | fine)] == list(failing)


async def test_progress_is_remembered(services: Services) -> None:
    """A step that gives back Again is resumed with what it has got done, at once or after a while."""
    diary: Diary = []
    steps = writing(diary, RunAgain(progress={"done": 1}), RunAgain(timedelta(minutes=2), {"done": 2}))
    await enqueue(Context(services), *steps, {"goal": 3})
    assert await run_due(services, steps) == 2
    assert await run_due(services, steps, at=now() + timedelta(seconds=100)) == 0
    assert await run_due(services, steps, at=now() + timedelta(seconds=121)) == 1
    assert diary == [{"goal": 3}, {"goal": 3, "done": 1}, {"goal": 3, "done": 2}]
    assert await queued(services, steps) == []


async def test_a_job_may_wait(services: Services) -> None:
    steps = writing([])
    await enqueue(Context(services), *steps, {}, after=timedelta(hours=1))
    assert await run_due(services, steps, at=now() + timedelta(minutes=59)) == 0
    assert await run_due(services, steps, at=now() + timedelta(minutes=61)) == 1


async def test_the_job_of_a_worker_that_died_is_taken_over(services: Services) -> None:
    """A process that dies mid-step loses only its lease, which is a minute."""
    diary: Diary = []
    [kind] = steps = writing(diary)
    begun = asyncio.Event()

    async def never_ends(_: Services, arguments: Document) -> None:
        begun.set()
        await asyncio.Event().wait()

    await enqueue(Context(services), kind, {"number": 1})
    worker = asyncio.create_task(run_due(services, {kind: never_ends}))
    await asyncio.wait_for(begun.wait(), 60)
    worker.cancel()
    with pytest.raises(asyncio.CancelledError):
        await worker
    assert await run_due(services, steps, at=now() + timedelta(seconds=50)) == 0
    assert await run_due(services, steps, at=now() + timedelta(seconds=61)) == 1
    assert diary == [{"number": 1}]
    assert await queued(services, steps) == []


async def test_who_lost_a_lease_does_not_end_anothers_work(services: Services) -> None:
    """A worker that was only slow finds its job taken over: whatever it answers is void."""
    [kind] = steps = writing([], RunAgain(timedelta(hours=1), {"taken over": True}))
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def slow(_: Services, arguments: Document) -> None:
        begun.set()
        await go_on.wait()

    await enqueue(Context(services), kind, {})
    worker = asyncio.create_task(run_due(services, {kind: slow}))
    await asyncio.wait_for(begun.wait(), 60)
    assert await run_due(services, steps, at=now() + timedelta(seconds=61)) == 1
    go_on.set()
    assert await worker == 1
    [job] = await queued(services, steps)
    assert job["arguments"] == {"taken over": True}
    assert await run_due(services, steps, at=now() + timedelta(minutes=61)) == 1


async def test_a_job_is_queued_with_its_cause_or_not_at_all(services: Services) -> None:
    """A job is stored in the transaction of the change that causes it."""
    diary: Diary = []
    steps = writing(diary)

    async def aborted(tx: Context) -> None:
        await enqueue(tx, *steps, {"number": 1})
        raise ZeroDivisionError

    async def committed(tx: Context) -> None:
        await enqueue(tx, *steps, {"number": 2})
        assert await run_due(services, steps) == 0, "not before it is committed"

    with pytest.raises(ZeroDivisionError):
        await in_transaction(Context(services), aborted)
    await in_transaction(Context(services), committed)
    assert await run_due(services, steps, at=now() + timedelta(hours=1)) == 1
    assert diary == [{"number": 2}]


async def test_the_worker_is_woken_and_survives_a_failure(quiet: Services, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queue, "POLL_SECONDS", 1000.0)  # nothing happens by looking again
    diary: Diary = []
    steps = writing(diary, ZeroDivisionError())
    async with queue.working(quiet, steps):
        for number in range(3):
            await enqueue(Context(quiet), *steps, {"number": number})
            await until(lambda number=number: {"number": number} in diary, "the job is run")
    await enqueue(Context(quiet), *steps, {"number": 3})
    assert {"number": 3} not in diary


@pytest.mark.parametrize("turns", range(5))
async def test_a_worker_that_is_woken_and_stopped_at_the_same_moment_stops(
    quiet: Services, monkeypatch: pytest.MonkeyPatch, turns: int
) -> None:
    """However far the event loop has got with the wake-up when the worker is told to stop."""
    monkeypatch.setattr(queue, "POLL_SECONDS", 1000.0)
    diary: Diary = []
    async with asyncio.timeout(60) as limit:
        async with queue.working(quiet, writing(diary)):
            await asyncio.sleep(0)
            await until(lambda: len(quiet.job_available._waiters) == 1, "the worker waits to be woken")
            quiet.job_available.set()
            for _ in range(turns):
                await asyncio.sleep(0)
    assert not limit.expired()


# --- erasing a client ----------------------------------------------------------------------------------------------


@pytest.fixture
async def quiet(settings: Settings) -> AsyncIterator[Services]:
    """Services on a database of their own, where nobody works in the background."""
    own = settings.model_copy(update={"mongodb_database": f"{settings.mongodb_database}_quiet"})
    async with runtime.open_services(own) as opened:
        await opened.db.client.drop_database(own.mongodb_database)
        await runtime.make_indexes(opened)
        yield opened
        await opened.db.client.drop_database(own.mongodb_database)


async def naming(services: Services, *words: str) -> list[str]:
    """The collections with a document in which any of the words is found."""
    found = set()
    for name in await services.db.list_collection_names():
        async for document in services.db[name].find({}):
            if any(word in repr(document).lower() for word in words):
                found.add(name)
    return sorted(found)


async def test_an_erased_client_is_named_nowhere(coach: CoachClient) -> None:
    """Erasing a client takes all its records along; another client's stay. Also what a request that had seen the
    client just before the end still writes."""
    services = coach.ctx.services
    clients = []
    for name in ("Zebulon", "Yolanda"):
        details = {"name": name, "surname": "Quixote", "email": f"{name}@quixote.test", "sendInvitation": False}
        client = (await coach.post("/coach/customers", details, headers={"Idempotency-Key": name})).ok(201)
        path = f"/coach/customers/{client['_id']}/wblocks"
        block = (await coach.post(path, {"name": "Legs", "date": MONDAY}, headers={"Idempotency-Key": name})).ok(201)
        (await coach.post(f"{path}/{block['_id']}/witems", {"type": "TASK", "taskFields": {"title": "Walk"}})).ok(201)
        clients.append(client["_id"])
    erased, kept = clients
    assert await naming(services, erased, "zebulon") == ["customers", "replays", "workoutBlocks"]
    before = await naming(services, kept, "yolanda")
    [late] = await services.db["workoutBlocks"].find({"customerId": ObjectId(erased)}).to_list(None)

    (await coach.delete(f"/coach/customers/{erased}")).ok(204)
    (await coach.get(f"/coach/customers/{erased}")).refused(404)
    assert await coach.names() == ["Yolanda"]
    looked = {"arguments.customerId": ObjectId(erased), "arguments.looked": True}
    await until(lambda: services.db["jobs"].find_one(looked), "the service's own worker has been at it")
    assert await naming(services, erased, "zebulon") == ["jobs"]

    await services.db["workoutBlocks"].insert_one(late)
    assert await run_due(services, features.STEPS, at=now() + timedelta(minutes=3)) >= 2
    assert await naming(services, erased, "zebulon") == []
    assert await naming(services, kept, "yolanda") == before == ["customers", "replays", "workoutBlocks"]


async def test_erasing_survives_an_interruption(quiet: Services) -> None:
    """At most 500 documents a step, and wherever it is interrupted, the next worker finishes it."""
    owner = await team.create_company(Context(quiet), "One", "Olga", "olga@one.test", "correct horse battery")
    ctx = Context(quiet, owner)
    client = (await customers.create(ctx, {"name": "Zebulon"}))["_id"]
    await _blocks(quiet, owner, client, 501)
    await customers.erase(ctx, client)
    assert await naming(quiet, str(client), "zebulon") == ["jobs", "workoutBlocks"]

    async def interrupted(services: Services, arguments: Document) -> RunAgain | None:
        assert await erasure.erase_customer(services, arguments) == RunAgain()
        raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        await run_due(quiet, {erasing.ERASE: interrupted})
    assert await quiet.db["workoutBlocks"].count_documents({}) == 1
    assert await run_due(quiet, features.STEPS) == 0, "its lease is not over"

    assert await run_due(quiet, features.STEPS, at=now() + timedelta(minutes=1, seconds=1)) == 2
    assert await naming(quiet, str(client)) == ["jobs"]
    assert await run_due(quiet, features.STEPS, at=now() + timedelta(minutes=3)) == 1
    assert await naming(quiet, str(client)) == []


async def _blocks(services: Services, owner: Principal, client: ObjectId, number: int) -> None:
    block = {"companyId": owner.company.id, "customerId": client, "date": MONDAY, "items": []}
    await services.db["workoutBlocks"].insert_many([{**block, "position": each} for each in range(number)])
