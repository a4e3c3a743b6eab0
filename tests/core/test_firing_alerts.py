"""Alert rules on a running service: each fires from its fault, and not before it.

Of the rules whose faults only the proofs make, other runs test the figures (test_metrics.py) and the expressions
(tests/unit/test_monitoring.py).
"""

from __future__ import annotations

import asyncio
import mmap
import subprocess
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, ExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp.test_utils import BaseTestServer, TestServer, unused_port

from coaching_service import features, runtime
from coaching_service.app import READINGS, create_app
from coaching_service.core.database.context import Context, Services
from coaching_service.core.ids import ObjectId
from coaching_service.core.jobs import mail, queue, worker
from coaching_service.core.metrics import Metrics
from coaching_service.installation.backup.contents import new_identity
from coaching_service.people.customers import batch
from coaching_service.settings import Settings
from tests.lifecycle.test_backup_verification import run_command
from tests.reliability.test_full_disk import can_mount
from tests.support.alert_rules import UP, Scrape, firing, scrape, stored
from tests.support.check_ins import check_in
from tests.support.client import CoachClient
from tests.support.commands import type_in
from tests.support.companies import CompanyOwner, create_company
from tests.support.database_proxy import proxy_to
from tests.support.databases import new_database
from tests.support.drill import database_of
from tests.support.fail_points import fail_point, wait_for_fail_point
from tests.support.mail_servers import Mailbox, sending_to
from tests.support.mcp_client import McpHttpClient
from tests.support.s3_server import running_s3_server
from tests.support.sampled import proof
from tests.support.service_process import command, environment, until
from tests.support.training import block_with, client_path, exercise_of
from tests.support.webhook_deliveries import subscribe
from tests.support.webhooks import receiving
from tests.unit.test_monitoring import RULES

# By hand: add a rule here to the fault from which it fires, and to the test of that fault.
FAULTS = {
    "the database is cut off": {"ErrorRate", "DatabaseLost"},
    "the database is slow": {
        *("SlowRequests", "SlowTools", "RequestsTurnedAway", "LongQueue", "SlowDatabase", "DatabasePoolExhausted"),
    },
    "stored data is damaged": {"Defects", "JobsFail", "WorkFails"},
    "work in the background has ended": {
        *("ChangesNotNumbered", "ChangesNumberedLate", "JobsStuck", "FiguresLate", "DailyFiguresLate"),
        *("CheckInsLate", "NotificationsLate", "WebhooksNotSent"),
    },
    "a receiver of webhooks fails": {"WebhooksFail"},
    "passwords are tried": {"SignInFailures"},
    "a program sends too many requests": {"RateLimited"},
    "the mail server does not answer": {"MailNotSent"},
    "the bucket is gone": {"BackupMissing", "BackupsNotVerified", "ErasuresNotStored"},
    "the process uses much memory": {"MemoryHigh"},
    "the process is killed": {"ServiceDown"},
    "the process ends again and again": {"ServiceRestarts"},  # in tests/reliability/proofs/test_restart_alert.py
    "connections are not closed": {"DescriptorsLow"},
    "the disk fills up": {"DiskLow"},
}


def test_each_rule_has_a_fault_and_each_fault_a_test() -> None:
    rules = sorted(rule["alert"].removeprefix("Coaching") for rule in RULES)
    assert sorted(name for names in FAULTS.values() for name in names) == rules
    tests = Path(__file__), Path(__file__).parents[1] / "reliability" / "proofs" / "test_restart_alert.py"
    text = "".join(each.read_text("utf-8") for each in tests)
    assert [fault for fault in FAULTS if text.count(f'"{fault}"') < 2] == []


def fires(fault: str, *scrapes: Scrape) -> bool:
    """Whether all rules of a fault fire."""
    return FAULTS[fault] <= firing(*scrapes)


def silent(fault: str, *scrapes: Scrape) -> bool:
    """Whether no rule of a fault fires."""
    return not FAULTS[fault] & firing(*scrapes)


