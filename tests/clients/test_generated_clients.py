"""Programs written with generated clients: types hold and every step works against the running service.

Collected with `--clients`; needs Node (20 or newer) and the packages of requirements.txt and package-lock.json.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import sys
from pathlib import Path

import pytest
from aiohttp.test_utils import TestServer

from coaching_service import features
from coaching_service.core.http.openapi import describe
from coaching_service.core.http.routes import routes_of
from tests.support.client import CoachClient
from tests.support.declared_world import small_picture

HERE = Path(__file__).parent
TYPESCRIPT = HERE / "typescript"
WARNINGS = ("warning", "unsupported", "skipping")


async def python_environment() -> str:
    """The interpreter of an environment of its own with the packages of requirements.txt."""
    interpreter = HERE / "python" / ".venv" / "bin" / "python"
    if not interpreter.exists():
        await run(sys.executable, "-m", "venv", str(interpreter.parents[1]), cwd=HERE)
        await run(str(interpreter), "-m", "pip", "install", "-q", "-r", "python/requirements.txt", cwd=HERE)
    return str(interpreter)


async def run(*command: str, cwd: Path, stdin: bytes = b"", **environment: str) -> str:
    """Run a program to its end and return what it printed. Fails if it failed."""
    process = await asyncio.create_subprocess_exec(
        *command,
        cwd=cwd,
        env=os.environ | environment,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    printed, _ = await process.communicate(stdin)
    text = printed.decode("utf-8", "replace")
    assert process.returncode == 0, text
    return text


def document_of(public_server: TestServer) -> str:
    """The OpenAPI document of the running service."""
    return json.dumps(describe(routes_of(features.ROUTES), features.TAGS, str(public_server.make_url("")).rstrip("/")))


@pytest.fixture(scope="module")
async def typescript(public_server: TestServer) -> Path:
    """The folder of the TypeScript programs, with the clients generated and the programs bundled."""
    generated = TYPESCRIPT / "generated"
    shutil.rmtree(generated, ignore_errors=True)
    generated.mkdir()
    (generated / "openapi.json").write_text(document_of(public_server), "utf-8")
    if not (TYPESCRIPT / "node_modules").exists():
        await run("npm", "ci", "--no-audit", "--no-fund", cwd=TYPESCRIPT)
    printed = await run("npm", "run", "--silent", "generate", cwd=TYPESCRIPT)
    assert not any(word in printed.lower() for word in WARNINGS), printed
    await run("npm", "run", "--silent", "build", cwd=TYPESCRIPT)
    return TYPESCRIPT


async def test_the_typescript_programs_pass_the_strict_type_check(typescript: Path) -> None:
    await run("npm", "run", "--silent", "check", cwd=typescript)


@pytest.mark.parametrize("program", ["openapi-fetch", "hey-api", "orval"])
async def test_a_typescript_program_works(
    typescript: Path, public_server: TestServer, coach: CoachClient, program: str
) -> None:
    key, address = str(coach.key), str(public_server.make_url("")).rstrip("/")
    bundle = f"generated/programs/{program}.js"
    await run("node", bundle, cwd=typescript, COACHING_BASE_URL=address, COACHING_API_KEY=key)


async def test_the_python_program_is_strictly_typed_and_works(
    public_server: TestServer, coach: CoachClient, tmp_path: Path
) -> None:
    (tmp_path / "openapi.json").write_text(document_of(public_server), "utf-8")
    python = await python_environment()
    command = ["-m", "openapi_python_client", "generate", "--path", "openapi.json", "--output-path", "client"]
    printed = await run(python, *command, "--config", str(HERE / "python" / "config.yaml"), cwd=tmp_path)
    assert not any(word in printed.lower() for word in WARNINGS), printed
    program = shutil.copy(HERE / "python" / "program.py", tmp_path / "client")
    folder = tmp_path / "client"
    await run(python, "-m", "mypy", "--strict", str(program), cwd=folder)
    address = str(public_server.make_url("")).rstrip("/")
    await run(python, str(program), address, str(coach.key), cwd=folder, stdin=small_picture())
