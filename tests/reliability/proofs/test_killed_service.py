"""A service that is killed under load ends its database and loses nothing."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from urllib.parse import urlsplit

import aiohttp
import pytest

from tests.reliability.test_serving import ends_cleanly, free_port
from tests.support.drill import require_whole_service
from tests.support.service_process import Service, mongods_of, until


async def test_killed_service_ends_its_database_and_loses_no_data(service: Service) -> None:
    """Ctrl-C or SIGTERM stops service and database cleanly within 5 s; the database ends even with a killed service.

    A start on the same DIR, also after a kill -9, has every client whose creation was acknowledged, the same key and
    password, and nothing is seeded twice.
    """
    await service.start()
    first, identifier = service.facts, await service.create("Zebulon")
    clients = await service.customers()
    assert len(clients) >= 6
    service.send_signal(signal.SIGHUP)  # which only replaces workers of a supervisor
    await until(lambda: "SIGHUP is ignored" in service.logged, "it is logged")
    await ends_cleanly(service, signal.SIGTERM)

    metrics_port = free_port()
    await service.start(METRICS_PORT=metrics_port)
    assert first | {"baseUrl": ""} == service.facts | {"baseUrl": ""}
    assert await service.customers() == clients
    assert clients[identifier] == "Zebulon"
    figures = await service.call("GET", f"http://127.0.0.1:{metrics_port}/metrics")
    assert 'http_requests_total{method="GET",route="/coach/customers",status="200"} 1.0' in figures
    await service.call("GET", "/metrics", status=404)

    [mongod] = mongods_of(service.folder)
    acknowledged = await _kill_while_clients_are_created(service)
    # At once: the database of the killed service may not have ended yet.
    await service.start()
    assert acknowledged.items() <= (await service.customers()).items()
    [another] = mongods_of(service.folder)
    assert another != mongod
    await require_whole_service(service)
    async with _slow_caller(service):
        await ends_cleanly(service, signal.SIGINT)


async def _kill_while_clients_are_created(service: Service) -> dict[str, str]:
    """The names of the clients whose creation was acknowledged, by identifier."""
    acknowledged: dict[str, str] = {}

    async def create_until_it_breaks(coach: int) -> None:
        with pytest.raises(aiohttp.ClientError):
            for number in range(100_000):
                name = f"Coach {coach}, client {number}"
                acknowledged[await service.create(name)] = name

    coaches = [asyncio.create_task(create_until_it_breaks(coach)) for coach in range(4)]
    await until(lambda: len(acknowledged) >= 40, "some clients are there")
    assert await service.end(signal.SIGKILL) == -signal.SIGKILL
    await asyncio.gather(*coaches)
    return acknowledged


@asynccontextmanager
async def _slow_caller(service: Service) -> AsyncIterator[None]:
    """A caller with an open request whose body never arrives."""
    there = urlsplit(service.facts["baseUrl"])
    reader, writer = await asyncio.open_connection(there.hostname, there.port)
    try:
        writer.write(
            b"POST /coach/customers HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 99\r\n"
            b"X-API-Key: " + service.facts["apiKey"].encode() + b"\r\nExpect: 100-continue\r\n\r\n"
        )
        assert (await reader.readline()).startswith(b"HTTP/1.1 100")
        yield
    finally:
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()
