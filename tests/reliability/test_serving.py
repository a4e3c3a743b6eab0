"""One command starts the service, which stops cleanly and loses nothing."""

from __future__ import annotations

import asyncio
import json
import signal
import socket
import stat
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from pymongo import MongoClient

from coaching_service import runtime
from coaching_service.installation import embedded
from coaching_service.settings import Settings, bind
from tests.support.commands import refused_start
from tests.support.service_process import Service, mongods_of, refused, until


@dataclass
class FirstStart:
    """A service, what /readyz responded while it started, and how many clients the first page had at once after that."""

    service: Service
    statuses: list[int] = field(default_factory=list)
    clients: int = 0

    async def watch(self, port: str) -> None:
        """Call the service until it is ready."""
        async with aiohttp.ClientSession(f"http://127.0.0.1:{port}") as http:

            async def is_ready() -> bool:
                try:
                    async with http.get("/readyz") as response:
                        self.statuses.append(response.status)
                except aiohttp.ClientConnectionError:  # it does not listen yet
                    return False
                return self.statuses[-1] == 200

            await until(is_ready, "it is ready")
            key = {"X-API-Key": self.service.facts["apiKey"]}
            path = "/coach/customers?archived=false&pageSize=50&pageNum=1"
            async with http.get(path, headers=key) as response:
                self.clients = len((await response.json())["docs"])