class Running:
    """A service of a test, its services, and the client of a company's owner."""

    def __init__(self, services: Services, server: BaseTestServer, owner: CompanyOwner) -> None:
        self.services, self.server = services, server
        self.coach = CoachClient(server, owner.key, Context(services).acting_as(owner.owner))
        self.coach.checks = False

    async def scrape(self) -> Scrape:
        """What Prometheus stores."""
        return await scrape(str(self.server.make_url("")).rstrip("/"))


@pytest.fixture(scope="module")
async def database(settings: Settings) -> AsyncIterator[tuple[Settings, Services]]:
    """A database whose services wait for it, and for their turn, as those of operators do."""
    limits = {"request_queue_seconds": 2.5, "database_timeout_seconds": 10.0, "database_response_seconds": 1.0}
    relaxed = {"webhooks_allow_http": True, "webhooks_allow_private": True, "webhook_retry_seconds": (0.1, 0.2)}
    async with new_database(settings.model_copy(update=limits | relaxed), "alerts") as opened:
        yield opened


@pytest.fixture(scope="module")
async def owner(database: tuple[Settings, Services], password_hash: str) -> CompanyOwner:
    """The owner of a company there."""
    return await create_company(database[1], password_hash)


# Of a collection, the time from which something is late.
LATE_FROM = (
    *(("changes", "createdAt"), ("jobs", "runAfter"), ("customers", "figuresChangedAt"), ("customers", "figuresUntil")),
    *(("checkIns", "dueAt"), ("notifications", "sendAt"), ("webhookDeliveries", "createdAt")),
)
CLIENTS = "/coach/customers?archived=false&pageSize=10&pageNum=1"
Serve = Callable[..., AbstractAsyncContextManager[Running]]


@pytest.fixture
def serve(database: tuple[Settings, Services], owner: CompanyOwner) -> Serve:
    """Runs a service with other settings; without `works`, its work in the background has ended."""

    @asynccontextmanager
    async def serve(*, works: bool = True, **changed: Any) -> AsyncIterator[Running]:
        own = database[0].model_copy(update=changed)
        async with runtime.open_services(own) as services:
            app = create_app(own, services)
            if not works:
                app.cleanup_ctx.clear()
            async with TestServer(app) as server:
                running = Running(services, server, owner)
                try:
                    yield running
                finally:
                    await running.coach.close()

    return serve


async def test_a_database_that_is_cut_off(serve: Serve, settings: Settings) -> None:
    fault = "the database is cut off"
    async with proxy_to(str(settings.mongodb_uri)) as (proxy, uri), serve(mongodb_uri=uri) as running:
        scrapes = [await running.scrape()]
        (await running.coach.get("/me")).ok()
        scrapes.append(await running.scrape())
        assert silent(fault, *scrapes)
        await proxy.cut()
        await proxy.end()
        for _ in range(2):
            assert {(await running.coach.get(CLIENTS)).status for _ in range(3)} == {503}
            scrapes.append(await running.scrape())
        assert fires(fault, *scrapes)


