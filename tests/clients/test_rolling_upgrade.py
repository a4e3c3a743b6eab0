"""The last release and this code share one database: a rolling upgrade and the way back (docs/upgrading.md)."""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import aiohttp
from pymongo.database import Database

from coaching_service import runtime
from coaching_service.core.ids import ObjectId
from coaching_service.core.jobs.worker import run_due
from coaching_service.installation import migrations
from coaching_service.installation.migrations import Step, minor_version
from coaching_service.settings import Settings
from tests.clients.programs import run as run_program
from tests.reliability.deployment import Node
from tests.reliability.proofs.test_change_log import Log, Write, consume
from tests.support.service_process import until
from tests.upgrades.reading import read_clients
from tests.upgrades.release import Document, Release, last_release
from tests.upgrades.usage import database_of, problems_of, run, send, use

WRITERS, WRITES_OF_A_PHASE = 3, 25
STOPS_WITHIN_SECONDS = "20"
KIND = "job_of_a_later_version"


@dataclass
class Balancer:
    """Sends requests to the ready processes in turn, as a load balancer that checks /readyz."""

    nodes: list[Node]
    log: Log = field(default_factory=Log)
    failures: list[str] = field(default_factory=list)
    served: Counter[int] = field(default_factory=Counter)
    invitations: int = 0
    is_done: bool = False
    _ready: list[Node] = field(default_factory=list)
    _turns: Any = field(default_factory=count)

    async def check(self) -> None:
        """Check the processes until cancelled."""
        while True:
            self._ready = [node for node in self.nodes if await node.is_ready()]
            await asyncio.sleep(0.05)

    async def write(self, writer: int, clients: list[str], key: str) -> None:
        """Create notes, read them, and invite new clients, until `is_done`."""
        numbers = count()
        async with aiohttp.ClientSession(headers={"X-API-Key": key}) as http:
            while not self.is_done:
                number = next(numbers)
                client = clients[(writer + number) % len(clients)]
                path, began = f"/coach/customers/{client}/notes", asyncio.get_running_loop().time()
                note = await self._send(http, "POST", path, 201, json={"content": f"{writer} {number}"})
                ended = asyncio.get_running_loop().time()
                if note is not None:
                    self.log.acknowledged[note["_id"]] = Write(client, began, ended)
                notes = await self._send(http, "GET", path, 200)
                if note is not None and note["_id"] not in [each["_id"] for each in notes or ()]:
                    self.failures.append(f"{path}: the other process does not have {note['_id']}")
                if number % 20 == 0:
                    invited = {"name": "Invited", "email": f"{ObjectId()}@upgrade.test"}
                    if await self._send(http, "POST", "/coach/customers", 201, json=invited):
                        self.invitations += 1
                await asyncio.sleep(0.02)

    async def _send(self, http: aiohttp.ClientSession, method: str, path: str, status: int, **options: Any) -> Any:
        node = self._ready[next(self._turns) % len(self._ready)]
        try:
            async with http.request(method, node.url + path, **options) as response:
                text = await response.text()
                self.served[node.port] += 1
                if response.status == status:
                    return await response.json()
                self.failures.append(f"{method} {path}: {response.status} {text}")
        except aiohttp.ClientError as error:
            self.failures.append(f"{method} {path}: {error!r}")
        return None

    async def serve(self, *nodes: Node) -> None:
        """Wait until each of these processes, and no other, is in rotation and has answered some requests since."""
        await until(lambda: self._ready == list(nodes), "these processes are in rotation")
        before = Counter(self.served)
        enough = WRITES_OF_A_PHASE
        await until(lambda: all(self.served[node.port] - before[node.port] >= enough for node in nodes), "load")


@asynccontextmanager
async def loaded(balancer: Balancer, clients: list[str], key: str) -> AsyncIterator[None]:
    """Writers are busy during the block."""
    async with asyncio.TaskGroup() as group:
        checking = group.create_task(balancer.check())
        await until(lambda: balancer._ready, "a process is in rotation")
        writing = [group.create_task(balancer.write(writer, clients, key)) for writer in range(WRITERS)]
        try:
            yield
        finally:
            balancer.is_done = True  # without a request that is sent and not counted
            await asyncio.wait(writing)
            checking.cancel()


def queue_job_of_a_later_version(db: Database[Document]) -> ObjectId:
    """Store a due job of a kind that neither version knows, as a later version would."""
    job_id = ObjectId()
    job: dict[str, object] = {
        "_id": job_id,
        "companyId": None,
        "about": None,
        "kind": KIND,
        "arguments": {},
        "attempts": 0,
    }
    db["jobs"].insert_one({**job, "lease": None})
    db["jobs"].update_one({"_id": job["_id"]}, [{"$set": {"runAfter": "$$NOW", "createdAt": "$$NOW"}}])
    return job_id


