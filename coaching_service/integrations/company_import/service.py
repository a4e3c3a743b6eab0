"""Imports: an export, or a table of clients, sets or measurements, becomes records of the caller's company.

Each batch of records is stored in one transaction with the position of the import, so that an import that was
interrupted continues with the first record that is not stored. Nothing is sent: no mail, no invitation.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import IO, Any, TypeAlias, cast

from coaching_service.core import audit, errors
from coaching_service.core.auth import EXERCISES, check_access, coach, customer
from coaching_service.core.changes import history
from coaching_service.core.database import files
from coaching_service.core.database.checks import check_of
from coaching_service.core.database.connection import as_service_error
from coaching_service.core.database.context import Context, Services, in_transaction, transactional
from coaching_service.core.http.routes import MultipartBody, Routes
from coaching_service.core.ids import ObjectId
from coaching_service.core.jobs import queue, worker
from coaching_service.core.media import CSV, XLSX, ZIP
from coaching_service.core.temporary_files import open_temporary, write_all
from coaching_service.integrations import background_jobs
from coaching_service.integrations.company_import._archive_import import ArchiveImport
from coaching_service.integrations.company_import._customer_import import CustomerImport
from coaching_service.integrations.history_files import rosters
from coaching_service.integrations.history_files.set_files import SetFile, UnknownFormat, has_amounts
from coaching_service.integrations.history_files.tables import Cell, UnreadableTable, estimate_rows, read_tables
from coaching_service.integrations.history_import import models as import_models
from coaching_service.integrations.history_import import undoing
from coaching_service.integrations.history_import.importing import HistoryImport, Progress
from coaching_service.integrations.history_import.measurement_import import MeasurementImport
from coaching_service.integrations.history_import.models import (
    ImportAnswers,
    ImportOptions,
    ImportRefused,
    OwnImportOptions,
)
from coaching_service.people import account, jobs, team
from coaching_service.people.customers import service as customers
from coaching_service.people.customers.models import OnConflict

IMPORT = "import_company"
OPERATION = "importCompany"
_STEP_SECONDS = queue.STEP_SECONDS
_MOST_REST_SECONDS = 1.0
_LARGE_BYTES = 1_000_000  # of a file that is imported only with few others at a time
_MAX_LARGE = 2  # that a process imports at a time, each of another company: their sessions are in memory
_KEPT_SECONDS = 600.0  # for the next step; then another process may have it
_MAX_ATTEMPTS = 8  # that were interrupted, by a lost database or the end of a process
_MAX_FAILURES = 3  # attempts that failed for another reason, which the next one has too
_AFTER_OVERTAKING = timedelta(seconds=5)
_UNTIL_FREE = timedelta(seconds=5)


# What prepares itself, yielding how many rows have been read when others may come in between, and then runs batches.
_Import: TypeAlias = ArchiveImport | CustomerImport | HistoryImport | MeasurementImport


@dataclass
class _Open:
    """A file that this process imports, between the steps of its job; without a file, another step opens it."""

    progress: Progress
    file: IO[bytes] | None = None
    current: _Import | None = None
    preparing: AsyncIterator[int] | None = None
    is_large: bool = False
    rows: int = 0
    timer: asyncio.TimerHandle | None = None

    def keep(self) -> None:
        """Keep it for the next step."""
        job_id = self.progress.job_id
        _discard(job_id)
        self.timer = asyncio.get_running_loop().call_later(_KEPT_SECONDS, _discard, job_id)
        _open[job_id] = self

    def close(self) -> None:
        """Delete the temporary copy of the file."""
        if self.file is not None:
            self.file.close()


_open: dict[ObjectId, _Open] = {}  # by job


@transactional
async def begin(
    ctx: Context,
    file: files.StoredFile | None,
    *,
    dry_run: bool,
    on_conflict: OnConflict = "error",
    answers: ImportAnswers = import_models.NO_ANSWERS,
    keeps_file: bool = False,
) -> jobs.StoredJob:
    """Queue the import of a file, which the caller attaches, and return its job.

    `on_conflict`: what becomes of rows of a table whose identifier in another system a client has. `answers`: what the
    caller says about a table. `keeps_file`: a dry run keeps the file for a day (checked_files). With a `customerId` the
    import is of sessions of that client, and a coach with the permission to change clients may request it, otherwise
    the owner. Raises Forbidden, InvalidFields without a file, or with `update` for an archive; Conflict while another
    import of the company, or of the client who calls, is not finished.
    """
    customer_id, is_own = answers["customerId"], not ctx.caller.is_coach
    if not is_own:
        check_access(jobs.access_to_import(customer_id).control, ctx.caller, writes=True)
    if customer_id is not None:
        await customers.get_visible(ctx, customer_id)
    if file is None:
        raise errors.invalid_field("file", "is required", code="REQUIRED")
    if on_conflict == "update" and file.content_type == ZIP:
        raise errors.invalid_field(
            "onConflict", "is for CSV files: an export has new records only", code="NOT_SUPPORTED"
        )
    job = await jobs.create(
        ctx,
        {
            "kind": "import",
            "work": {
                **import_models.new_work(answers, file_name=file.name, content_type=file.content_type, dry_run=dry_run),
                "fileId": file.id,
                "onConflict": on_conflict,
                "mayImportAll": ctx.caller.role == "OWNER" and not ctx.caller.restricted,
                "isOwn": is_own,
                "mayCreateExercises": is_own or EXERCISES.CREATE in ctx.caller.permissions,
                "keepsFile": keeps_file,
            },
            "requestedBy": ctx.caller.id if customer_id is not None and not is_own else None,
            "customerId": ctx.caller.id if is_own else None,
        },
    )
    await queue.enqueue(ctx, IMPORT, {"jobId": job["_id"]})
    await audit.record(ctx, "import.started", job["_id"], "dry run" if dry_run else None)
    return job


async def run_step(services: Services, job: queue.Job) -> queue.RunAgain | None:
    """Continue an import for a moment. The file, and what has been read of it, stay open in this process."""
    job_id: ObjectId = job.arguments["jobId"]
    end = background_jobs.end_without_requester
    if (step := await jobs.get_step(services, job, OPERATION, end, has_own_batch=True)) is None:
        _discard(job_id)
        return None
    opened = _take(job_id) or _Open(Progress(*step))
    if not opened.progress.renew(*step):
        opened.close()
        opened = _Open(Progress(*step))
    again: queue.RunAgain | None = None
    try:
        again = await _run(job, opened)
    finally:
        if again is not None and again.is_held:
            opened.keep()
        else:
            opened.close()
    return again


def _take(job_id: ObjectId) -> _Open | None:
    """Return what this process has of an import, if any, and forget it."""
    if (opened := _open.pop(job_id, None)) is not None and opened.timer is not None:
        opened.timer.cancel()
    return opened


def _discard(job_id: ObjectId) -> None:
    if (opened := _take(job_id)) is not None:
        opened.close()


async def _run(job: queue.Job, opened: _Open) -> queue.RunAgain | None:
    progress = opened.progress
    if job.attempts > _MAX_ATTEMPTS:
        message = "could not be imported: its import was interrupted too often"
        await _fail(progress, ImportRefused(message, code="INTERRUPTED"))
        return None
    try:
        if opened.current is None and not await _open_file(opened):
            return queue.RunAgain(_UNTIL_FREE)
        return await _continue(opened)
    except jobs.Superseded:  # a step whose lease had ended was still running: go on where it is now
        return queue.RunAgain(_AFTER_OVERTAKING)
    except (ImportRefused, UnreadableTable, errors.StorageQuotaExceeded) as error:
        await _fail(progress, error)
    except Exception as error:
        if job.attempts < _MAX_FAILURES or isinstance(as_service_error(error), (errors.Unavailable, errors.Conflict)):
            raise
        await _fail(progress, ImportRefused("could not be imported: the service failed at it. Its log has the reason"))
    return None


async def list_clients(ctx: Context, job_id: ObjectId) -> list[ObjectId]:
    """Return the clients that an import has created and that still exist."""
    created = await history.list_created(ctx, job_id, "customer")
    existing = await customers.find_references(ctx, created)
    return [client for client in created if client in existing]


async def list_abandoned(services: Services) -> dict[ObjectId, ObjectId]:
    """Return the imports that have not ended and that no job continues, with their companies."""
    unfinished = await jobs.list_unfinished(services, "import")
    if unfinished:
        queued = {arguments["jobId"] async for arguments in worker.iterate_arguments(services, [IMPORT])}
        still = await jobs.list_unfinished(services, "import")  # some have ended meanwhile
        return {job_id: still[job_id] for job_id in unfinished.keys() & still.keys() - queued}
    return {}


async def end_abandoned(services: Services) -> None:
    """End these imports with an error. What they have stored stays; their files are deleted."""
    for job_id, company_id in (await list_abandoned(services)).items():
        with suppress(errors.NotFound, jobs.Superseded):  # the company is being erased, or the import has ended
            ctx = Context(services, operation=OPERATION).acting_as(await team.get_owner(services, company_id))
            if (stored := await jobs.find_unfinished(ctx, job_id)) is not None:
                error = ImportRefused("could not be imported completely. Import it again", code="INTERRUPTED")
                await _fail(Progress(ctx, stored), error)


CHECKS = (
    check_of(
        "imports",
        "Imports continue",
        list_abandoned,
        "Imports that no job continues",  # their company cannot begin another one
        "Run doctor --repair, which ends them with an error, so that the owner can import again",
        end_abandoned,
    ),
)


async def _continue(opened: _Open) -> queue.RunAgain | None:
    progress, current = opened.progress, opened.current
    if current is None:
        raise ValueError("the file is not open")
    if opened.preparing is not None:
        is_new = not progress.work["isStarted"]
        async for done in opened.preparing:
            if done and is_new:
                await progress.show(done, opened.rows)
            if done:
                return queue.RunAgain(is_held=True)
        opened.preparing = None
        if is_new:  # the company may have other settings then
            return queue.RunAgain(is_held=True)
    began = time.monotonic()
    deadline = began + _STEP_SECONDS
    while await current.run_batch():
        if time.monotonic() > deadline:
            return queue.RunAgain(is_held=True)
        if "plan" in progress.work:  # years of history: the requests of others come in between
            await asyncio.sleep(min(time.monotonic() - began, _MOST_REST_SECONDS))
        began = time.monotonic()
    await progress.end("done")
    return None


async def _fail(progress: Progress, error: ImportRefused | UnreadableTable | errors.StorageQuotaExceeded) -> None:
    """Store the error, and delete the file; what was imported before it stays."""
    entry, code, message, line = progress.work["fileName"], "INVALID_FILE", str(error.message), None
    if isinstance(error, ImportRefused):
        entry, code, line = error.entry or entry, error.code, error.line
    elif isinstance(error, UnreadableTable):
        entry, line = entry if error.line is None else f"line {error.line}", error.line
    else:
        code, message = "STORAGE_QUOTA_EXCEEDED", f"could not be imported completely. {message}"
    problem: jobs.JobError = {"entry": entry, "field": None, "code": code, "message": message}
    is_table = progress.work["contentType"] != ZIP
    await progress.end("failed", [{**problem, "line": line} if is_table else problem])


async def _open_file(opened: _Open) -> bool:
    """Open a temporary copy of the file of a job; returns False while too many large ones are open.

    Raises ImportRefused if the file is gone, Unavailable if there is no space.
    """
    progress, work = opened.progress, opened.progress.work
    ctx, file_id = progress.ctx, work["fileId"]
    if file_id is None or (stored := await files.find(ctx.services, file_id)) is None:
        raise ImportRefused("is gone")
    opened.is_large = stored["length"] > _LARGE_BYTES
    others = [each.progress.ctx.company_id for each in _open.values() if each.is_large]
    if opened.is_large and (len(others) >= _MAX_LARGE or ctx.company_id in others):
        return False
    opened.file = open_temporary("import")
    async for chunk in files.read(ctx.services, stored, 0, stored["length"]):
        await asyncio.to_thread(write_all, opened.file, chunk)
    opened.file.seek(0)
    if work["contentType"] == CSV:
        opened.rows = await asyncio.to_thread(estimate_rows, opened.file)
    kind = work["plan"]["result"]["format"] if "plan" in work else None
    is_limited = not work.get("mayImportAll", True)
    if work["contentType"] == ZIP:
        if is_limited:
            raise ImportRefused("is an export of a company, which its owner may import", code="OWNER_ONLY")
        opened.current = await ArchiveImport.open(progress, opened.file)
    elif kind == "measurements" or (kind is None and await MeasurementImport.recognises(progress, opened.file)):
        opened.current = MeasurementImport(progress, opened.file)
    elif kind not in (None, "customers") or (
        kind is None and await asyncio.to_thread(_is_history, opened.file, work.get("answers"))
    ):
        opened.current = HistoryImport(progress, opened.file)
    elif is_limited:
        raise ImportRefused("is a table of clients, which the owner may import", code="OWNER_ONLY")
    else:
        opened.current = await CustomerImport.open(progress, opened.file)
    opened.preparing = opened.current.prepare()
    return True


# --- Which kind of table a file is -----------------------------------------------------------------------------------


def _is_history(file: IO[bytes], answers: import_models.StoredAnswers | None) -> bool:
    """Return whether a table has done sets; otherwise it has clients.

    One for a client, or with amounts of sets, is never of clients. Raises UnknownFormat for one that has neither,
    UnreadableTable for a workbook that cannot be opened.
    """
    if answers is None or answers["format"] == "customers":
        return False
    if answers["format"] is not None or answers["customerId"] is not None:
        return True
    source = SetFile(file, import_models.reading_answers(answers))
    try:
        for _ in source.rows():
            break
        lacks_exercises = source.missing is not None and "exercise" in source.missing.fields
        return not (lacks_exercises and _has_clients(file, answers))
    except UnknownFormat:
        if _has_clients(file, answers):
            return False
        raise
    except UnreadableTable:
        file.seek(0)
        if file.read(2) == b"PK":  # a workbook that cannot be opened
            raise
        return False


def _has_clients(file: IO[bytes], answers: import_models.StoredAnswers) -> bool:
    """Return whether any of the headings is one of clients, after the answers about columns, and no table has sets."""
    columns = cast("Any", {each["heading"]: each["field"] for each in answers["columns"]})

    def count(cells: Sequence[Cell]) -> int:
        return rosters.count_headings(cells, columns)

    tables = [table.headings for table in read_tables(file, count)]
    return any(map(count, tables)) and not any(map(has_amounts, tables))


# --- Files that were checked first: they are kept for a day, in which the same file is imported with answers ----------


@transactional
async def begin_checked(ctx: Context, job_id: ObjectId, answers: ImportAnswers) -> jobs.StoredJob:
    """Queue the import of the file that a job has checked, and return its job.

    If the columns were not known, the file is checked once more, with the answers. The caller may read the job.
    Raises NotFound, Conflict if its file is no longer there, and as company_import.begin.
    """
    checked = await jobs.get_complete(ctx, job_id)
    work = cast("import_models.ImportWork", checked["work"])
    file_id = work.get("fileId")
    stored = None if file_id is None else await files.find(ctx.services, file_id)
    if checked["kind"] != "import" or checked["status"] != "done" or file_id is None or stored is None:
        raise errors.Conflict("The file is no longer here: upload it again", code="FILE_GONE")
    await jobs.forget_file(ctx, job_id, file_id)
    result = cast("import_models.HistoryResult", checked["result"])
    is_open = any(each["code"] == "COLUMN" for each in result.get("questions", ()))
    file = files.StoredFile(file_id, work["fileName"], work["contentType"], stored["length"], stored["sha256"])
    on_conflict = work.get("onConflict", "error")
    return await begin(ctx, file, dry_run=is_open, on_conflict=on_conflict, answers=answers, keeps_file=is_open)


async def discard_checked_step(services: Services, job: queue.Job) -> None:
    """Delete a file that was checked and not imported."""
    job_id, file_id = job.arguments["jobId"], job.arguments["fileId"]

    async def discard(tx: Context) -> None:
        if await jobs.forget_file(tx, job_id, file_id):
            await files.discard(tx, [file_id])

    try:
        owner = await team.get_owner(services, queue.company_of(job))
    except errors.NotFound:  # the company has been erased, with its files
        return
    await in_transaction(Context(services, operation=OPERATION).acting_as(owner), discard)


# --- Imports that clients make of their own training history, if the company lets them --------------------------------


async def begin_own(
    ctx: Context, file: files.StoredFile | None, answers: ImportAnswers, *, dry_run: bool, keeps_file: bool = False
) -> jobs.StoredJob:
    """Queue the import of a file with the history of the client who calls, and return its job.

    Raises Forbidden if the company does not let its clients import, and as company_import.begin.
    """
    await _require_allowed(ctx)
    return await begin(
        ctx, file, dry_run=dry_run, answers={**answers, "customerId": ctx.caller.id}, keeps_file=keeps_file
    )


async def begin_own_checked(ctx: Context, job_id: ObjectId, answers: ImportAnswers) -> jobs.StoredJob:
    """Queue the import of a file that the client has checked. Raises as `begin` and checked_files.begin."""
    await jobs.get(ctx, job_id)
    await _require_allowed(ctx)
    return await begin_checked(ctx, job_id, {**answers, "customerId": ctx.caller.id})


async def _require_allowed(ctx: Context) -> None:
    if not (await account.get_account(ctx))["clientsMayImport"]:
        raise errors.Forbidden("Your coach has turned off imports by clients", code="CLIENT_IMPORTS_OFF")


# --- Imports over REST: of the company, and of the client's own history -----------------------------------------------


routes = Routes("/coach/import", tag="Export")


@routes.post(
    "",
    access=coach(),
    locks="customer",
    multipart=MultipartBody(
        "file", (ZIP, CSV, XLSX), import_models.IMPORT_FIELDS(), size_limit="import", file_required=True
    ),
    returns=background_jobs.BACKGROUND_JOB,
    status=202,
    errors=(errors.Conflict,),
    request_class="bulk",
    example={"dryRun": "true"},
)
async def import_company(ctx: Context, body: ImportOptions, file: files.StoredFile | None) -> jobs.StoredJob:
    """Import an export of a company, a table of training history, or a table of clients.

    It begins after the response: GET /coach/jobs/{jobId} returns its progress, and its problems with the line of each.
    Records get new identifiers and belong to the caller's company. Texts are validated and files are checked as they
    are when they are sent one by one; records that are not valid are left out. Nothing is mailed. With `dryRun`
    everything is checked and nothing is stored: the job has the problems that the import would have, also records that
    collide with each other or with the company's, and those that refer to what is left out. An export with other bytes
    than its manifest states is refused as a whole.

    A table of sets (CSV or XLSX) is recognised by its headings: Hevy, Strong, FitNotes, StrongLifts, Gravl,
    TrainHeroic, the service's own CSV, or any with a date, an exercise and amounts. Each row is imported or reported;
    sessions that are there already are not added again. What the file does not decide is in `questions` of the result,
    and an import ends with an error while one is open; the other fields of the form are the answers. Each client has
    one event, `history.imported`. A table of body measurements becomes values of metrics.

    POST /coach/jobs/{jobId}/undo removes what the import of a table has created.
    """
    return await begin(ctx, file, dry_run=body["dryRun"], on_conflict=body["onConflict"], answers=body["answers"])


own_routes = Routes(
    "/customer", tag="The client's own", path_descriptions={"importId": "The job of the import, or of its undo."}
)


@own_routes.post(
    "/import",
    access=customer(),
    multipart=MultipartBody(
        "file", (CSV, XLSX), import_models.OWN_IMPORT_FIELDS(), size_limit="plan", file_required=True
    ),
    returns=background_jobs.BACKGROUND_JOB,
    status=202,
    errors=(errors.Conflict,),
    request_class="bulk",
    example={"dryRun": "true"},
)
async def import_own_history(ctx: Context, body: OwnImportOptions, file: files.StoredFile | None) -> jobs.StoredJob:
    """Import my training history.

    A table (CSV or XLSX) of Hevy, Strong, FitNotes, StrongLifts, Gravl, Fitbod, Liftosaur or JEFIT, or any with a date,
    an exercise and amounts.
    It begins after the response: GET /customer/jobs/{importId} returns its progress. With `dryRun` nothing is stored:
    the result has what the file contains, what names of exercises mean, and `questions` that the file does not decide;
    the other fields of the form are the answers. Exercises that are not here yet are created, with the tag `imported`.
    Sessions that are there already are not added again, and rows that name anyone else are reported. Refused if the
    coach has turned it off.
    """
    return await begin_own(ctx, file, body["answers"], dry_run=body["dryRun"])


@own_routes.get("/jobs/{importId}", access=customer(), returns=background_jobs.BACKGROUND_JOB)
async def get_own_job(ctx: Context, import_id: ObjectId) -> jobs.StoredJob:
    """Read the progress of my import."""
    return await jobs.get(ctx, import_id)


@own_routes.post(
    "/jobs/{importId}/undo",
    access=customer(),
    returns=background_jobs.BACKGROUND_JOB,
    status=202,
    errors=(errors.Conflict,),
)
async def undo_own_import(ctx: Context, import_id: ObjectId) -> jobs.StoredJob:
    """Undo my import.

    It begins after the response, as a job: what the import created is removed, unless it has been changed or used
    since.
    """
    return await undoing.begin(ctx, import_id)
