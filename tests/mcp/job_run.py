"""Let a model of yours do the jobs of tests/mcp/jobs over MCP, and check afterwards what became of each.

`python -m tests.mcp.job_run FOLDER [NAME...]` serves a company for each job, or for those named, on a free port of
loopback, and writes what a model may see of them, which is not the answers, to FOLDER: jobs.json (`name`, `request`,
`url` and `headers` for its MCP client) and call.py, with which a model that has a shell calls the tools. It prints the
requests, and waits. Meanwhile what a model proposes is approved, or rejected where the job says so, as a coach would do
it in the browser.

Give the model FOLDER and nothing of this repository: `python3 FOLDER/call.py NAME` says what to do, and counts. Another
client writes the last words of the model to FOLDER/NAME.txt, and what it used to FOLDER/NAME.json: `{"calls": 3,
"tokens": 2100}`. When all models have answered, create FOLDER/done: the answer, the state and the budget of each job are
checked, and written to FOLDER/results.json, which a model must not see before. The exit status is 1 unless all jobs were
done.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import orjson

from tests.support.client import CoachClient
from tests.support.coaching_jobs import Job, Run, job_names, load_job

FOLDER, NAMES = "COACHING_JOBS_FOLDER", "COACHING_JOBS_NAMES"
HOURS = 12.0


class OfferedJob:
    """A job that a model does by itself, in a company of its own."""

    def __init__(self, name: str, coach: CoachClient) -> None:
        self.name = name
        self.job: Job = load_job(name)
        self.run = Run(coach)
        self.key = ""

    async def prepare(self) -> None:
        """Make the state before, and the key of the model."""
        await self.run.prepare(self.job)
        self.key = await self.run.make_key(self.job)

    def offer(self, url: str) -> dict[str, Any]:
        """What a model, and the program that runs it, may see."""
        headers = {"X-API-Key": self.key}
        return {"name": self.name, "request": self.run.fill(self.job["request"]), "url": url, "headers": headers}

    async def decide(self) -> None:
        """Approve what the model has proposed, or reject it if the job says so."""
        session = await self.run.coach.interactive()
        decision = "reject" if any("reject" in call for call in self.job["calls"]) else "approve"
        for proposal in (await session.get("/coach/proposals", status="pending", limit=100)).ok()["docs"]:
            await session.post(f"/coach/proposals/{proposal['_id']}/{decision}")

    async def check(self, folder: Path) -> str:
        """Return what is wrong with the answer, the state or the budget; empty for a job that was done."""
        answer, used = folder / f"{self.name}.txt", folder / f"{self.name}.json"
        try:
            self.run.check_answer(self.job, answer.read_text() if answer.exists() else "")
            await self.run.check_state(self.job)
        except AssertionError as error:
            return str(error).splitlines()[0]
        except (KeyError, IndexError) as error:
            return f"could not be checked: {error!r}"
        spent: Mapping[str, int] = orjson.loads(used.read_bytes()) if used.exists() else {}
        over = [name for name, limit in self.job["budget"].items() if spent.get(name, 0) > limit]
        return f"more {' and '.join(over)} than the budget" if over else ""


def offered_names() -> list[str]:
    """The names of the jobs to offer."""
    return os.environ.get(NAMES, "").split() or job_names()


def main() -> int:
    """Run the test that serves the jobs. The first argument is the folder, others name jobs."""
    folder, *names = sys.argv[1:] or ["jobs"]
    unknown = set(names) - set(job_names())
    if unknown:
        print(f"Unknown jobs: {', '.join(sorted(unknown))}")
        return 2
    Path(folder).mkdir(parents=True, exist_ok=True)
    earlier = ["done", "results.json", *(f"{name}{end}" for name in job_names() for end in (".json", ".txt"))]
    for each in earlier:
        (Path(folder) / each).unlink(missing_ok=True)
    environment = {**os.environ, FOLDER: str(Path(folder).absolute()), NAMES: " ".join(names)}
    command = [sys.executable, "-m", "pytest", "-q", "-s", "tests/mcp/test_jobs.py", "-k", "offered"]
    return subprocess.run(command, env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