@proof
async def test_a_slow_database(serve: Serve, settings: Settings) -> None:
    """It takes so long to read clients that connections, slots and the queue for them are not enough."""
    fault, uri = "the database is slow", f"{settings.mongodb_uri}&maxPoolSize=4"
    limits = {"database_concurrency": 6, "database_concurrency_per_company": 6, "request_queue_length": 2}
    limits |= {"database_response_seconds": 10}  # it is slow, not lost
    async with serve(mongodb_uri=uri, works=False, **limits) as running:
        coach, db = running.coach, running.services.db
        async with McpHttpClient(running.server, {"Authorization": f"Bearer {coach.key}"}) as tools:
            scrapes = []
            for count in (1, 20):  # a counter begins with its first request
                for _ in range(count):
                    (await coach.get(CLIENTS)).ok()
                    await tools.call("list_customers")
                scrapes.append(await running.scrape())
            assert silent(fault, *scrapes)

            slow = {"failCommands": ["find", "aggregate"], "namespace": db["customers"].full_name}
            slow |= {"blockConnection": True, "blockTimeMS": 1500}
            async with fail_point(db.client, settings.mongodb_uri, **slow) as block:
                met = await block()
                sent: list[asyncio.Task[Any]] = [asyncio.create_task(tools.call("list_customers"))]
                await wait_for_fail_point(db.client, met + 1)
                sent += [asyncio.create_task(coach.get(CLIENTS)) for _ in range(12)]
                during = [scrapes[-1], await running.scrape()]
                await asyncio.gather(*sent)
            after = [scrapes[-1], await running.scrape()]
        assert FAULTS[fault] <= firing(*during) | firing(*after)


async def test_damaged_data(serve: Serve) -> None:
    """Of one client, whom a request, the job of figures and other jobs meet."""
    fault = "stored data is damaged"
    async with serve() as running:
        coach, db = running.coach, running.services.db
        ana = await coach.create_customer()
        scrapes = [await running.scrape()]
        scrapes.append(await running.scrape())
        assert silent(fault, *scrapes)
        own = {"_id": ObjectId(ana["_id"])}
        await db["customers"].update_one(own, [{"$set": {"timezone": ["damaged"], "figuresChangedAt": "$$NOW"}}])
        (await coach.get(client_path(ana, "compliance"))).refused(500)
        for _ in range(5):
            await queue.enqueue(coach.ctx, "deliver_message", {})
            scrapes.append(await running.scrape())

        async def noticed() -> bool:
            scrapes.append(await running.scrape())
            return fires(fault, *scrapes)

        await until(noticed, "all fire", pause=1)  # it may take a minute, and each look costs a tenth of a second
        await db["customers"].delete_one(own)


async def test_work_in_the_background_that_has_ended(serve: Serve) -> None:
    """Of the only process: what waits for it is late when two months have passed."""
    fault = "work in the background has ended"
    async with receiving() as receiver, serve(webhook_retry_seconds=(3600,)) as running:
        coach = running.coach
        webhook = await subscribe(coach, receiver)
        squat, bo = await coach.create_exercise(), await coach.create_customer("Bo", email="bo@example.com")
        await check_in(coach, bo)
        receiver.respond = lambda _message, _before: 500
        await coach.create_customer("Cy")
        of_bo = {"_id": ObjectId(bo["_id"]), "figuresUntil": {"$exists": True}, "figuresChangedAt": {"$exists": False}}
        await until(lambda: running.services.db["customers"].count_documents(of_bo), "figures are renewed")
        is_tried = {"webhookId": ObjectId(webhook["_id"]), "status": "pending", "attempts": 1}
        await until(lambda: running.services.db["webhookDeliveries"].find_one(is_tried), "an event was refused")
    async with serve(works=False) as running:
        coach, db = running.coach, running.services.db
        scrapes = [await running.scrape()]
        await block_with(coach, bo, exercise_of(squat))
        (await coach.post(client_path(bo, "messages"), {"text": "Hello"})).ok(201)
        scrapes.append(await running.scrape())
        assert silent(fault, *scrapes)
        clients = [{"name": f"Client {number}"} for number in range(60)]
        (await coach.post("/coach/customers/batch", {"customers": clients})).ok()
        for collection, field in LATE_FROM:
            passed = {"$set": {field: {"$subtract": [f"${field}", 60 * 24 * 3_600_000]}}}
            assert (await db[collection].update_many({field: {"$type": "date"}}, [passed])).modified_count, field
        scrapes.append(await running.scrape())
        assert FAULTS[fault] <= firing(*scrapes)
        await db["webhooks"].delete_many({})
        await db["webhookDeliveries"].delete_many({})


