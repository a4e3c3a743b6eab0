"""Runs the programs that use generated clients."""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import sys
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path

from aiohttp.test_utils import TestServer

from coaching_service import features
from coaching_service.core.http.routes import routes_of
from coaching_service.documentation.openapi import describe

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
REQUIREMENTS = (HERE / "python" / "requirements.txt", ROOT / "clients" / "python" / "requirements.txt")


async def python_environment() -> str:
    """The interpreter of an environment of its own with the packages of requirements.txt."""
    folder = HERE / "python" / ".venv"
    interpreter, stamp = folder / "bin" / "python", folder / "installed"
    wanted = sha256(b"".join(path.read_bytes() for path in REQUIREMENTS)).hexdigest()
    with (HERE / "python" / ".venv.lock").open("w") as lock:
        await asyncio.to_thread(fcntl.flock, lock, fcntl.LOCK_EX)  # `scripts/test --clients` has two processes
        if not stamp.exists() or stamp.read_text() != wanted:
            await run(sys.executable, "-m", "venv", str(folder), cwd=HERE)
            await run(str(interpreter), "-m", "pip", "install", "-q", "-r", "python/requirements.txt", cwd=HERE)
            stamp.write_text(wanted)
    return str(interpreter)


async def run(*command: str, cwd: Path, stdin: bytes = b"", environment: Mapping[str, str] | None = None) -> str:
    """Run a program to its end and return what it printed. Fails if it failed."""
    process = await asyncio.create_subprocess_exec(
        *command,
        cwd=cwd,
        env={**os.environ, **(environment or {})},
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
    address = str(public_server.make_url("")).rstrip("/")
    return json.dumps(describe(routes_of(features.ROUTES), features.TAGS, address, features.WEBHOOKS()))
