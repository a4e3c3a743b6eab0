"""The disk of the embedded database is nearly full: changes are refused, reads and sign-ins continue."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from aiohttp.test_utils import TestServer

from coaching_service import runtime
from coaching_service.app import create_app
from coaching_service.core.database.context import Services
from coaching_service.core.disk_space import DiskSpace
from coaching_service.people.sessions import web_sessions
from coaching_service.settings import Settings
from tests.conftest import PASSWORD
from tests.support.client import CoachClient
from tests.support.mcp_client import McpHttpClient, tool_error
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
    visitor.keep(coach_session=(await web_sessions.start_for_coach(coach.ctx, coach.ctx.caller.id)).token)
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
from coaching_service.core.disk_space import DiskSpace
from coaching_service.core.errors import StorageFull

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
