"""Everything that returns a client's data is called: the audit log says who has read what of whom."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from coaching_service import features
from coaching_service.app import SERVICES
from coaching_service.core.http.routes import routes_of
from coaching_service.core.ids import ObjectId
from coaching_service.people import audit_log
from tests.contract.conftest import NAME
from tests.contract.test_areas import PAGES, TOOLS, Reader, Studio, make_reader, text_of
from tests.contract.test_declared import fill_path, request_options
from tests.contract.test_policy import assert_same
from tests.mcp.test_tool_access import arguments
from tests.web.test_pages import filled

ROUTES = [r for r in routes_of(features.ROUTES) if r.method == "GET" and r.access.audience in ("coach", "anyone")]
# What has an entry of its own instead of a read.
OWN_ENTRIES = {"client.exported", "company.exported"}


@pytest.fixture
def studio(named_client: Studio) -> Studio:
    return named_client


@pytest.fixture
async def reader(studio: Studio) -> AsyncIterator[Reader]:
    made = await make_reader(studio, studio.coach.ctx.caller.id)
    yield made
    await made.close()


async def take_entries(studio: Studio) -> list[dict[str, Any]]:
    """The entries that were written since the last call, of both applications."""
    coach = studio.coach
    for services in (coach.ctx.services, studio.server.app[SERVICES]):
        await audit_log.store_pending(services)
    where = {"companyId": coach.ctx.company_id}
    entries = await coach.ctx.db["audit"].find(where).to_list(None)
    await coach.ctx.db["audit"].delete_many(where)
    return [each for each in entries if not each["action"].startswith("sign_in.")]


async def read_everything(studio: Studio, reader: Reader) -> AsyncIterator[tuple[str, str]]:
    world = studio.world
    session = await studio.coach.interactive()
    session.checks = False
    for route in ROUTES:
        reply = await session.send("GET", fill_path(route, world), **request_options(route, world))
        yield f"GET {route.path}", text_of(reply.raw) if reply.status == 200 else ""
    for page in PAGES:
        shown = await reader.browser.get(filled(page, world))
        yield f"PAGE {page.path}", shown.html if shown.status == 200 else ""
    for tool in TOOLS:
        yield f"TOOL {tool.name}", str(await reader.assistant.call(tool.name, **arguments(tool, world)))


async def test_every_read_of_a_client_is_in_the_audit_log(studio: Studio, reader: Reader) -> None:
    """An operation, page or tool whose answer names the client without an entry fails here, also a new one."""
    await take_entries(studio)
    client, lines, silent = ObjectId(studio.world["customerId"]), [], []
    async for name, text in read_everything(studio, reader):
        entries = await take_entries(studio)
        found = {
            f"{each['action']} {each['target']['kind']}" for each in entries if each["customerId"] in (None, client)
        }
        assert {each["actor"]["_id"] for each in entries} <= {studio.coach.ctx.caller.id}, name
        if not found and (NAME in text or studio.world["customerId"] in text):
            silent.append(name)
        lines += [f"{name} {each}" for each in sorted(found)]
    assert silent == []
    assert_same("reads.txt", lines)