async def run_job_of_a_later_version(settings: Settings) -> list[Document]:
    """Run it as a version does that knows it, and return the arguments of its runs."""
    runs: list[Any] = []

    async def step(_: object, job: Any) -> None:
        runs.append(job.arguments)

    async with runtime.open_services(settings) as services:
        await run_due(services, {KIND: step})
    return runs


async def test_rolling_upgrade_from_the_last_release_and_back(settings: Settings, tmp_path: Path) -> None:
    """Both versions serve in turn under load: nothing fails, nothing is lost, and the change log and jobs continue.

    Between a release and the first one of the next minor version that migrates, there is no rolling upgrade: the
    release refuses the database once it is migrated.
    """
    release = last_release()
    later = [step for step in migrations.STEPS if minor_version(step.release) > minor_version(release.version)]
    if later:
        await refuses_what_this_code_migrates(release, settings, tmp_path, later[0])
        return
    code = release.unpack(tmp_path / "code")
    async with database_of(release, settings) as (own, db):
        variables = {"SHUTDOWN_SECONDS": STOPS_WITHIN_SECONDS, "REQUEST_QUEUE_SECONDS": "60"}
        key = release.facts["apiKey"]
        old = Node(tmp_path / "old", own, key, variables=variables, code=code)
        new = Node(tmp_path / "new", own, key, variables=variables)
        printed = await run_program(
            sys.executable,
            "-c",
            "import coaching_service; print(coaching_service.__file__)",
            cwd=code,
            environment={"PYTHONPATH": str(code)},
        )
        assert printed.strip() == str(code / "coaching_service" / "__init__.py")
        balancer = Balancer([old, new])
        try:
            await old.start()
            async with old.session(1) as http:
                clients = (await read_clients(http))[:4]
                start = await last_cursor(http)
            job = queue_job_of_a_later_version(db)
            async with loaded(balancer, clients, key):
                await balancer.serve(old)
                (await run(new, "migrate")).ok()  # steps of this minor version, which the old process accepts
                await new.start()
                await balancer.serve(old, new)
                assert await old.end() == 0
                await balancer.serve(new)
                await old.start()
                await balancer.serve(old, new)
                assert await new.end() == 0
                await balancer.serve(old)
            assert balancer.failures == []

            async with old.session(1) as http:
                await consume(http, balancer.log, len(balancer.log.acknowledged), start)
                balancer.log.check()
                await use(http, release)
            await until(lambda: count_mails(tmp_path) >= balancer.invitations, "all mail is sent")
            assert count_mails(tmp_path) == balancer.invitations > 0
            waiting = db["jobs"].find_one({"_id": job})
            assert waiting is not None
            assert (waiting["attempts"], waiting["lease"]) == (0, None)
            assert await run_job_of_a_later_version(own) == [{}]
            assert db["jobs"].find_one({"_id": job}) is None
            assert await problems_of(new) <= {"indexes-undeclared"}
            await old.require_whole()

            await refuses_a_later_database(old, db)
        finally:
            for node in (old, new):
                if node.process is not None:
                    await node.end()


async def last_cursor(http: aiohttp.ClientSession) -> str:
    """The cursor after the last event."""
    page = await send(http, "GET", "/coach/events?limit=500&after=0")
    while page["hasMore"]:
        page = await send(http, "GET", f"/coach/events?limit=500&after={page['nextCursor']}")
    return str(page["nextCursor"])


def count_mails(folder: Path) -> int:
    """How many mails the processes have written."""
    return len(list(folder.glob("*/mail/*.eml")))


async def refuses_what_this_code_migrates(release: Release, settings: Settings, folder: Path, step: Step) -> None:
    """The release serves its own database until this code has migrated it, and does not start again."""
    async with database_of(release, settings) as (own, _):
        old = Node(folder / "old", own, release.facts["apiKey"], code=release.unpack(folder / "code"))
        new = Node(folder / "new", own, release.facts["apiKey"])
        try:
            await old.start()
            (await run(old, "migrate")).ok()
            assert not await old.is_ready()
            await does_not_start_again(old, f"migrated to {step.release} (step {step.number} {step.name})")
            await new.start()
            await new.require_whole(allowed=["indexes-undeclared"])
        finally:
            for node in (old, new):
                if node.process is not None:
                    await node.end()


async def refuses_a_later_database(old: Node, db: Database[Document]) -> None:
    """The running process is not ready once a later minor version has migrated the database, and does not start again."""
    db[migrations.COLLECTION].insert_one({"_id": 9_999, "name": "of_later", "release": "99.0"})
    assert not await old.is_ready()
    await does_not_start_again(old, "migrated to 99.0 (step 9999 of_later)")


async def does_not_start_again(old: Node, reason: str) -> None:
    """The process ends, and so does another one, with this reason."""
    await old.end()
    old.begin()
    process = old.process
    assert process is not None
    await until(lambda: process.poll() is not None, "it has ended")
    old.process = None
    assert process.returncode == 1
    assert reason in old.logged
