"""Every operation, page and tool that reads is called by a coach without one area: nothing of it is anywhere."""

from __future__ import annotations

import io
import zipfile
from collections.abc import AsyncIterator, Collection
from dataclasses import dataclass, field
from datetime import UTC, datetime

import pytest
from aiohttp.test_utils import TestServer

from coaching_service import features
from coaching_service.core.auth import ALL_PERMISSIONS
from coaching_service.core.http.routes import routes_of
from coaching_service.core.ids import ObjectId
from coaching_service.core.mcp import tools_of
from coaching_service.people import api_keys, team
from coaching_service.people.sessions import service as sessions
from coaching_service.web import views
from tests.conftest import NewCompany
from tests.contract.test_declared import fill_path
from tests.core.test_uploads import form
from tests.mcp.test_tool_access import arguments
from tests.support.client import MONDAY, CoachClient, document
from tests.support.declared_world import World, make_world
from tests.support.mcp_client import McpHttpClient
from tests.support.pdf_files import make_pdf
from tests.support.training import block_with, form_of, log, metric_set, metrics_of
from tests.support.visitor import Visitor
from tests.web.test_pages import filled

TODAY = str(datetime.now(UTC).date())  # what is written is not compared with it

ROUTES = [r for r in routes_of(features.ROUTES) if r.method == "GET" and r.access.audience == "coach"]
PAGES = [p for p in views.list_pages() if p.method == "GET" and p.access.audience == "coach"]
TOOLS = [t for t in tools_of(features.TOOLS) if not t.writes]
# Where a coach with all permissions reads something of each area that is not a resource of the area itself.
SHOWN = {
    "metrics": {
        "GET /coach/activity-feed",
        "GET /coach/customers/{customerId}/activity-feed",
        "GET /coach/events",
        "GET /coach/customers/{customerId}/wblock",
        "GET /coach/changes",
        "change",
        "GET /coach/customers/{customerId}/export",
        "GET /coach/export",
        "PAGE /app/customers/{customerId}/blocks/{blockId}",
        "PAGE /app/customers/{customerId}/blocks/{blockId}/review",
        "PAGE change",
        "TOOL get_activity",
        "TOOL get_workouts",
    },
    "forms": {
        "GET /coach/events",
        "GET /coach/customers/{customerId}/wblock",
        "GET /coach/changes",
        "change",
        "GET /coach/customers/{customerId}/export",
        "PAGE /app/customers/{customerId}/blocks/{blockId}",
        "PAGE /app/inbox",
        "PAGE change",
        "TOOL get_workouts",
    },
    "nutrition": {
        "GET /coach/activity-feed",
        "GET /coach/customers/{customerId}/activity-feed",
        "GET /coach/events",
        "GET /coach/changes",
        "GET /coach/customers/{customerId}/export",
        "TOOL get_activity",
    },
}


@dataclass
class Studio:
    """A company with something of every area, and the texts in which it would be recognised."""

    coach: CoachClient
    server: TestServer
    world: World
    secrets: dict[str, set[str]] = field(default_factory=dict)


@dataclass
class Reader:
    """A coach with a key, a session in the browser, and an assistant."""

    rest: CoachClient
    browser: Visitor
    assistant: McpHttpClient

    async def close(self) -> None:
        """Close the connections."""
        await self.browser.close()
        await self.assistant.__aexit__()


@pytest.fixture(scope="module")
async def studio(new_company: NewCompany, public_server: TestServer) -> Studio:
    coach = await new_company()
    world = await make_world(coach)
    client = {"_id": world["customerId"]}
    body = await metric_set(coach, "Weight")
    path = f"/coach/customers/{client['_id']}"
    (await coach.post(f"{path}/metrics-sets", {"metricsSetId": body["_id"]})).ok(201)
    metric = body["metrics"][0]["_id"]
    value = {"metricId": metric, "date": "2026-03-05", "value": 83.71}
    (await coach.post(f"{path}/metrics-sets/{body['_id']}/entries", value)).ok(201)
    question = {"label": "How was it?", "type": "text"}
    for day, amount in ((MONDAY, 64.93), (TODAY, 58.27)):
        block = await block_with(coach, client, form_of(question), metrics_of(body), date=day)
        questionnaire, values = block["items"]
        answers = [{"questionId": questionnaire["form"]["questions"][0]["_id"], "value": "Canary sings"}]
        (await log(coach, block, questionnaire, isCompleted=True, answers=answers)).ok()
        (await log(coach, block, values, isCompleted=True, values=[{"metricId": metric, "value": amount}])).ok()
    plans = [
        (await coach.send("POST", f"{path}/nutrition-plans", data=form(make_pdf(), "file", name))).ok(201)
        for name in ("canary-one.pdf", "canary-two.pdf")
    ]
    (await coach.delete(f"{path}/plan-versions/{plans[0]['_id']}")).ok(204)
    last = await coach.post(f"{path}/notes", {"content": "The last change"})
    await coach.wait_until_numbered(last.headers["X-Change-Id"])
    responses = (await coach.get("/coach/form-responses", customerId=client["_id"])).ok()["docs"]
    return Studio(
        coach,
        public_server,
        world | {"wblockId": block["_id"], "metricsSetId": body["_id"], "metricId": metric},
        {
            "metrics": {"83.71", "64.93", "58.27", '"kind":"metric_value"'},
            "forms": {"Canary sings", '"kind":"form_response"', *(each["_id"] for each in responses)},
            "nutrition": {"canary-", *(each["_id"] for each in plans)},
        },
    )


