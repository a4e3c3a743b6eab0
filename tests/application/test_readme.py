"""The commands in the README and in the API guide run as printed."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path
from typing import Any

import pytest
from aiohttp.test_utils import TestServer

from tests.support.client import CoachClient

ROOT = Path(__file__).parents[2]


def shell_block(file: str, heading: str) -> str:
    """The first shell block below a heading of a Markdown file."""
    section = (ROOT / file).read_text("utf-8").split(f"\n{heading}\n")[1]
    block = re.search(r"```sh\n(.*?)```", section, re.DOTALL)
    assert block is not None, f"{file}: no shell block below {heading}"
    return block[1]


def json_documents(text: str) -> list[Any]:
    """The JSON values in `text`, which follow each other without a separator or after a line break."""
    decoder = json.JSONDecoder()
    documents = []
    rest = text.strip()
    while rest:
        document, end = decoder.raw_decode(rest)
        documents.append(document)
        rest = rest[end:].strip()
    return documents


async def run_shell(script: str, **variables: str) -> str:
    """Run a script with `bash -eu` and return its output; fail the test if it fails."""
    process = await asyncio.create_subprocess_exec(
        *("bash", "-euo", "pipefail", "-c", script),
        env={"PATH": "/usr/local/bin:/usr/bin:/bin", **variables},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    output, errors = await process.communicate()
    assert process.returncode == 0, errors.decode()
    return output.decode()


@pytest.fixture
def base_url(server: TestServer) -> str:
    """The address of the service under test."""
    return str(server.make_url("")).rstrip("/")


async def test_quickstart_runs_as_printed(coach: CoachClient, base_url: str) -> None:
    output = await run_shell(shell_block("README.md", "## Quickstart"), BASE=base_url, KEY=str(coach.key))

    customers, created, exercises, program = json_documents(output)
    assert customers["docs"] == []
    assert created["name"] == "Nora Vega"
    assert await coach.names() == ["Nora Vega"]
    assert "Squat" in exercises["docs"][0]["name"]
    assert program["name"] == "Beginner strength"


def test_quickstart_is_four_literal_requests() -> None:
    block = shell_block("README.md", "## Quickstart")
    assert block.count("curl ") == 4
    assert "()" not in block


async def test_workout_example_of_the_api_guide_runs_as_printed(coach: CoachClient, base_url: str) -> None:
    script = shell_block("docs/integrations.md", "## Schedule a workout")
    output = await run_shell(script, BASE=base_url, KEY=str(coach.key))

    [block] = json_documents(output)[-1]
    assert block["name"] == "Legs"
    assert "Squat" in block["items"][0]["exercise"]["name"]
