"""The undo of an import: what it created goes, unless it has been changed or used since."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Sequence
from typing import cast

from coaching_service.core import audit
from coaching_service.core.changes import history
from coaching_service.core.database.context import Context, Services
from coaching_service.core.database.transactions import in_transaction, transactional
from coaching_service.core.errors import Conflict, NotFound
from coaching_service.core.ids import ObjectId
from coaching_service.core.jobs import queue
from coaching_service.core.jobs.queue import Job, RunAgain
from coaching_service.core.media import ZIP
from coaching_service.integrations.background_jobs import access
from coaching_service.integrations.background_jobs import service as background_jobs
from coaching_service.integrations.background_jobs.models import ImportWork, JobWork, StoredCompanyJob
from coaching_service.integrations.background_jobs.service import Superseded
from coaching_service.integrations.history_import._references import find_used_customers, find_used_exercises
from coaching_service.integrations.history_import.following import follow
from coaching_service.integrations.history_import.models import (
    HistoryResult,
    ImportedPeriod,
    KeptDocument,
    RemovedCounts,
    UndoResult,
    UndoWork,
)
from coaching_service.integrations.history_import.results import table_result
from coaching_service.library.exercises import service as exercises
from coaching_service.people.changes.import_events import ImportUndoRequested
from coaching_service.people.customers import service as customers
from coaching_service.progress.conversation import service as conversation
from coaching_service.training.workouts.blocks import imported
from coaching_service.training.workouts.blocks.models import ImportedSession

Write = Callable[[Context], Awaitable[None]]
UNDO = "undo_import"
OPERATION = "undoImport"
_BATCH = 200
_MAX_KEPT = 1_000
_STEP_SECONDS = 15.0
_UPDATED = ("UPDATED", "was here before the import, and stays as the import has changed it")
_CHANGED = ("CHANGED", "has been changed since the import")
_USED = ("IN_USE", "is used by what was created since the import")
# The kinds of records, in the order in which they are removed.
_SESSIONS, _FIGURES, _EXERCISES, _CUSTOMERS, _END = range(5)


async def follow_request(ctx: Context, event: ImportUndoRequested) -> None:
    """Queue the undo of an import that a change was. Raises as `begin`."""
    await begin(ctx, event.import_id, undo_id=event.job_id)


@transactional
async def begin(ctx: Context, job_id: ObjectId, *, undo_id: ObjectId | None = None) -> StoredCompanyJob:
    """Queue the undo of an import that has ended, and return its job, with the identifier `undo_id` if given.

    Raises NotFound, Forbidden, and Conflict for an import that has not ended, or that cannot be undone: an export of a
    company, a dry run, and one that has stored nothing.
    """
    await access.require_access(ctx, job_id, writes=True)
    job = await background_jobs.get_with_work(ctx, job_id)
    work = cast("ImportWork", job["work"])
    if job["kind"] != "import" or work["contentType"] == ZIP or "answers" not in work or work["isDryRun"]:
        raise Conflict("Only the import of a table that has been stored can be undone", code="NOT_UNDOABLE")
    if job["status"] in ("queued", "running"):
        raise Conflict("This import has not ended yet: cancel it first", code="JOB_RUNNING")
    if not has_stored(table_result(job["result"])):
        raise Conflict("This import has stored nothing", code="NOT_UNDOABLE")
    result: UndoResult = {"ok": 0, "removed": {"customers": 0, "sessions": 0, "exercises": 0}, "failed": []}
    undo: UndoWork = {
        "importId": job_id,
        "importEndedAt": job["updatedAt"],
        "isOfClients": "plan" in work and work["plan"]["result"]["format"] == "customers",
        "entry": _SESSIONS,
        "record": 0,
        "last": None,
        "clients": [],
        "result": result,
    }
    queued = await background_jobs.create(
        ctx,
        {"kind": "undo", "work": undo, "requestedBy": job.get("requestedBy"), "customerId": job.get("customerId")},
        job_id=undo_id,
    )
    await queue.enqueue(ctx, UNDO, {"jobId": queued["_id"]})
    await audit.record(ctx, "company.importUndone", jobId=job_id)
    return queued


def has_stored(result: HistoryResult | None) -> bool:
    """Return whether an import has created or changed anything, by its result."""
    return result is not None and (any(result["created"].values()) or _has_clients(result))


def _has_clients(result: HistoryResult) -> bool:
    return result["format"] == "customers" and result["imported"] > 0


async def run_step(services: Services, job: Job) -> RunAgain | None:
    """Continue an undo for about 15 seconds."""
    if (step := await background_jobs.get_step(services, job, OPERATION, is_batch=True)) is None:
        return None
    ctx, stored = step
    undo = _Undo(ctx, stored)
    deadline = time.monotonic() + _STEP_SECONDS
    try:
        while await undo.run_batch():
            if time.monotonic() > deadline:
                return RunAgain()
    except Superseded:
        return RunAgain()
    return None


class _Undo:
    """An undo, as it was after the last commit."""

    def __init__(self, ctx: Context, job: JobWork) -> None:
        self._ctx, self._job = ctx, job

    @property
    def _work(self) -> UndoWork:
        return cast("UndoWork", self._job["work"])

    async def run_batch(self) -> bool:
        """Remove the next records; returns False at the end."""
        steps = {
            _SESSIONS: self._remove_sessions,
            _FIGURES: self._renew_figures,
            _EXERCISES: self._remove_exercises,
            _CUSTOMERS: self._remove_customers,
        }
        await steps[self._work["entry"]]()
        return self._work["entry"] != _END

    async def _remove_sessions(self) -> None:
        work = self._work
        sessions = await imported.find_imported(self._ctx, work["importId"], work["last"], _BATCH)
        if not sessions:
            await self._move(_FIGURES)
            return
        commented: set[ObjectId] = set()
        for customer_id in {each["customerId"] for each in sessions if each["customerId"] is not None}:
            ids = [each["_id"] for each in sessions if each["customerId"] == customer_id]
            commented |= await conversation.find_commented(self._ctx, customer_id, ids)
        removed = [each for each in sessions if each["version"] == 0 and each["_id"] not in commented]
        staying = [
            _staying(each["_id"], _USED if each["version"] == 0 else _CHANGED)
            for each in sessions
            if each not in removed
        ]
        clients = _add(work["clients"], removed)
        after: UndoWork = {
            **self._after("sessions", len(removed), staying, len(sessions)),
            "last": sessions[-1]["_id"],
            "clients": clients,
        }

        async def write(tx: Context) -> None:
            ids = [each["_id"] for each in removed]
            if await imported.remove_unchanged(tx, work["importId"], ids) < len(ids):  # changed in the meantime
                raise Superseded

        await self._save(after, write, done=len(sessions))

    async def _renew_figures(self) -> None:
        clients = self._work["clients"]
        if not clients:
            await self._move(_EXERCISES)
            return

        async def write(tx: Context) -> None:
            try:
                await follow(tx, self._work["importId"], clients[0], "history.removed")
            except NotFound:  # erased
                return

        await self._save({**self._work, "record": self._work["record"] + 1, "clients": clients[1:]}, write)

    async def _remove_exercises(self) -> None:
        created = await history.list_created(self._ctx, self._work["importId"], "exercise")
        usable = await exercises.list_own_versions(self._ctx, created)
        used = await find_used_exercises(self._ctx, list(usable))
        removed = [each for each, version in usable.items() if version == 0 and each not in used]
        staying = [_staying(each, _USED if each in used else _CHANGED) for each in usable if each not in removed]

        async def write(tx: Context) -> None:
            for exercise_id in removed:
                await exercises.delete(tx, exercise_id)

        after: UndoWork = {**self._after("exercises", len(removed), staying, len(usable)), "entry": _CUSTOMERS}
        await self._save(after, write)

    async def _remove_customers(self) -> None:
        created = await history.list_clients_created_by_batch(self._ctx, self._work["importId"])
        existing = await customers.list_versions(self._ctx, created)
        used = await find_used_customers(self._ctx, list(existing), self._work["importEndedAt"])
        removed = [each for each, version in existing.items() if version == 0 and each not in used]
        staying = [_staying(each, _USED if each in used else _CHANGED) for each in existing if each not in removed]
        staying += [_staying(each, _UPDATED) for each in await self._find_updated()]

        async def write(tx: Context) -> None:
            for customer_id in removed:
                await customers.erase(tx, customer_id)

        after: UndoWork = {**self._after("customers", len(removed), staying, len(existing)), "entry": _END}
        await self._save(after, write, is_end=True)

    async def _find_updated(self) -> list[ObjectId]:
        """Return the clients who were there before, and whom a table of clients has changed."""
        if not self._work["isOfClients"]:
            return []
        updated = await history.list_clients_updated_by_batch(self._ctx, self._work["importId"])
        existing = await customers.find_references(self._ctx, updated)
        return [each for each in updated if each in existing]

    def _after(self, name: str, removed: int, staying: Sequence[KeptDocument], seen: int) -> UndoWork:
        work = self._work
        result = work["result"]
        counts = {**result["removed"], name: cast("dict[str, int]", result["removed"])[name] + removed}
        failed = [*result["failed"], *staying][:_MAX_KEPT]
        after: UndoResult = {
            "ok": result["ok"] + removed,
            "removed": cast("RemovedCounts", counts),
            "failed": failed,
        }
        return {**work, "record": work["record"] + seen + 1, "result": after}

    async def _move(self, entry: int) -> None:
        async def write(_: Context) -> None:
            pass

        await self._save({**self._work, "entry": entry, "record": 0}, write)

    async def _save(self, work: UndoWork, write: Write, *, done: int = 0, is_end: bool = False) -> None:
        fields: dict[str, object] = {"work": work, "status": "running"}
        if is_end:
            fields |= {"status": "done", "result": work["result"]}

        async def store(tx: Context) -> None:
            await write(tx)
            await background_jobs.update(tx, self._job, fields, done=done)
            tx.changes.prevent_undo()

        await in_transaction(self._ctx, store)
        self._job["work"] = work


def _staying(document_id: ObjectId, reason: tuple[str, str]) -> KeptDocument:
    return {"documentId": document_id, "code": reason[0], "message": reason[1]}


def _add(clients: Sequence[ImportedPeriod], removed: Sequence[ImportedSession]) -> list[ImportedPeriod]:
    """Return what is removed of each client, with more sessions."""
    periods = {each["customerId"]: each for each in clients}
    for session in removed:
        customer_id, day = session["customerId"], session["date"]
        if customer_id is None or day is None:
            continue
        before = periods.get(customer_id)
        sets = sum(len(item["customerSets"]) for item in session["items"] if item["type"] == "EXERCISE")
        periods[customer_id] = {
            "customerId": customer_id,
            "sessions": (before["sessions"] if before else 0) + 1,
            "sets": (before["sets"] if before else 0) + sets,
            "from": min(day, before["from"]) if before else day,
            "to": max(day, before["to"]) if before else day,
        }
    return list(periods.values())
