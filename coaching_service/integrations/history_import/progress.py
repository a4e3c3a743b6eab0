"""How an import of training history stores what it has done."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Protocol

from coaching_service.core.database.context import Context
from coaching_service.core.ids import ObjectId
from coaching_service.integrations.background_jobs.models import ImportWork, JobError

Write = Callable[[Context], Awaitable[None]]


class HistoryRefused(Exception):
    """A file cannot be imported as it was requested; nothing more of it is stored."""

    def __init__(self, message: str, code: str) -> None:
        super().__init__(message)
        self.message, self.code = message, code


class Progress(Protocol):
    """The job of an import, as it was after the last commit."""

    ctx: Context

    @property
    def work(self) -> ImportWork:
        """What the next step needs."""

    @property
    def job_id(self) -> ObjectId:
        """The identifier of the job."""

    async def save(
        self,
        work: ImportWork,
        fields: Mapping[str, Any],
        write: Write,
        *,
        done: int = 0,
        errors: Sequence[JobError] = (),
    ) -> None:
        """Store `fields` of the job, after which its next step needs `work`, with what `write` stores."""
