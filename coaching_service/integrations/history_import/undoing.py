"""The undo of an import: what it created goes, unless it has been changed or used since."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence, Set
from contextlib import suppress
from typing import cast

from coaching_service.core import audit
from coaching_service.core.auth import METRICS
from coaching_service.core.changes import history
from coaching_service.core.database.context import Context, Services, in_transaction, transactional
from coaching_service.core.database.declared import values_at
from coaching_service.core.database.documents import references_to
from coaching_service.core.errors import Conflict, NotFound, PermissionMissing
from coaching_service.core.ids import ObjectId
from coaching_service.core.jobs import queue
from coaching_service.core.media import ZIP
from coaching_service.integrations import background_jobs
from coaching_service.integrations.history_import import models as import_models
from coaching_service.integrations.history_import.importing import UNDO_OPERATION, add_to_period, derive_and_report
from coaching_service.library.exercises import service as exercises
from coaching_service.people import jobs
from coaching_service.people.changes.service import ImportUndoRequested
from coaching_service.people.customers import bulk
from coaching_service.people.customers import service as customers
from coaching_service.progress.conversation import service as conversation
from coaching_service.progress.metrics import service as metrics
from coaching_service.training.workouts.blocks import batches

UNDO = "undo_import"
_BATCH = 200
_MAX_KEPT = 1_000
_STEP_SECONDS = queue.STEP_SECONDS
_UPDATED = ("UPDATED", "was here before the import, and stays as the import has changed it")
_CHANGED = ("CHANGED", "has been changed since the import")
_USED = ("IN_USE", "is used by what was created since the import")
# The kinds of records, in the order in which they are removed.
_SESSIONS, _FIGURES, _EXERCISES, _CUSTOMERS, _END, _VALUES = range(6)  # of measurements: values only


async def begin_requested(ctx: Context, event: ImportUndoRequested) -> None:
    """Queue the undo of an import that a change was. Raises as `begin`."""
    await begin(ctx, event.import_id, undo_id=event.job_id)


@transactional
async def begin(ctx: Context, job_id: ObjectId, *, undo_id: ObjectId | None = None) -> jobs.StoredJob:
    """Queue the undo of an import that has ended, and return its job, with the identifier `undo_id` if given.

    Raises NotFound, Forbidden, and Conflict for an import that has not ended, or that cannot be undone: an export of a
    company, a dry run, and one that has stored nothing.
    """
    job = await jobs.get_complete(ctx, job_id, writes=True)
    work = cast("import_models.ImportWork", job["work"])
    if job["kind"] != "import" or work["contentType"] == ZIP or "answers" not in work or work["isDryRun"]:
        raise Conflict("Only the import of a table that has been stored can be undone", code="NOT_UNDOABLE")
    if jobs.is_unfinished(job):
        raise Conflict("This import has not ended yet: cancel it first", code="JOB_RUNNING")
    if not has_stored(import_models.table_result(job["result"])):
        raise Conflict("This import has stored nothing", code="NOT_UNDOABLE")
    is_of_measurements = "plan" in work and work["plan"]["result"]["format"] == "measurements"
    if is_of_measurements and METRICS.EDIT not in ctx.caller.permissions:
        raise PermissionMissing(METRICS.EDIT)
    result: import_models.UndoResult = {
        "ok": 0,
        "removed": {"customers": 0, "sessions": 0, "exercises": 0},
        "failed": [],
    }
    undo: import_models.UndoWork = {
        "importId": job_id,
        "importEndedAt": job["updatedAt"],
        "isOfClients": "plan" in work and work["plan"]["result"]["format"] == "customers",
        "entry": _VALUES if is_of_measurements else _SESSIONS,
        "record": 0,
        "last": None,
        "clients": [],
        "result": result,
    }
    queued = await jobs.create(
        ctx,
        {"kind": "undo", "work": undo, "requestedBy": job.get("requestedBy"), "customerId": job.get("customerId")},
        job_id=undo_id,
    )
    await queue.enqueue(ctx, UNDO, {"jobId": queued["_id"]})
    await audit.record(ctx, "import.undone", job_id)
    return queued


def has_stored(result: import_models.HistoryResult | None) -> bool:
    """Return whether an import has created or changed anything, by its result."""
    if result is None:
        return False
    return any(result["created"].values()) or (result["format"] == "customers" and result["imported"] > 0)


async def run_step(services: Services, job: queue.Job) -> queue.RunAgain | None:
    """Continue an undo for a moment."""
    end = background_jobs.end_without_requester
    if (step := await jobs.get_step(services, job, UNDO_OPERATION, end, has_own_batch=True)) is None:
        return None
    ctx, stored = step
    undo = _Undo(ctx, stored)
    deadline = time.monotonic() + _STEP_SECONDS
    try:
        while await undo.run_batch():
            if time.monotonic() > deadline:
                return queue.RunAgain()
    except jobs.Superseded:
        return queue.RunAgain()
    return None


class _Undo:
    """An undo, as it was after the last commit."""

    def __init__(self, ctx: Context, job: jobs.StoredJob) -> None:
        self._ctx, self._job = ctx, job

    @property
    def _work(self) -> import_models.UndoWork:
        return cast("import_models.UndoWork", self._job["work"])

    async def run_batch(self) -> bool:
        """Remove the next records, in a transaction with the position of the undo; returns False at the end."""
        steps = {
            _SESSIONS: self._remove_sessions,
            _FIGURES: self._renew_figures,
            _EXERCISES: self._remove_exercises,
            _CUSTOMERS: self._remove_customers,
            _VALUES: self._remove_values,
        }
        after = self._work

        async def store(tx: Context) -> None:
            nonlocal after
            after, done = await steps[self._work["entry"]](tx)
            fields: dict[str, object] = {"work": after, "status": "running"}
            if after["entry"] == _END:
                fields |= {"status": "done", "result": after["result"]}
            await jobs.update(tx, self._job, fields, done=done)
            tx.changes.prevent_undo()

        await in_transaction(self._ctx, store)
        self._job["work"] = after
        return after["entry"] != _END

    async def _remove_sessions(self, tx: Context) -> tuple[import_models.UndoWork, int]:
        """Return what the next step needs, and how many sessions this one has seen."""
        work = self._work
        sessions = await batches.find_imported(tx, work["importId"], work["last"], _BATCH)
        if not sessions:
            return {**work, "entry": _FIGURES, "record": 0}, 0
        commented: set[ObjectId] = set()
        unchanged = [each for each in sessions if each["version"] == 0]
        for customer_id in {each["customerId"] for each in unchanged if each["customerId"] is not None}:
            ids = [each["_id"] for each in unchanged if each["customerId"] == customer_id]
            commented |= await conversation.find_commented(tx, customer_id, ids)
        ids, staying = _divide({each["_id"]: each["version"] for each in sessions}, commented)
        await batches.remove_unchanged(tx, work["importId"], ids)
        periods = {each["customerId"]: each for each in work["clients"]}
        for session in sessions:
            client, day = session["customerId"], session["date"]
            if session["_id"] in ids and client is not None and day is not None:
                sets = sum(len(item["customerSets"]) for item in session["items"] if item["type"] == "EXERCISE")
                periods[client] = add_to_period(periods.get(client), client, [day], sets)
        after = self._after("sessions", len(ids), staying)
        return {**after, "last": sessions[-1]["_id"], "clients": list(periods.values())}, len(sessions)

    async def _renew_figures(self, tx: Context) -> tuple[import_models.UndoWork, int]:
        work = self._work
        if not work["clients"]:
            return {**work, "entry": _EXERCISES, "record": 0}, 0
        with suppress(NotFound):  # erased
            await derive_and_report(tx, work["importId"], work["clients"][0], "history.removed")
        return {**work, "record": work["record"] + 1, "clients": work["clients"][1:]}, 0

    async def _remove_exercises(self, tx: Context) -> tuple[import_models.UndoWork, int]:
        created = await history.list_created(tx, self._work["importId"], "exercise")
        usable = await exercises.list_own_versions(tx, created)
        used: set[ObjectId] = set()
        for collection, path in references_to("exercises") if usable else ():
            if collection.name != "importedNames":  # what the company has answered about names goes with the exercise
                where = {path: {"$in": list(usable)}}
                for document in await collection.find(tx, where, fields=(path,), ownership="own"):
                    used |= usable.keys() & set(values_at(document, path.split(".")))
        ids, staying = _divide(usable, used)
        for exercise_id in ids:
            await exercises.delete(tx, exercise_id)
        return {**self._after("exercises", len(ids), staying), "entry": _CUSTOMERS, "last": None}, 0

    async def _remove_customers(self, tx: Context) -> tuple[import_models.UndoWork, int]:
        work = self._work
        created = await history.list_created(tx, work["importId"], "customer")
        left = [each for each in created if work["last"] is None or each > work["last"]]
        existing = await customers.list_versions(tx, left[:_BATCH])
        ids, staying = _divide(existing, await bulk.find_used(tx, list(existing), work["importEndedAt"]))
        for customer_id in ids:
            await customers.erase(tx, customer_id)
        if len(left) > _BATCH:
            return {**self._after("customers", len(ids), staying), "last": left[_BATCH - 1]}, 0
        if work["isOfClients"]:  # those who were there before, and whom the table has changed
            updated = await history.list_clients_updated_by_batch(tx, work["importId"])
            there = await customers.find_references(tx, updated)
            staying += [_staying(each, _UPDATED) for each in updated if each in there]
        return {**self._after("customers", len(ids), staying), "entry": _END}, 0

    async def _remove_values(self, tx: Context) -> tuple[import_models.UndoWork, int]:
        """Remove values of metrics, and at the end the assignments of sets that were made for them."""
        work = self._work
        created = await history.list_created(tx, work["importId"], "metric_value")
        left = [each for each in created if work["last"] is None or each > work["last"]]
        if not left:
            assigned = await history.list_created(tx, work["importId"], "metrics_assignment")
            await metrics.remove_unused_assignments(tx, assigned)
            return {**work, "entry": _END, "last": None}, 0
        removed, staying = await metrics.remove_imported(tx, left[:_BATCH])
        after = self._after("values", removed, [_staying(each, _CHANGED) for each in staying])
        return {**after, "last": left[:_BATCH][-1]}, len(left[:_BATCH])

    def _after(self, name: str, removed: int, staying: Sequence[import_models.KeptDocument]) -> import_models.UndoWork:
        work = self._work
        result = work["result"]
        counts = {**result["removed"], name: cast("dict[str, int]", result["removed"]).get(name, 0) + removed}
        after: import_models.UndoResult = {
            "ok": result["ok"] + removed,
            "removed": cast("import_models.RemovedCounts", counts),
            "failed": [*result["failed"], *staying][:_MAX_KEPT],
        }
        return {**work, "record": work["record"] + 1, "result": after}


def _divide(
    versions: Mapping[ObjectId, int], used: Set[ObjectId]
) -> tuple[list[ObjectId], list[import_models.KeptDocument]]:
    """Return which documents are as they were created and not used, and why the others stay."""
    unchanged = [each for each, version in versions.items() if version == 0 and each not in used]
    others = versions.keys() - {*unchanged}
    return unchanged, [_staying(each, _USED if each in used else _CHANGED) for each in versions if each in others]


def _staying(document_id: ObjectId, reason: tuple[str, str]) -> import_models.KeptDocument:
    return {"documentId": document_id, "code": reason[0], "message": reason[1]}
