"""The program of the task page about webhooks."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from aiohttp.test_utils import unused_port

from tests.support.client import MONDAY, CoachClient
from tests.support.service_process import until
from tests.support.training import block_with, log, task
from tests.support.webhook_deliveries import settled

GUIDE = Path(__file__).parents[3] / "docs" / "tasks" / "react-to-a-finished-workout.md"


async def test_program_of_the_guide_reacts_to_a_finished_workout(coach: CoachClient, tmp_path: Path) -> None:
    program, port = tmp_path / "receiver.py", unused_port()
    program.write_text(GUIDE.read_text("utf-8").partition("```python\n")[2].partition("```")[0])
    body = {"url": f"http://127.0.0.1:{port}/", "types": ["workout.completed"]}
    webhook = (await coach.post("/coach/webhooks", body)).ok(201)
    settings = {
        "BASE": coach.address("/").rstrip("/"),
        "KEY": str(coach.key),
        "SECRET": webhook["secret"],
        "PORT": str(port),
        "DATABASE": str(tmp_path / "receiver.db"),
    }
    output = tmp_path / "output"
    receiver = start(program, settings, output)
    try:
        ana = await coach.create_customer("Ana")
        block = await block_with(coach, ana, task("Walk"), name="Legs", date=MONDAY)
        (await log(coach, block, block["items"][0])).ok()
        expected = f"Ana has completed Legs of {MONDAY}\n"
        await until(lambda: expected in output.read_text(), "the program reacts", 60)
        [delivery] = await settled(coach, webhook, "succeeded")
        (await coach.post(f"/coach/webhooks/{webhook['_id']}/deliveries/{delivery['_id']}/redeliver")).ok()
        await until(lambda: output.read_text().count("204") == 2, "the message has arrived twice", 60)
        assert output.read_text().count(expected) == 1
    finally:
        receiver.kill()
        receiver.wait()


def start(program: Path, settings: dict[str, str], output: Path) -> subprocess.Popen[bytes]:
    """Start a Python program whose output goes to a file."""
    with output.open("w") as file:
        return subprocess.Popen([sys.executable, str(program)], env=os.environ | settings, stdout=file, stderr=file)
