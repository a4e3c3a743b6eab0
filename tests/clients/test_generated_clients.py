"""Programs written with other generators of TypeScript clients: types hold and every step works against the service.

Collected with `--clients`; needs Node (20 or newer) and the packages of package-lock.json.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from aiohttp.test_utils import TestServer

# The names that test_generated_requests imports from here.
from tests.clients.programs import HERE, document_of, python_environment, run
from tests.support.client import CoachClient

__all__ = ["HERE", "document_of", "python_environment", "run"]


async def test_the_typescript_programs_pass_the_strict_type_check(typescript: Path) -> None:
    await run("npm", "run", "--silent", "check", cwd=typescript)


@pytest.mark.parametrize("program", ["openapi-fetch", "orval"])
async def test_a_typescript_program_works(
    typescript: Path, public_server: TestServer, coach: CoachClient, program: str
) -> None:
    key, address = str(coach.key), str(public_server.make_url("")).rstrip("/")
    bundle = f"generated/programs/{program}.js"
    await run("node", bundle, cwd=typescript, environment={"COACHING_BASE_URL": address, "COACHING_API_KEY": key})
