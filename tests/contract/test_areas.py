"""Every operation, page and tool that reads is called by the owner: the audit log says who has read what of whom.

What shows something of an area is called by a coach without it too: nothing of the area is there.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import AsyncIterator, Collection
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import pytest
from aiohttp.test_utils import TestServer

from coaching_service import features
from coaching_service.app import SERVICES
from coaching_service.core.auth import ALL_PERMISSIONS
from coaching_service.core.http.routes import routes_of
from coaching_service.core.ids import ObjectId
from coaching_service.core.mcp import tools_of
from coaching_service.people import api_keys, audit_log, team
from coaching_service.people.sessions import service as sessions
from coaching_service.web import views
from tests.conftest import NewCompany
from tests.contract.test_declared import fill_path, request_options
from tests.contract.test_policy import assert_same
from tests.core.test_uploads import form
from tests.mcp.test_tool_access import arguments
from tests.support.client import MONDAY, CoachClient
from tests.support.declared_world import World, make_world
from tests.support.mcp_client import McpHttpClient
from tests.support.pdf_files import make_pdf
from tests.support.sampled import MORE
from tests.support.training import block_with, form_of, log, metric_set, metrics_of
from tests.support.visitor import Visitor
from tests.web.test_pages import filled

TODAY = str(datetime.now(UTC).date())  # what is written is not compared with it

NAME = "Quetzalli"  # of the client, who is recognised by it
ROUTES = [r for r in routes_of(features.ROUTES) if r.method == "GET" and r.access.audience in ("coach", "anyone")]
PAGES = [p for p in views.list_pages() if p.method == "GET" and p.access.audience == "coach"]
KNOWN = {"pageSize": 50, "limit": 50, "startDate": MONDAY, "endDate": TODAY, "archived": "false"}
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
    """A company with something of every area, and the texts in which it would be recognised.

    `other`: identifiers of further documents, which have something of the areas.
    """

    coach: CoachClient
    server: TestServer
    world: World
    other: World = field(default_factory=dict)
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
    (await coach.patch(path, {"name": NAME})).ok()
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
        world,
        {"wblockId": block["_id"], "metricsSetId": body["_id"], "metricId": metric},
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
    is_owner = coach_id == studio.coach.ctx.caller.id
    rest = await studio.coach.interactive() if is_owner else studio.coach.with_key(key)
    rest.checks = False  # a reader may be refused
    return Reader(rest, browser, McpHttpClient(studio.server, {"X-API-Key": key}))


def text_of(raw: bytes) -> str:
    """The text of an answer, or of the files of an archive."""
    if not raw.startswith(b"PK"):
        return raw.decode("utf-8", "replace")
    with zipfile.ZipFile(io.BytesIO(raw)) as archive:
        return "".join(f"{name}{archive.read(name).decode('utf-8', 'replace')}" for name in archive.namelist())


async def read_everything(
    reader: Reader, studio: Studio, changes: Collection[str], only: Collection[str] | None = None
) -> AsyncIterator[tuple[str, str, bool]]:
    """Yield of everything that can be read, or of what is in `only`, the name, the text, and whether it is refused."""
    worlds = (studio.world, studio.world | studio.other)

    def is_read(name: str) -> bool:
        return only is None or name in only

    for route in (each for each in ROUTES if is_read(f"GET {each.path}")):
        options = request_options(route, studio.world)["params"]
        query = {name: KNOWN.get(name, value) for name, value in options.items()}
        for path in dict.fromkeys(fill_path(route, world) for world in worlds):
            reply = await reader.rest.get(path, **query)
            yield f"GET {route.path}", text_of(reply.raw), reply.status != 200
    for page in (each for each in PAGES if is_read(f"PAGE {each.path}")):
        for path in dict.fromkeys(filled(page, world) for world in worlds):
            shown = await reader.browser.get(path)
            yield f"PAGE {page.path}", shown.html, shown.status != 200
    for tool in (each for each in TOOLS if is_read(f"TOOL {each.name}")):
        details = tool.input_schema["properties"].get("detail", {"enum": []})["enum"]
        given = [arguments(tool, world) for world in worlds]
        given = given[:1] if given[0] == given[1] else given
        for each in (*given, *(each | {"detail": detail} for each in given for detail in details[-1:])):
            yield f"TOOL {tool.name}", str(await reader.assistant.call(tool.name, **each)), False
    for change in changes:
        yield "change", (await reader.rest.get(f"/coach/changes/{change}")).raw.decode(), False
        yield "PAGE change", (await reader.browser.get(f"/app/settings/history/{change}")).html, False


async def list_changes(owner: Reader, world: World) -> list[str]:
    listed = (await owner.rest.get("/coach/changes", customerId=world["customerId"], limit=100)).ok()["docs"]
    kinds = {"workout", "form_response", "metric_value"}
    return [each["_id"] for each in listed if kinds & {document["kind"] for document in each["documents"]}]


async def take_entries(studio: Studio) -> list[dict[str, Any]]:
    """The entries of the audit log that were written since the last call, of both applications."""
    coach = studio.coach
    for services in (coach.ctx.services, studio.server.app[SERVICES]):
        await audit_log.store_pending(services)
    where = {"companyId": coach.ctx.company_id}
    entries = await coach.ctx.db["audit"].find(where).to_list(None)
    await coach.ctx.db["audit"].delete_many(where)
    return [each for each in entries if not each["action"].startswith("sign_in.")]


@dataclass
class Everything:
    """What the owner has read: the lines of reads.txt, and where something of each area is shown."""

    changes: list[str]
    entries: set[str] = field(default_factory=set)
    # Where the client is named without an entry.
    silent: list[str] = field(default_factory=list)
    shown: dict[str, set[str]] = field(default_factory=dict)


@pytest.fixture(scope="module")
async def everything(studio: Studio) -> Everything:
    owner = await make_reader(studio, studio.coach.ctx.caller.id)
    found = Everything(await list_changes(owner, studio.world), shown={area: set() for area in studio.secrets})
    client = ObjectId(studio.world["customerId"])
    await take_entries(studio)
    async for name, text, is_refused in read_everything(owner, studio, found.changes):
        entries = await take_entries(studio)
        kinds = {
            f"{each['action']} {each['target']['kind']}" for each in entries if each["customerId"] in (None, client)
        }
        assert {each["actor"]["_id"] for each in entries} <= {studio.coach.ctx.caller.id}, name
        if not name.endswith("change"):  # of any kind: those that are about the areas
            found.entries |= {f"{name} {each}" for each in kinds}
            if not kinds and not is_refused and (NAME in text or studio.world["customerId"] in text):
                found.silent.append(name)
        for area, secrets in studio.secrets.items():
            if any(secret in text for secret in secrets):
                found.shown[area].add(name)
    await owner.close()
    return found


def test_every_read_of_a_client_is_in_the_audit_log(everything: Everything) -> None:
    """An operation, page or tool whose answer names the client without an entry fails here, also a new one."""
    assert everything.silent == []
    assert_same("reads.txt", everything.entries)


def test_a_coach_with_all_permissions_reads_every_area(everything: Everything) -> None:
    """So that the test below would find it."""
    assert {area: SHOWN[area] - everything.shown[area] for area in SHOWN} == {area: set() for area in SHOWN}


async def test_nothing_of_an_area_is_anywhere_without_its_permission(studio: Studio, everything: Everything) -> None:
    """Each area is looked for where the owner sees something of it, in the proofs everywhere."""
    leaks = set()
    for area in SHOWN:
        permissions = sorted(each for each in ALL_PERMISSIONS if not each.startswith(f"{area}."))
        email = f"eli-{ObjectId()}@example.com"
        hired = await team.create(studio.coach.ctx, "Eli", email, permissions, "all", "no hash")
        reader = await make_reader(studio, hired["_id"])
        only = everything.shown[area] if MORE == 1 else None
        async for name, text, _ in read_everything(reader, studio, everything.changes, only):
            leaks |= {(area, name, secret) for secret in studio.secrets[area] if secret in text}
        await reader.close()
    assert leaks == set()
