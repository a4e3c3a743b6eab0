"""One real mongod for the whole run, one database for each test worker, new companies for each test."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import CodeType
from typing import Any, Unpack

import aiohttp_jinja2
import hypothesis
import jinja2
import pytest
import structlog
import time_machine
from aiohttp import web
from aiohttp.test_utils import TestServer, unused_port
from argon2 import PasswordHasher
from pymongo import MongoClient

from coaching_service import runtime
from coaching_service.app import create_app
from coaching_service.command_line import options
from coaching_service.core.auth import Principal, new_master_key
from coaching_service.core.background import running_in_background
from coaching_service.core.database.context import Context, Services
from coaching_service.core.metrics import Metrics
from coaching_service.installation.embedded import find_mongod, running_mongod
from coaching_service.library.exercises import service as exercises
from coaching_service.people.identities import passwords
from coaching_service.settings import Settings
from tests.reliability.replica_set import running_replica_set
from tests.support.client import CoachClient
from tests.support.companies import CompanyCopies, CompanyOptions, CompanyOwner, create_company
from tests.support.declared_world import World, make_world
from tests.support.figures import pause_renewal, queue_renewals
from tests.support.fixed_clock import NOON
from tests.support.other_process import AsServed
from tests.support.own_application import running_application
from tests.support.sampled import MORE

PASSWORD = "correct horse battery"
SERVICE_HASHER = passwords._hasher
CHEAP_HASHER = PasswordHasher(time_cost=1, memory_cost=64, parallelism=1)
MEMORY_BYTES = 4 << 30  # a run writes less than a tenth of it

# The duration of an example depends on the load of the machine; and no run depends on an earlier one.
hypothesis.settings.register_profile("suite", deadline=None, database=None)
hypothesis.settings.load_profile("suite")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add our options; `--browser` and `--clients` collect the tests that need Chromium, or Node and generated clients."""
    parser.addoption("--replica-set", action="store_true", help="run the tests on a replica set of three mongods")
    parser.addoption("--browser", action="store_true", help="collect tests/web/browser, which need Chromium")
    parser.addoption("--clients", action="store_true", help="collect tests/clients, which need Node")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Ignore the directories whose option is not given, and the long proofs unless the command names them."""
    directory = collection_path.name
    if directory == "proofs":
        return None if any(directory in Path(each.partition("::")[0]).parts for each in config.args) else True
    return True if directory in ("browser", "clients") and not config.getoption(f"--{directory}") else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the tests that are marked as proofs, unless this run has all of what is sampled, or names tests."""
    if MORE == 1 and not config.option.keyword and not any("::" in each for each in config.args):
        left_out = [item for item in items if item.get_closest_marker("proof")]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if not item.get_closest_marker("proof")]


def pytest_configure(config: pytest.Config) -> None:
    """The process that collects starts the database; workers receive its address."""
    config.addinivalue_line("markers", "proof: only in the proofs (tests/support/sampled.py)")
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(50))
    os.environ["WORKERS"] = "1"  # of services that tests start, on machines of any size
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # each start of a service would compile all modules again
    if hasattr(config, "workerinput"):
        return
    running = running_database(three_members=config.getoption("--replica-set"))
    config.stash[_URI] = running.__enter__()
    config.add_cleanup(partial(_end, running))


@contextmanager
def running_database(*, three_members: bool) -> Iterator[str]:
    """Run the database of all tests, and yield its URI: one mongod, or a replica set of three with small caches."""
    with (
        tempfile.TemporaryDirectory(prefix="coaching-tests-") as programs,
        tempfile.TemporaryDirectory(prefix="coaching-tests-", dir=folder_in_memory()) as folder,
        _running_database(Path(folder), mongod_with_fail_points(Path(programs)), three_members=three_members) as uri,
    ):
        yield uri


def folder_in_memory() -> Path | None:
    """The folder of Linux whose files are in memory, if there is room; on a disk each write and each index takes longer."""
    memory = Path("/dev/shm")
    has_room = memory.is_dir() and os.access(memory, os.W_OK) and shutil.disk_usage(memory).free >= MEMORY_BYTES
    return memory if has_room else None


@contextmanager
def _running_database(folder: Path, mongod: str, *, three_members: bool) -> Iterator[str]:
    if three_members:
        with running_replica_set(folder, mongod=mongod) as replica_set:
            yield replica_set.uri
    else:
        with running_mongod(folder, mongod=mongod) as uri:
            _reduce_upkeep(uri)
            yield uri


