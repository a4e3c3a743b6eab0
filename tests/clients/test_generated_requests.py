"""Generated requests (schemathesis) for every operation: each response is one that the document describes.

Collected with `--clients`. SCHEMATHESIS_EXAMPLES is the number of requests for each operation and SCHEMATHESIS_PHASES the
phases (`coverage` sends several thousand requests, and every one with `examples,coverage,fuzzing,stateful`).
"""

from __future__ import annotations

import os
from pathlib import Path

from aiohttp.test_utils import TestServer

from coaching_service.people.sessions import service as sessions
from tests.clients.test_generated_clients import HERE, document_of, python_environment, run
from tests.support.client import CoachClient

CHECKS = "only_documented_server_errors,status_code_conformance,content_type_conformance,response_schema_conformance"
# These end the session that the other requests use.
EXCLUDED = ("--exclude-operation-id", "deleteAccount", "--exclude-operation-id", "signOut")


async def test_every_response_to_generated_requests_is_documented(
    public_server: TestServer, coach: CoachClient, tmp_path: Path
) -> None:
    (tmp_path / "openapi.json").write_text(document_of(public_server), "utf-8")
    (tmp_path / "schemathesis.toml").write_text("[auth]\nauto-signup = false\n", "utf-8")
    token = (await sessions.create_session(coach.ctx, coach.ctx.caller.id, "coach"))["accessToken"]
    command = [
        *("-m", "schemathesis.cli", "run", "openapi.json"),
        *("--url", str(public_server.make_url("")).rstrip("/"), "--header", f"Authorization: Bearer {token}"),
        *("--checks", CHECKS, "--max-examples", os.environ.get("SCHEMATHESIS_EXAMPLES", "3")),
        *("--phases", os.environ.get("SCHEMATHESIS_PHASES", "examples,fuzzing")),
        *(*EXCLUDED, "--no-color", "--continue-on-failure"),
    ]
    hooks = {"SCHEMATHESIS_HOOKS": "documented_failures", "PYTHONPATH": str(HERE / "python")}
    await run(await python_environment(), *command, cwd=tmp_path, **hooks)
