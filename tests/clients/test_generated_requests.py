"""Generated requests (schemathesis) for every operation: each response is one that the document describes.

Collected with `--clients`. SCHEMATHESIS_EXAMPLES sets the number of requests for each operation and phase.
"""

from __future__ import annotations

import os
from pathlib import Path

from aiohttp.test_utils import TestServer

from tests.client import CoachClient
from tests.clients.test_generated_clients import document_of, python_environment, run

CHECKS = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance"
# Erasing the account ends the key; a file link is signed; the legacy failures of contract section 3 are 500s by design.
EXCLUDED = "deleteAccount"
LEGACY = "updatePersonalRecord,deletePersonalRecord,assignMetricsSet,unassignMetricsSet,recordMetricValue"


async def test_every_response_to_generated_requests_is_documented(
    public_server: TestServer, coach: CoachClient, tmp_path: Path
) -> None:
    (tmp_path / "openapi.json").write_text(document_of(public_server), "utf-8")
    command = [
        *("-m", "schemathesis.cli", "run", "openapi.json"),
        *("--url", str(public_server.make_url("")).rstrip("/"), "--header", f"X-API-Key: {coach.key}"),
        *("--checks", CHECKS, "--max-examples", os.environ.get("SCHEMATHESIS_EXAMPLES", "5")),
        *("--exclude-operation-id", EXCLUDED, "--no-color", "--continue-on-failure"),
    ]
    await run(await python_environment(), *command, cwd=tmp_path)
