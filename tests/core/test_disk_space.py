"""The disk of the embedded database is nearly full: changes are refused, reads and sign-ins continue."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import urlencode

import pytest
from aiohttp.test_utils import TestServer

from coaching_service import features, runtime
from coaching_service.app import create_app
from coaching_service.core.database.context import Services
from coaching_service.core.http.routes import routes_of
from coaching_service.core.mcp import tools_of
from coaching_service.core.temporary_files import DiskSpace
from coaching_service.people.sessions import service as sessions
from coaching_service.settings import Settings
from coaching_service.web import views
from tests.conftest import PASSWORD
from tests.support.client import CoachClient
from tests.support.mcp_client import McpHttpClient, text_of, tool_error
from tests.support.schedules import EVER
from tests.support.training import block_with, client_path, metric_set, task
from tests.support.visitor import Visitor

MORE_THAN_THERE_IS = 1 << 50


@dataclass
class Disk:
    """A service with a coach, an assistant and a browser."""

    coach: CoachClient
    mcp: McpHttpClient
    visitor: Visitor


async def serve(stack: AsyncExitStack, settings: Settings, services: Services, coach: CoachClient) -> Disk:
    server = await stack.enter_async_context(TestServer(create_app(settings, services)))
    own, visitor = CoachClient(server, coach.key, coach.ctx), Visitor(server)
    stack.push_async_callback(own.close)
    stack.push_async_callback(visitor.close)
    visitor.keep(coach_session=(await sessions.start_for_coach(coach.ctx, coach.ctx.caller.id)).token)
    return Disk(own, await stack.enter_async_context(McpHttpClient(server, {"X-API-Key": str(coach.key)})), visitor)


@pytest.fixture
async def full(settings: Settings, services: Services, coach: CoachClient, tmp_path: Path) -> AsyncIterator[Disk]:
    """Almost no space is left."""
    async with AsyncExitStack() as stack:
        nearly_full = replace(services, disk_space=DiskSpace(tmp_path, MORE_THAN_THERE_IS))
        yield await serve(stack, settings, nearly_full, coach)


async def test_changes_are_507_and_nothing_is_stored(full: Disk, coach: CoachClient) -> None:
    ana = await coach.create_customer()
    path = f"/coach/customers/{ana['_id']}"
    for method, where, body in (
        ("POST", "/coach/customers", {"name": "Bea"}),
        ("PATCH", path, {"name": "Cleo"}),
        ("PUT", "/coach/customers/archive", {"id": ana["_id"]}),
    ):
        refused = await full.coach.send(method, where, json=body)
        assert refused.refused(507, "nearly full")["code"] == "STORAGE_FULL", (method, where)
    assert await full.coach.names() == ["Ana"]


async def test_deletions_are_still_possible(full: Disk, coach: CoachClient) -> None:
    """Of one record, of several, and by a page: they make space."""
    ana, bea, cleo, dora = [await coach.create_customer(name) for name in ("Ana", "Bea", "Cleo", "Dora")]
    note = (await coach.post(f"/coach/customers/{ana['_id']}/notes", {"content": "Knee"})).ok(201)
    (await full.coach.delete(f"/coach/customers/{ana['_id']}/notes/{note['_id']}")).ok(204)
    (await full.coach.delete(f"/coach/customers/{bea['_id']}")).ok(204)
    (await full.coach.post("/coach/customers/bulk/delete", {"ids": [cleo["_id"]]})).ok()
    page = await full.visitor.get(f"/app/customers/{dora['_id']}/delete")
    (await full.visitor.submit(page.ok(), f"/app/customers/{dora['_id']}/delete")).ok()
    assert await full.coach.names() == ["Ana"]


async def test_whatever_only_removes_is_possible_in_all_interfaces(full: Disk, coach: CoachClient) -> None:
    """A part of a record by a page, and workouts by tools, one and several, by operations and by pages."""
    ana = await coach.create_customer()
    blocks = [await block_with(coach, ana, task(), date=f"2026-03-0{day}") for day in range(2, 7)]
    body = await metric_set(coach, "Waist", "Hips")
    removed = f"/app/settings/metric-sets/{body['_id']}/metrics/{body['metrics'][0]['_id']}/remove"
    (await full.visitor.submit((await full.visitor.get(removed)).ok(), removed)).ok()
    await text_of(full.mcp, "remove_workout", customerId=ana["_id"], workoutId=blocks[0]["_id"])
    dates = ({"startDate": blocks[day]["date"], "endDate": blocks[day]["date"]} for day in range(1, 5))
    await text_of(full.mcp, "clear_schedule", customerId=ana["_id"], **next(dates))
    (await full.coach.post(client_path(ana, "schedule", "clear"), next(dates))).ok()
    (await full.coach.post("/coach/customers/bulk/schedule-clear", {"ids": [ana["_id"]], **next(dates)})).ok()
    form, week = f"/app/customers/{ana['_id']}/schedule/clear", next(dates) | {"week": "2026-03-02"}
    preview = (await full.visitor.get(f"{form}/preview?{urlencode(week)}")).ok()
    (await full.visitor.submit(preview, form)).ok()
    assert await coach.calendar(ana, *EVER) == []


def test_whatever_is_named_a_deletion_is_declared_as_one() -> None:
    """The declaration decides what is possible; a name only says that one may be missing."""
    removes = re.compile(r"(^|_)(delete|remove|clear)(_(?!groups)|$)")
    routes = [each for each in routes_of(features.ROUTES) if each.writes and removes.search(each.handler.__name__)]
    forms = [each for each in views.list_pages() if each.method == "POST" and not each.preview_of]
    named = [each for each in forms if removes.search(each.name) or each.path.endswith(("/delete", "/remove"))]
    tools = [each for each in tools_of(features.TOOLS) if each.writes and removes.search(each.name)]
    assert [each.path for each in routes if each.stores] == []
    assert [each.path for each in named if not each.deletes] == []
    assert [each.name for each in tools if not each.deletes] == []
    assert min(len(routes), len(named)) > 25
    assert [each.name for each in tools] == ["remove_workout", "clear_schedule"]


async def test_reads_and_sign_ins_continue(full: Disk, coach: CoachClient) -> None:
    identity = await coach.ctx.db["identities"].find_one({"subjectId": coach.ctx.caller.id})
    assert identity is not None
    session = (await full.coach.post("/auth/login", {"email": identity["address"], "password": PASSWORD})).ok()
    (await full.coach.post("/auth/refresh", {"refreshToken": session["refreshToken"]})).ok()
    new = {"companyName": "New", "name": "Nina", "email": "nina@disk.test", "password": "correct horse battery"}
    (await full.coach.post("/auth/register", new)).refused(507)
    (await full.coach.get("/readyz")).ok()


async def test_tools_and_pages_say_it_in_words(full: Disk, coach: CoachClient) -> None:
    tool_error(
        await full.mcp.call("create_customer", name="Ana"), "nearly full", "nothing was changed", "Tell the coach"
    )
    page = await full.visitor.get("/app/customers/new")
    saved = await full.visitor.submit(page.ok(), "/app/customers/new", name="Ana")
    saved.ok(507).says("No space left", "Nothing was changed")
    assert await coach.names() == []


async def test_only_the_embedded_database_has_the_limit(settings: Settings, coach: CoachClient, tmp_path: Path) -> None:
    limited = settings.model_copy(update={"data_dir": tmp_path, "min_free_bytes": MORE_THAN_THERE_IS})
    async with runtime.open_services(limited) as external, AsyncExitStack() as stack:
        (await (await serve(stack, limited, external, coach)).coach.post("/coach/customers", {"name": "Ana"})).ok(201)
    async with runtime.open_services(limited, is_embedded=True) as embedded:
        assert embedded.disk_space == DiskSpace(tmp_path, MORE_THAN_THERE_IS)


FILL_AND_EMPTY = """
import sys
from pathlib import Path
from urllib.parse import urlencode
from coaching_service.core.errors import StorageFull
from coaching_service.core.temporary_files import DiskSpace

folder = Path(sys.argv[1])
space, large = DiskSpace(folder, 4_000_000), folder / "large"
space.require()
large.write_bytes(bytes(7_000_000))
try:
    space.require()
except StorageFull:
    large.unlink()
space.require()
print(large.exists())
"""


def test_it_ends_by_itself_once_there_is_space(tmp_path: Path) -> None:
    """On a disk of 10 MB of its own."""
    mount = 'mount -t tmpfs -o size=10m tmpfs "$0" && exec "$@"'
    program = [sys.executable, "-c", FILL_AND_EMPTY, str(tmp_path)]
    isolated = ["unshare", "-rm", "--propagation", "private", "bash", "-c", mount, str(tmp_path)]
    ended = subprocess.run([*isolated, *program], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout) == (0, "False\n"), ended.stderr


def test_limit_is_two_hundred_megabytes() -> None:
    assert Settings().min_free_bytes == 200_000_000
