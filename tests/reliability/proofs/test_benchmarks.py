"""The programs that guard a promise of docs/performance.md run to their end, each for some seconds.

How fast it is depends on the machine: a target that is missed here is no failure.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PROGRAMS = {
    "benchmarks": "--rounds 1 --clients 200 --connections 2 --only list --json {folder}/bench.json",
    "benchmarks.audit": "--rounds 1 --clients 200 --connections 2",
    "benchmarks.bulk": "--rounds 1 --clients 50",
    "benchmarks.fairness": "searches --rounds 1 --seconds 1",
    "benchmarks.growth": "--largest 1000 --companies 2 --rounds 1 --report {folder}/growth.json",
    "benchmarks.known_addresses": "--pairs 2",
    "benchmarks.memory": "--requests 1000 --warm-up 0 --clients 200",
    "benchmarks.midnight": "--companies 2 --clients 2 --workouts 2 --seconds 5 --rounds 1 --processes 2",
    "benchmarks.moving_in": "--sets 100 --seconds 1",
    "benchmarks.peers": "--rounds 1 --clients 200 --connections 2 --only log --json {folder}/peers.json",
    "benchmarks.search": "--texts 2000 --clients 20",
    "benchmarks.transfer": "--clients 10",
    "benchmarks.webhooks": "--events 1000 --seconds 1",
}


def test_every_program_is_listed() -> None:
    started = {
        str(file.relative_to(ROOT).with_suffix("")).replace("/", ".").removesuffix(".__main__")
        for file in (ROOT / "benchmarks").rglob("*.py")
        if "@click.command()" in file.read_text()
    }
    assert set(PROGRAMS) == started


@pytest.mark.parametrize("program", PROGRAMS)
async def test_benchmark_runs_to_its_end(program: str, tmp_path: Path) -> None:
    options = PROGRAMS[program].format(folder=tmp_path).split()
    result = await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "-m", program, *options],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert result.returncode in (0, 1), result.stderr
    assert "Traceback" not in result.stderr, result.stderr
    assert "Error: " not in result.stderr, result.stderr
    assert result.stdout
