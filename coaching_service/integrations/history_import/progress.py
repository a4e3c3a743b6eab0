"""The progress of an import: stored in the transaction that stores the records, so that nothing is imported twice."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from coaching_service.core.database.context import Context
from coaching_service.core.database.transactions import in_transaction
from coaching_service.core.ids import ObjectId
from coaching_service.integrations.background_jobs import service as background_jobs
from coaching_service.integrations.background_jobs.models import ImportWork, JobError, JobStatus, JobWork

Write = Callable[[Context], Awaitable[None]]


class HistoryRefused(Exception):
    """A file cannot be imported as it was requested; nothing more of it is stored."""

    def __init__(self, message: str, code: str) -> None:
        super().__init__(message)
        self.message, self.code = message, code


@dataclass(frozen=True)
class Outcome:
    """What became of some records: how many were stored (or would be), by collection; the problems; how many failed."""

    imported: Mapping[str, int] = field(default_factory=dict)
    errors: Sequence[JobError] = ()
    failed: int = 0


class Progress:
    """The job of an import, as it was after the last commit."""

    def __init__(self, ctx: Context, job: JobWork) -> None:
        self.ctx, self._job = ctx, job

    @property
    def work(self) -> ImportWork:
        """What the next step needs."""
        return cast("ImportWork", self._job["work"])

    @property
    def job_id(self) -> ObjectId:
        """The identifier of the job."""
        return self._job["_id"]

    @property
    def position(self) -> tuple[int, int]:
        """The entry and the record to continue with."""
        return self.work["entry"], self.work["record"]

    def renew(self, ctx: Context, job: JobWork) -> bool:
        """Continue in another step; returns False if the job is not where this process has left it."""
        work = cast("ImportWork", job["work"])
        if (work["entry"], work["record"], work["isStarted"]) != (*self.position, self.work["isStarted"]):
            return False
        self.ctx, self._job = ctx, job
        return True

    async def show(self, done: int, total: int) -> None:
        """Store how many rows of the file have been read, of about `total`. Raises Superseded if the job has ended."""
        fields = {"status": "running", "done": done, "total": max(done, total)}
        await background_jobs.update(self.ctx, self._job, fields)

    async def start(self, total: int, write: Write, errors: Sequence[JobError]) -> None:
        """Store that the file has been checked and has `total` records, with what `write` stores."""
        work: ImportWork = {**self.work, "isStarted": True}
        fields = {"status": "running", "total": total, "work": work}

        async def store(tx: Context) -> None:
            await background_jobs.update(tx, self._job, fields, errors=errors)
            await write(tx)

        await self._commit(store, work)

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

        async def store(tx: Context) -> None:
            await background_jobs.update(tx, self._job, {"work": work}, done=done, errors=outcome.errors)
            if write is not None:
                await write(tx)

        await self._commit(store, work)

    async def save(
        self,
        work: ImportWork,
        fields: Mapping[str, Any],
        write: Write,
        *,
        done: int = 0,
        errors: Sequence[JobError] = (),
    ) -> None:
        """Store `fields` of the job, after which its next step needs `work`, with what `write` stores.

        `write` comes first: `work`, if it is one of the fields, may be completed by it.
        """

        async def store(tx: Context) -> None:
            await write(tx)
            await background_jobs.update(tx, self._job, fields, done=done, errors=errors)

        await self._commit(store, work)

    async def end(self, status: JobStatus, errors: Sequence[JobError] = ()) -> None:
        """Store the result, and delete the file; what was imported before an error stays."""
        await self._commit(lambda tx: background_jobs.end(tx, self._job, status, errors), self.work)

    async def _commit(self, store: Write, work: ImportWork) -> None:
        """Run `store` in a transaction; afterwards the next step needs `work`."""

        async def run(tx: Context) -> None:
            await store(tx)
            tx.changes.prevent_undo()

        await in_transaction(self.ctx, run)
        self._job["work"] = work
