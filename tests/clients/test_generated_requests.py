"""Generated requests (schemathesis) for every operation: each response is one that the document describes.

Collected with `--clients`. Two of three requests refer to stored documents; those for `/customer` have the session of
a client of another company, all others a coach's. SCHEMATHESIS_EXAMPLES is the number of requests for each operation and SCHEMATHESIS_PHASES the phases
(`coverage` sends several thousand requests, and every one with `examples,coverage,fuzzing,stateful`).
The seed is fixed, so that the same code always gets the same requests; SCHEMATHESIS_SEED is another one.
SCHEMATHESIS_OPTIONS are more options of its command line, such as `--include-path-regex` for a part of the operations.
"""

from __future__ import annotations

import json
import logging
import os
import shlex
from pathlib import Path

import pytest
import structlog
from aiohttp.test_utils import TestServer

from coaching_service.core.ids import ObjectId
from coaching_service.people.sessions import service as sessions
from tests.clients.programs import HERE, document_of, python_environment, run
from tests.support.client import CoachClient
from tests.support.declared_world import make_world
from tests.support.sampled import MORE

CHECKS = (
    "only_documented_server_errors,credentials_stay_valid,status_code_conformance,content_type_conformance,"
    "response_schema_conformance"
)
LONGEST_WAIT_SECONDS = "40"  # GET /coach/events waits for up to 25
# Operations that may archive or delete all clients: in a run of their own.
MANY_CLIENTS = "/bulk/|archive$"
# These end the session that the other requests use.
EXCLUDED = ("--exclude-operation-id", "deleteAccount", "--exclude-operation-id", "signOut")
CONFIGURATION = """
[auth]
auto-signup = false

[[operations]]
include-path-regex = "^/customer/"
headers = {{ Authorization = "Bearer {token}" }}
"""


@pytest.mark.parametrize("part", ["--exclude-path-regex", "--include-path-regex"])
async def test_every_response_to_generated_requests_is_documented(
    public_server: TestServer, coach: CoachClient, other_company: CoachClient, tmp_path: Path, part: str
) -> None:
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    world, own = await make_world(coach), await make_world(other_company)
    coach_id, customer_id = coach.ctx.caller.id, ObjectId(own["customerId"])
    token = (await sessions.create_session(coach.ctx, coach_id, "coach"))["accessToken"]
    client_token = (await sessions.create_session(other_company.ctx, customer_id, "customer"))["accessToken"]
    (tmp_path / "openapi.json").write_text(document_of(public_server), "utf-8")
    (tmp_path / "schemathesis.toml").write_text(CONFIGURATION.format(token=client_token), "utf-8")
    command = [
        *("-m", "schemathesis.cli", "run", "openapi.json"),
        *("--url", str(public_server.make_url("")).rstrip("/"), "--header", f"Authorization: Bearer {token}"),
        *("--checks", CHECKS, "--max-examples", os.environ.get("SCHEMATHESIS_EXAMPLES", "2" if MORE == 1 else "10")),
        *("--phases", os.environ.get("SCHEMATHESIS_PHASES", "examples,fuzzing")),
        *("--seed", os.environ.get("SCHEMATHESIS_SEED", "1"), "--request-timeout", LONGEST_WAIT_SECONDS),
        *(part, MANY_CLIENTS, *EXCLUDED, "--no-color", "--continue-on-failure"),
        *shlex.split(os.environ.get("SCHEMATHESIS_OPTIONS", "")),
    ]
    environment = {
        "SCHEMATHESIS_HOOKS": "schemathesis_hooks",
        "PYTHONPATH": str(HERE / "python"),
        "COACHING_IDENTIFIERS": json.dumps({"coach": world, "customer": own}),
        "COACHING_SESSIONS": f"{token} {client_token}",
    }
    print(await run(await python_environment(), *command, cwd=tmp_path, environment=environment))
