"""A program that for each line it reads starts a process which runs the due jobs of some kinds; prints its number.

The processes are copies of this one, which has loaded the service: starting many of them takes no time. A second line
says how the process has ended. `worker` starts the program, and kills its processes.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from datetime import datetime

from coaching_service import features, runtime
from coaching_service.core.ids import ObjectId
from coaching_service.core.jobs import worker as jobs
from coaching_service.settings import Settings
from tests.support.client import CoachClient
from tests.support.database_proxy import DatabaseProxy, Moment, proxy_to
from tests.support.service_process import environment

_DUE = {"$set": {"runAfter": datetime(2020, 1, 1)}}  # noqa: DTZ001 - stored times are UTC without a time zone


class Worker:
    """Starts processes that run jobs, one after another."""

    def __init__(self, program: asyncio.subprocess.Process, proxy: DatabaseProxy) -> None:
        self._program, self._proxy = program, proxy

    async def _read(self) -> bytes:
        assert self._program.stdout is not None
        return await self._program.stdout.readline()

    async def run_until(self, moment: Moment) -> bool:
        """Run jobs in a process that is killed at a moment; returns whether it got there."""
        started: asyncio.Future[int] = asyncio.get_running_loop().create_future()

        async def kill() -> bool:
            os.kill(await started, signal.SIGKILL)
            return False

        self._proxy.wait_for(moment, kill)
        assert self._program.stdin is not None
        self._program.stdin.write(b"\n")
        started.set_result(int(await self._read()))
        ended = await self._read()
        is_reached = self._proxy.reached.is_set()
        assert ended == b"ended %d\n" % (signal.SIGKILL if is_reached else 0), ended
        return is_reached

    async def kill_at(self, coach: CoachClient, moment: Moment) -> None:
        """Run jobs in a process that is killed at a moment, and end at once what would end within a minute.

        Also before, in case that the process of the tests has claimed a job whose step it does not have any more.
        """
        stored, of_company = coach.ctx.db["jobs"], {"companyId": coach.ctx.company_id}
        await stored.update_many(of_company, _DUE)
        is_reached = await self.run_until(moment)
        assert is_reached, f"the job ended before that moment: {await stored.find(of_company).to_list(None)}"
        await coach.ctx.db.client.admin.command("killSessions", [moment.session])
        await stored.update_many(of_company, _DUE)

    async def run_to_end(self) -> None:
        """Run jobs in a process that ends when none is due."""
        assert not await self.run_until(Moment(f"no command {ObjectId()}"))


@asynccontextmanager
async def worker(settings: Settings, *kinds: str) -> AsyncIterator[Worker]:
    """A worker for jobs of some kinds, on the database of the tests."""
    async with proxy_to(str(settings.mongodb_uri)) as (proxy, uri):
        keys = ",".join(settings.secret_keys)
        variables = environment(MONGODB_URI=uri, MONGODB_DATABASE=settings.mongodb_database, SECRET_KEYS=keys)
        command = (sys.executable, "-m", "tests.support.job_worker", *kinds)
        pipe = asyncio.subprocess.PIPE
        program = await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe, env=variables)
        try:
            yield Worker(program, proxy)
        finally:
            program.kill()
            await program.wait()


async def _run_jobs(kinds: Iterable[str]) -> None:
    """Run steps of jobs of these kinds until none is due."""
    async with runtime.open_services(Settings()) as services:
        while await jobs.run_due(services, {kind: features.STEPS[kind] for kind in kinds}):
            pass


def main() -> None:
    """Serve the lines."""
    for _ in sys.stdin:
        if (process_id := os.fork()) == 0:
            asyncio.run(_run_jobs(sys.argv[1:]))
            os._exit(0)
        print(process_id, flush=True)
        print("ended", os.waitpid(process_id, 0)[1], flush=True)


if __name__ == "__main__":
    main()