def _reduce_upkeep(uri: str) -> None:
    """Let the database do less by itself: its data need not survive the run.

    Files are closed after a minute without use, since tests create and drop thousands of collections, more than may be
    open; checkpoints are five minutes apart.
    """
    files = "file_manager=(close_idle_time=60,close_scan_interval=20,close_handle_minimum=500)"
    with MongoClient[Any](uri) as client:
        client.admin.command({"setParameter": 1, "wiredTigerEngineRuntimeConfig": f"cache_size=1GB,{files}"})
        client.admin.command({"setParameter": 1, "syncdelay": 300})
        client.admin.command({"setParameter": 1, "diagnosticDataCollectionEnabled": False})


def mongod_with_fail_points(folder: Path) -> str:
    """A program that starts mongod with test commands enabled, so that tests can make database commands fail."""
    program = folder / "mongod-with-fail-points"
    program.write_text(f'#!/bin/sh\nexec "{find_mongod()}" "$@" --setParameter enableTestCommands=1\n')
    program.chmod(0o700)
    return str(program)


def pytest_configure_node(node: object) -> None:
    """Give an xdist worker the address of the database."""
    node.workerinput["mongodb_uri"] = node.config.stash[_URI]  # type: ignore[attr-defined]  # pytest-xdist has no types


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print what tests have recorded with `record_property`."""
    for outcome in ("passed", "failed"):
        for report in terminalreporter.getreports(outcome):
            for name, value in report.user_properties:
                terminalreporter.write_line(f"{name}: {value}")


def _end(running: AbstractContextManager[str]) -> None:
    running.__exit__(None, None, None)


_URI = pytest.StashKey[str]()


@pytest.fixture(autouse=True, scope="session")
def no_environment_file(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Commands that tests run do not use the database of a service that is installed on this machine."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(options, "ENVIRONMENT_FILE", tmp_path_factory.mktemp("etc") / "coaching-service.env")
        yield


@pytest.fixture(scope="session")
def settings(pytestconfig: pytest.Config, worker_id: str, tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """The settings every test's service runs with."""
    worker_input = getattr(pytestconfig, "workerinput", None)
    return Settings(
        base_url="http://coaching.test",
        mongodb_uri=worker_input["mongodb_uri"] if worker_input else pytestconfig.stash[_URI],
        mongodb_database=f"test_{worker_id}",
        secret_keys=(new_master_key(),),
        data_dir=tmp_path_factory.mktemp("data"),
        database_metrics=True,
        registration=True,
        max_photo_bytes=15_000_000,  # tests of the limit send more than that
        # Requests of these tests may take as long as a busy machine needs; the deadlines have tests of their own.
        request_queue_seconds=60,
        database_timeout_seconds=60,
        database_response_seconds=60,
    )


@pytest.fixture(scope="session")
async def services(settings: Settings) -> AsyncIterator[Services]:
    """The services of the application under test, indexes made and the shared library published."""
    async with runtime.open_services(settings) as opened:
        await opened.db.client.drop_database(settings.mongodb_database)
        await runtime.make_indexes(opened)
        await exercises.publish_shared(opened)
        await pause_renewal(opened)
        yield opened


@pytest.fixture(scope="session")
async def app(settings: Settings, services: Services) -> web.Application:
    """The application under test."""
    return create_app(settings, services)


@pytest.fixture(scope="session")
async def server(app: web.Application) -> AsyncIterator[TestServer]:
    """The application, listening on a port of its own."""
    listening = TestServer(app)
    await listening.start_server()
    yield listening
    await listening.close()


@pytest.fixture
async def as_served(settings: Settings, services: Services) -> AsyncIterator[AsServed]:
    """The application as operators run it."""
    listening = AsServed(create_app(settings, replace(services, metrics=Metrics())))
    await listening.start_server()
    yield listening
    await listening.close()


@pytest.fixture(scope="session")
async def public_server(settings: Settings, services: Services) -> AsyncIterator[TestServer]:
    """The application on an address of its own that is also its base URL, as OAuth and browsers require."""
    port = unused_port()
    address = f"http://127.0.0.1:{port}"
    app = create_app(settings.model_copy(update={"base_url": address}), replace(services, base_url=address))
    listening = TestServer(app, host="127.0.0.1", port=port)
    await listening.start_server()
    yield listening
    await listening.close()


