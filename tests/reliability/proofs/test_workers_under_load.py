"""Several workers under load: replaced without a lost request, also after a crash."""

from __future__ import annotations

import asyncio
import os
import signal
from itertools import count

import aiohttp

from tests.reliability.proofs.test_workers import SEVERAL, figure, is_running, lines, run_all
from tests.support.drill import require_whole_service
from tests.support.service_process import Service, mongods_of, until


async def created(service: Service) -> float:
    """How many clients have been created, by the metrics."""
    return await figure(service, "http_requests_total", method="POST", route="/coach/customers", status="201")


class Load:
    """Creates clients on eight connections; `names` are those that were acknowledged."""

    def __init__(self, service: Service) -> None:
        self.names: set[str] = set()
        self._service = service
        self._numbers = count()
        self._tasks = [asyncio.create_task(self._create(keeps_open=number % 2 == 0)) for number in range(8)]

    async def _create(self, *, keeps_open: bool) -> None:
        facts = self._service.facts
        connector = aiohttp.TCPConnector(force_close=not keeps_open)
        headers = {"X-API-Key": facts["apiKey"]}
        async with aiohttp.ClientSession(facts["baseUrl"], headers=headers, connector=connector) as http:
            while True:
                name = f"Client {next(self._numbers)}"
                async with http.post("/coach/customers", json={"name": name}) as response:
                    assert response.status == 201, await response.text()
                self.names.add(name)

    def is_unbroken(self) -> bool:
        """Whether no request has been lost or refused."""
        for task in self._tasks:
            if task.done():
                task.result()
        return True

    async def end(self) -> None:
        """Stop; requests that have been sent are answered first or lost."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


async def test_workers_are_replaced_under_load_and_after_a_crash(service: Service) -> None:
    """SIGHUP loses no request, a killed worker is replaced, and the sums of counters never fall."""
    await service.start(**SEVERAL)
    await until(lambda: run_all(service), "both workers run")
    first = {line["pid"] for line in lines(service, "a worker is ready")}
    load = Load(service)

    async def has_created(number: int) -> bool:
        assert load.is_unbroken()
        return len(load.names) >= number

    await until(lambda: has_created(40), "clients are created")
    service.send_signal(signal.SIGHUP)
    await until(lambda: load.is_unbroken() and lines(service, "the workers have been replaced"), "replaced", 300)
    more = len(load.names) + 40
    await until(lambda: has_created(more), "clients are created by the new workers")
    await load.end()
    assert load.names <= set((await service.customers()).values())
    second = {line["pid"] for line in lines(service, "a worker is ready")} - first
    assert (len(first), len(second)) == (2, 2)
    assert {line["worker"] for line in lines(service, "request")} == {1, 2}
    assert len(lines(service, "the service starts")) == 2  # at the start and in the first worker of the replacement
    assert not lines(service, "a worker has ended by itself and is replaced")
    before = await created(service)
    assert before >= len(load.names)  # of all four workers

    killed = min(second)
    os.kill(killed, signal.SIGKILL)
    [line] = await until(lambda: lines(service, "a worker has ended by itself and is replaced"), "its end is logged")
    assert (line["pid"], line["reason"], line["pause_seconds"]) == (killed, "signal SIGKILL", 0.0)
    await until(lambda: len(lines(service, "a worker is ready")) == 5, "it is replaced")
    await service.hang_up_and_connect()
    await until(lambda: run_all(service), "both workers run again")
    assert (await created(service), await figure(service, "worker_failures_total")) == (before, 1)

    await require_whole_service(service)
    workers = {line["pid"] for line in lines(service, "a worker is ready")}
    assert await service.end() == 0
    assert not any(is_running(pid) for pid in workers)
    assert mongods_of(service.folder) == []
    assert "Traceback" not in service.logged