async def test_a_receiver_of_webhooks_that_fails(serve: Serve) -> None:
    fault = "a receiver of webhooks fails"
    async with serve() as running, receiving() as receiver:
        webhook = await subscribe(running.coach, receiver)
        scrapes = [await running.scrape()]
        await running.coach.create_customer()
        await until(lambda: receiver.messages, "the event arrives")
        scrapes.append(await running.scrape())
        assert silent(fault, *scrapes)
        receiver.respond = lambda _message, _before: 500
        await running.coach.create_customer()

        async def noticed() -> bool:
            scrapes.append(await running.scrape())
            return fires(fault, *scrapes)

        await until(noticed, "it fires")
        (await running.coach.delete(f"/coach/webhooks/{webhook['_id']}")).ok(204)


@proof
async def test_passwords_that_are_tried_and_programs_that_send_too_much(serve: Serve) -> None:
    async with serve(works=False, rate_limit_per_minute=10) as running:
        coach, email = running.coach, str(running.coach.ctx.caller.email)
        scrapes = [await running.scrape()]
        (await coach.get("/me")).ok()
        (await coach.post("/auth/login", {"email": email, "password": "not the password"})).refused(401)
        scrapes.append(await running.scrape())
        assert silent("passwords are tried", *scrapes)
        assert silent("a program sends too many requests", *scrapes)
        for _ in range(160):
            await coach.post("/auth/login", {"email": email, "password": "not the password"})
        for _ in range(1_000):
            await coach.get("/me")
        scrapes.append(await running.scrape())
        assert fires("passwords are tried", *scrapes)
        assert fires("a program sends too many requests", *scrapes)


async def test_much_memory(serve: Serve, tmp_path: Path) -> None:
    """The process has the same 16 MB in a hundred places, which count each time."""
    fault, size = "the process uses much memory", 16 << 20
    (tmp_path / "memory").write_bytes(bytes(size))
    async with serve(works=False) as running:
        assert silent(fault, before := await running.scrape())
        with ExitStack() as stack, (tmp_path / "memory").open("r+b") as file:
            for _ in range(96):
                stack.enter_context(mmap.mmap(file.fileno(), size, flags=mmap.MAP_SHARED | mmap.MAP_POPULATE))
            assert fires(fault, before, await running.scrape())


async def test_a_dead_mail_server(coach: CoachClient, mailing: Services, mailbox: tuple[Mailbox, int]) -> None:
    fault, steps = "the mail server does not answer", {mail.SEND: features.STEPS[mail.SEND]}
    measured = replace(mailing, metrics=Metrics())

    async def read() -> Scrape:
        for reading in READINGS:
            await reading(measured)
        return stored(measured.metrics.report())

    healthy = await read()
    ctx = Context(measured, coach.ctx.principal)
    await batch.create_customer(ctx, {"name": "Ana", "email": "ana@example.com"}, send_invitation=True)
    await worker.run_due(sending_to(measured, port=9), steps)
    assert silent(fault, healthy, await read()), "it has just begun"
    an_hour = {"$subtract": ["$createdAt", 3_600_000]}
    await measured.db["jobs"].update_many({"kind": mail.SEND}, [{"$set": {"createdAt": an_hour}}])
    broken = await read()
    assert fires(fault, healthy, broken)
    await measured.db["jobs"].update_many({"kind": mail.SEND}, [{"$set": {"runAfter": "$$NOW"}}])
    await worker.run_due(measured, steps)
    assert len(mailbox[0].mails) == 1
    assert silent(fault, broken, await read()), "the server is back"


