"""Rows of sets that a caller has read, from a paper or a picture: imported like a file with these rows."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypedDict, cast

from coaching_service.core.database.context import Context
from coaching_service.core.database.recording import DocumentChange
from coaching_service.core.errors import invalid_field
from coaching_service.core.fields import Description, Label, labels_of
from coaching_service.core.ids import ObjectId
from coaching_service.core.media import CSV
from coaching_service.core.text import neutralise
from coaching_service.core.validation import CalendarDate, Integer, Number, Text
from coaching_service.integrations.history_import.answers import new_work
from coaching_service.integrations.history_import.importing import HistoryImport, HistoryRefused, Progress, Write
from coaching_service.integrations.history_import.models import HistoryResult, ImportAnswers, ImportWork, complete
from coaching_service.people import jobs
from coaching_service.people.jobs import JobError, NewJob, StoredJob
from coaching_service.training.workouts.blocks import batches


class _Performed(TypedDict):
    date: Annotated[str, CalendarDate(), Description("YYYY-MM-DD."), Label("Date")]
    exercise: Annotated[str, Text(), Description("As written."), Label("Exercise")]


class RowToImport(_Performed, total=False):
    """Sets that were done: one, or `sets` equal ones. The labels are headings that the format `sets` reads."""

    workout: Annotated[str | None, Text(), Description("Title."), Label("Workout")]
    sets: Annotated[int | None, Integer(minimum=1, maximum=50), Description("Default 1."), Label("Sets")]
    reps: Annotated[int | None, Integer(minimum=0, maximum=10_000), Description("Of a set."), Label("Reps")]
    seconds: Annotated[float | None, Number(minimum=0, maximum=1e6), Description("Seconds."), Label("Seconds")]
    meters: Annotated[float | None, Number(minimum=0, maximum=1e6), Description("Meters."), Label("Distance (m)")]
    rpe: Annotated[float | None, Number(minimum=1, maximum=10), Description("RPE."), Label("RPE")]
    setKind: Annotated[
        Literal["normal", "warmup", "drop", "failure"] | None, Description("Kind of set."), Label("Set type")
    ]
    notes: Annotated[str | None, Text(max_length=1_000), Description("Notes."), Label("Notes")]
    load: Annotated[
        float | None, Number(minimum=-10_000, maximum=10_000), Description("Negative: assistance."), Label("Weight")
    ]


_HEADINGS = labels_of(RowToImport)


@dataclass(frozen=True)
class ImportedRows:
    """What became of rows; `job_id` is None if nothing was stored. `sessions`: the new ones."""

    job_id: ObjectId | None
    result: HistoryResult
    problems: Sequence[JobError]
    sessions: Sequence[DocumentChange] = ()


async def import_rows(
    ctx: Context, rows: Sequence[RowToImport], answers: ImportAnswers, *, dry_run: bool
) -> ImportedRows:
    """Import rows of a client, in the caller's transaction, as a job that has ended and can be undone.

    Raises InvalidFields if a question is open, but for a dry run; NotFound and Forbidden about the client.
    """
    progress = _Once(ctx, _work(answers, dry_run=dry_run))
    importing = HistoryImport(progress, _as_file(rows))
    try:
        async for _ in importing.prepare():
            pass
        while await importing.run_batch():
            pass
    except HistoryRefused as error:
        raise invalid_field("rows", error.message, code=error.code) from None
    result = complete(progress.work["plan"]["result"])
    if dry_run:
        return ImportedRows(None, result, progress.problems)
    job: NewJob = {"kind": "import", "work": progress.work, "requestedBy": ctx.caller.id, "customerId": None}
    await jobs.record_ended(ctx, progress.job_id, job, result["rows"], result, progress.problems)
    sessions = await batches.list_new(ctx, progress.job_id)
    return ImportedRows(progress.job_id, result, progress.problems, sessions)


class _Once(Progress):
    """An import within one transaction: its position is not stored, and it has the identifier of its change."""

    def __init__(self, ctx: Context, work: ImportWork) -> None:
        super().__init__(ctx, cast("StoredJob", {"_id": ctx.changes.id, "work": work}))
        self.problems: list[JobError] = []

    async def save(
        self,
        work: ImportWork,
        fields: Mapping[str, Any],
        write: Write,
        *,
        done: int = 0,
        errors: Sequence[JobError] = (),
    ) -> None:
        """Write, and keep what the next step needs."""
        await write(self.ctx)
        self._job["work"] = work
        self.problems += errors


def _work(answers: ImportAnswers, *, dry_run: bool) -> ImportWork:
    known: ImportAnswers = {**answers, "format": "sets", "decimalSign": "."}
    work = new_work(known, file_name="Rows of an assistant", content_type=CSV, dry_run=dry_run)
    return {**work, "mayImportAll": False, "isOwn": False}


def _as_file(rows: Sequence[RowToImport]) -> io.BytesIO:
    """Return rows as a CSV file; the first is in line 2."""
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(_HEADINGS.values())
    writer.writerows([neutralise(row.get(name)) for name in _HEADINGS] for row in rows)
    return io.BytesIO(out.getvalue().encode())