@pytest.fixture(scope="module")
async def first_start(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[FirstStart]:
    """A service that has started on a folder which did not exist; the last test that uses it ends it."""
    service = Service(tmp_path_factory.mktemp("running") / "data")
    started, port = FirstStart(service), free_port()
    try:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(started.watch(port))
            await service.start("--port", port, LOG_FORMAT="json", LOG_LEVEL="info")
        yield started
    finally:
        await service.clean_up()


@pytest.fixture(scope="module")
def running(first_start: FirstStart) -> Service:
    """A service for the tests that do not end it."""
    return first_start.service


@pytest.fixture
def taken_port() -> Iterator[str]:
    """A port that another process listens on."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield str(listening.getsockname()[1])


# --- start --------------------------------------------------------------------------------------------------------


async def test_start_on_an_empty_folder_creates_a_demo_company(running: Service) -> None:
    """The key is an owner's and unrestricted; there are a few clients."""
    me = await running.call("GET", "/me")
    assert (me["role"], me["companyId"], me["via"]) == ("OWNER", running.facts["companyId"], "apiKey")
    assert {"customers.delete", "exercises.edit", "programs.create"} <= set(me["permissions"])
    assert len(await running.customers()) >= 3
    exercises = await running.call("GET", "/exercises/unified?pageSize=50&pageNum=1")
    assert len(exercises["docs"]) >= 20
    assert await running.call("GET", "/readyz") == {"status": "ready"}


def test_demo_json_contains_credentials_and_is_private_to_its_owner(running: Service) -> None:
    """`DIR/demo.json` (mode 0600) with `baseUrl, apiKey, companyId, email, password`; what is printed has no secret."""
    facts = running.facts
    assert list(facts) == ["baseUrl", "apiKey", "companyId", "email", "password"]
    assert facts["baseUrl"].startswith("http://127.0.0.1:")
    assert len(facts["password"]) >= 12
    assert not [name for name in ("password", "apiKey") if facts[name] in running.printed + running.logged]
    assert stat.S_IMODE((running.folder / "demo.json").stat().st_mode) == 0o600
    assert stat.S_IMODE((running.folder / "secret.key").stat().st_mode) == 0o600
    assert stat.S_IMODE(running.folder.stat().st_mode) == 0o700
    assert sorted(file.name for file in running.folder.iterdir() if file.name.startswith(("demo", "secret"))) == [
        "demo.json",
        "secret.key",
    ]


async def test_start_is_ready_once_the_demo_is_there(first_start: FirstStart) -> None:
    """From the first response on: 503 until the demo company and demo.json exist."""
    assert first_start.statuses[0] == 503
    assert set(first_start.statuses) == {503, 200}
    assert first_start.clients == 10


async def test_start_prints_address_docs_sign_in_data_and_how_to_stop(running: Service) -> None:
    """Password and key are in demo.json, and printed to a terminal: here it is a file, which more people may read."""
    facts = running.facts
    assert [line.split() for line in running.printed.splitlines()] == [
        ["Address", facts["baseUrl"]],
        ["Docs", facts["baseUrl"] + "/docs"],
        ["Sign-in", *f"{facts['email']}, with the password and the API key in {running.folder / 'demo.json'}".split()],
        ["Data", str(running.folder)],
        ["Stop", "Ctrl-C"],
    ]
    assert "<html" in await running.call("GET", "/docs")
    assert (await running.call("GET", "/swagger-json"))["servers"] == [{"url": facts["baseUrl"]}]


def test_embedded_database_listens_only_on_loopback(running: Service) -> None:
    """Loopback only, on a free port: nothing but 127.0.0.1 is bound by the service or its database."""
    [mongod] = mongods_of(running.folder)
    inodes = {link for each in Path(f"/proc/{mongod}/fd").iterdir() if (link := _link(each)).startswith("socket:")}
    listening = [
        fields[1]
        for table in ("tcp", "tcp6")
        for fields in map(str.split, Path(f"/proc/net/{table}").read_text().splitlines()[1:])
        if fields[3] == "0A" and f"socket:[{fields[9]}]" in inodes
    ]
    assert [address.partition(":")[0] for address in listening] == ["0100007F"]


def _link(file: Path) -> str:
    try:
        return str(file.readlink())
    except OSError:  # closed since
        return ""


def test_printed_address_can_be_opened_in_a_browser() -> None:
    for host, address in (
        ("127.0.0.1", "http://127.0.0.1:80"),
        ("0.0.0.0", "http://127.0.0.1:80"),
        ("::1", "http://[::1]:80"),
        ("::", "http://[::1]:80"),
    ):
        assert runtime.address_of(Settings(host=host, port=80)) == address
    assert runtime.address_of(Settings(base_url="https://coaching.test", port=80)) == "https://coaching.test"


def test_service_listens_on_ipv6() -> None:
    sockets, settings = bind(Settings(host="::1", port=0))
    with sockets:
        assert runtime.address_of(settings) == f"http://[::1]:{sockets.api.getsockname()[1]}"


# --- the log -------------------------------------------------------------------------------------------------------


async def test_request_is_logged_as_one_line_without_secrets(running: Service) -> None:
    """One structured log line a request (method, route, status, ms, address, caller, request id; never a key, a body or an
    e-mail)."""
    body = {"name": "Zebulon-in-a-body", "email": "zebulon@private.test"}
    created = await running.call(
        "POST", "/coach/customers", body, status=201, headers={"X-Request-Id": "made", "Idempotency-Key": "retry-me"}
    )
    path = f"/coach/customers/{created['_id']}"
    await running.call("GET", f"{path}?email=zebulon@private.test", headers={"X-Request-Id": "read"})
    await running.call("PATCH", path, {"email": "zebulon"}, status=400, headers={"X-Request-Id": "refused"})
    intruder = {"X-Request-Id": "intruder", "X-API-Key": "cs_ak_stolen"}
    await running.call("GET", "/me", status=401, headers=intruder)
    await running.call("GET", "/zebulon@private.test", status=404, headers={"X-Request-Id": "nowhere"})

    company = running.facts["companyId"]
    route = "/coach/customers/{customerId}"
    assert [
        await _logged(running, request_id) for request_id in ("made", "read", "refused", "intruder", "nowhere")
    ] == [
        ("POST", "/coach/customers", 201, company),
        ("GET", route, 200, company),
        ("PATCH", route, 400, company),
        ("GET", "/me", 401, None),
        ("other", "unknown", 404, None),
    ]
    facts = running.facts
    for secret in ("ebulon", "private.test", "retry-me", "cs_ak_", facts["apiKey"][6:], facts["password"], "@"):
        assert secret not in running.logged


async def _logged(service: Service, request_id: str) -> tuple[Any, ...]:
    """The one line of a request."""

    def lines() -> list[dict[str, Any]]:
        entries = [json.loads(line) for line in service.logged.splitlines()]
        return [line for line in entries if line.get("request_id") == request_id]

    [line] = await until(lines, f"{request_id} is logged")
    common = {"event", "level", "timestamp", "request_id", "method", "route", "status", "ms", "address"}
    assert set(line) - common == ({"company", "coach", "via", "credential"} if "company" in line else set())
    assert (line["event"], line["level"]) == ("request", "info")
    assert 0 <= line["ms"] < 30_000
    return line["method"], line["route"], line["status"], line.get("company")


# --- failing starts ------------------------------------------------------------------------------------------------


async def test_second_service_on_the_same_folder_is_refused(running: Service) -> None:
    """Two services on one DIR give a clear error; the first is not disturbed."""
    [mongod] = mongods_of(running.folder)
    written = (running.folder / "demo.json").stat().st_mtime_ns
    sentence = refused(running.folder)
    assert sentence == f"Another service is running on {running.folder}: stop it, or choose another folder with --data."
    assert mongods_of(running.folder) == [mongod]
    assert (running.folder / "demo.json").stat().st_mtime_ns == written
    await running.call("GET", "/me")


def test_malformed_key_on_a_first_start_leaves_nothing_behind(tmp_path: Path) -> None:
    sentence = refused_start(tmp_path / "data", SECRET_KEYS="too short")
    assert sentence.startswith("SECRET_KEYS, or secret.key in the data folder: ")
    assert "32 bytes in base64" in sentence
    assert list(tmp_path.iterdir()) == []


def test_malformed_key_file_is_reported_and_kept(tmp_path: Path) -> None:
    (tmp_path / "secret.key").write_text("too short\n")
    assert "32 bytes in base64" in refused_start(tmp_path)
    assert [file.name for file in tmp_path.iterdir()] == ["secret.key"]


def test_folder_that_demo_json_cannot_be_written_to_is_refused(tmp_path: Path, own_database: dict[str, str]) -> None:
    """At once, even if the database waits for `migrate`: it has a document, and no migration is recorded."""
    with MongoClient[Any](own_database["MONGODB_URI"]) as client:
        client[own_database["MONGODB_DATABASE"]]["customers"].insert_one({})
    (tmp_path / "file").write_text("")
    sentence = refused_start(tmp_path / "file" / "data", **own_database)
    assert sentence == f"{tmp_path}/file/data cannot be written (Not a directory)"


def test_port_in_use_is_refused(tmp_path: Path, taken_port: str) -> None:
    sentence = refused_start(tmp_path / "data", "--port", taken_port)
    assert (
        sentence
        == f"Cannot listen on 127.0.0.1:{taken_port} (Address already in use): choose another with --host or --port"
    )


def test_metrics_port_in_use_is_refused(tmp_path: Path, taken_port: str, settings: Settings) -> None:
    sentence = refused_start(
        tmp_path / "data",
        METRICS_PORT=taken_port,
        MONGODB_URI=str(settings.mongodb_uri),
        MONGODB_DATABASE=settings.mongodb_database,
        SECRET_KEYS=",".join(settings.secret_keys),
    )
    reason = f"Cannot listen on 127.0.0.1:{taken_port} (Address already in use)"
    assert sentence == f"{reason}: choose another with METRICS_PORT or METRICS_ADDRESS"


# --- the end, and the next start -----------------------------------------------------------------------------------


_PROMISED, _BUSY_MACHINE = 5.0, 5.0


def test_shutdown_time_limits_fit_the_documented_total() -> None:
    """The time limits of requests and of the database add up to at most 4.5 s of the promised 5 s."""
    assert Settings().shutdown_seconds + embedded._STOP_SECONDS + 0.5 <= _PROMISED


async def ends_cleanly(service: Service, number: signal.Signals) -> None:
    """Stop a service with a signal, in the promised time and with its database."""
    assert len(mongods_of(service.folder)) == 1
    start = time.monotonic()
    service.send_signal(number)
    await has_ended_cleanly(service, start)


async def has_ended_cleanly(service: Service, start: float) -> None:
    """Wait for the end of a service that got a signal at `start`, in the promised time and with its database."""
    assert await service.ended() == 0
    assert time.monotonic() - start < _PROMISED + _BUSY_MACHINE
    assert mongods_of(service.folder) == []
    assert "Traceback" not in service.logged


async def test_readiness_ends_before_the_port_closes_and_the_service_ends_cleanly(running: Service) -> None:
    """SIGTERM stops service and database within 5 s; the last test that uses them."""
    assert len(mongods_of(running.folder)) == 1
    start = time.monotonic()
    running.send_signal(signal.SIGTERM)
    seen: list[int | None] = []

    async def is_closed() -> bool:
        async with aiohttp.ClientSession(running.facts["baseUrl"]) as http:
            try:
                async with http.get("/readyz") as response:
                    seen.append(response.status)
            except aiohttp.ClientConnectionError:
                seen.append(None)
        return seen[-1] is None

    await until(is_closed, "the port is closed", pause=0.02)
    assert [value for number, value in enumerate(seen) if value != seen[number - 1]][-2:] == [503, None]
    await has_ended_cleanly(running, start)


def free_port() -> str:
    """A port that nothing listens on."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return str(probe.getsockname()[1])