async def make_reader(studio: Studio, coach_id: ObjectId) -> Reader:
    principal = await team.get_principal(studio.coach.ctx.services, coach_id)
    assert principal is not None
    ctx = studio.coach.ctx.acting_as(principal)
    key = (await api_keys.create(ctx, "Reader"))["key"]
    browser = Visitor(studio.server)
    browser.keep(coach_session=(await sessions.start_for_coach(ctx, coach_id)).token)
    return Reader(studio.coach.with_key(key), browser, McpHttpClient(studio.server, {"X-API-Key": key}))


@pytest.fixture
async def owner(studio: Studio) -> AsyncIterator[Reader]:
    reader = await make_reader(studio, studio.coach.ctx.caller.id)
    yield reader
    await reader.close()


def text_of(raw: bytes) -> str:
    """The text of an answer, or of the files of an archive."""
    if not raw.startswith(b"PK"):
        return raw.decode("utf-8", "replace")
    with zipfile.ZipFile(io.BytesIO(raw)) as archive:
        return "".join(f"{name}{archive.read(name).decode('utf-8', 'replace')}" for name in archive.namelist())


async def read_everything(
    reader: Reader, world: World, changes: list[str], only: Collection[str] = ()
) -> AsyncIterator[tuple[str, str]]:
    """Yield the name and the text of everything that can be read, or of `only` if it names something."""
    for route in (each for each in ROUTES if not only or f"GET {each.path}" in only):
        parameters = document()["paths"][route.path]["get"].get("parameters", ())
        required = {each["name"] for each in parameters if each.get("in") == "query" and each.get("required")}
        known = {"pageSize": 50, "limit": 50, "startDate": MONDAY, "endDate": TODAY, "archived": "false"}
        query = {name: known.get(name, 1) for name in required}
        yield f"GET {route.path}", text_of((await reader.rest.get(fill_path(route, world), **query)).raw)
    for page in (each for each in PAGES if not only or f"PAGE {each.path}" in only):
        yield f"PAGE {page.path}", (await reader.browser.get(filled(page, world))).html
    for tool in (each for each in TOOLS if not only or f"TOOL {each.name}" in only):
        given = arguments(tool, world) | ({"detail": "full"} if "detail" in str(tool.input_schema) else {})
        yield f"TOOL {tool.name}", str(await reader.assistant.call(tool.name, **given))
    for change in changes:
        yield "change", (await reader.rest.get(f"/coach/changes/{change}")).raw.decode()
        yield "PAGE change", (await reader.browser.get(f"/app/settings/history/{change}")).html


async def list_changes(owner: Reader, world: World) -> list[str]:
    listed = (await owner.rest.get("/coach/changes", customerId=world["customerId"], limit=100)).ok()["docs"]
    kinds = {"workout", "form_response", "metric_value"}
    return [each["_id"] for each in listed if kinds & {document["kind"] for document in each["documents"]}]


async def test_a_coach_with_all_permissions_reads_every_area(studio: Studio, owner: Reader) -> None:
    """So that the tests below would find it."""
    seen: dict[str, set[str]] = {area: set() for area in studio.secrets}
    changes, only = await list_changes(owner, studio.world), set().union(*SHOWN.values())
    async for name, text in read_everything(owner, studio.world, changes, only):
        for area, secrets in studio.secrets.items():
            if any(secret in text for secret in secrets):
                seen[area].add(name)
    assert {area: SHOWN[area] - seen[area] for area in SHOWN} == {area: set() for area in SHOWN}


@pytest.mark.parametrize("area", SHOWN)
async def test_nothing_of_an_area_is_anywhere_without_its_permission(studio: Studio, owner: Reader, area: str) -> None:
    permissions = sorted(each for each in ALL_PERMISSIONS if not each.startswith(f"{area}."))
    email = f"eli-{ObjectId()}@example.com"
    hired = await team.create(studio.coach.ctx, "Eli", email, permissions, "all", "no hash")
    reader = await make_reader(studio, hired["_id"])
    leaks = {
        (name, secret)
        async for name, text in read_everything(reader, studio.world, await list_changes(owner, studio.world))
        for secret in studio.secrets[area]
        if secret in text
    }
    await reader.close()
    assert leaks == set()
