"""Undoing a change, or all changes of a bulk operation."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

from coaching_service.core import idempotency
from coaching_service.core.accepted import Accepted
from coaching_service.core.auth.access import CUSTOMERS, FORMS, METRICS, Area, require_permission
from coaching_service.core.changes import history, undo
from coaching_service.core.changes.log import interface_of
from coaching_service.core.changes.models import ChangedDocument, StoredChange
from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import now
from coaching_service.core.database.transactions import transactional
from coaching_service.core.errors import Conflict, Forbidden, NotFound, ServiceError, Unavailable
from coaching_service.core.events import DomainEvent
from coaching_service.core.idempotency import Claim
from coaching_service.core.ids import ObjectId
from coaching_service.core.mcp.arguments import typed_line
from coaching_service.core.mcp.results import typed
from coaching_service.people.changes import service
from coaching_service.people.changes.models import AREAS, UndoFailure, UndoResult, limit_change, load_visibility
from coaching_service.people.customers import bulk as customer_bulk
from coaching_service.people.customers import service as customers
from coaching_service.people.jobs import service as jobs
from coaching_service.people.jobs.models import Outcome, StoredJob

# What a log writes together with the workout, and other operations alone, with their area.
_LOGGED_KINDS = ((METRICS, {"metrics_assignment", "metric_value"}), (FORMS, {"form_response"}))

_LONGEST_NAME, _MAX_NAMED = 120, 5
_CREATION_PERIOD = timedelta(hours=1)  # within which an assistant may delete the clients whom it has created
_AT_ONCE = 100  # changes between two reports of a job's progress
_RECORDS = 100  # clients and documents of one transaction, unless one change has more


@dataclass(frozen=True)
class ImportUndoRequested(DomainEvent):
    """An import is to be undone, by a job with this identifier."""

    import_id: ObjectId
    job_id: ObjectId


async def undo_change(ctx: Context, change_id: ObjectId, claim: Claim | None = None) -> UndoResult:
    """Restore the documents of a change, or of every change of a batch, as they were before it.

    Each change is undone completely or not at all; changes of a batch that cannot be undone are in `failed`. What was
    undone under the same `claim` is counted and not undone again. Raises
    NotFound if the caller may not see such a change, Forbidden without the permission of the reverse operation,
    Conflict (NOT_UNDOABLE, VERSION_CONFLICT) for a single change that cannot be undone, and for a batch if none can.
    """
    if (batch := await _load_batch(ctx, change_id)) is None:
        await service.find_visible(ctx, change_id)
        if (change := await history.find_one(ctx, change_id)) is None:  # erased meanwhile
            raise NotFound("change")
        return await _undo_single(ctx, change, claim)
    return await _undo_batch(ctx, batch, claim)


async def undo_completely(
    ctx: Context, change_id: ObjectId, changes: Sequence[StoredChange]
) -> dict[ObjectId, UndoFailure]:
    """Undo a change, or the batch `changes`; returns why some of it stays, such as messages that were read, by change.

    Raises Conflict that names the first document that has been changed since, or says why all stays or that it has been
    undone already, and what undo_change raises.
    """
    with_documents = [change for change in changes if change["documents"]]
    if undone := [change for change in with_documents if change["undoneBy"] is not None]:
        about = "This change" if len(undone) == len(with_documents) else "Part of this change"
        raise Conflict(f"{about} has been undone already", code="VERSION_CONFLICT")
    try:
        result = await undo_change(ctx, change_id)
    except undo.DocumentsMoved as error:
        raise await _name_conflict(ctx, changes, error.details["documents"][0]["_id"]) from None
    failed = {each["documentId"]: each for each in result["failed"]}
    for failure in failed.values():
        if failure["code"] != "NOT_UNDOABLE":
            raise await _name_conflict(ctx, changes, failure["documentId"])
    if failed and not result["ok"]:
        raise Conflict(next(iter(failed.values()))["message"], code="NOT_UNDOABLE")
    documents = [(change["_id"], document["_id"]) for change in changes for document in change["documents"]]
    return {change: failed[document] for change, document in documents if document in failed}


async def _name_conflict(ctx: Context, changes: Sequence[StoredChange], document_id: ObjectId) -> Conflict:
    """Return the error for a document that has been changed since: its kind, and its name and date if known."""
    names = []
    for change in changes:
        if all(document["_id"] != document_id for document in change["documents"]):
            continue
        for document in (await service.get_change(ctx, change["_id"]))["documents"]:
            values = document["after"] or document["before"] or {}
            if document["_id"] == document_id:
                known = [typed_line(str(values[name]), _LONGEST_NAME) for name in ("name", "title") if values.get(name)]
                day = [f"of {values['date']}"] if isinstance(values.get("date"), str) else []
                names.append(" ".join([service.name_kind(document["kind"]), *known, *day, f"[{document_id}]"]))
    about = names[0] if names else f"record [{document_id}]"
    message = f"This cannot be undone any more: the {about} has been changed again since"
    return Conflict(message, code="VERSION_CONFLICT")


async def undo_or_begin_job(ctx: Context, change_id: ObjectId, claim: Claim | None = None) -> UndoResult | Accepted:
    """Undo a change or a batch as `undo_change`, or queue a job that does.

    A job does it for a batch of more than 500 changes, or if the caller prefers one: the job that does it already, if
    there is one. Raises Conflict (JOB_RUNNING) if the caller may not see that job.
    """
    batch = await _load_batch(ctx, change_id)
    if batch is None or not jobs.is_job(ctx, len(batch)):
        return await undo_change(ctx, change_id, claim)
    return await _begin_job(ctx, change_id, batch, claim)


async def begin_job(ctx: Context, change_id: ObjectId) -> Accepted:
    """Queue a job that undoes a batch, or return the current one. Raises as undo_or_begin_job."""
    if (batch := await _load_batch(ctx, change_id)) is None:
        raise NotFound("change")
    return await _begin_job(ctx, change_id, batch, None)


async def _begin_job(ctx: Context, change_id: ObjectId, batch: list[StoredChange], claim: Claim | None) -> Accepted:
    job = await jobs.find_last_undo(ctx, change_id)
    if job is not None and jobs.is_unfinished(job):
        return jobs.join(ctx, job)
    ids = [change["_id"] for change in reversed(batch)]
    needed = {permission for change in batch for permission in _reverse_permissions(change)}
    return await jobs.begin_batch(ctx, "undo", ids, {}, claim, permissions=needed, change_id=change_id)


async def _load_batch(ctx: Context, change_id: ObjectId) -> list[StoredChange] | None:
    """Return the changes of a batch that the caller sees and may undo; None if there is no such batch."""
    batch = await history.list_batch(ctx, change_id)
    if not batch:
        return None
    visibility = await load_visibility(ctx)
    visible = [change for change in batch if limit_change(visibility, change) is not None]
    if not visible:
        raise NotFound("change")
    if not any(service.undoable_until(ctx, change) for change in visible):
        raise _not_undoable()
    for change in visible:
        _require_own(ctx, change)
        _require_permissions(ctx, change)
    return visible


async def delete_created_clients(ctx: Context, changes: Sequence[StoredChange], ids: Sequence[ObjectId]) -> None:
    """Delete the clients whom calls of the caller, an assistant, have created, in the caller's transaction.

    Raises Conflict an hour after their creation, or if one has been used or changed since, NotFound, and Forbidden.
    """
    for change in changes:
        _require_own(ctx, change)
        if change["via"] != "assistant":
            raise _not_undoable()
    require_permission(ctx.caller, CUSTOMERS.DELETE)
    created_at = min(change["createdAt"] for change in changes)
    if created_at < now() - _CREATION_PERIOD:
        raise Conflict("A new client can be deleted within the hour; archive them instead", code="NOT_UNDOABLE")
    await customers.lock_all_visible(ctx, ids)
    used = await customer_bulk.find_used(ctx, ids, created_at)
    used |= {each for each, version in (await customers.list_versions(ctx, ids)).items() if version}
    if used:
        names = await customer_bulk.list_names(ctx, list(used), _MAX_NAMED)
        message = f"Something was added or changed since: {', '.join(map(typed, names))}; archive them instead"
        raise Conflict(message, code="NOT_UNDOABLE")
    await customer_bulk.erase(ctx, list(ids))


def find_import(change: StoredChange) -> ObjectId | None:
    """Return the import that a change has done; None for another change."""
    for event in change["events"]:
        if event["type"] == "history.imported" and isinstance(import_id := event["data"]["importId"], ObjectId):
            return import_id
    return None


async def begin_undo_of_import(ctx: Context, change: StoredChange, import_id: ObjectId) -> ObjectId:
    """Queue the job that undoes an import, in the caller's transaction, and return it.

    Raises Conflict for an import of someone else, and Forbidden.
    """
    _require_own(ctx, change)
    require_permission(ctx.caller, CUSTOMERS.EDIT)
    job_id = ObjectId()
    await ctx.publish(ImportUndoRequested(import_id, job_id))
    return job_id


async def is_undoable(ctx: Context, change_id: ObjectId) -> bool:
    """Return whether the caller may undo a change or a batch, as far as that is known before its documents are read."""
    change = await history.find_one(ctx, change_id)
    if change is None:
        return await _is_batch_undoable(ctx, change_id)
    if limit_change(await load_visibility(ctx), change) is None:
        return False
    try:
        _require_undoable(ctx, change)
    except Conflict:
        return False
    return ctx.caller.permissions.issuperset(_reverse_permissions(change))


async def _is_batch_undoable(ctx: Context, batch_id: ObjectId) -> bool:
    try:
        return await _load_batch(ctx, batch_id) is not None
    except (NotFound, Conflict, Forbidden):
        return False


async def is_batch(ctx: Context, change_id: ObjectId) -> bool:
    """Return whether changes of a batch have this identifier."""
    return bool(await history.list_batch(ctx, change_id))


async def _undo_single(ctx: Context, change: StoredChange, claim: Claim | None) -> UndoResult:
    if claim is not None and await idempotency.find_done_steps(ctx, claim, [change["_id"]]):
        undone_by = change["undoneBy"]
        if undone_by is not None:
            ctx.change_ids.append(undone_by)
    else:
        undone_by = await _undo(ctx, [change], claim)
    return {"changeId": undone_by, "ok": len(change["documents"]), "failed": []}


async def _undo_batch(ctx: Context, changes: list[StoredChange], claim: Claim | None) -> UndoResult:
    ctx = replace(ctx, batch_id=ObjectId() if claim is None else jobs.batch_of(claim))
    ok, failed = await _undo_each(ctx, list(reversed(changes)), claim)
    if ok and not ctx.change_ids and ctx.batch_id is not None:
        ctx.change_ids.append(ctx.batch_id)  # of an earlier request with this claim
    return {"changeId": ctx.batch_id if ok else None, "ok": ok, "failed": failed}


async def _process(ctx: Context, _: StoredJob, ids: list[ObjectId], claim: Claim) -> Outcome:
    """Undo changes of a job; changes of clients who have been erased meanwhile are gone."""
    changes = await history.list_by_ids(ctx, ids)
    ctx = replace(ctx, batch_id=jobs.batch_of(claim))
    ok, failed = await _undo_each(ctx, changes, claim, is_job=True)
    return Outcome(ok, [dict(each) for each in failed])


async def _undo_each(
    ctx: Context, changes: list[StoredChange], claim: Claim | None, *, is_job: bool = False
) -> tuple[int, list[UndoFailure]]:
    """Undo changes in this order; returns how many documents were restored, and which were not."""
    steps = [change["_id"] for change in changes]
    done = {} if claim is None else await idempotency.find_done_steps(ctx, claim, steps)
    failed: list[UndoFailure] = []
    count = sum(len(change["documents"]) for change in changes if change["_id"] in done)
    for group in _group(change for change in changes if change["_id"] not in done):
        restored, failed_of_group = await _undo_group(ctx, group, claim, is_job=is_job)
        count, failed = count + restored, failed + failed_of_group
    return count, failed


def _group(changes: Iterable[StoredChange]) -> Iterator[list[StoredChange]]:
    """Yield changes for one transaction each: of different clients and documents, and not too many."""
    group: list[StoredChange] = []
    records: set[ObjectId | None] = set()
    for change in changes:
        own = {change["customerId"], *(document["_id"] for document in change["documents"])}
        if group and (None in own | records or own & records or len(own) + len(records) > _RECORDS):
            yield group
            group, records = [], set()
        group.append(change)
        records |= own
    if group:
        yield group


async def _undo_group(
    ctx: Context, changes: list[StoredChange], claim: Claim | None, *, is_job: bool
) -> tuple[int, list[UndoFailure]]:
    """Undo changes in one transaction, or if that fails each half of them; returns what _undo_each returns."""
    try:
        await _undo(ctx, changes, claim)
    except idempotency.IdempotencyKeyReused:
        raise
    except ServiceError as error:
        if is_job and isinstance(error, Unavailable):
            raise
        if len(changes) > 1:
            middle = len(changes) // 2
            first, failed = await _undo_group(ctx, changes[:middle], claim, is_job=is_job)
            second, failed_later = await _undo_group(ctx, changes[middle:], claim, is_job=is_job)
            return first + second, failed + failed_later
        moved = error.details["documents"] if isinstance(error, undo.DocumentsMoved) else changes[0]["documents"]
        return 0, [_failure(document["_id"], error) for document in moved]
    return sum(len(change["documents"]) for change in changes), []


def _failure(document_id: ObjectId, error: ServiceError) -> UndoFailure:
    return {"documentId": document_id, "code": error.code or error.reason, "message": str(error)}


@transactional
async def _undo(ctx: Context, changes: Sequence[StoredChange], claim: Claim | None) -> ObjectId:
    """Undo changes, all or none, and return the change or batch that does it."""
    clients = {change["_id"]: change["customerId"] for change in changes}
    if of_clients := [client for client in clients.values() if client is not None]:
        await customers.lock_all_visible(ctx, of_clients)
    for change in changes:
        _require_undoable(ctx, change)
        _require_permissions(ctx, change)
    if claim is not None:
        await idempotency.claim_steps(ctx, claim, list(clients), clients.__getitem__)
    await undo.restore(ctx, changes, await history.load_patches(ctx, changes))
    return ctx.batch_id or ctx.changes.id


def _require_undoable(ctx: Context, change: StoredChange) -> None:
    """Raise Conflict if the change cannot be undone at all, or not by the caller."""
    if service.undoable_until(ctx, change) is None:
        raise _not_undoable()
    _require_own(ctx, change)
    if change["undoneBy"] is not None:
        raise Conflict("This change has been undone already", code="VERSION_CONFLICT")


def _require_own(ctx: Context, change: StoredChange) -> None:
    if interface_of(ctx) == "assistant" and change["credentialId"] != ctx.caller.credential_id:
        raise Conflict("An assistant can undo only what it has changed itself", code="NOT_UNDOABLE")


def _not_undoable() -> Conflict:
    return Conflict("This change cannot be undone", code="NOT_UNDOABLE")


def _require_permissions(ctx: Context, change: StoredChange) -> None:
    """Raise Forbidden without the permissions of the operations that reverse a change."""
    for permission in _reverse_permissions(change):
        require_permission(ctx.caller, permission)


def _reverse_permissions(change: StoredChange) -> Iterator[str]:
    """Yield the permissions of the operations that reverse a change."""
    kinds = {document["kind"] for document in change["documents"]}
    if change["customerId"] is not None:
        yield next((area.EDIT for area, logged in _LOGGED_KINDS if kinds <= logged), CUSTOMERS.EDIT)
        return
    for document in change["documents"]:
        if document["kind"] != "workout" or "program" not in kinds:  # a program is deleted with its workouts
            yield _reverse_permission(AREAS[document["kind"]], document)


# Of a program, of a shared exercise, and of the clients of a group.
_PARTS = {"workout", "exercise_override", "group_program"}


def _reverse_permission(area: Area, document: ChangedDocument) -> str:
    is_part = document["kind"] in _PARTS
    if is_part or (document["action"] == "changed" and not document.get("softDeleted")):
        return area.EDIT
    return area.DELETE if document["action"] == "created" else area.CREATE


STEP = jobs.kind_of_step("undo")
run_step = jobs.step_of(_process, _AT_ONCE)
