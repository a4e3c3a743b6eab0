"""The client libraries, generated once for all tests of this folder."""

from __future__ import annotations

import shutil
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from aiohttp.test_utils import TestServer

from tests.clients.failing_proxy import FailingProxy, failing_proxy
from tests.clients.programs import HERE, ROOT, document_of, python_environment, run

LIBRARIES, TYPESCRIPT = ROOT / "clients", HERE / "typescript"
WARNINGS = ("warning", "unsupported", "skipping")


@pytest.fixture(scope="session")
async def libraries() -> Path:
    """The folder of the client libraries, generated from the document of this source and type-checked, with packages."""
    await run(sys.executable, "scripts/build_clients.py", "--dist", "--python", await python_environment(), cwd=ROOT)
    return LIBRARIES


@pytest.fixture(scope="session")
async def typescript(public_server: TestServer, libraries: Path) -> Path:
    """The folder of the TypeScript programs, with the other clients generated and the programs bundled."""
    generated = TYPESCRIPT / "generated"
    shutil.rmtree(generated, ignore_errors=True)
    generated.mkdir()
    (generated / "openapi.json").write_text(document_of(public_server), "utf-8")
    installed, wanted = TYPESCRIPT / "node_modules" / ".package-lock.json", TYPESCRIPT / "package-lock.json"
    if not installed.exists() or installed.stat().st_mtime < wanted.stat().st_mtime:
        await run("npm", "ci", "--no-audit", "--no-fund", cwd=TYPESCRIPT)
    printed = await run("npm", "run", "--silent", "generate", cwd=TYPESCRIPT)
    assert not any(word in printed.lower() for word in WARNINGS), printed
    await run("npm", "run", "--silent", "build", cwd=TYPESCRIPT)
    return TYPESCRIPT


@pytest.fixture
async def proxy(public_server: TestServer) -> AsyncIterator[FailingProxy]:
    """A failing proxy of the service."""
    async with failing_proxy(public_server.make_url("/")) as started:
        yield started
