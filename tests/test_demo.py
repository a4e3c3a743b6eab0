"""The demo company: enough to look at, made once."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
from aiohttp.test_utils import TestServer

from coaching_service.core.database.context import Services
from coaching_service.demo import ensure_demo
from tests.client import CoachClient


@pytest.fixture(scope="module")
async def facts(services: Services) -> dict[str, str]:
    return await ensure_demo(services)


@pytest.fixture
async def demo(facts: dict[str, str], server: TestServer) -> AsyncIterator[CoachClient]:
    client = CoachClient(server, facts["apiKey"], None)
    yield client
    await client.close()


async def pages(demo: CoachClient, path: str, **query: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (await demo.get(path, pageSize=50, pageNum=1, **query)).ok()["docs"]
    return found


async def test_there_are_clients_of_every_kind(demo: CoachClient) -> None:
    active = await pages(demo, "/coach/customers", archived="false")
    archived = await pages(demo, "/coach/customers", archived="true")
    roles = [client["customerRoleData"] for client in active]

    assert len(active) >= 30
    assert archived
    assert {"Morning", "Strength"} <= {group for role in roles for group in role["groups"]}
    assert len({role["assignedTo"] for role in roles}) == 3, "two coaches, and nobody"
    assert {role["customerType"] for role in roles} == {"SAMPLE"}


async def test_there_are_six_weeks_of_calendar_round_today(demo: CoachClient) -> None:
    [client, *_] = await pages(demo, "/coach/customers", archived="false")
    start, end = datetime.now(UTC).date() - timedelta(weeks=5), datetime.now(UTC).date() + timedelta(weeks=3)

    blocks = await demo.calendar(client, str(start), str(end))

    days = [date.fromisoformat(block["date"]) for block in blocks]
    assert (max(days) - min(days)).days >= 5 * 7
    assert min(days) < datetime.now(UTC).date() < max(days)
    assert all(block["items"] for block in blocks)
    assert client["customerRoleData"]["lastWorkoutDate"] == blocks[-1]["date"]


async def test_there_are_programs_forms_and_metrics(demo: CoachClient) -> None:
    programs = await pages(demo, "/coach/programs", archived="false")
    assert all(program["numberOfDaysWithWorkouts"] >= 6 for program in programs)
    assert len(programs) >= 3
    assert (await demo.get("/coach/forms")).ok()
    assert (await demo.get("/coach/metrics-sets")).ok()


async def test_one_client_has_something_to_show(demo: CoachClient) -> None:
    client = next(each for each in await pages(demo, "/coach/customers", archived="false") if each["name"] == "Amara")
    path, today = f"/coach/customers/{client['_id']}", datetime.now(UTC).date()
    span = {"startDate": str(today - timedelta(weeks=5)), "endDate": str(today)}

    assert client["customerRoleData"]["complianceRate90d"] > 20
    assert (await demo.get(f"{path}/workload", **span, groupBy="month")).ok()["periods"]
    assert (await demo.get(f"{path}/musclegroups/volume", **span)).ok()["muscleGroups"]
    assert all(m["currentValue"] for s in (await demo.get(f"{path}/metrics-sets")).ok() for m in s["metrics"])
    assert (await demo.get(f"{path}/personal-records")).ok()
    assert (await demo.get(f"{path}/notes")).ok()


async def test_making_it_again_changes_nothing(services: Services, facts: dict[str, str]) -> None:
    collections = ["companies", "coaches", "customers", "workoutBlocks", "programs", "apiKeys", "forms", "metricSets"]
    before = [await services.db[name].estimated_document_count() for name in collections]
    assert await ensure_demo(services) == facts
    assert [await services.db[name].estimated_document_count() for name in collections] == before
