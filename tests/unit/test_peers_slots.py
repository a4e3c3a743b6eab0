"""Slots of the benchmark of peers that fail, and the packages that it needs."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
from rich.console import Console

from benchmarks.peers.__main__ import run_slot
from benchmarks.peers.report import SERVICE
from benchmarks.peers.requests import Arm, Requests
from benchmarks.servers import Server

ROOT = Path(__file__).parents[2]
FAILURE = "10 requests in 1.0s\nRequests/sec: 10\n50% 1ms\n99% 2ms\nNon-2xx or 3xx responses: 10"
SUCCESS = "10 requests in 1.0s\nRequests/sec: 10.0\n50% 1.00ms\n99% 2.00ms"


@pytest.fixture
def requests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Requests:
    """Requests that are sent with a `wrk` which prints the files `1`, `2`, ... of a folder, one with each call."""
    program = tmp_path / "wrk"
    program.write_text('#!/bin/sh\ncd "$(dirname "$0")" && echo >>calls && cat "$(wc -l <calls)"\n')
    program.chmod(0o755)
    (tmp_path / "list.txt").write_text("/coach/customers\n")
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    server = Server(SERVICE, os.getpid(), "http://127.0.0.1:9")
    return Requests({SERVICE: server}, os.getpid(), tmp_path, {"list": "key"}, {"list": [str(tmp_path / "list.txt")]})


@pytest.mark.parametrize(
    ("outputs", "rate", "failures"),
    [((SUCCESS,), 10.0, 0), ((FAILURE, FAILURE, SUCCESS), 10.0, 2), ((FAILURE, FAILURE, FAILURE), None, 3)],
)
def test_slot_is_lost_after_three_failures(
    requests: Requests, outputs: tuple[str, ...], rate: float | None, failures: int
) -> None:
    for number, output in enumerate(outputs, 1):
        (requests.folder / str(number)).write_text(output)
    slot = run_slot(requests, "list", 16, Arm(SERVICE, SERVICE), 1, Console(quiet=True))
    assert (None if slot is None else slot.rate) == rate
    assert requests.failed_slots == [f"list, {SERVICE}, 16 connections"] * failures


def test_peers_need_only_the_packages_of_the_service() -> None:
    """scripts/serve makes an environment without the packages for tests, in which `tests` cannot be imported."""
    locked = re.findall(r"^([\w.-]+)(?:\[.*\])?==", (ROOT / "scripts" / "requirements.lock").read_text(), re.MULTILINE)
    known = {_normalized(name) for name in [*locked, "coaching-service"]}
    missing = [name for name, of in packages_distributions().items() if known.isdisjoint(map(_normalized, of))]
    assert {"pytest", "hypothesis"} <= {*missing}
    program = (
        "import sys; sys.modules.update(dict.fromkeys(sys.argv[1:])); "
        "from benchmarks.peers.__main__ import main; main(['--help'])"
    )
    command = [sys.executable, "-c", program, "tests", *missing]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    assert "Compare the service with bare aiohttp" in result.stdout


def _normalized(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
