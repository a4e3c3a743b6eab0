"""The operators' endpoints: health, readiness, metrics and the documents, without a credential."""

from __future__ import annotations

import asyncio
import re
import socket
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import time_machine
from aiohttp.test_utils import TestServer, make_mocked_request

from coaching_service import __version__, runtime
from coaching_service.app import READINGS, create_app
from coaching_service.core.database.context import Services
from coaching_service.core.database.declared import Index
from coaching_service.core.database.documents import registry
from coaching_service.core.errors import Unavailable
from coaching_service.core.metrics import Reading
from coaching_service.core.slots import RequestSlots
from coaching_service.documentation.operator_endpoints import OperatorEndpoints
from coaching_service.installation.backup.stores import FolderStore
from coaching_service.installation.indexes import hash_of
from coaching_service.settings import Settings
from tests.support.client import UNKNOWN, CoachClient, document
from tests.support.counted_commands import counting_commands
from tests.support.service_process import until


async def test_health_and_readiness(anonymous: CoachClient) -> None:
    assert (await anonymous.get("/healthz")).ok() == {"status": "ok", "version": __version__}
    assert (await anonymous.get("/readyz")).ok() == {"status": "ready"}


async def test_service_without_its_indexes_is_not_ready(settings: Settings) -> None:
    async with runtime.open_services(
        settings.model_copy(update={"mongodb_database": f"{settings.mongodb_database}_bare"})
    ) as bare:
        async with TestServer(create_app(settings, bare)) as server:
            anonymous = CoachClient(server, None, None)
            error = (await anonymous.get("/readyz")).refused(503, "ensure-indexes")
            assert error["error"] == "Service Unavailable"
            await runtime.make_indexes(bare)
            assert (await anonymous.get("/readyz")).ok() == {"status": "ready"}
            await anonymous.close()
        await bare.db.client.drop_database(bare.db.name)


async def has_compared(commands: Counter[str]) -> bool:
    """Whether the indexes of each collection have been read."""
    return commands["listIndexes"] == len(registry)


async def test_concurrent_readiness_checks_share_one_database_check(settings: Settings, services: Services) -> None:
    """The indexes are compared once, while the service is ready: their hash says that they were created."""
    request = make_mocked_request("GET", "/readyz")
    with counting_commands(settings, services) as (counted_services, commands):
        endpoints = OperatorEndpoints(counted_services, [], [], RequestSlots(8))
        answers = await asyncio.gather(*(endpoints.readyz(request) for _ in range(20)))
        assert {answer.status for answer in answers} == {200}
        await until(lambda: has_compared(commands), "the indexes are compared")
        assert commands == {"listIndexes": len(registry), "find": 3, "hello": 1}
        for _ in range(2):
            commands.clear()
            await asyncio.gather(*(endpoints.readyz(request) for _ in range(20)))
            assert commands == {"find": 2, "hello": 1}


async def test_index_that_is_dropped_by_hand_is_noticed_and_created_again(settings: Settings) -> None:
    own = settings.model_copy(update={"mongodb_database": f"{settings.mongodb_database}_dropped"})
    async with runtime.open_services(own) as services:
        await runtime.make_indexes(services)
        await services.db["notes"].drop_indexes()
        await runtime.make_indexes(services)
        endpoints, request = OperatorEndpoints(services, [], [], RequestSlots(8)), make_mocked_request("GET", "/readyz")

        async def is_refused() -> bool:
            try:
                return (await endpoints.readyz(request)).status != 200
            except Unavailable as error:
                return "notes" in str(error.message)

        await until(is_refused, "the missing indexes are noticed")
        await runtime.make_indexes(services)
        assert (await endpoints.readyz(request)).status == 200
        assert len(await services.db["notes"].index_information()) > 1
        await services.db.client.drop_database(services.db.name)


@pytest.mark.parametrize("changed", [Index(("companyId", "-date")), Index(("companyId",), unique=True)])
async def test_changed_declaration_is_another_hash(changed: Index) -> None:
    assert hash_of({"notes": (changed,)}) != hash_of({"notes": (Index(("companyId",)),)})
    assert hash_of({"notes": (changed,), "a": ()}) == hash_of({"a": (), "notes": (changed,)})


async def test_unreachable_database_is_503_without_its_address(settings: Settings) -> None:
    uri = "mongodb://127.0.0.1:9/?serverSelectionTimeoutMS=50&connectTimeoutMS=50"
    lost = settings.model_copy(update={"mongodb_uri": uri, "database_response_seconds": 0.2})
    async with runtime.open_services(lost) as services, TestServer(create_app(lost, services)) as server:
        client = CoachClient(server, "cs_ak_x", None)
        reply = await client.get("/me")
        reply.refused(503, "database")
        assert b"127.0.0.1" not in reply.raw
        (await client.get("/readyz")).refused(503)
        (await client.get("/healthz")).ok()
        await client.close()