@proof
async def test_a_bucket_that_is_gone(
    serve: Serve, database: tuple[Settings, Services], monkeypatch: pytest.MonkeyPatch
) -> None:
    """There are no backups; then they are complete; then the bucket with them is gone, for years."""
    fault, location = "the bucket is gone", "s3://backups/coaching"
    with running_s3_server() as bucket:
        for name, value in bucket.items():
            monkeypatch.setenv(name, value)
        keys = {"BACKUP_STORE": location, "BACKUP_RECIPIENTS": new_identity()[1], **database_of(database[0]), **bucket}
        async with serve(backup_store=location) as running:
            coach = running.coach
            assert FAULTS[fault] & firing(await running.scrape()) == {"BackupMissing", "BackupsNotVerified"}
            await run_command("backup", **keys)
            await run_command("verify-backup", **keys)
            ana, bo = await coach.create_customer("Ana"), await coach.create_customer("Bo")
            (await coach.delete(f"/coach/customers/{ana['_id']}")).ok(204)

            async def is_silent() -> bool:
                return silent(fault, await running.scrape())

            store_now = [{"$set": {"runAfter": "$$NOW"}}]
            await running.services.db["jobs"].update_many({"kind": "store_erasures"}, store_now)
            await until(is_silent, "the erasure is stored")
            async with aiohttp.ClientSession() as http:
                (await http.post(f"{bucket['AWS_ENDPOINT_URL']}/moto-api/reset")).raise_for_status()
            (await coach.delete(f"/coach/customers/{bo['_id']}")).ok(204)
            years_ago = {"$set": {"moment": "2020-01-01T00:00:00+00:00"}}
            await running.services.db["operatorActions"].update_many({}, years_ago)
            for word in ("backup", "verify-backup"):
                assert (await asyncio.to_thread(type_in, word, **keys)).exit_code == 1
            assert fires(fault, await running.scrape())


def serve_on_small_disk(folder: Path, port: int, **variables: str) -> subprocess.Popen[bytes]:
    """Start a service whose folder is a disk of 1 MB, if this machine can mount one, and which may open 640 files."""
    mount, own_disk = "", list[str]()
    if can_mount():
        mount = 'mount -t tmpfs -o size=1m tmpfs "$0" && '
        own_disk = ["unshare", "-rm", "--propagation", "private", "--kill-child"]
    start = ["bash", "-c", f'{mount}ulimit -n 320 && exec "$@"', str(folder), *command(folder, "--port", str(port))]
    start.remove("--demo")
    folder.mkdir()
    with folder.with_suffix(".out").open("w") as output:
        return subprocess.Popen(
            [*own_disk, *start],
            env=environment() | variables,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
        )


@proof
async def test_a_process_that_is_killed(database: tuple[Settings, Services], tmp_path: Path) -> None:
    """Before, its disk fills up, and its clients do not close their connections."""
    port, disk = unused_port(), tmp_path / "disk"
    address, variables = f"http://127.0.0.1:{port}", database_of(database[0]) | {"MAX_CONNECTIONS_PER_ADDRESS": "1000"}
    process = serve_on_small_disk(disk, port, **variables)
    try:

        async def is_up() -> Scrape | None:
            assert process.poll() is None, disk.with_suffix(".out").read_text()
            found = await scrape(address)
            return found if found[UP] else None

        healthy = await until(is_up, "it is up", pause=0.1)
        for fault in ("the process is killed", "connections are not closed", "the disk fills up"):
            assert silent(fault, healthy)
        connections = [await asyncio.open_connection("127.0.0.1", port) for _ in range(150)]
        assert fires("connections are not closed", healthy, await scrape(address))
        for _, writer in connections:
            writer.close()
        if can_mount():
            (Path(f"/proc/{process.pid}/root") / disk.relative_to("/") / "file").write_bytes(bytes(1_000_000))
            full = await scrape(address)
        else:  # this machine has no small disk: its own seems to be larger than it is
            full = {key: value * (1e6 if key[0] == "disk_size_bytes" else 1) for key, value in healthy.items()}
        assert fires("the disk fills up", healthy, full)
        process.kill()

        async def is_down() -> bool:
            return fires("the process is killed", healthy, await scrape(address))

        await until(is_down, "nobody answers")
    finally:
        process.kill()
        process.wait()
