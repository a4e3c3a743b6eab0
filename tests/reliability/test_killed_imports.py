"""An import whose process is killed again and again stores what an uninterrupted one does."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime

import pytest

from coaching_service import features
from coaching_service.integrations.company_import import service as company_import
from coaching_service.settings import Settings
from tests.conftest import NewCompany
from tests.integrations.test_round_trip import names_of_shared, prepared
from tests.support.archive_graph import find_bijection, graph_of
from tests.support.client import CoachClient
from tests.support.database_proxy import DatabaseProxy, Moment, proxy_to
from tests.support.portable_company import make_company
from tests.support.service_process import environment
from tests.support.transfer import export, import_file, make_zip, run, send

KILLS = 5
DUE = {"$set": {"runAfter": datetime(2020, 1, 1)}}  # noqa: DTZ001 - stored times are UTC without a time zone


class Worker:
    """Starts processes that run imports, one after another."""

    def __init__(self, program: asyncio.subprocess.Process, proxy: DatabaseProxy) -> None:
        self._program, self._proxy = program, proxy

    async def _read(self) -> bytes:
        assert self._program.stdout is not None
        return await self._program.stdout.readline()

    async def run_until(self, moment: Moment) -> bool:
        """Run imports in a process that is killed at a moment; returns whether it got there."""
        started: asyncio.Future[int] = asyncio.get_running_loop().create_future()

        async def kill() -> bool:
            os.kill(await started, signal.SIGKILL)
            return False

        self._proxy.wait_for(moment, kill)
        assert self._program.stdin is not None
        self._program.stdin.write(b"\n")
        started.set_result(int(await self._read()))
        assert await self._read() == b"ended\n"
        return self._proxy.reached.is_set()


@asynccontextmanager
async def worker(settings: Settings) -> AsyncIterator[Worker]:
    """A worker on the database of the tests."""
    async with proxy_to(str(settings.mongodb_uri)) as (proxy, uri):
        keys = ",".join(settings.secret_keys)
        variables = environment(MONGODB_URI=uri, MONGODB_DATABASE=settings.mongodb_database, SECRET_KEYS=keys)
        command = (sys.executable, "-m", "tests.support.import_worker")
        pipe = asyncio.subprocess.PIPE
        program = await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe, env=variables)
        try:
            yield Worker(program, proxy)
        finally:
            program.kill()
            await program.wait()


async def test_import_that_is_killed_five_times_equals_an_uninterrupted_one(
    settings: Settings, coach: CoachClient, new_company: NewCompany, monkeypatch: pytest.MonkeyPatch
) -> None:
    await make_company(coach)
    archive = make_zip(await export(coach))
    calm, killed = await new_company(), await new_company()
    expected = await import_file(calm, archive)
    step = features.STEPS[company_import.IMPORT]
    monkeypatch.delitem(features.STEPS, company_import.IMPORT)  # this process does not continue the import
    job = (await send(killed, archive)).ok(202)
    seed = random.randrange(10_000)
    print(f"seed {seed}")  # shown when the test fails
    chance = random.Random(seed)

    async with worker(settings) as process:
        for _ in range(KILLS):
            command, collection = chance.choice([("commitTransaction", None), ("insert", "fs.chunks")])
            moment = Moment(command, collection, count=chance.randint(1, 7), done=chance.random() < 0.5)
            assert await process.run_until(moment), "the import ended before that moment"
            # The database would end the transaction of a process that is gone within a minute, as it would the lease.
            await killed.ctx.db.client.admin.command("killSessions", [moment.session])
            await killed.ctx.db["jobs"].update_many({"companyId": killed.ctx.company_id}, DUE)
    monkeypatch.setitem(features.STEPS, company_import.IMPORT, step)
    while job["status"] in ("queued", "running"):
        await run(killed)
        job = (await killed.get(f"/coach/jobs/{job['_id']}")).ok()

    for name in ("status", "done", "total", "result", "errors"):
        assert job[name] == expected[name], name
    shared = await names_of_shared(coach)
    first, second = prepared(await export(calm)), prepared(await export(killed))
    find_bijection(graph_of(first, shared), graph_of(second, shared))
    assert (await killed.customers())["totalDocs"] == 2
    assert await count_files(killed) == await count_files(calm) == 42


async def count_files(coach: CoachClient) -> int:
    """The number of the files of records, thumbnails included; a job deletes those that were not attached."""
    attached = {"companyId": coach.ctx.company_id, "pending": {"$ne": True}}
    count: int = await coach.ctx.db["fs.files"].count_documents(attached)
    return count