async def test_readiness_check_of_a_frozen_database_times_out(settings: Settings) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        frozen = settings.model_copy(
            update={
                "mongodb_uri": f"mongodb://127.0.0.1:{silent.getsockname()[1]}/?directConnection=true",
                "database_response_seconds": 0.2,
            }
        )
        async with runtime.open_services(frozen) as services, TestServer(create_app(frozen, services)) as server:
            client = CoachClient(server, None, None)
            (await client.get("/readyz")).refused(503, "cannot be reached")
            await client.close()


async def test_metrics_are_labelled_by_route_and_not_by_path(coach: CoachClient, anonymous: CoachClient) -> None:
    ana = await coach.create_customer()
    await coach.get(f"/coach/customers/{ana['_id']}")
    await anonymous.send("PROPFIND", "/teapot/1234")

    text = (await anonymous.get("/metrics")).raw.decode()

    assert 'http_requests_total{method="GET",route="/coach/customers/{customerId}",status="200"}' in text
    assert ana["_id"] not in text
    assert "teapot" not in text
    assert "PROPFIND" not in text


async def test_metrics_count_the_changes_without_number(anonymous: CoachClient) -> None:
    text = (await anonymous.get("/metrics")).raw.decode()
    [value] = [line.split()[1] for line in text.splitlines() if line.startswith("change_log_pending ")]
    assert float(value) >= 0


async def test_metrics_of_a_route_are_small(settings: Settings, services: Services) -> None:
    """Less than 1.5 kB for each route, and no series of creation times."""
    async with TestServer(create_app(settings, services)) as server:
        client = CoachClient(server, None, None)
        before = len((await client.get("/metrics")).raw)
        item = f"/coach/customers/{UNKNOWN}/wblocks/{UNKNOWN}/witems/{UNKNOWN}/log"
        for _ in range(3):
            (await client.send("PUT", item)).refused(401)
        text = (await client.get("/metrics")).raw
        await client.close()
    assert b"/witems/{witemId}/log" in text
    assert b"_created" not in text
    own_series = sum(len(line) for line in text.splitlines() if b'route="/metrics"' in line)
    assert len(text) - before - own_series < 1500


@pytest.mark.parametrize(
    ("address", "reported", "status"),
    [
        (None, "203.0.113.7", 404),
        (None, "127.0.0.1", 200),
        (None, "::1", 200),
        (None, "x", 404),
        ("0.0.0.0", "203.0.113.7", 200),
    ],
)
async def test_metrics_are_for_the_same_machine_unless_an_address_is_set(
    settings: Settings, services: Services, address: str | None, reported: str, status: int
) -> None:
    own = settings.model_copy(update={"metrics_address": address, "trusted_proxies": 1})
    async with TestServer(create_app(own, services)) as server:
        anonymous = CoachClient(server, None, None)
        reply = await anonymous.send("GET", "/metrics", headers={"X-Forwarded-For": reported})
        await anonymous.close()
    assert reply.status == status
    assert status == 200 or reply.json["code"] == "ROUTE_NOT_FOUND"


async def test_metrics_port_replaces_the_public_metrics_path(settings: Settings, services: Services) -> None:
    async with TestServer(create_app(settings.model_copy(update={"metrics_port": 9}), services)) as server:
        anonymous = CoachClient(server, None, None)
        (await anonymous.get("/metrics")).refused(404)
        await anonymous.close()


async def test_swagger_json_is_the_openapi_document(anonymous: CoachClient) -> None:
    assert (await anonymous.get("/swagger-json")).ok() == document()


async def test_documentation_page_loads_no_external_resources(anonymous: CoachClient) -> None:
    page = await anonymous.get("/docs")
    text = page.raw.decode()

    assert page.headers["Content-Type"].startswith("text/html")
    assert "default-src 'none'" in page.headers["Content-Security-Policy"]
    assert re.findall(r"<script[^>]*>", text) == ['<script src="/docs/docs.js" defer>']
    assert 'src="http' not in text
    assert 'href="http' not in text
    for path in document()["paths"]:
        assert path in text
    (await anonymous.get("/docs/docs.css")).ok()


@pytest.mark.parametrize(("seconds", "direction"), [(-300, "behind"), (300, "ahead of")])
async def test_process_with_a_wrong_clock_is_not_ready(anonymous: CoachClient, seconds: int, direction: str) -> None:
    """Tokens, reminders and dates would be wrong by as much."""
    with time_machine.travel(datetime.now(UTC) + timedelta(seconds=seconds), tick=True):
        (await anonymous.get("/readyz")).refused(503, "The clock of this process is", direction, "time server")
    with time_machine.travel(datetime.now(UTC) + timedelta(seconds=seconds / 10), tick=True):
        (await anonymous.get("/readyz")).ok()


@pytest.mark.parametrize("read", READINGS)
async def test_no_metric_needs_a_database(services: Services, tmp_path: Path, read: Reading) -> None:
    """The others are needed most while it is lost."""
    lost = replace(services, backup_store=FolderStore(tmp_path))
    lost.monitor.is_lost = True
    assert not services.monitor.is_lost
    await read(lost)
