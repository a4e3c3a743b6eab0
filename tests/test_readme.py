"""The README tells the truth: its quickstart runs as it stands, its tables name what exists."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path

import click
from aiohttp.test_utils import TestServer

from coaching_service.__main__ import main
from coaching_service.settings import Settings
from tests.client import CoachClient

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text("utf-8")


async def test_the_quickstart_runs_as_it_stands(coach: CoachClient, server: TestServer, tmp_path: Path) -> None:
    script = README.split("## Quickstart")[1].split("```sh\n")[1].split("```")[0]
    facts = tmp_path / "demo.json"
    facts.write_text(json.dumps({"baseUrl": str(server.make_url("")).rstrip("/"), "apiKey": coach.key}))

    shell = await asyncio.create_subprocess_exec(
        *("bash", "-euo", "pipefail", "-c", script),
        env={"DEMO_JSON": str(facts), "PATH": "/usr/local/bin:/usr/bin:/bin"},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await shell.communicate()

    assert shell.returncode == 0, err.decode()
    [block] = json.loads(out.decode().splitlines()[-1])
    assert block["name"] == "Legs"
    assert "Squat" in block["items"][0]["exercise"]["name"]
    assert await coach.names() == ["Ana Flores"]


def test_every_setting_is_in_the_table() -> None:
    table = README.split("## Configuration")[1].split("## ")[0]
    told = set(re.findall(r"`([A-Z][A-Z_]+)`", table.split("Behind a proxy")[0]))
    assert {name.upper() for name in Settings.__dataclass_fields__} <= told


def test_every_command_is_named() -> None:
    assert isinstance(main, click.Group)
    for name, command in main.commands.items():
        assert f"`{name}`" in README, name
        assert command.help
