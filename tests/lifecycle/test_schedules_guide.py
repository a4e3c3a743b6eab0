"""The program of the task page about the schedules of many clients."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

from tests.support.client import MONDAY, CoachClient
from tests.support.training import exercise_of, log

GUIDE = Path(__file__).parents[2] / "docs" / "tasks" / "change-many-schedules.md"


async def test_program_of_the_guide_replaces_an_exercise(coach: CoachClient, tmp_path: Path) -> None:
    program = tmp_path / "swap.py"
    program.write_text(GUIDE.read_text("utf-8").partition("```python\n")[2].partition("```")[0])
    squat, press = await coach.create_exercise("Squat"), await coach.create_exercise("Press")
    base = (await coach.post("/coach/programs", {"name": "Base"})).ok(201)
    for day in (1, 2):
        block = {"name": "Legs", "day": day, "items": [exercise_of(squat)]}
        (await coach.post(f"/coach/programs/{base['_id']}/wblocks", block)).ok(201)
    ana, today = await coach.create_customer("Ana"), str(coach.ctx.caller.today())
    body = {"customerId": ana["_id"], "startDate": today}
    (await coach.post(f"/coach/programs/{base['_id']}/assign", body)).ok(201)
    blocks = await coach.calendar(ana, today, "9999-12-31")
    (await log(coach, blocks[0], blocks[0]["items"][0], isCompleted=True)).ok()
    command = (base["_id"], squat["_id"], press["_id"], MONDAY)
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, str(program), *command),
        env={**os.environ, "BASE": coach.address("/").rstrip("/"), "KEY": str(coach.key)},
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    printed, _ = await process.communicate(b"yes\n")
    assert process.returncode == 0, printed.decode()
    assert f"{ana['_id']} 1 changed, 1 left alone" in printed.decode()
    assert "1 clients changed; to undo: POST /coach/changes/" in printed.decode()
    blocks = await coach.calendar(ana, today, "9999-12-31")
    assert [block["items"][0]["exerciseId"] for block in blocks] == [squat["_id"], press["_id"]]