@pytest.fixture(scope="session", autouse=True)
def cheap_password_hashes() -> Iterator[None]:
    """Hash passwords with parameters that make sign-ups and sign-ins cheap: those of the service are slow on purpose."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(passwords, "_hasher", CHEAP_HASHER)
        patch.setattr(passwords, "_UNKNOWN_USER", CHEAP_HASHER.hash("no password matches this hash"))
        yield


class CompiledTemplates(jinja2.BytecodeCache):
    """What is compiled of templates, for all applications of a process: one compiles them for two seconds."""

    def __init__(self) -> None:
        self._compiled: dict[str, tuple[str, CodeType]] = {}

    def load_bytecode(self, bucket: jinja2.bccache.Bucket) -> None:
        """Take what is compiled of this source."""
        checksum, code = self._compiled.get(bucket.key, (None, None))
        bucket.code = code if checksum == bucket.checksum else None

    def dump_bytecode(self, bucket: jinja2.bccache.Bucket) -> None:
        """Keep what is compiled."""
        assert bucket.code is not None
        self._compiled[bucket.key] = (bucket.checksum, bucket.code)


@pytest.fixture(scope="session", autouse=True)
def compiled_templates() -> Iterator[None]:
    """Compile each template once, not for each application."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(aiohttp_jinja2, "setup", partial(aiohttp_jinja2.setup, bytecode_cache=CompiledTemplates()))
        yield


@pytest.fixture(scope="session")
def password_hash() -> str:
    """The hash of PASSWORD."""
    return CHEAP_HASHER.hash(PASSWORD)


NewCompany = Callable[..., Awaitable[CoachClient]]


@pytest.fixture(scope="session")
async def owner_clients(services: Services, server: TestServer) -> AsyncIterator[Callable[[CompanyOwner], CoachClient]]:
    """Returns clients with the unrestricted key of a company's owner, and closes them."""
    clients: list[CoachClient] = []

    def connect(company: CompanyOwner) -> CoachClient:
        clients.append(CoachClient(server, company.key, Context(services).acting_as(company.owner)))
        return clients[-1]

    yield connect
    for client in clients:
        await client.close()


@pytest.fixture(scope="session")
async def new_company(
    services: Services, password_hash: str, owner_clients: Callable[[CompanyOwner], CoachClient]
) -> NewCompany:
    """Creates companies; returns a client with the owner's unrestricted key."""

    async def make(**options: Unpack[CompanyOptions]) -> CoachClient:
        return owner_clients(await create_company(services, password_hash, **options))

    return make


@pytest.fixture(scope="session")
def company_copies(services: Services, password_hash: str) -> CompanyCopies:
    """The companies of `coach` and `other_company`."""
    return CompanyCopies(services, password_hash)


@pytest.fixture
async def only_coach(settings: Settings, password_hash: str) -> AsyncIterator[CoachClient]:
    """The owner of the only company of a database, for what reads all companies: the steps and jobs of an upgrade."""
    async with running_application(settings, "only", password_hash) as application:
        await exercises.publish_shared(application.services)
        client = await application.new_coach()
        yield client
        await client.close()


@pytest.fixture
def wednesday() -> Iterator[None]:
    """The clock of this process is at noon of a Wednesday, so that no result depends on the day of the test."""
    with time_machine.travel(NOON, tick=True):
        yield


@pytest.fixture
async def coach(company_copies: CompanyCopies, owner_clients: Callable[[CompanyOwner], CoachClient]) -> CoachClient:
    """A company's owner with an API key."""
    return owner_clients(await company_copies.take())


@pytest.fixture
async def renewal(coach: CoachClient) -> AsyncIterator[None]:
    """The application renews the figures of the company's clients by itself."""
    async with running_in_background(partial(queue_renewals, coach.ctx)):
        yield


@pytest.fixture
async def interactive(coach: CoachClient) -> CoachClient:
    """The same company's owner in an interactive session."""
    return await coach.interactive()


@pytest.fixture
async def other_company(
    company_copies: CompanyCopies, owner_clients: Callable[[CompanyOwner], CoachClient]
) -> CoachClient:
    """Another company's owner."""
    return owner_clients(await company_copies.take())


@pytest.fixture
async def anonymous(server: TestServer) -> AsyncIterator[CoachClient]:
    """A client without a credential."""
    client = CoachClient(server, None, None)
    yield client
    await client.close()


@pytest.fixture(scope="module")
async def company(new_company: NewCompany) -> CoachClient:
    """The owner of a company for the tests of a module."""
    return await new_company()


@pytest.fixture(scope="module")
async def world(company: CoachClient) -> World:
    """The identifiers of a document of each kind in that company."""
    return await make_world(company)


@pytest.fixture
async def no_failed_sign_ins(services: Services) -> AsyncIterator[None]:
    """No failed sign-ins: all tests come from one network address, for which they are counted."""
    await services.db["rateLimits"].delete_many({})
    yield
    await services.db["rateLimits"].delete_many({})


@pytest.fixture
def owner(coach: CoachClient) -> Principal:
    """The owner of the company under test."""
    return coach.ctx.caller
