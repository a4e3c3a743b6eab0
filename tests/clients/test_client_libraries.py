"""The client libraries of clients/: what they promise, against the running service and a proxy that fails.

Collected with `--clients`; needs Node (20 or newer).
"""

from __future__ import annotations

import asyncio
import re
import tarfile
import zipfile
from pathlib import Path

import pytest
from aiohttp.test_utils import TestServer

from scripts.release import read_versions
from tests.clients.failing_proxy import FailingProxy
from tests.clients.programs import HERE, ROOT, python_environment, run
from tests.support.client import CoachClient
from tests.support.declared_world import small_picture

CLIENTS = 250


@pytest.fixture
async def many_clients(coach: CoachClient) -> CoachClient:
    """A company with 250 clients."""
    for start in range(0, CLIENTS, 10):
        names = [f"Client {number}" for number in range(start, start + 10)]
        await asyncio.gather(*(coach.create_customer(name, sendInvitation=False) for name in names))
    return coach


def check_attempts(proxy: FailingProxy) -> None:
    """Assert that the program has repeated exactly what is safe, after the waits that were asked for."""
    first, second, third = proxy.received("POST /busy/coach/customers")[:3]
    assert first.key == second.key == third.key is not None
    assert second.at - first.at >= 1
    assert third.at - second.at >= 1
    cut = proxy.received("POST /cut/coach/customers")
    assert [attempt.key for attempt in cut] == [cut[0].key] * 2
    [unsafe] = proxy.received("/invitation")
    assert unsafe.key is None
    changes = proxy.received("PATCH")
    assert len(changes) == 3


async def test_the_python_library(
    libraries: Path, public_server: TestServer, proxy: FailingProxy, many_clients: CoachClient
) -> None:
    python, folder = await python_environment(), libraries / "python"
    program = HERE / "python" / "program.py"
    await run(python, "-m", "mypy", "coaching_service_client", "examples", "tests", str(program), cwd=folder)
    await run(python, "-m", "unittest", "discover", "tests", cwd=folder)
    arguments = (str(public_server.make_url("")).rstrip("/"), proxy.address, str(many_clients.key))
    await run(
        python, str(program), *arguments, cwd=folder, stdin=small_picture(), environment={"PYTHONPATH": str(folder)}
    )
    check_attempts(proxy)


async def test_the_typescript_library(
    typescript: Path, libraries: Path, public_server: TestServer, proxy: FailingProxy, many_clients: CoachClient
) -> None:
    await run("npm", "test", "--silent", cwd=libraries / "typescript")
    settings = {
        "COACHING_BASE_URL": str(public_server.make_url("")).rstrip("/"),
        "COACHING_FAILING_URL": proxy.address,
        "COACHING_API_KEY": str(many_clients.key),
    }
    await run("node", "generated/programs/library.js", cwd=typescript, environment=settings)
    check_attempts(proxy)


async def test_the_packages_are_ready_to_publish(libraries: Path) -> None:
    """They have the version of the last release, the generated modules and the marker of types, and nothing from npm."""
    packages = ROOT / "dist" / "clients"
    (version,) = read_versions()["clients/python/pyproject.toml"]
    python, typescript_package = f"coaching_service_client-{version}", f"coaching-service-client-{version}.tgz"
    with zipfile.ZipFile(packages / f"{python}-py3-none-any.whl") as wheel:
        names = {name.removeprefix("coaching_service_client/") for name in wheel.namelist()}
    with tarfile.open(packages / f"{python}.tar.gz") as source:
        sources = {name.removeprefix(f"{python}/") for name in source.getnames()}
    with tarfile.open(packages / typescript_package) as package:
        scripts = {name.removeprefix("package/") for name in package.getnames()}
    generated = {"api/customers/list_customers.py", "models/customer.py", "client.py", "operations.py", "py.typed"}
    assert {*generated, "connection.py"} <= names
    assert [name for name in names if re.search(r"\d\.py$", name)] == [], "classes have names, not numbers"
    assert {f"coaching_service_client/{name}" for name in generated} | {"LICENSE", "README.md"} <= sources
    assert {"dist/index.js", "dist/index.d.ts", "README.md", "LICENSE", "package.json"} <= scripts
    assert not [name for name in names | sources | scripts if "node_modules" in name or "__pycache__" in name]
    printed = await run("scripts/publish", "--dry-run", "python-library", "typescript-library", "image", cwd=ROOT)
    assert re.findall(r"^checked +(\S+)", printed, re.MULTILINE) == ["python-library", "typescript-library", "image"]
