"""Backups one after another while faults happen; the last one is restored and checked."""

from __future__ import annotations

import asyncio
import json
import shutil
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

from coaching_service.settings import Settings
from tests.support.drill import database_of
from tests.support.service_process import environment

PAUSE_SECONDS = 2.0
RESTORED = "torture_restored"
# They report work that waits, and no service runs on the restored database.
CHECKS_OF_A_RUNNING_SERVICE = ("change-log", "jobs-late")


@dataclass
class Backups:
    """Backups of the database of `settings` in a folder, of which the newest complete one stays.

    A backup that meets a fault may fail, with a sentence and no folder; `problems` are all other failures.
    """

    settings: Settings
    folder: Path
    seconds: list[float] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    _newest: Path | None = None

    async def run(self, is_over: asyncio.Event) -> None:
        """Make backups until the event."""
        number = 0
        while not is_over.is_set():
            number += 1
            await self._make(self.folder / f"backup{number}")
            await asyncio.sleep(PAUSE_SECONDS)

    async def _make(self, target: Path) -> None:
        began = time.monotonic()
        status, said = await self._command("backup", str(target))
        await asyncio.to_thread(self._record, target, status, said, time.monotonic() - began)

    def _record(self, target: Path, status: int, said: str, seconds: float) -> None:
        if status == 0 and target.is_dir():
            self.seconds.append(seconds)
            if self._newest is not None:
                shutil.rmtree(self._newest)
            self._newest = target
            return
        self.failures.append(said)
        if target.exists():
            self.problems.append(f"backup: failed and left {target.name}: {said}")
        if status not in (0, 1) or "Traceback" in said or not said:
            self.problems.append(f"backup: ended with {status}: {said or 'nothing was said'}")

    def counts(self) -> list[tuple[str, int]]:
        """What was made, for the report."""
        return [("Backups, complete", len(self.seconds)), ("Backups that a fault ended", len(self.failures))]

    async def verify(self) -> None:
        """Restore the newest backup into another database, and check what is there."""
        if self._newest is None:
            self.problems.append(f"backup: none of {len(self.failures)} was complete")
            return
        status, said = await self._command("restore", str(self._newest), database=RESTORED)
        if status != 0:
            self.problems.append(f"restore of the last backup: ended with {status}: {said}")
            return
        _, said = await self._command("doctor", "--json", database=RESTORED)
        for each in json.loads(said):
            if each["status"] in ("problem", "error") and each["check"] not in CHECKS_OF_A_RUNNING_SERVICE:
                self.problems.append(f"doctor of the last backup: {each['title']}: {each['findings'] or each['error']}")

    async def _command(self, *arguments: str, database: str | None = None) -> tuple[int, str]:
        """Run a command of the service; return its exit code and its output."""
        variables = environment(**database_of(self.settings) | ({"MONGODB_DATABASE": database} if database else {}))
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "coaching_service", *arguments),
            env=variables,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        try:
            output, _ = await process.communicate()
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        text = output.decode(errors="replace").strip()
        return process.returncode or 0, text
