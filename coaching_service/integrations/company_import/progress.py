"""The progress of an import: stored in the transaction that stores the records, so that nothing is imported twice."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from coaching_service.core.database.context import Context
from coaching_service.core.database.transactions import in_transaction
from coaching_service.core.ids import ObjectId
from coaching_service.integrations.background_jobs import service as background_jobs
from coaching_service.integrations.background_jobs.models import (
    ImportResult,
    ImportWork,
    JobError,
    JobStatus,
    StoredCompanyJob,
)


@dataclass(frozen=True)
class Outcome:
    """What became of some records: how many were stored (or would be), by collection; the problems; how many failed."""

    imported: Mapping[str, int] = field(default_factory=dict)
    errors: Sequence[JobError] = ()
    failed: int = 0


Write = Callable[[Context], Awaitable[None]]


class Progress:
    """The job of an import, as it was after the last commit."""

    def __init__(self, ctx: Context, job: StoredCompanyJob) -> None:
        self.ctx, self._job = ctx, job

    @property
    def work(self) -> ImportWork:
        """What the next step needs."""
        return self._job["work"]

    @property
    def job_id(self) -> ObjectId:
        """The identifier of the job."""
        return self._job["_id"]

    @property
    def position(self) -> tuple[int, int]:
        """The entry and the record to continue with."""
        return self.work["entry"], self.work["record"]

    async def start(self, total: int, write: Write, errors: Sequence[JobError]) -> None:
        """Store that the file has been checked and has `total` records, with what `write` stores."""
        work: ImportWork = {**self.work, "isStarted": True}
        await self._commit({"status": "running", "total": total, "work": work}, write, 0, errors)

    async def advance(self, position: tuple[int, int], done: int, outcome: Outcome, write: Write | None = None) -> None:
        """Store that the import is at `position` after `done` more records, with what `write` stores."""
        imported = dict(self.work["imported"])
        for name, count in outcome.imported.items():
            if count:
                imported[name] = imported.get(name, 0) + count
        work: ImportWork = {
            **self.work,
            "entry": position[0],
            "record": position[1],
            "imported": imported,
            "failed": self.work["failed"] + outcome.failed,
        }
        await self._commit({"work": work}, write, done, outcome.errors)

    async def finish(self, write: Write) -> None:
        """Store the result, with what `write` stores, which deletes the file."""
        await self._end("done", write, ())

    async def fail(self, error: JobError, write: Write) -> None:
        """Store that the import has ended with an error, like finish; what was imported before it stays."""
        await self._end("failed", write, [error])

    async def _end(self, status: JobStatus, write: Write, errors: Sequence[JobError]) -> None:
        work: ImportWork = {**self.work, "fileId": None}
        result: ImportResult = {"dryRun": work["isDryRun"], "imported": work["imported"], "failed": work["failed"]}
        await self._commit({"status": status, "result": result, "work": work}, write, 0, errors)

    async def _commit(self, fields: dict[str, Any], write: Write | None, done: int, errors: Sequence[JobError]) -> None:
        async def work(tx: Context) -> None:
            await background_jobs.update(tx, self._job, fields, done=done, errors=errors)
            if write is not None:
                await write(tx)
            tx.changes.prevent_undo()

        await in_transaction(self.ctx, work)
        if "work" in fields:
            self._job["work"] = fields["work"]
