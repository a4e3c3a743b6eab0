"""The programs of the task pages about webhooks."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from aiohttp.test_utils import unused_port

from tests.support.client import MONDAY, CoachClient
from tests.support.figures import renew_figures
from tests.support.service_process import until
from tests.support.training import Json, block_with, client_path, log, task
from tests.support.webhook_deliveries import settled

GUIDES = Path(__file__).parents[3] / "docs" / "tasks"


@asynccontextmanager
async def running_program(
    name: str, coach: CoachClient, folder: Path, types: list[str]
) -> AsyncIterator[tuple[Json, Path]]:
    """Run the program of a page; yields its webhook, and the file with its output."""
    program, port, output = folder / "receiver.py", unused_port(), folder / "output"
    program.write_text((GUIDES / f"{name}.md").read_text("utf-8").partition("```python\n")[2].partition("```")[0])
    body = {"url": f"http://127.0.0.1:{port}/", "types": types}
    webhook = (await coach.post("/coach/webhooks", body)).ok(201)
    settings = {
        "BASE": coach.address("/").rstrip("/"),
        "KEY": str(coach.key),
        "SECRET": webhook["secret"],
        "PORT": str(port),
        "DATABASE": str(folder / "receiver.db"),
    }
    receiver = start(program, settings, output)
    try:
        yield webhook, output
    finally:
        receiver.kill()
        receiver.wait()


async def test_program_of_the_guide_reacts_to_a_finished_workout(coach: CoachClient, tmp_path: Path) -> None:
    name = "react-to-a-finished-workout"
    async with running_program(name, coach, tmp_path, ["workout.completed"]) as (webhook, output):
        ana = await coach.create_customer("Ana")
        block = await block_with(coach, ana, task("Walk"), name="Legs", date=MONDAY)
        (await log(coach, block, block["items"][0])).ok()
        expected = f"Ana has completed Legs of {MONDAY}\n"
        await until(lambda: expected in output.read_text(), "the program reacts", 60)
        [delivery] = await settled(coach, webhook, "succeeded")
        (await coach.post(f"/coach/webhooks/{webhook['_id']}/deliveries/{delivery['_id']}/redeliver")).ok()
        await until(lambda: output.read_text().count("204") == 2, "the message has arrived twice", 60)
        assert output.read_text().count(expected) == 1


async def test_program_of_the_guide_reacts_to_a_client_who_needs_a_coach(coach: CoachClient, tmp_path: Path) -> None:
    name, types = "react-to-a-client-who-needs-you", ["attention.raised", "attention.cleared", "customer.deleted"]
    async with running_program(name, coach, tmp_path, types) as (_, output):
        ana = await coach.create_customer("Ana")
        note = (await coach.post(client_path(ana, "notes"), {"content": "Knee", "isHealth": True})).ok(201)
        await renew_figures(coach.ctx)
        needs = f"Ana needs you: health_note, 1 since {note['createdAt']}\n"
        await until(lambda: needs in output.read_text(), "the program reacts", 60)
        (await coach.put("/coach/customers/archive", {"id": ana["_id"]})).ok()
        done = "Ana is done: health_note\n"
        await until(lambda: done in output.read_text(), "the program has done with it", 60)
        assert (output.read_text().count(needs), output.read_text().count(done)) == (1, 1)
        (await coach.delete(client_path(ana))).ok(204)
        await until(lambda: f"{ana['_id']} is deleted\n" in output.read_text(), "the program forgets the client", 60)


def start(program: Path, settings: dict[str, str], output: Path) -> subprocess.Popen[bytes]:
    """Start a Python program whose output goes to a file."""
    with output.open("w") as file:
        return subprocess.Popen([sys.executable, str(program)], env=os.environ | settings, stdout=file, stderr=file)
