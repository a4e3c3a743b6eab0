"""An import of the largest file and another company: they take turns, one process reads it, and it ends when cancelled."""

from __future__ import annotations

import io
import time
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from coaching_service.core.database.context import Context, Services
from coaching_service.integrations.company_import import service as company_import
from coaching_service.integrations.history_files.tables import MAX_ROWS
from coaching_service.people import api_keys, team
from tests.integrations.test_fair_imports import years
from tests.reliability.deployment import Deployment, Node, deployed
from tests.support.service_process import until

Json = dict[str, Any]
OTHERS_WITHIN, CANCELLED_WITHIN = 15.0, 10.0


async def send(node: Node, key: str, table: bytes) -> Json:
    """Create a client, and begin to import a table of theirs without storing it."""
    async with aiohttp.ClientSession(node.url, headers={"X-API-Key": key}) as http:
        async with http.post("/coach/customers", json={"name": "Ana"}) as response:
            client = (await response.json())["_id"]
        form = aiohttp.FormData()
        form.add_field("file", io.BytesIO(table), filename="years.csv", content_type="text/csv")
        form.add_field("customerId", client)
        form.add_field("dryRun", "true")
        async with http.post("/coach/import", data=form) as response:
            assert response.status == 202, await response.text()
            job: Json = await response.json()
            return job


async def request(node: Node, key: str, method: str, path: str) -> Json:
    """The JSON of a response."""
    async with (
        aiohttp.ClientSession(node.url, headers={"X-API-Key": key}) as http,
        http.request(method, path) as response,
    ):
        assert response.status == 200, await response.text()
        answer: Json = await response.json()
        return answer


class Watch:
    """Who has taken the large file, as long as it is read."""

    def __init__(self, services: Services, job_id: str) -> None:
        self._services, self._job_id = services, job_id
        self.holders: set[str] = set()

    async def look(self) -> int:
        """How many jobs read the file; those who have them are recorded."""
        jobs = await self._services.db["jobs"].find({"kind": company_import.IMPORT}).to_list(None)
        own = [each for each in jobs if self._job_id in map(str, (each["_id"], *each["arguments"].values()))]
        self.holders |= {each["holder"] for each in own if each.get("holder")}
        return len(own)


@pytest.mark.parametrize("uploads", [0, 1], ids=["to the reading process", "to the other process"])
async def test_largest_import_delays_no_other_and_ends_when_it_is_cancelled(tmp_path: Path, uploads: int) -> None:
    async with deployed(tmp_path) as (deployment, services):
        nodes = [deployment.add_node(), deployment.add_node()]
        for node in nodes:
            await node.start()
        await _import_beside(deployment, services, nodes, uploads)
        await nodes[0].require_whole()


async def _import_beside(deployment: Deployment, services: Services, nodes: list[Node], uploads: int) -> None:
    owner = await team.create_company(Context(services), "Other", "Olaf", "olaf@changes.test", "no hash")
    other = (await api_keys.create(Context(services).acting_as(owner), "Test"))["key"]
    large = await send(nodes[0], deployment.key, years(MAX_ROWS))
    watch = Watch(services, large["_id"])
    path = f"/coach/jobs/{large['_id']}"

    async def is_being_read() -> bool:
        job = await request(nodes[0], deployment.key, "GET", path)
        assert job["status"] in ("queued", "running"), job
        assert await watch.look() == 1
        return bool(job["status"] == "running" and job["done"] > 0)

    await until(is_being_read, "the progress of the reading is shown")

    for _ in range(3):
        began = time.monotonic()
        small = await send(nodes[uploads], other, years(1))

        async def is_done(small: Json = small) -> bool:
            assert await watch.look() == 1, "the large one is still being read"
            job = await request(nodes[uploads], other, "GET", f"/coach/jobs/{small['_id']}")
            return bool(job["status"] == "done")

        await until(is_done, "one row of another company is imported", OTHERS_WITHIN)
        print(f"one row took {time.monotonic() - began:.1f} s")
    job = await request(nodes[1], deployment.key, "GET", path)
    assert (job["status"], job["result"]) == ("running", None), "it has not been read yet"
    assert len(watch.holders) == 1, "one process reads the file"

    await request(nodes[1 - uploads], deployment.key, "POST", f"{path}/cancel")
    began = time.monotonic()

    async def has_ended() -> bool:
        return await watch.look() == 0

    await until(has_ended, "the reading has ended", CANCELLED_WITHIN)
    print(f"it ended {time.monotonic() - began:.1f} s after it was cancelled")
    assert (await request(nodes[0], deployment.key, "GET", path))["status"] == "cancelled"
    assert len(watch.holders) == 1
